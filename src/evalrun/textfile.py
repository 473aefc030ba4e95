"""UTF-8 text from a file of the user's, and its lines.

Owns the faults a file can have before anybody looks at what it says: missing, a folder, too large, not UTF-8.
Leaves YAML to ``yamlfile`` and rows to ``dataset`` and ``labels``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evalrun.errors import InputError, Problem


def read_bytes(path: Path, limit: int | None = None) -> bytes:
    """The bytes of ``path``; at most ``limit`` of them, a larger file is refused.

    Raises:
        InputError: the file cannot be read or is too large.
    """
    try:
        with path.open("rb") as file:
            data = file.read() if limit is None else file.read(limit + 1)
    except (OSError, ValueError) as fault:
        raise InputError([_unreadable(path, fault)]) from None
    if limit is not None and len(data) > limit:
        raise InputError([Problem(str(path), f"larger than {limit:,} bytes", "is it the right file?")])
    return data


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
        raise InputError(
            [Problem(f"{path}:{line}:{column}", message, "save the file as UTF-8")]
        ) from None


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
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.removesuffix("\r")
        if line.strip(" \t\r"):
            yield number, line


def _unreadable(path: Path, fault: Exception) -> Problem:
    if isinstance(fault, FileNotFoundError):
        return Problem(str(path), "no such file", "check the path; paths in a config are relative to its folder")
    if isinstance(fault, IsADirectoryError):
        return Problem(str(path), "is a folder, not a file")
    return Problem(str(path), f"cannot be read: {getattr(fault, 'strerror', None) or fault}")
