"""Runs that ended early and are gone on with: nothing lost, nothing asked twice, the same bytes last."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from evalrun.errors import ExitCode
from evalrun.journal import KINDS, RunFolder
from evalrun.jsonl import whole_lines
from fakes.killing import killed, timeless
from fakes.limits import no_file_beyond
from fakes.project import Project, question_of
from known import data_of, known, lines_of

Note = Callable[..., None]
SERIES = int(os.environ.get("KILL_SERIES", "1"))
"""How many runs are killed five times each; ``nox -s faults`` sets it."""


def with_pid(project: Project) -> Project:
    """The project with a bot that leaves its process id, and a model and a judge that take their time."""
    project.config["target"]["launch"]["command"] = project.command("--pid-file", str(project.folder / "pid"))
    project.model.delay = project.judge.delay = 0.03
    return project


def began(project: Project, *args: str) -> Path:
    """A run that ended early: its budget was spent after ten calls."""
    project.config["budget"] = {"calls": 10}
    done = project.run(*args)
    assert ExitCode.NOT_ENOUGH_EVIDENCE == done.code, done.text
    project.config["budget"] = {}
    return done.folder.path


def put(path: Path, kind: str, lines: list[bytes], tail: bytes = b"") -> None:
    """Write a journal."""
    (path / f"{kind}.jsonl").write_bytes(b"".join(line + b"\n" for line in lines) + tail)


# ---------------------------------------------------------------- killed


@pytest.mark.parametrize("seed", range(SERIES))
def test_a_run_killed_at_random_moments_loses_nothing_and_asks_nothing_twice(
    project: Project, seed: int, fault: Note
) -> None:
    """Five times kill -9, live: every draw that stood in the journal stays, no call of what is kept is made
    again, and all but the clock's own is the same as of a run that nobody killed.
    """
    whole = with_pid(project).run("--live")
    assert ExitCode.OK == whole.code, whole.text
    found = killed(project, 5, 1000 * seed, "--live")
    assert ([], [], 0) == (found.lost, found.repeated, found.orphans)
    assert 1 <= found.kills <= 5
    assert timeless(whole.folder.path) == timeless(found.folder.path)
    assert not found.folder.unfinished
    fault("kill -9, live", len(found.repeated), found.kills, len(found.lost))


def test_a_killed_replay_comes_to_the_same_bytes(project: Project, fault: Note) -> None:
    """Of a replay even the seconds are the same: every journal and run.json, byte for byte."""
    whole = with_pid(project).recorded().run()
    project.stop()
    found = killed(project, 3, 7)
    assert ([], 0) == (found.lost, found.orphans)
    for name in (*(f"{kind}.jsonl" for kind in KINDS), "run.json"):
        assert whole.files()[name] == (found.folder.path / name).read_bytes(), name
    fault("kill -9, replay", len(found.repeated), found.kills, len(found.lost))


# ---------------------------------------------------------------- what is kept


def test_a_spent_budget_is_gone_on_with(project: Project) -> None:
    """The hint names the command; it asks for what is missing alone, and the run is then complete."""
    whole = project.run("--live")
    project.model.bodies.clear()
    project.judge.bodies.clear()
    project.config["budget"] = {"calls": 10}
    first = project.run("--live")
    path = first.folder.path
    assert f"go on with it: evalrun run {project.folder / 'config.yaml'} --live --resume {path}" in first.text
    kept = {draw.key for draw in first.draws if draw.error is None}
    project.config["budget"] = {}
    done = project.run("--live", resume=path)
    assert ExitCode.OK == done.code, done.text
    assert "go on with it" not in done.text
    assert 32 == len(project.model.bodies)
    assert kept <= {draw.key for draw in done.draws}
    assert timeless(whole.folder.path) == timeless(path)
    again = project.run("--live", resume=path)
    assert (ExitCode.USAGE, True) == (again.code, "this run is complete" in again.text)


def test_a_bot_asks_no_more_where_its_calls_cannot_be_written_down(project: Project) -> None:
    """A disk that is full ends the run at once, also where only what the tap saw finds no room: a reply that
    was paid for would be lost with each further question. With room again the rest alone is asked.
    """
    del project.config["judge"]
    project.config |= {"scorers": ["recall@2"], "gates": []}
    project.config["target"]["limits"]["retries"] = 2
    with no_file_beyond(9_000):
        first = project.run("--live")
    path, limit = first.folder.path, project.config["target"]["limits"]["concurrency"]
    assert ExitCode.USAGE == first.code, first.text
    assert f"{path / 'exchanges.jsonl'}: File too large" in first.text
    kept, asked = len(list(RunFolder(path).draws())), len(project.model.bodies)
    assert 0 < kept < asked <= kept + limit
    done = project.run("--live", resume=path)
    assert ExitCode.OK == done.code, done.text
    assert 32 == len(project.model.bodies) - (asked - kept)
    assert 32 == len(done.draws)


@pytest.mark.parametrize("how", ["moved", "removed", "one file removed"])
def test_a_folder_that_is_taken_away_ends_the_run(project: Project, how: str) -> None:
    """Soon, for its replies would be lost; one that was moved elsewhere is gone on with there."""
    with_pid(project).model.delay = 0.3
    process, path = project.start("--live")
    _after_draws(process, path, 4)
    elsewhere = project.folder / "elsewhere"
    if how == "moved":
        path.rename(elsewhere)
    elif how == "removed":
        shutil.rmtree(path)
    else:
        (path / "exchanges.jsonl").unlink()
    text, _ = process.communicate(timeout=60)
    assert ExitCode.USAGE == process.returncode, text
    assert len(project.model.bodies) < 32
    named = path / "exchanges.jsonl" if how == "one file removed" else path
    assert f"evalrun: {named}: moved away or removed while the run wrote to it" in text
    assert "Traceback" not in text
    with pytest.raises(ProcessLookupError):
        os.kill(int((project.folder / "pid").read_text()), 0)
    if how == "moved":
        project.model.delay = 0
        done = project.run("--live", resume=elsewhere)
        assert (ExitCode.OK, 32) == (done.code, len(done.draws)), done.text


RS_01 = data_of("rs-01-partial-results.jsonl")


@known(
    "RS-01",
    (["q1", "q2", "q3"], ["q1", "q2"], RS_01.split(b"\n")[-1]),
    (["q1", "q2", "q3"], ["q3"], b'{"answer":"caf\xc3'),
    (["q1", "q2"], [], b"\x00" * 512),
    (["q1", "q2"], ["q1"], b'{"case":"q2","index":0,"answer":"whole, but for its line end"}'),
)
def test_a_torn_line_is_cut_off_and_its_draw_redone(
    given: tuple[list[str], list[str], bytes], project: Project
) -> None:
    """Of a journal whose last line is half, the whole lines are kept and the rest is asked again, with a
    note; wherever it is torn, inside a character too.
    """
    ids, whole, torn = given
    path, asked = as_questions(project, ids, whole, torn)
    done = project.run("--live", resume=path)
    assert ExitCode.OK == done.code, done.text
    assert set(ids) - set(whole) == asked()
    assert "draws.jsonl: its last line was torn" in done.text
    assert ids == [draw.case for draw in done.draws]


@known(
    "RS-02",
    (["q1", "q2", "q3", "q4", "q5"], [line["id"] for line in lines_of("rs-02-gap.jsonl")]),
    (["q1", "q2", "q3", "q4"], ["q4", "q2"]),
    (["q1", "q2", "q3"], ["q3", "q3", "q1"]),
)
def test_a_gap_is_filled_by_its_name(given: tuple[list[str], list[str]], project: Project) -> None:
    """Exactly what is missing is asked, whatever the order of the lines, and each stands there once."""
    ids, present = given
    path, asked = as_questions(project, ids, present)
    done = project.run("--live", resume=path)
    assert ExitCode.OK == done.code, done.text
    assert set(ids) - set(present) == asked()
    assert ids == [draw.case for draw in done.draws]


def as_questions(
    project: Project, ids: list[str], present: list[str], torn: bytes = b""
) -> tuple[Path, Callable[[], set[str]]]:
    """A run of these cases that ended early with the draws of ``present``, and what is asked from now on."""
    project.cases = [case | {"id": name} for name, case in zip(ids, project.cases, strict=False)]
    project.config |= {"draws": 1, "gates": []}
    questions = {case["question"]: case["id"] for case in project.cases}
    project.config["budget"] = {"seconds": 0.0001}
    path = project.run("--live").folder.path
    project.config["budget"] = {}
    whole = project.run("--live").folder
    for kind in ("draws", "contexts", "exchanges"):
        lines, _ = whole_lines(whole.file(kind))
        lines = [line for line in lines if b'"judge"' not in line]
        found = [line for name in present for line in lines if name == json.loads(line)["case"]]
        put(path, kind, found, torn if kind == "draws" else b"")
    project.model.bodies.clear()
    return path, lambda: {questions[question_of(body)] for body in project.model.bodies}


def test_a_service_that_was_gone_is_asked_again(project: Project) -> None:
    """Draws that failed are no result: once the service is back they are asked, the others are not."""
    whole = project.run("--live")
    project.model.bodies.clear()
    project.model.say, say = lambda body: {"status": 500}, project.model.say
    failed = project.run("--live")
    assert ExitCode.UNAVAILABLE == failed.code
    assert "go on with it: evalrun run" in failed.text
    project.model.say = say
    done = project.run("--live", resume=failed.folder.path)
    assert ExitCode.OK == done.code, done.text
    assert timeless(whole.folder.path) == timeless(failed.folder.path)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda project: project.config.update(temperature=0.2), "config.temperature: 0.7 -> 0.2"),
        (lambda project: project.cases[0].update(question="Where do you speak next?"), "dataset: 'sha256:"),
        (lambda project: project.rubric["prompt"].update(system="Be strict."), "judge.rubric: 'sha256:"),
    ],
    ids=["config", "dataset", "judge"],
)
def test_another_run_is_refused_with_the_difference(
    project: Project, change: Callable[[Project], None], said: str
) -> None:
    """What was answered by one config is not mixed with another's; nothing is asked or changed."""
    path = began(project, "--live")
    change(project)
    before = {kind: (path / f"{kind}.jsonl").read_bytes() for kind in KINDS}
    project.model.bodies.clear()
    done = project.run("--live", resume=path)
    assert ExitCode.USAGE == done.code, done.text
    assert said in done.text
    assert [] == project.model.bodies
    assert before == {kind: (path / f"{kind}.jsonl").read_bytes() for kind in KINDS}


