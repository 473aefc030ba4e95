"""The wording that every report shares."""

from __future__ import annotations

import pytest

from evalrun.journal import RunFolder
from evalrun.records import Gate, Verdict
from evalrun.reports import words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.8125, ".81"),
        (0.0, ".00"),
        (1.0, "1.0"),
        (0.999, ".999"),
        (0.9999, ">.999"),
        (0.0004, "<.001"),
        (0.004, ".004"),
        (None, "–"),
    ],
)
def test_rate(value: float | None, text: str) -> None:
    """A rate has no leading zero, and reads 1.0 or .00 only where it is exactly that."""
    assert text == words.rate(value)


def test_visible_writes_out_what_terminals_and_xml_must_not_get() -> None:
    """Control characters, bidi overrides and noncharacters are written out; letters and emoji stay."""
    assert "\\x1b[31m \\x00 \\ufffe \\u202e \\x9b" == words.visible("\x1b[31m \x00 \ufffe \u202e \x9b")
    assert "שלום 😀\tä\n👨‍👩‍👧" == words.visible("שלום 😀\tä\n👨‍👩‍👧")
    assert "Hi\\U000e0048" == words.visible("Hi\U000e0048"), "a tag character, which no terminal shows"
    assert "\\ud835 \\U0001ffff" == words.visible("\ud835 \U0001ffff")


def test_one_line_cuts_with_a_mark() -> None:
    """Line feeds become spaces and a long text ends in an ellipsis within its limit."""
    assert "a b c" == words.one_line(" a\nb\t c ")
    assert "abcd…" == words.one_line("abcdefgh", 5)


def test_anchors_are_distinct() -> None:
    """Two gates on one estimate get two anchors."""
    gate = Gate(metric="recall@5", group="a b", min=0.5)
    verdicts = [Verdict(gate=gate, decision="holds")] * 2
    assert ["gate-recall@5-a_b", "gate-recall@5-a_b-2"] == words.gate_anchors(verdicts)


@pytest.mark.parametrize(
    ("exit_code", "update", "text"),
    [
        (1, {}, "1 of 5 gates fails, 1 undecided: not safe to ship on this evidence"),
        (0, {"verdicts": ()}, "no gates: nothing was asked of these numbers"),
        (0, {"partial": "--case a"}, "partial run (--case a): no gates evaluated"),
        (3, {"verdicts": ()}, "the run is not complete: not enough evidence to ship"),
        (5, {}, "what was graded is not what the model was given: do not use these numbers"),
    ],
)
def test_sentence(quality: RunFolder, exit_code: int, update: dict[str, object], text: str) -> None:
    """The last sentence follows the exit code and the verdicts."""
    header = quality.header.model_copy(update={"exit_code": exit_code, **update})
    assert text == words.sentence(header)


def test_sentence_says_when_the_judge_was_not_measured(quality: RunFolder) -> None:
    """Gates that all hold are not called safe where an unmeasured judge read for them."""
    held = tuple(v.model_copy(update={"decision": "holds"}) for v in quality.header.verdicts)
    header = quality.header.model_copy(update={"exit_code": 0, "verdicts": held})
    assert "all 5 gates hold, by a judge that was not measured" == words.sentence(header)
