"""``evalrun run`` against the design's budgets, beside a bare aiohttp loop on the same machine.

Owns the projects that are run, what is measured of them (processor time and memory as the kernel counts
them, the wall as the asked server sees it) and the table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
EVALRUN = str(Path(sys.executable).with_name("evalrun"))
AT_ONCE = 64
LATENCY = 0.05
CASES = (1_000, 3_000)
RATIO = 1.7 / 0.65
"""A sample may take 1.7 ms where a bare aiohttp loop takes 0.65 ms for its two calls."""
CONFIG = """\
name: speed
dataset: cases.jsonl
target:
  kind: http
  url: {url}
  path: /answer
  answer: answer
  contexts: contexts
  k: 3
  limits: {{concurrency: {half}, timeout: 30}}
draws: 1
provenance: claimed
scorers: [recall@3, outcome, faithful, novel_terms, latency]
judge:
  model: openai/stub
  base_url: {url}
  rubric: {rubric}
  limits: {{concurrency: {half}, timeout: 30}}
gates:
  - {{metric: grounded, group: answerable, min: 0.50}}
"""


@dataclass(frozen=True)
class Cost:
    """What one process took: seconds of the clock and of processors, and its largest size in MB."""

    code: int
    wall: float
    cpu: float
    peak: float


def run(command: Sequence[str], folder: Path) -> Cost:
    """Run a command to its end; its output goes to ``output.txt``."""
    began = time.perf_counter()
    with (folder / "output.txt").open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - began
    scale = 1e6 if sys.platform == "darwin" else 1e3
    return Cost(process.returncode, wall, used.ru_utime + used.ru_stime, used.ru_maxrss / scale)


@contextmanager
def stub(latency: float, *faults: str) -> Iterator[str]:
    """A bot and a judge for the time of a ``with``; gives their URL."""
    command = [sys.executable, str(HERE / "stub.py"), "--latency", str(latency), *faults]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


def seen(url: str) -> dict[str, Any]:
    """What the stub saw so far."""
    with urllib.request.urlopen(f"{url}/seen", timeout=10) as reply:
        found: dict[str, Any] = json.load(reply)
    return found


def project(folder: Path, url: str, cases: int) -> Path:
    """A config and its dataset."""
    folder.mkdir()
    with (folder / "cases.jsonl").open("w", encoding="utf-8") as file:
        for item in range(cases):
            line = {"id": f"item-{item}", "question": f"Where do I find item {item}?"}
            file.write(json.dumps({**line, "category": "items", "relevant_ids": [f"item-{item}"]}) + "\n")
    rubric = HERE.parent / "configs" / "rubrics" / "claims.yaml"
    text = CONFIG.format(url=url, half=AT_ONCE // 2, rubric=rubric)
    (folder / "evalrun.yaml").write_text(text, encoding="utf-8")
    return folder


@dataclass(frozen=True)
class Run:
    """What a run took, and over how many seconds the stub was asked by it."""

    cost: Cost
    asked: float
    folder: Path


def evalrun(
    folder: Path,
    cases: int,
    latency: float = LATENCY,
    faults: Sequence[str] = (),
    options: Sequence[str] = (),
) -> Run:
    """``evalrun run`` on so many cases, against a stub of its own."""
    with stub(latency, *faults) as url:
        made = project(folder / f"evalrun-{cases}-{time.monotonic_ns()}", url, cases)
        cost = run([EVALRUN, "run", "evalrun.yaml", "--live", "--output", "run", *options], made)
        saw = seen(url)
    if cost.code != 0:
        sys.exit(f"evalrun ended with {cost.code}:\n{(made / 'output.txt').read_text()[-3000:]}")
    return Run(cost, saw["last"] - saw["first"], made / "run")


def bodies(run_folder: Path, into: Path) -> Path:
    """The bodies that a run sent for one case, for the yardstick."""
    with (run_folder / "exchanges.jsonl").open(encoding="utf-8") as lines:
        judged = json.dumps(json.loads(next(lines))["request"], separators=(",", ":"))
    number = judged.rpartition("item ")[2].partition("?")[0]
    asked = json.dumps({"question": "Where do I find item 0?"})
    judged = judged.replace(f"tem {number}", "tem 0").replace(f"tem-{number}", "tem-0")
    into.write_text(f"{asked}\n{judged}\n", encoding="utf-8")
    return into


def yardstick(folder: Path, cases: int, sent: Path) -> Run:
    """The bare loop on so many cases."""
    with stub(LATENCY) as url:
        command = [sys.executable, str(HERE / "yardstick.py"), url, str(cases), str(AT_ONCE), str(sent)]
        cost = run(command, folder)
        saw = seen(url)
    if cost.code != 0 or saw["requests"] != 2 * cases:
        sys.exit(f"the yardstick ended with {cost.code}:\n{(folder / 'output.txt').read_text()[-3000:]}")
    return Run(cost, saw["last"] - saw["first"], folder)


# ---------------------------------------------------------------- the budgets


@dataclass(frozen=True)
class Line:
    """A line of the table. ``bound`` None: for comparison only.

    ``here``: a budget in seconds, which says as much of the machine as of the program; it is shown, no more.
    """

    what: str
    measured: float
    bound: float | None = None
    digits: int = 2
    here: bool = False

    @property
    def held(self) -> bool:
        """Whether the budget is kept, if there is one."""
        return self.bound is None or self.measured <= self.bound

    @property
    def broken(self) -> bool:
        """Whether a budget is exceeded that means the same on every machine."""
        return not self.held and not self.here


def show(lines: Sequence[Line]) -> int:
    """Print the table; returns how many budgets are broken."""
    print(f"\n{'':52} {'budget':>10} {'measured':>10}  held")
    for line in lines:
        bound = "" if line.bound is None else f"<= {line.bound:.{line.digits}f}"
        held = "" if line.bound is None else "yes" if line.held else "not here" if line.here else "NO"
        print(f"{line.what:52} {bound:>10} {line.measured:>10.{line.digits}f}  {held}")
    return sum(line.broken for line in lines)


def ideal(cases: int) -> float:
    """Seconds that two calls a case take at best, ``AT_ONCE`` of them at any time."""
    return 2 * cases * LATENCY / AT_ONCE


def budgets(folder: Path, rounds: int) -> list[Line]:
    """Ours and the yardstick in turn, so that both see the same machine; medians of the rounds."""
    ours: dict[int, list[Run]] = {cases: [] for cases in CASES}
    theirs: list[Run] = []
    small, large = CASES
    for number in range(rounds):
        for cases in CASES:
            ours[cases].append(evalrun(folder, cases))
        sent = bodies(ours[small][0].folder, folder / "bodies.txt")
        theirs.append(yardstick(folder, small, sent))
        cpu = [found[-1].cost.cpu for found in (ours[small], ours[large], theirs)]
        print(f"round {number + 1}: CPU " + ", ".join(f"{seconds:.2f} s" for seconds in cpu), flush=True)
    return lines_of(ours[small], ours[large], theirs)


def lines_of(small: Sequence[Run], large: Sequence[Run], theirs: Sequence[Run]) -> list[Line]:
    """What is told of the rounds."""
    few, many = CASES
    mine, bare = (1000 * median(found.cost.cpu for found in runs) / few for runs in (small, theirs))
    each = [1000 * (b.cost.cpu - a.cost.cpu) / (many - few) for a, b in zip(small, large, strict=True)]
    growth = [1000 * (b.cost.peak - a.cost.peak) / (many - few) for a, b in zip(small, large, strict=True)]
    wall, bare_wall = (median(found.asked for found in runs) / ideal(few) for runs in (small, theirs))
    return [
        Line("wall of asking / ideal wall", wall, 1.25),
        Line("  the same of the aiohttp loop", bare_wall),
        Line("CPU a sample / that of the aiohttp loop", mine / bare, RATIO),
        Line("  ms of CPU a sample, all told", mine),
        Line("  ms of CPU for one sample more", median(each)),
        Line("  ms of CPU a sample of the aiohttp loop", bare),
        Line(f"peak memory at {few:,} cases, MB", median(found.cost.peak for found in small), 110, 0),
        Line("  its growth, kB a case", median(growth), 2),
        Line(f"wall of the whole command at {few:,} cases, s", median(found.cost.wall for found in small)),
    ]


def faulty(folder: Path, cases: int = 1_000) -> list[Line]:
    """The same with one request in a hundred refused, one in 200 cut off, one in 250 ten times as slow."""
    found = evalrun(folder, cases, faults=("--errors", "100", "--resets", "200", "--slow", "250"))
    header = json.loads((found.folder / "run.json").read_text(encoding="utf-8"))
    estimate = next(one for one in header["estimates"] if (one["metric"], one["group"]) == ("right", "all"))
    return [
        Line(f"answers lost of {cases:,} while 1 request in 60 fails", estimate["failed"], 0, 0),
        Line("  wall of asking / ideal wall", found.asked / ideal(cases)),
    ]


# ---------------------------------------------------------------- starting up

BARE = """\
import click
@click.group()
@click.version_option("1")
def main(): "A program."
@main.command()
@click.argument("name")
@click.option("--loud", is_flag=True)
def greet(name, loud): "Say hello."
main()
"""


def starting(folder: Path, rounds: int = 7) -> list[Line]:
    """What stands before the first line of help, and a run of one case."""
    script = folder / "bare.py"
    script.write_text(BARE, encoding="utf-8")
    ours, bare = [EVALRUN, "--help"], [sys.executable, str(script), "--help"]
    for command in (ours, bare):  # once for nothing: files are read for the first time
        run(command, folder)
    pairs = [(run(ours, folder).wall, run(bare, folder).wall) for _ in range(rounds)]
    running = median(evalrun(folder, 8, options=("--limit", "1")).cost.wall for _ in range(3))
    return [
        Line("evalrun --help / a bare click program", median(a / b for a, b in pairs), 1.5),
        Line("  one case against a running bot, s", running, 0.6 + 2 * LATENCY, here=True),
        Line("  one case of the twin, launched, s", launched(folder), 1.5, here=True),
    ]


def launched(folder: Path) -> float:
    """Seconds of the wall that the replay of one case of the twin takes, its launch and end included."""
    config = str(HERE.parent / "configs" / "quality.yaml")
    command = [EVALRUN, "run", config, "--case", "sc-talks-01", "--output"]
    costs = [run([*command, f"twin-{number}"], folder) for number in range(4)]
    return median(cost.wall for cost in costs[1:])


# ---------------------------------------------------------------- large runs


def growing(folder: Path, sizes: Sequence[int]) -> list[Line]:
    """Large runs against a fast stub: what a case costs must not depend on how many there are."""
    runs = []
    for cases in sizes:
        found = evalrun(folder, cases, latency=0.005)
        runs.append(found)
        files = {path.name: path.stat().st_size / 1e6 for path in sorted(found.folder.iterdir())}
        print(f"{cases:,} cases: {found.cost}; MB: " + ", ".join(f"{n} {s:.1f}" for n, s in files.items()))
    first, last = runs[0], runs[-1]
    costs = [1000 * found.cost.cpu / cases for found, cases in zip(runs, sizes, strict=True)]
    walls = [1000 * found.cost.wall / cases for found, cases in zip(runs, sizes, strict=True)]
    growth = 1000 * (last.cost.peak - first.cost.peak) / (sizes[-1] - sizes[0])
    pairs = zip(sizes, costs, walls, runs, strict=True)
    return [
        *(
            Line(f"ms of CPU / of wall a case, MB at {cases:,}: {wall:.2f}, {found.cost.peak:.0f}", cost)
            for cases, cost, wall, found in pairs
        ),
        Line("cost of a case, largest run / smallest", costs[-1] / costs[0], 1.25),
        Line("growth of peak memory, kB a case", growth, 2),
        Line("junit.xml of the largest, MB", (last.folder / "junit.xml").stat().st_size / 1e6, 30, 1),
        Line("report.html of the largest, MB", (last.folder / "report.html").stat().st_size / 1e6, 30, 1),
    ]


def main() -> None:
    """Measure and show; ends with 1 where a budget is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large", type=int, nargs="*", metavar="CASES", help="large runs of these sizes")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave the runs there")
    given = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each start would compile all that it imports
    with tempfile.TemporaryDirectory(prefix="speed-") as name:
        folder = given.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        if given.large is not None:
            lines = growing(folder, given.large or (10_000, 30_000, 100_000))
        else:
            lines = [*budgets(folder, given.rounds), *faulty(folder), *starting(folder)]
        broken = show(lines)
    if broken:
        sys.exit(f"{broken} budgets are broken")


if __name__ == "__main__":
    main()