def test_another_mode_is_refused_with_the_right_command(project: Project) -> None:
    """A live run is not gone on with as a replay; the message has the command that does."""
    project.recorded()
    path = began(project, "--live")
    done = project.run(resume=path)
    assert ExitCode.USAGE == done.code
    assert "mode: 'live' -> 'replay'" in done.text
    assert f"--live --resume {path}" in done.text


def test_garbage_in_the_middle_of_a_journal_is_refused(project: Project) -> None:
    """Only a last line can be torn: anything else is named with file and line."""
    path = began(project, "--live")
    lines, _ = whole_lines(path / "draws.jsonl")
    put(path, "draws", [lines[0], b'{"case": "talks", "ind', *lines[1:]])
    done = project.run("--live", resume=path)
    assert (ExitCode.USAGE, True) == (done.code, "draws.jsonl:2: not a line of this journal" in done.text)


def test_a_folder_without_an_unfinished_run_is_refused(project: Project, tmp_path: Path) -> None:
    """Nothing was begun there."""
    empty = tmp_path / "empty"
    empty.mkdir()
    done = project.run("--live", resume=empty)
    assert (ExitCode.USAGE, True) == (done.code, "nothing to resume" in done.text)


def test_a_run_that_is_still_going_on_is_left_alone(project: Project) -> None:
    """Two processes never write into one run; what reads it says how to go on."""
    path = began(project, "--live")
    (path / "run.json").unlink()
    with pytest.raises(Exception, match=r"not finished\n    go on with it: evalrun run"):
        RunFolder(path).header  # noqa: B018
    other = RunFolder(path)
    other.hold()
    done = project.run("--live", resume=path)
    assert (ExitCode.USAGE, True) == (done.code, "still going on" in done.text)
    other.let_go()
    assert ExitCode.OK == project.run("--live", resume=path).code


