"""Lines of text to a terminal or a log: markup-free, in colour where there is a terminal, in ASCII where it
must be. Owns the way out; what the lines say is decided by who makes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TextIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from evalrun.jsonl import pretty_json
from evalrun.records import Record
from evalrun.reports.words import json_visible, one_line, without_commands

NARROWEST = 80
ASCII = str.maketrans("━●·×–…“”’", '=o.x-~""\'')


def columns_of(stream: TextIO, width: int | None = None) -> int:
    """How many columns there are to write in."""
    return max(width or Console(file=stream).width, NARROWEST)


def print_lines(lines: Iterable[Text], stream: TextIO, columns: int) -> None:
    """Print lines as they are; one that is longer than ``columns`` is not broken."""
    console = Console(file=stream, markup=False, highlight=False, emoji=False, width=columns)
    with console.capture() as captured:
        for line in lines:
            console.print(line, no_wrap=True, overflow="ignore", crop=False)
    stream.write(_encodable(without_commands(captured.get()), stream))
    stream.flush()


def print_record(record: Record, stream: TextIO) -> None:
    """Print a record as JSON."""
    text = json_visible(pretty_json(record).decode())
    if not _is_unicode(stream):
        text = json.dumps(json.loads(text), sort_keys=True, indent=2) + "\n"
    stream.write(text)
    stream.flush()


def wrapped(text: str, columns: int, indent: int = 0, style: str = "") -> Iterator[Text]:
    """``text`` in lines of at most ``columns`` cells; a longer word stands alone."""
    line = ""
    for word in one_line(text).split(" "):
        if line and cell_len(line) + 1 + cell_len(word) > columns - indent:
            yield Text(" " * indent + line, style)
            line = word
        else:
            line = f"{line} {word}" if line else word
    if line:
        yield Text(" " * indent + line, style)


def cut(text: str, cells: int) -> str:
    """``text`` on one line of at most ``cells`` cells."""
    line = one_line(text)
    return line if cell_len(line) <= cells else set_cell_size(line, max(cells - 1, 1)).rstrip() + "…"


def _is_unicode(stream: TextIO) -> bool:
    return "utf" in (getattr(stream, "encoding", None) or "utf-8").lower()


def _encodable(text: str, stream: TextIO) -> str:
    if _is_unicode(stream):
        return text
    return (
        text.replace("→", "->")
        .translate(ASCII)
        .encode(stream.encoding, "backslashreplace")
        .decode(stream.encoding)
    )
