"""Files of one JSON record a line: written whole or not at all, read back strictly.

Owns the bytes of such files and of whole JSON documents. What stands in a line is decided by
:mod:`evalrun.records`; which files there are by the journal and the cassette.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import io
import json
import os
import time
from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json

from evalrun.digest import canonical_json, utf8
from evalrun.errors import UserError
from evalrun.records import Record
from evalrun.redaction import without
from evalrun.textfile import unpacked

R = TypeVar("R", bound=Record)
FSYNC_SECONDS = 1.0
_BLOCK = 1 << 16
_TOGETHER = 64
"""Lines that are written in one go."""
_CHANGED = "the file was changed after the run; run again"


def to_line(record: Record) -> bytes:
    """One line of a file that is kept: canonical JSON, without fields that are at their default."""
    return utf8(canonical_json(record.model_dump(mode="json", exclude_defaults=True))) + b"\n"


def journal_line(record: Record) -> bytes:
    """One line of a journal: as :func:`to_line`, but in the order of the record, at a third of the cost."""
    try:
        return record.model_dump_json(exclude_defaults=True).encode() + b"\n"
    except ValueError:  # half of a character, which is U+FFFD everywhere
        return to_line(record)


def whole_lines(path: Path) -> tuple[list[bytes], int]:
    """The whole lines of a journal and how many bytes a torn last line takes.

    Lines end at LF and nowhere else: U+2028 and its like are text.
    """
    data = path.read_bytes() if path.exists() else b""
    kept, newline, torn = data.rpartition(b"\n")
    return (kept.split(b"\n") if newline else []), len(torn)


def packed_path(path: Path) -> Path:
    """Where a file stands packed."""
    return path.with_name(path.name + ".gz")


def packed(data: bytes) -> bytes:
    """``data`` as gzip without a name or a time: the same data, the same bytes."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, compresslevel=9, mtime=0) as file:
        file.write(data)
    return buffer.getvalue()


def content(path: Path) -> bytes | None:
    """The bytes of a file, or of what stands packed beside it; None where neither is there."""
    if path.is_file():
        return path.read_bytes()
    return unpacked(packed_path(path)) if packed_path(path).is_file() else None


def torn_bytes(path: Path) -> int:
    """How many bytes a torn last line takes; 0 where the file ends with a whole one, or is not there."""
    if not path.exists():
        return 0
    with path.open("rb") as file:
        size = end = file.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - _BLOCK)
            file.seek(start)
            place = file.read(end - start).rfind(b"\n")
            if place >= 0:
                return size - (start + place + 1)
            end = start
    return size


def raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """(number from 1, line with its end) of the whole lines that are not blank, one at a time.

    Where the journal stands packed beside ``path``, as ``.gz``, its lines come first: what is appended is
    never packed.

    Raises:
        InputError: what is packed is cut off, or unpacks to more than it may.
    """
    whole = unpacked(packed_path(path)).removesuffix(b"\n") if packed_path(path).exists() else b""
    before = whole.split(b"\n") if whole else []
    for number, line in enumerate(before, start=1):
        if line and not line.isspace():
            yield number, line + b"\n"
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1 + len(before)):
            if line.endswith(b"\n") and not line.isspace():
                yield number, line


def sorted_lines(
    path: Path,
    order: Callable[[Any], tuple[Any, ...]],
    note: Callable[[tuple[Any, ...]], None] = lambda place: None,
) -> Iterator[bytes]:
    """The whole lines of a journal as they stand there, sorted by ``order`` of their JSON value.

    In memory at once are the places of all lines, and the lines of one group: those that ``order`` gives the
    same first item. Of equals the earlier one comes first. ``note`` is told what ``order`` says of each line,
    of all of them before the first one comes.

    Raises:
        UserError: a line is no JSON, or ``order`` cannot be told of it.
    """
    if not path.exists():
        return
    places: dict[Any, array[int]] = {}
    with path.open("rb") as file:
        at = 0
        for number, line in enumerate(file, start=1):
            if line.endswith(b"\n") and not line.isspace():
                place = _ordered(line, order, path, number)
                note(place)
                if (known := places.get(place[0])) is None:
                    places[place[0]] = array("Q", (at,))
                else:
                    known.append(at)
            at += len(line)
        for group in sorted(places):
            lines = []
            for at in places[group]:
                file.seek(at)
                lines.append(file.readline())
            yield from lines if len(lines) == 1 else sorted(lines, key=lambda line: order(from_json(line)))


