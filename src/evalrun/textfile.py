"""UTF-8 text from a file of the user's, its lines, and the JSON object on each.

Owns the faults a file can have before anybody looks at what it means: missing, a folder, too large, not
UTF-8, not JSON. Leaves YAML to ``yamlfile`` and the meaning of rows to ``dataset`` and ``labels``.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalrun.digest import is_deep
from evalrun.errors import InputError, Problem

MOST_UNPACKED = 256 * 1024 * 1024
"""Bytes that a packed file may unpack to: its own size says nothing of it."""
_PART = 1024 * 1024
_BLANK = " \t\r\n"
_SOLID = re.compile(r"[^ \t\r\n]")


@dataclass(frozen=True)
class Row:
    """One object of a file: where it begins (line and column from 1), its value, and its JSON text."""

    line: int
    value: dict[str, Any]
    source: str
    column: int = 1

    def place(self, key: str) -> tuple[int, int]:
        """Line and column of ``key``; those of the object where it is not found."""
        before = self.source[: max(0, self.source.find(json.dumps(key, ensure_ascii=False)))]
        if "\n" not in before:
            return self.line, self.column + len(before)
        return self.line + before.count("\n"), len(before) - before.rindex("\n")


def read_bytes(path: Path, limit: int | None = None) -> bytes:
    """The bytes of ``path``, unpacked where its name ends in ``.gz``; a file over ``limit`` is refused.

    Raises:
        InputError: the file cannot be read or is too large.
    """
    if path.suffix.lower() == ".gz":
        return unpacked(path, limit or MOST_UNPACKED)
    try:
        with path.open("rb") as file:
            data = file.read() if limit is None else file.read(limit + 1)
    except (OSError, ValueError) as fault:
        raise InputError([_unreadable(path, fault)]) from None
    if limit is not None and len(data) > limit:
        raise InputError([Problem(str(path), f"larger than {limit:,} bytes", "is it the right file?")])
    return data


def unpacked(path: Path, limit: int = MOST_UNPACKED) -> bytes:
    """What the gzip file ``path`` unpacks to; never more than ``limit`` bytes are held.

    Raises:
        InputError: it cannot be read, is no gzip, is cut off, or unpacks to more.
    """
    parts, left = [], limit + 1
    try:
        with gzip.open(path, "rb") as file:
            while left and (part := file.read(min(left, _PART))):
                parts.append(part)
                left -= len(part)
    except EOFError:
        raise InputError([Problem(str(path), "is cut off before its end", "copy it again")]) from None
    except (gzip.BadGzipFile, zlib.error) as fault:
        raise InputError([Problem(str(path), f"is no gzip file: {fault}", "is it the right file?")]) from None
    except (OSError, ValueError) as fault:
        raise InputError([_unreadable(path, fault)]) from None
    if not left:
        message = f"unpacks to more than {limit:,} bytes"
        raise InputError([Problem(str(path), message, "unpack it and look: is it the right file?")])
    return b"".join(parts)


def plain(path: Path) -> Path:
    """The name of a file without what says that it is packed."""
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def decode(path: Path, data: bytes) -> str:
    """``data`` as text, without a byte order mark; ``path`` is for the message.

    Raises:
        InputError: the bytes are not UTF-8; the message says where.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        before = fault.object[: fault.start]
        line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        message = f"not UTF-8 (byte 0x{fault.object[fault.start]:02x})"
        raise InputError([Problem(f"{path}:{line}:{column}", message, "save the file as UTF-8")]) from None


def read_text(path: Path, limit: int | None = None) -> str:
    """The text of ``path``, UTF-8, without a byte order mark.

    Raises:
        InputError: the file cannot be read, is too large, or is not UTF-8.
    """
    return decode(path, read_bytes(path, limit))


def lines(text: str) -> Iterator[tuple[int, str]]:
    """(line number from 1, line) of each line that is not blank.

    Split on LF only, a CR before it dropped: other line separators are characters of a text.
    """
    start, number = 0, 1
    while start <= len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        line = text[start:end].removesuffix("\r")
        if line.strip(" \t\r"):
            yield number, line
        start, number = end + 1, number + 1


def _unreadable(path: Path, fault: Exception) -> Problem:
    if isinstance(fault, FileNotFoundError):
        return Problem(
            str(path), "no such file", "check the path; paths in a config are relative to its folder"
        )
    if isinstance(fault, IsADirectoryError):
        return Problem(str(path), "is a folder, not a file")
    return Problem(str(path), f"cannot be read: {getattr(fault, 'strerror', None) or fault}")


def json_lines(path: Path, text: str) -> Iterator[Row | Problem]:
    """The object on each line that is not blank, or what is wrong with the line."""
    decoder, first = _decoder(), True
    for number, line in lines(text):
        if first and line.strip() in ("[", "[{"):
            yield Problem(
                f"{path}:{number}", "a list over several lines", "write one object a line, nothing between"
            )
            return
        first = False
        try:
            value = decoder.decode(line)
        except (ValueError, RecursionError) as fault:
            yield _not_json(path, number, fault)
        else:
            yield _object(path, number, value, line)


