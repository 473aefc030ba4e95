"""Starting a bot, waiting for it, showing what it said when it dies, and always stopping it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from evalrun.errors import UnavailableError
from evalrun.launch import Launch, free_port
from evalrun.process import GRACE_SECONDS, Process, find_program
from fakes.killing import runs
from fakes.project import BOT


def launch(folder: Path, *more: str, seconds: float = 30, **options: object) -> Launch:
    """A fake bot in ``folder``."""
    (folder / "docs.json").write_text(json.dumps({"docs": {"a": "A."}, "finds": {}}))
    command = [sys.executable, "-S", str(BOT), "--port", "{port}", "--docs", "docs.json", *more]
    return Launch(command, {}, folder, ready="/healthz", timeout=seconds, tap="http://tap", **options)  # type: ignore[arg-type]


async def test_a_bot_runs_for_the_time_of_the_block(tmp_path: Path) -> None:
    """It is ready inside, and gone afterwards; also when the block ends with an error."""
    pids: list[int] = []
    for wrong in (False, True):
        with pytest.raises(ZeroDivisionError) if wrong else contextlib.nullcontext():
            async with (
                launch(tmp_path, "--pid-file", "pid") as bot,
                httpx.AsyncClient(trust_env=False) as client,
            ):
                assert 200 == (await client.get(f"{bot.url}/about")).status_code
                assert "" == bot.ended()
                pids.append(int((tmp_path / "pid").read_text()))
                assert 1 / (0 if wrong else 1)
    assert [False, False] == [runs(pid) for pid in pids]


async def test_a_bot_that_dies_at_start_shows_its_last_output(tmp_path: Path) -> None:
    """Exit code, both streams, and how to run it by hand."""
    with pytest.raises(UnavailableError) as caught:
        async with launch(tmp_path, "--defect", "dies"):
            raise AssertionError("it is not ready")
    assert "the bot ended with code 3; its last output:" in caught.value.message
    assert "    no such index: broken.json" in caught.value.message
    assert str(BOT) in caught.value.hint


async def test_a_bot_that_never_gets_ready_is_given_up_and_stopped(tmp_path: Path) -> None:
    """It listens, and answers 503 for ever: an error after the time it may take, and no orphan."""
    with pytest.raises(UnavailableError, match=r"not ready at .*/healthz within 1\.5 s, it answers HTTP 503"):
        async with launch(tmp_path, "--defect", "never-ready", "--pid-file", "pid", seconds=1.5):
            raise AssertionError("it is not ready")
    if (tmp_path / "pid").exists():  # on a slow machine it may not have come that far
        assert not runs(int((tmp_path / "pid").read_text()))


async def test_a_bot_may_write_lines_of_any_length(tmp_path: Path) -> None:
    """A line longer than every buffer neither blocks the bot nor grows without end."""
    async with launch(tmp_path, "--defect", "chatty") as bot:
        for _ in range(100):
            if bot.last_words().strip():
                break
            await asyncio.sleep(0.05)
        assert bot.last_words().strip("x \n") == ""
        assert len(bot.last_words()) < 10_000


async def until(holds: Callable[[], bool]) -> None:
    """Wait for it; a test that waits for ever has failed."""
    for _ in range(3000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came to that")


PATIENT = """
import signal, sys, time
from pathlib import Path

def told(number, frame):
    with Path("told").open("a") as file:
        file.write("TERM\\n")

signal.signal(signal.SIGTERM, told)
Path("ready").touch()
while not Path("may-end").exists():
    time.sleep(0.01)
"""


async def test_a_dismissed_bot_has_its_time_to_end_and_is_told_once(tmp_path: Path) -> None:
    """Whoever dismisses it goes on meanwhile; its end is no failure, and the block waits for it."""
    (tmp_path / "bot.py").write_text(PATIENT)
    process = await Process.start([sys.executable, "-S", "bot.py"], {}, tmp_path, what="x")
    await until((tmp_path / "ready").exists)
    process.dismiss()
    await until((tmp_path / "told").exists)
    assert process.returncode is None
    (tmp_path / "may-end").touch()
    await process.stop()
    assert 0 == await process.wait()
    assert "TERM\n" == (tmp_path / "told").read_text()


async def test_a_user_who_will_not_wait_waits_a_moment_for_a_patient_bot(tmp_path: Path) -> None:
    """Its time to end is short then; and it is seen to its end, so that nothing of it is left to be told."""
    (tmp_path / "bot.py").write_text(PATIENT)
    process = await Process.start([sys.executable, "-S", "bot.py"], {}, tmp_path, what="x")
    await until((tmp_path / "ready").exists)

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await process.stop()

    run, begun = asyncio.create_task(work()), time.monotonic()
    await asyncio.sleep(0)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert time.monotonic() - begun < GRACE_SECONDS
    assert -signal.SIGKILL == process.returncode


async def test_a_stop_that_is_broken_off_sees_the_bot_to_its_end(tmp_path: Path) -> None:
    """Else its transport would be left to an event loop that is closed by then."""
    (tmp_path / "bot.py").write_text(PATIENT)
    process = await Process.start([sys.executable, "-S", "bot.py"], {}, tmp_path, what="x")
    await until((tmp_path / "ready").exists)
    stopping = asyncio.create_task(process.stop())
    await until((tmp_path / "told").exists)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert -signal.SIGKILL == process.returncode


async def test_the_end_of_a_dismissed_bot_is_not_its_failure(tmp_path: Path) -> None:
    """It ends because it was told to."""
    async with launch(tmp_path, "--pid-file", "pid") as bot:
        bot.dismiss()
        pid = int((tmp_path / "pid").read_text())
        await until(lambda: not runs(pid))
        assert "" == bot.ended()


async def test_its_children_go_with_it(tmp_path: Path) -> None:
    """A bot started by a shell script is stopped whole, also what does not listen to a polite request."""
    made = launch(tmp_path)
    bot = " ".join(f'"{part}"' for part in made._command)
    made._command = ["sh", "-c", f"(trap '' TERM; exec sleep 60 > log 2>&1) & echo $! > child; {bot}"]
    async with made:
        child = int((tmp_path / "child").read_text())
        assert runs(child)
    for _ in range(200):  # a killed child is reaped by whoever inherits it
        if not runs(child):
            break
        await asyncio.sleep(0.05)
    assert not runs(child)


STARTS = """
import asyncio, sys
from pathlib import Path
from evalrun.process import Process

