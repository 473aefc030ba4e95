"""How often the gates of a config were tried on the same bot: running until green breaks what they promise.

Owns what counts as an attempt, and finds the earlier ones in the folder that the run stands in. At 3 % a try
a bad bot passes one of five tries with 14 %; so every run prints its count.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalrun.digest import read_json, tagged
from evalrun.journal import META, RunFolder
from evalrun.records import RunHeader

_ASIDE = ("gates", "reports")
"""Keys of a config that change nothing in what is tried: a gate added later does not start the count anew."""
_DECIDED = (0, 1, 3)
"""Exit codes of runs that their gates had a say in."""


@dataclass(frozen=True)
class Attempt:
    """``trial``: digest of what was tried, empty where no gate was evaluated; ``answers``: of the answers.

    ``number``: how many different sets of answers have been held against these gates, this one included.
    """

    number: int = 1
    trial: str = ""
    answers: str = ""


def attempt_of(folder: RunFolder, header: RunHeader) -> Attempt:
    """The attempt that a finished run is.

    The same config, dataset and bot are tried again where other answers came of it; a replay of the same
    answers is no new attempt, nor is a partial run or one that concluded nothing.
    """
    if not header.verdicts or header.exit_code not in _DECIDED:
        return Attempt()
    config = {key: value for key, value in header.config.items() if key not in _ASIDE}
    trial = tagged("trial", [config, header.dataset.digest, header.bot])
    drawn = [[draw.case, draw.index, draw.digest or draw.error] for draw in folder.draws()]
    answers = tagged("answers", drawn)
    known = {answers, *_beside(folder.path, trial)}
    return Attempt(len(known), trial, answers)


def _beside(run: Path, trial: str) -> Iterator[str]:
    """The answers of every other run in the same folder that tried the same; only ``meta.json`` is read."""
    with os.scandir(run.resolve().parent) as found:
        folders = [entry.path for entry in found if entry.is_dir(follow_symlinks=False)]
    for folder in folders:
        try:
            data = Path(folder, META).read_bytes()
        except OSError:
            continue
        if trial.encode() in data and (answers := _answers(data, trial)):
            yield answers


def _answers(data: bytes, trial: str) -> str:
    """What a run's ``meta.json`` says of its answers; empty where that cannot be read."""
    try:
        meta: Any = read_json(data)
    except ValueError:
        return ""
    known = isinstance(meta, dict) and meta.get("trial") == trial and isinstance(meta.get("answers"), str)
    return str(meta["answers"]) if known else ""