def json_rows(path: Path, text: str) -> Iterator[Row | Problem]:
    """The objects of a list in JSON, up to its first fault; of any other text those of its lines."""
    if not text.lstrip(_BLANK).startswith("["):
        yield from json_lines(path, text)
        return
    decoder, line, seen = _decoder(), 1, 0
    at = _next(text, text.index("[") + 1)
    ended = text[at : at + 1] == "]"
    while not ended:
        line, seen = line + text.count("\n", seen, at), at
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as fault:
            yield _not_json(path, 1 if isinstance(fault, json.JSONDecodeError) else line, fault)
            return
        yield _object(path, line, value, text[at:end], at - text.rfind("\n", 0, at))
        at = _next(text, end)
        ended = text[at : at + 1] == "]"
        if not ended and text[at : at + 1] != ",":
            yield _not_json(path, 1, json.JSONDecodeError("Expecting ',' delimiter", text, at))
            return
        at = at if ended else _next(text, at + 1)
    if (rest := _next(text, at + 1)) < len(text):
        yield _not_json(path, 1, json.JSONDecodeError("Extra data", text, rest))


def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=_each_key_once, parse_constant=_no_constant, parse_float=_finite
    )


def _next(text: str, at: int) -> int:
    """Where the next character stands, from ``at`` on, that is no white space of JSON."""
    found = _SOLID.search(text, at)
    return found.start() if found else len(text)


def _object(path: Path, line: int, value: Any, source: str, column: int = 1) -> Row | Problem:
    if is_deep(value):
        return Problem(f"{path}:{line}", "not valid JSON: nested too deeply")
    if isinstance(value, dict):
        return Row(line, value, source, column)
    return Problem(f"{path}:{line}", "not an object", 'a line looks like {"id": "…", …}')


def _not_json(path: Path, line: int, fault: Exception) -> Problem:
    """``line``: of what was read, where the fault knows its own place in it."""
    if isinstance(fault, json.JSONDecodeError):
        return Problem(f"{path}:{line + fault.lineno - 1}:{fault.colno}", f"not valid JSON: {fault.msg}")
    reason = "nested too deeply" if isinstance(fault, RecursionError) else fault
    return Problem(f"{path}:{line}", f"not valid JSON: {reason}")


TABLES = (".csv", ".tsv")
"""Suffixes of files that are read as tables; all others hold an object a line."""
_QUOTED = re.compile(r'"([^"]*+(?:""[^"]*+)*+)"')  # possessive: else every pair is kept to go back to
_PLAIN = {divider: re.compile(rf"[^{divider}\r\n]*") for divider in ",;\t"}
_HEADINGS = 65536
_DIVIDERS = {",": "comma", ";": "semicolon", "\t": "tab"}
_END = re.compile(r"\r\n|\n|\r")


def is_table(path: Path) -> bool:
    """Whether a file is read as a table, by its suffix."""
    return plain(path).suffix.lower() in TABLES


@dataclass(frozen=True)
class Cells:
    """One row of a CSV: its line, its cells, and the (line, column) at which each begins, from 1."""

    line: int
    values: tuple[str, ...]
    places: tuple[tuple[int, int], ...]


def csv_rows(path: Path, text: str) -> tuple[tuple[str, ...], Iterator[Cells | Problem]]:
    """The headings of a CSV and its rows; one that is not as long as the headings is a problem.

    Raises:
        InputError: there are no headings.
    """
    rows = csv_cells(path, text)
    head = next(rows, None)
    if head is None or isinstance(head, Problem):
        raise InputError([head or Problem(str(path), "is empty", "the first line names the columns")])
    divider = divider_of(path, text)
    return head.values, (_as_long(path, row, len(head.values), divider) for row in rows)


def _as_long(path: Path, row: Cells | Problem, headings: int, divider: str) -> Cells | Problem:
    if isinstance(row, Problem) or len(row.values) == headings:
        return row
    message = f"{len(row.values)} cells under {headings} headings"
    return Problem(f"{path}:{row.line}", message, f"quote a cell that holds a {_DIVIDERS[divider]}")


def divider_of(path: Path, text: str) -> str:
    """What divides cells: a tab in ``.tsv``, else what the first line holds most of outside of quotes."""
    if plain(path).suffix.lower() == ".tsv":
        return "\t"
    first = _QUOTED.sub("", text[:_HEADINGS]).partition("\n")[0]
    return max(_DIVIDERS, key=first.count)


def csv_cells(path: Path, text: str) -> Iterator[Cells | Problem]:
    """The rows of a CSV as RFC 4180 has them, blank lines left out; the first fault of a quote ends them.

    Cells may also be divided by semicolons or tabs: see :func:`divider_of`.
    """
    divider = divider_of(path, text)
    plain = _PLAIN[divider]
    at, line, start = 0, 1, 0
    values: list[str] = []
    places: list[tuple[int, int]] = []
    while at <= len(text):
        places.append((line, at - start + 1))
        found = (_QUOTED if text.startswith('"', at) else plain).match(text, at)
        if found is None:
            yield Problem(_place(path, places[-1]), "a quote that is never closed", "close it, or double it")
            return
        values.append(found[1].replace('""', '"') if found.re is _QUOTED else found[0])
        if newlines := found[0].count("\n"):
            line, start = line + newlines, at + found[0].rindex("\n") + 1
        at = found.end()
        if text.startswith(divider, at):
            at += 1
            continue
        end = _END.match(text, at)
        if end is None and at < len(text):
            where = _place(path, (line, at - start + 1))
            yield Problem(where, "text behind a closing quote", "double a quote that is text")
            return
        if len(values) > 1 or values[0].strip():
            yield Cells(places[0][0], tuple(values), tuple(places))
        values, places = [], []
        at = end.end() if end else len(text) + 1
        line, start = line + 1, at


def _place(path: Path, place: tuple[int, int]) -> str:
    return f"{path}:{place[0]}:{place[1]}"


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"key '{next(key for key in keys if keys.count(key) > 1)}' stands twice")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text if len(text) <= 40 else text[:39] + '…'} is too large a number")
    return number
