"""Folder → the runs in it, newest first, those that cannot be read with what is wrong with them.

Owns which folder counts as a run and when a run was. What a run holds is the journal's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from evalrun.errors import UserError
from evalrun.journal import HEADER, KINDS, META, RunFolder
from evalrun.records import Meta, RunHeader

_FILES = {HEADER, META, *(f"{kind}.jsonl" for kind in KINDS)}
_SURE = (HEADER, "contexts.jsonl", "draws.jsonl")
"""Files that no other folder has: a dataset may be called cases.jsonl too."""


@dataclass(frozen=True)
class Finished:
    """A run that came to its end."""

    folder: RunFolder
    header: RunHeader
    meta: Meta
    when: datetime

    @property
    def name(self) -> str:
        """What the folder is called."""
        return self.folder.path.name


@dataclass(frozen=True)
class Unreadable:
    """A folder of a run that is not finished, or broken; ``wrong`` says which."""

    name: str
    wrong: str
    when: datetime


Listed = Finished | Unreadable


@dataclass(frozen=True)
class Runs:
    """The runs in ``path``, or ``path`` itself where that is a run."""

    path: Path

    @property
    def only(self) -> bool:
        """Whether this is one run."""
        return any((self.path / name).exists() for name in _SURE)

    def newest_first(self) -> list[Listed]:
        """Every run; read anew at each call."""
        return sorted(map(_read, self._folders()), key=lambda run: (run.when, run.name), reverse=True)

    def find(self, name: str) -> Listed | None:
        """The run of that name. A name is compared, never made a path."""
        return next((_read(folder) for folder in self._folders() if folder.name == name), None)

    def _folders(self) -> list[Path]:
        if self.only:
            return [self.path.resolve()]
        try:
            return [one for one in self.path.iterdir() if _is_run(one)]
        except OSError as error:
            raise UserError(f"{self.path}: cannot be read: {error.strerror}", "name another folder") from None


def _is_run(folder: Path) -> bool:
    """Whether this is a real folder that holds a file of a run, or nothing yet, or cannot be looked into."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    try:
        names = {one.name for one in folder.iterdir()}
    except OSError:
        return True
    return not names or bool(names & _FILES)


def _read(path: Path) -> Listed:
    folder = RunFolder(path)
    try:
        if not (path / HEADER).exists():
            return Unreadable(path.name, _unfinished(path), _changed(path))
        header, meta = folder.header, folder.meta
        return Finished(folder, header, meta, _moment(meta.started) or _changed(path))
    except UserError as error:
        return Unreadable(path.name, error.message.removeprefix(f"{path}/"), _changed(path))
    except OSError as error:
        return Unreadable(path.name, f"cannot be read: {error.strerror}", _changed(path))


def _unfinished(path: Path) -> str:
    draws = path / "draws.jsonl"
    answers = draws.read_bytes().count(b"\n") if draws.is_file() else 0
    kept = f"{answers:,} answers kept so far" if answers != 1 else "1 answer kept so far"
    return f"not finished: still running, or stopped on the way ({kept})"


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo else moment.astimezone()
    except (ValueError, OverflowError, OSError):
        return None


def _changed(path: Path) -> datetime:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime).astimezone()
    except OSError:
        return datetime.fromtimestamp(0).astimezone()