# ---------------------------------------------------------------- stopped


def stopped(project: Project, delay: float, signals: int) -> tuple[int, str, Path, float]:
    """A live run that gets SIGINT after three answers, once or twice: code, output, folder, seconds."""
    project.config |= {"draws": 1, "gates": []}
    project.config["target"]["limits"]["concurrency"] = 2
    with_pid(project).model.delay = 0.1
    process, path = project.start("--live")
    journal = path / "draws.jsonl"
    while process.poll() is None and not (journal.exists() and journal.read_bytes().count(b"\n") >= 3):
        time.sleep(0.01)
    project.model.delay = delay
    time.sleep(0.3)
    begun = time.monotonic()
    for _ in range(signals):
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
    text, _ = process.communicate(timeout=60)
    with pytest.raises(ProcessLookupError):
        os.kill(int((project.folder / "pid").read_text()), 0)
    return process.returncode, text, path, time.monotonic() - begun


def test_ctrl_c_once_lets_finish_what_is_in_flight(project: Project) -> None:
    """What was asked is paid for: its answers are written down, nothing new is asked; 130 and the way on."""
    code, text, path, _ = stopped(project, 1.0, 1)
    assert ExitCode.INTERRUPTED == code, text
    assert "finishing what is in flight" in text
    assert f"--live --resume {path}" in text
    assert "Traceback" not in text
    draws = list(RunFolder(path).draws())
    assert len(project.model.bodies) == len(draws) < 16
    assert {None} == {draw.error for draw in draws}
    project.model.delay = 0
    done = project.run("--live", resume=path)
    assert (ExitCode.OK, 16, 16) == (done.code, len(project.model.bodies), len(done.draws))


