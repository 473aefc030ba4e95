"""The known faults in ``tests/cases``, and how a test takes one: as it stands, and in inputs of our own.

Owns the files and the rule that one input is not enough: a fix that only knows the given bytes is none. What
is right for an input is said by the tests, which stand beside those of the module that is at fault.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

CASES = Path(__file__).parent / "cases"
INDEX: dict[str, Any] = {
    case["id"]: case for case in json.loads((CASES / "index.json").read_text("utf-8"))["cases"]
}
"""Id → what is known of the fault: its files, their digests, the symptom and what is right."""


def data_of(name: str) -> bytes:
    """The bytes of a case file."""
    return (CASES / name).read_bytes()


def text_of(name: str) -> str:
    """The text of a case file, line ends as they are."""
    return data_of(name).decode("utf-8")


def json_of(name: str) -> Any:
    """The value of a case file."""
    return json.loads(text_of(name))


def lines_of(name: str) -> list[Any]:
    """The values in the lines of a case file."""
    return [json.loads(line) for line in text_of(name).split("\n") if line]


def known(case: str, original: Any, *own: Any) -> pytest.MarkDecorator:
    """A test over ``given``: the input of a case of the index, then at least two of our own of the same kind.

    Raises:
        ValueError: there is no such case, there are too few inputs, or two of them are the same.
    """
    inputs = (original, *own)
    if case not in INDEX:
        raise ValueError(f"{case} is no case of the index")
    if len(own) < 2:
        raise ValueError(f"{case}: {len(own)} inputs of our own; two is the least")
    if twice := [one for number, one in enumerate(inputs) if one in inputs[:number]]:
        raise ValueError(f"{case}: an input stands twice: {twice[0]!r:.80}")
    names = [f"{case}-{'own' * bool(number)}{number or 'original'}" for number in range(len(inputs))]
    return pytest.mark.parametrize("given", inputs, ids=names)