async def main():
    script = "PATH=/bin:/usr/bin; (trap '' TERM; exec sleep 60) & echo $$ $! > pids; sleep 60"
    await Process.start([sys.argv[2], "-c", script], {}, Path(sys.argv[1]), what="x")
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("shell", [True, False], ids=["shell", "no shell"])
async def test_it_does_not_outlive_evalrun_however_that_ends(tmp_path: Path, shell: bool) -> None:
    """Kill -9 leaves nobody who could stop it: it is gone all the same, and its children with it; also where
    there is no shell on ``PATH``.
    """
    args = (sys.executable, "-c", STARTS, str(tmp_path), str(shutil.which("sh")))
    env = os.environ | ({} if shell else {"PATH": str(tmp_path)})
    evalrun = await asyncio.create_subprocess_exec(*args, env=env)
    try:
        for _ in range(1000):
            if len(pids := _read(tmp_path / "pids").split()) == 2:
                break
            await asyncio.sleep(0.01)
        assert [True, True] == [runs(int(pid)) for pid in pids]
    finally:
        evalrun.kill()
        await evalrun.wait()
    for _ in range(100):
        if not any(runs(int(pid)) for pid in pids):
            break
        await asyncio.sleep(0.05)
    assert [False, False] == [runs(int(pid)) for pid in pids]


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


async def test_a_recording_starts_it_with_an_empty_cache(tmp_path: Path) -> None:
    """Only so are all its model calls seen; the folder goes afterwards."""
    show = "import os; print(os.environ['RAGBOT_CACHE'], os.listdir(os.environ['XDG_CACHE_HOME']))"
    command = [sys.executable, "-S", "-c", show]
    made = Launch(command, {}, tmp_path, ready="/", timeout=30, tap="", fresh_cache=True)
    with pytest.raises(UnavailableError):
        async with made:
            raise AssertionError("it is not ready")
    folder, content = made.last_words().split()
    assert "[]" == content
    assert not await asyncio.to_thread(os.path.exists, folder)


def test_the_command_and_the_environment_are_filled_in(tmp_path: Path) -> None:
    """``{port}`` and ``{tap}`` in either; other braces are text."""
    made = Launch(
        ["bot", "--port={port}", "{x}"],
        {"OLLAMA_HOST": "{tap}/v1"},
        tmp_path,
        ready="/",
        timeout=1,
        tap="http://t",
    )
    assert ["bot", f"--port={made.port}", "{x}"] == made._command
    assert {"OLLAMA_HOST": "http://t/v1"} == made._env


def test_a_program_is_looked_for_beside_python_then_on_the_path(tmp_path: Path) -> None:
    """A path is taken from the config's folder; what is nowhere is told with what to do."""
    assert str(tmp_path / "run.sh") == find_program("./run.sh", tmp_path)
    assert Path(sys.executable).parent == Path(find_program(Path(sys.executable).name, tmp_path)).parent
    assert find_program("sh", tmp_path).endswith("/sh")
    with pytest.raises(UnavailableError, match="'no-such-bot' is not installed here"):
        find_program("no-such-bot", tmp_path)


async def test_a_program_that_cannot_be_run_is_an_error_of_the_user(tmp_path: Path) -> None:
    """No such file, or one that may not be executed: named, without a traceback."""
    (tmp_path / "run.txt").write_text("x")
    for name, reason in (("./gone", "No such file"), ("./run.txt", "Permission denied")):
        with pytest.raises(UnavailableError, match=reason):
            async with Launch([name], {}, tmp_path, ready="/", timeout=1, tap=""):
                raise AssertionError("it is not ready")


def test_a_free_port_can_be_listened_on() -> None:
    """Two calls in a row give ports that are both free."""
    ports = [free_port(), free_port()]
    for port in ports:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))


def test_a_free_port_is_none_that_a_connection_may_get_meanwhile() -> None:
    """Else it may be taken before the bot listens there, as it was with many connections at once."""
    ports = Path("/proc/sys/net/ipv4/ip_local_port_range")
    if not ports.exists():
        pytest.skip("the system does not say here which ports it gives away")
    first, last = map(int, ports.read_text().split())
    if (first, last) != (32768, 60999):
        pytest.skip("this system gives away others than Linux does by default")
    assert all(not first <= free_port() <= last for _ in range(20))