def hung_up(
    project: Project, process: subprocess.Popen[str], path: Path, hang_up: Callable[[], None]
) -> None:
    """A live run meets the end of its terminal after three answers: its answers are kept, its bot is gone."""
    _after_draws(process, path, 3)
    hang_up()
    assert ExitCode.INTERRUPTED == process.wait(60)
    with pytest.raises(ProcessLookupError):
        os.kill(int((project.folder / "pid").read_text()), 0)
    draws = list(RunFolder(path).draws())
    assert len(project.model.bodies) == len(draws) < 16
    assert {None} == {draw.error for draw in draws}
    done = project.run("--live", resume=path)
    assert (ExitCode.OK, 16, 16) == (done.code, len(project.model.bodies), len(done.draws))


def _after_draws(process: subprocess.Popen[str], path: Path, count: int) -> None:
    journal = path / "draws.jsonl"
    while process.poll() is None and not (journal.exists() and journal.read_bytes().count(b"\n") >= count):
        time.sleep(0.01)


def slowly(project: Project) -> Project:
    """The project with answers that take a moment, and one of each question."""
    project.config |= {"draws": 1, "gates": []}
    with_pid(project).model.delay = 0.2
    return project


def test_a_hangup_lets_finish_what_is_in_flight(project: Project) -> None:
    """As Ctrl-C does; it comes from shell and system both, and again is not at once."""
    process, path = slowly(project).start("--live")

    def hang_up() -> None:
        for _ in range(3):
            process.send_signal(signal.SIGHUP)
            time.sleep(0.01)

    hung_up(project, process, path, hang_up)
    text = process.stdout.read() if process.stdout else ""
    assert "finishing what is in flight" in text
    assert f"--live --resume {path}" in text


