"""The run that a label file is about: the newest one that holds the labelled draws, or a replay of it.

Owns the search among runs and the replay of the configs that the file names. What the labels say of the run
is decided by ``agreement``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection
from pathlib import Path

from evalrun.errors import UserError
from evalrun.folders import RUNS, new_run_folder
from evalrun.journal import RunFolder
from evalrun.labels import Labels
from evalrun.pipeline import Progress
from evalrun.planning import load, make_plan
from evalrun.runner import execute
from evalrun.view.listing import Finished, Runs
from evalrun.yamlfile import load_yaml

Wanted = Collection[tuple[str, str]]
"""(case id, draw digest)."""


def run_of(labels: Labels, rater: str, progress: Progress) -> RunFolder:
    """The newest run in ``runs/`` that holds every draw ``rater`` labelled, else a replay into a new run.

    Of several configs the first whose replay holds every draw is taken, else the one that holds the most.

    Raises:
        UserError: no run holds them, and the file names no config that is there.
    """
    wanted = {(row.case, row.draw) for row in labels.rows if row.rater == rater}
    if (known := _newest(wanted)) is not None:
        return known
    best: tuple[int, RunFolder] | None = None
    for path in _configs(labels):
        folder = _replayed(path, progress)
        found = held(folder, wanted)
        if best is None or found > best[0]:
            best = (found, folder)
        if found == len(wanted):
            break
    if best is None:
        raise UserError(
            f"{labels.path}: no run in {RUNS}/ holds the labelled draws, and the file names no configs",
            "name the run: evalrun agree --dimension DIMENSION RUN",
        )
    return best[1]


def held(folder: RunFolder, wanted: Wanted) -> int:
    """How many of the wanted draws a run holds."""
    return len({(draw.case, draw.digest) for draw in folder.draws() if draw.digest} & {*wanted})


def label_files(folder: RunFolder) -> list[Path]:
    """The label files that the config of a run names, as far as that is still there and can be read.

    Only its list is read: no plugin is imported because a run folder names a config.
    """
    try:
        path = Path(folder.meta.config_path)
        listed = load_yaml(path).value["labels"] if path.is_file() else []
        return [path.parent / name for name in listed if isinstance(name, str)]
    except (UserError, TypeError, KeyError):
        return []


def _newest(wanted: Wanted) -> RunFolder | None:
    if not RUNS.is_dir():
        return None
    for run in Runs(RUNS).newest_first():
        if not isinstance(run, Finished) or run.header.judge is None:
            continue
        with contextlib.suppress(UserError):  # a broken run among others is no reason to stop
            if held(run.folder, wanted) == len(wanted):
                return run.folder
    return None


def _configs(labels: Labels) -> list[Path]:
    """The configs of the header, relative to the working directory.

    Raises:
        UserError: one of them is not there.
    """
    paths = [Path(name) for name in labels.header.configs]
    for path in paths:
        if not path.is_file():
            raise UserError(
                f"{labels.path}: no run holds the labelled draws, and its config {path} is not here",
                "call evalrun from the project's folder, or name the run",
            )
    return paths


def _replayed(path: Path, progress: Progress) -> RunFolder:
    plan = make_plan(load(path), "replay")
    folder = new_run_folder(None, plan.config.name)
    try:
        return asyncio.run(execute(plan, folder, progress)).folder
    finally:
        with contextlib.suppress(OSError):  # only where nothing came about: no empty folder stays
            folder.path.rmdir()
