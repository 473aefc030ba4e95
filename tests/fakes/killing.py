"""A run that is killed at random moments and gone on with, and what was asked again that was kept.

Owns when a run is killed and the bookkeeping of model calls; what a run must come to is the test's.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from evalrun.journal import KINDS, RunFolder
from evalrun.jsonl import whole_lines
from fakes.project import Project
from fakes.servers import Json

_TIMES = re.compile(rb'"seconds":[0-9.]+,?')


@dataclass
class Killed:
    """How often a run was killed, bots and draws lost by it, and calls made again although what they gave was
    kept.
    """

    folder: RunFolder
    kills: int = 0
    orphans: int = 0
    lost: list[tuple[str, int]] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    kept: set[tuple[str, int]] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)

    def note(self, project: Project) -> None:
        """Compare what was asked since the last kill, and what is there, with what was there then."""
        for server in (project.model, project.judge):
            self.repeated += [call for body in server.bodies if (call := _call(body)) in self.asked]
            server.bodies.clear()
        kept = _answered(self.folder.path)
        self.lost += sorted(self.kept - kept)
        self.kept |= kept
        self.asked |= _asked_for_good(self.folder.path, kept)


def killed(project: Project, kills: int, seed: int, *args: str) -> Killed:
    """A run that is killed up to ``kills`` times, at moments that ``seed`` chooses, gone on with after each.

    It is killed less often only where it came to its end before.
    """
    rng = random.Random(seed)
    pid_file = project.folder / "pid"
    process, path = project.start(*args)
    found = Killed(RunFolder(path))
    while not found.folder.unfinished and process.poll() is None:
        time.sleep(0.001)
    while found.kills < kills:
        _wait(path, process, rng, starting=found.kills > 0 and rng.random() < 0.25)
        ended = process.poll() is not None
        process.kill()
        text, _ = process.communicate(timeout=60)
        found.orphans += _orphaned(pid_file)
        assert found.folder.unfinished or (path / "run.json").exists(), text
        assert not (ended and found.folder.unfinished), f"it ended by itself, before its end: {text}"
        found.note(project)
        if ended or not found.folder.unfinished:
            return found
        found.kills += 1
        if found.kills < kills:
            process, _ = project.start(*args, resume=path)
    project.run(*args, resume=path)
    found.note(project)
    return found


def _wait(path: Path, process: subprocess.Popen[str], rng: random.Random, *, starting: bool) -> None:
    """Until some more lines are written, and a moment longer; or for a moment only, as it starts."""
    if starting:
        time.sleep(rng.random() * 0.8)
        return
    more, until = _lines(path) + rng.randrange(1, 20), time.monotonic() + 30
    while process.poll() is None and _lines(path) < more and time.monotonic() < until:
        time.sleep(0.001)
    time.sleep(rng.random() * 0.02)


def _lines(path: Path) -> int:
    return sum(len(whole_lines(path / f"{kind}.jsonl")[0]) for kind in ("draws", "judgements", "exchanges"))


def _answered(path: Path) -> set[tuple[str, int]]:
    return {draw.key for draw in RunFolder(path).draws() if draw.error is None}


def _asked_for_good(path: Path, kept: set[tuple[str, int]]) -> set[str]:
    """The calls of a run whose reply is in its journals and belongs to something that is kept."""
    return {
        _call(line.request)
        for line in RunFolder(path).exchanges()
        if line.source == "judge" or (line.case, line.draw) in kept
    }


def _call(body: Json) -> str:
    """What a model call asks for: its messages and its seed."""
    options = body.get("options") or {}
    return json.dumps([body.get("messages"), options.get("seed")], sort_keys=True)


def _orphaned(pid_file: Path) -> bool:
    """Whether a bot outlives a runner that was killed with -9 by more than two seconds."""
    if not pid_file.exists():
        return False
    pid, until = int(pid_file.read_text() or 0), time.monotonic() + 2
    while pid and runs(pid) and time.monotonic() < until:
        time.sleep(0.01)
    pid_file.unlink()
    return bool(pid) and runs(pid)


def runs(pid: int) -> bool:
    """Whether a process goes on; one that waits to be reaped does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


def timeless(path: Path) -> dict[str, bytes]:
    """Journals and ``run.json`` of a run without what a clock decides: seconds, and digests of files."""
    found = {kind: _TIMES.sub(b"", (path / f"{kind}.jsonl").read_bytes()) for kind in KINDS}
    header = json.loads((path / "run.json").read_bytes())
    del header["journals"]
    return found | {"run.json": json.dumps(header, sort_keys=True).encode()}