@pytest.mark.skipif(sys.platform != "linux", reason="terminals differ")
def test_a_closed_terminal_ends_a_run_in_good_order(project: Project) -> None:
    """With nobody there to be told: what cannot be written is no error of the run."""
    config, path = slowly(project).write(), project.folder / "hung-up"
    ours, theirs = pty.openpty()
    tty, run = os.ttyname(theirs), "from evalrun.cli import main; main()"
    args = [sys.executable, "-c", run, "run", str(config), "--live", "--output", str(path)]
    shell = f'exec "$@" <{tty} >{tty} 2>{tty}'  # the leader of a session gets the terminal it opens
    process = subprocess.Popen(["sh", "-c", shell, "sh", *args], start_new_session=True, text=True)
    os.close(theirs)
    hung_up(project, process, path, lambda: os.close(ours))


def test_a_hangup_that_is_ignored_stays_ignored(project: Project) -> None:
    """As ``nohup`` has it: the run goes on to its end."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process, path = slowly(project).start("--live")
    finally:
        signal.signal(signal.SIGHUP, before)
    _after_draws(process, path, 3)
    process.send_signal(signal.SIGHUP)
    text, _ = process.communicate(timeout=60)
    assert (ExitCode.OK, 16) == (process.returncode, len(list(RunFolder(path).draws()))), text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stopped_before_the_first_answer(project: Project, number: signal.Signals) -> None:
    """Nothing is there, and nothing is said to be; the bot that was starting is gone."""
    pid_file = project.folder / "pid"
    project.config["target"]["launch"]["command"] = project.command(
        "--defect", "never-ready", "--pid-file", str(pid_file)
    )
    process, path = project.start("--live")
    while process.poll() is None and not (pid_file.exists() and pid_file.read_text()):
        time.sleep(0.01)
    process.send_signal(number)
    text, _ = process.communicate(timeout=60)
    assert ExitCode.INTERRUPTED == process.returncode, text
    assert "evalrun: interrupted before the first answer" in text
    assert "kept" not in text
    assert "resume" not in text
    assert not path.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


HASTY = """
import os, signal
from evalrun.reports import report

@report("hasty.txt")
def hasty(folder):
    os.kill(os.getpid(), signal.SIGINT)
    return b""
"""


def test_stopped_while_the_reports_are_written(project: Project) -> None:
    """Everything is answered, judged and kept: what shows it is named, and nothing is to be gone on with."""
    (project.folder / "hasty.py").write_text(HASTY)
    project.config["plugins"] = ["hasty"]
    launch = project.config["target"]["launch"]  # its bot takes its time, in which the signal is heard
    launch["command"] = ["sh", "-c", "trap '' TERM; exec \"$@\"", "sh", *launch["command"]]
    process, path = project.start("--live")
    text, _ = process.communicate(timeout=60)
    assert ExitCode.INTERRUPTED == process.returncode, text
    assert "evalrun: interrupted; the run is complete" in text
    assert f"show it: evalrun report {path}" in text
    assert "Traceback" not in text
    assert RunFolder(path).complete
    again, _ = project.start("--live", resume=path)  # not in this process, in which the plugin would stay
    text, _ = again.communicate(timeout=60)
    assert (ExitCode.USAGE, True) == (again.returncode, f"show it: evalrun report {path}" in text)


@pytest.mark.parametrize("signals", [1, 2])
def test_ctrl_c_does_not_wait_for_ever(project: Project, signals: int) -> None:
    """An answer that takes 40 seconds is waited for ten, if asked twice not at all; the bot is gone all the
    same, and what is missing can be asked for later.
    """
    code, text, path, seconds = stopped(project, 40.0, signals)
    assert ExitCode.INTERRUPTED == code, text
    assert seconds < 30
    assert f"--live --resume {path}" in text
    assert len(project.model.bodies) > len(list(RunFolder(path).draws())) >= 3
    project.model.delay = 0
    assert ExitCode.OK == project.run("--live", resume=path).code
