"""``ragbot serve`` with many streams at once: are they whole, how quick is ``/healthz``, what does it cost.

Four processes: a scripted model server, ragbot, whoever probes ``/healthz``, and this one, which reads the
streams. The first round starts cold: the model's client and the embedder are imported in it, and its probes
are told, not held against what is allowed.
``python benchmarks/ragbot_load.py --help`` says what can be chosen.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

PROFILE = Path(__file__).resolve().parent.parent / "data" / "corpus" / "profile.md"
QUESTION = "Which conference did you speak at?"
EVERY = 0.02
"""Seconds between two probes."""


def main() -> int:
    """Print a line a round; 1 where a stream was not whole or a probe took longer than allowed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--pieces", type=int, default=100, help="pieces of an answer")
    parser.add_argument("--pace", type=float, default=0.05, help="seconds between two pieces")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--allowed", type=float, default=0.1, help="seconds a probe may take")
    chosen = parser.parse_args()
    ideal = chosen.pieces * chosen.pace
    worst, broken = 0.0, 0
    print("round  streams  broken  wall/ideal  cpu s  ms a piece  health ms: median   p99    max  probes")
    with model(chosen.pieces, chosen.pace) as upstream, ragbot(upstream) as (url, process):
        for number in range(1, chosen.rounds + 1):
            before, began = cpu_of(process.pid), time.perf_counter()
            with probing(url) as probes:
                whole = asyncio.run(streams(url, chosen.streams, chosen.pieces))
            wall, cpu = time.perf_counter() - began, cpu_of(process.pid) - before
            found = sorted(probes)
            worst, broken = max(worst, found[-1] if number > 1 else 0.0), broken + chosen.streams - whole
            told = [1000 * found[int(share * (len(found) - 1))] for share in (0.5, 0.99, 1.0)]
            lost = chosen.streams - whole
            print(
                f"{number:5}  {chosen.streams:7}  {lost:6}  {wall / ideal:10.2f}  {cpu:5.2f}"
                f"  {1000 * cpu / chosen.streams / chosen.pieces:10.3f}"
                f"  {told[0]:17.1f} {told[1]:5.1f} {told[2]:6.1f}  {len(found):6}"
            )
    return int(broken > 0 or worst > chosen.allowed)


async def streams(url: str, count: int, pieces: int) -> int:
    """How many of ``count`` streams at once came to their end with every piece."""
    import aiohttp

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, raise_for_status=True) as session:

        async def one() -> bool:
            async with session.post(f"{url}/chat", json={"question": QUESTION}) as reply:
                text = (await reply.read()).decode()
            return text.count("event: token") == pieces and "event: done" in text

        done = await asyncio.gather(*(one() for _ in range(count)), return_exceptions=True)
    return sum(found is True for found in done)


@contextmanager
def probing(url: str) -> Iterator[list[float]]:
    """Seconds of each probe, made all the while in a process of its own."""
    command = [sys.executable, __file__, "probe", url]
    found: list[float] = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        yield found
        process.stdin.close()
        found += json.loads(process.stdout.read())


def probe(url: str) -> None:
    """Ask until standard input ends; print how long each took."""
    ended = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    connection.request("GET", "/healthz")
    connection.getresponse().read()
    print("ready", flush=True)
    found = []
    while not ended.wait(EVERY):
        began = time.perf_counter()
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        found.append(time.perf_counter() - began)
    print(json.dumps(found))


@contextmanager
def ragbot(upstream: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A twin that asks ``upstream``, with an index that is there already."""
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "OLLAMA_HOST": upstream, "RAGBOT_CACHE": cache}
        program = [sys.executable, "-m", "ragbot.cli"]
        subprocess.run([*program, "index", "--profile", PROFILE], env=env, check=True, capture_output=True)
        command = [*program, "serve", "--port", "0", "--profile", str(PROFILE)]
        with started(command, env) as found:
            yield found


@contextmanager
def model(pieces: int, pace: float) -> Iterator[str]:
    """The address of the scripted model server."""
    with started([sys.executable, __file__, "model", str(pieces), str(pace)]) as (url, _):
        yield url


@contextmanager
def started(
    command: list[str], env: dict[str, str] | None = None
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A process that says its address on standard error."""
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = ""
        try:
            while not (found := re.search(r"http://\S+", said)):
                line = process.stderr.readline()
                if not line:
                    raise SystemExit(f"{command[1:3]} did not start:\n{said}")
                said += line
            yield found[0], process
        finally:
            process.terminate()
            print(process.stderr.read(), end="", file=sys.stderr)


def serve_model(pieces: int, pace: float) -> None:
    """Ollama's chat API, streaming: a piece every ``pace`` seconds."""
    from aiohttp import web

    def line(text: str, **fields: object) -> bytes:
        known = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": False}
        message = {"role": "assistant", "content": text}
        return json.dumps({**known, "message": message, **fields}).encode() + b"\n"

    async def chat(request: web.Request) -> web.StreamResponse:
        await request.read()
        reply = web.StreamResponse(headers={"content-type": "application/x-ndjson"})
        await reply.prepare(request)
        for _ in range(pieces):
            await asyncio.sleep(pace)
            await reply.write(line("word "))
        await reply.write(line("", done=True, done_reason="stop", prompt_eval_count=900, eval_count=pieces))
        return reply

    async def serve() -> None:
        app = web.Application()
        app.router.add_post("/api/chat", chat)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(f"http://127.0.0.1:{runner.addresses[0][1]}", file=sys.stderr, flush=True)
        await asyncio.Event().wait()

    asyncio.run(serve())


def cpu_of(pid: int) -> float:
    """Seconds of processor that a process has had (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    if sys.argv[1:2] == ["probe"]:
        probe(sys.argv[2])
    elif sys.argv[1:2] == ["model"]:
        serve_model(int(sys.argv[2]), float(sys.argv[3]))
    else:
        sys.exit(main())