def _ordered(
    line: bytes, order: Callable[[Any], tuple[Any, ...]], path: Path, number: int
) -> tuple[Any, ...]:
    try:
        return order(from_json(line))
    except (ValueError, TypeError, LookupError, AttributeError):
        raise UserError(f"{path}:{number}: not a line of this journal", _CHANGED) from None


def _of(line: bytes, cases: Container[str]) -> bool:
    """Whether a line is of one of these cases, or not a line at all. To make its record would take longer."""
    try:
        value = from_json(line)
    except ValueError:
        return True
    return not isinstance(value, dict) or value.get("case") in cases


def _names_a_case(line: bytes) -> bool:
    return line.startswith(b"{") and line.endswith(b"}\n") and b'"case":' in line


def read_lines(
    path: Path, record: type[R], cases: Container[str] | None = None, holding: bytes = b""
) -> Iterator[R]:
    """The records of a journal one at a time, a torn last line left out; of these ``cases`` alone.

    Lines without the bytes ``holding`` are passed over unread, but for those that are plainly no record.

    Raises:
        UserError: a line is no JSON or no such record; names file and line.
    """
    read = record.__pydantic_validator__.validate_json
    for number, line in raw_lines(path):
        if holding not in line and _names_a_case(line):
            continue
        if cases is not None and not _of(line, cases):
            continue
        try:
            yield read(line)
        except ValidationError as error:
            raise UserError(
                f"{path}:{number}: not a line of this journal: {first_fault(error)}", _CHANGED
            ) from None


def first_fault(error: ValidationError) -> str:
    """What is wrong with a record first, and where in it."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where + ': ' if where else ''}{first['msg'].removeprefix('Value error, ')}"


def write_atomically(path: Path, data: bytes) -> None:
    """Write ``data`` beside ``path`` and put it in place in one step.

    A folder from elsewhere may hold symbolic links: the new file takes the place of one, none is followed.
    """
    write_lines(path, (data,))


def write_lines(path: Path, lines: Iterable[bytes]) -> str:
    """:func:`write_atomically` of lines that need not be in memory at once; returns their sha256.

    Raises:
        OSError: with the file's name; what was there before is there still, and nothing is left beside it.
    """
    temporary, digest = path.with_name(path.name + ".tmp"), hashlib.sha256()
    rest = iter(lines)
    try:
        temporary.unlink(missing_ok=True)
        with temporary.open("xb") as file:
            while block := b"".join(islice(rest, _TOGETHER)):
                file.write(block)
                digest.update(block)
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if error.filename not in (None, str(temporary)):
            raise  # what was to be copied could not be read
        raise OSError(error.errno, error.strerror, str(path)) from None
    return f"sha256:{digest.hexdigest()}"


def pretty_json(record: Record) -> bytes:
    """A whole-file JSON document: sorted keys, two spaces, no NaN."""
    value = record.model_dump(mode="json")
    return utf8(json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)) + b"\n"


class Appender:
    """Appends records to one file: flushed a line, synced about once a second; ``secrets`` are hidden.

    Raises:
        UserError: ``path`` is a symbolic link, which may lead out of the folder.
    """

    def __init__(self, path: Path, secrets: Sequence[str] = ()) -> None:
        self.path = path
        if path.is_symlink():
            raise UserError(
                f"{path}: is a symbolic link", "put the file itself there, or name another folder"
            )
        self._secrets = secrets
        if torn := torn_bytes(path):
            os.truncate(path, path.stat().st_size - torn)
        self._file = path.open("ab", buffering=0)
        self._synced = time.monotonic()

    def write(self, *records: Record) -> None:
        """Append records, a line each: all of them, or nothing.

        Raises:
            OSError: with the file's name; there is no room, say.
        """
        lines = b"".join(map(journal_line, records))
        rest = memoryview(without(lines.decode(), self._secrets).encode() if self._secrets else lines)
        before = os.fstat(self._file.fileno()).st_size
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            # Where there is room again before the run has ended, no line may stand behind half a one.
            os.truncate(self._file.fileno(), before)
            raise OSError(error.errno, error.strerror, str(self.path)) from None
        now = time.monotonic()
        if now - self._synced >= FSYNC_SECONDS:
            os.fsync(self._file.fileno())
            self.check()
            self._synced = now

    def check(self) -> None:
        """See that what is written still arrives at its place.

        Raises:
            OSError: the file was moved away or removed (ESTALE).
        """
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(self._file.fileno()), self.path.stat()):
                return
        raise OSError(errno.ESTALE, "moved away or removed while the run wrote to it", str(self.path))

    def close(self) -> None:
        """Sync and close."""
        if not self._file.closed:
            os.fsync(self._file.fileno())
            self._file.close()
