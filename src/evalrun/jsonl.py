"""Files of one JSON record a line: written whole or not at all, read back strictly.

Owns the bytes of such files and of whole JSON documents. What stands in a line is decided by
:mod:`evalrun.records`; which files there are by the journal and the cassette.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TypeVar

from pydantic import ValidationError

from evalrun.digest import canonical_json, utf8
from evalrun.errors import UserError
from evalrun.records import Record

R = TypeVar("R", bound=Record)
FSYNC_SECONDS = 1.0


def to_line(record: Record) -> bytes:
    """One line of a journal, without fields that are at their default."""
    return utf8(canonical_json(record.model_dump(mode="json", exclude_defaults=True))) + b"\n"


def whole_lines(path: Path) -> tuple[list[bytes], int]:
    """The whole lines of a journal and how many bytes a torn last line takes.

    Lines end at LF and nowhere else: U+2028 and its like are text.
    """
    data = path.read_bytes() if path.exists() else b""
    kept, newline, torn = data.rpartition(b"\n")
    return (kept.split(b"\n") if newline else []), len(torn)


def read_lines(path: Path, record: type[R]) -> Iterator[R]:
    """The records of a journal, a torn last line left out.

    Raises:
        UserError: a line is no JSON or no such record; names file and line.
    """
    for number, line in enumerate(whole_lines(path)[0], start=1):
        if not line.strip():
            continue
        try:
            yield record.model_validate_json(line)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise UserError(
                f"{path}:{number}: not a line of this journal: {where + ': ' if where else ''}{first['msg']}",
                "the file was changed after the run; run again",
            ) from None


def write_atomically(path: Path, data: bytes) -> None:
    """Write ``data`` beside ``path`` and put it in place in one step.

    A folder from elsewhere may hold symbolic links: the new file takes the place of one, none is followed.
    """
    temporary = path.with_name(path.name + ".tmp")
    temporary.unlink(missing_ok=True)
    with temporary.open("xb") as file:
        file.write(data)
    os.replace(temporary, path)


def pretty_json(record: Record) -> bytes:
    """A whole-file JSON document: sorted keys, two spaces, no NaN."""
    value = record.model_dump(mode="json")
    return utf8(json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)) + b"\n"


class Appender:
    """Appends records to one file: flushed a line, synced about once a second.

    Raises:
        UserError: ``path`` is a symbolic link, which may lead out of the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.is_symlink():
            raise UserError(
                f"{path}: is a symbolic link", "put the file itself there, or name another folder"
            )
        _, torn = whole_lines(path)
        if torn:
            os.truncate(path, path.stat().st_size - torn)
        self._file: IO[bytes] = path.open("ab")
        self._synced = time.monotonic()

    def write(self, record: Record) -> None:
        """Append one record."""
        self._file.write(to_line(record))
        self._file.flush()
        now = time.monotonic()
        if now - self._synced >= FSYNC_SECONDS:
            os.fsync(self._file.fileno())
            self._synced = now

    def close(self) -> None:
        """Sync and close."""
        if not self._file.closed:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
