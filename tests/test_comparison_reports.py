"""A comparison as text: the screen, Markdown and the page, their advice, and text that must stay text."""

from __future__ import annotations

import io
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from evalrun.comparison import Comparison, Drop, compare
from evalrun.comparison.measured import read_run
from evalrun.reports.comparison import markdown, page
from evalrun.reports.comparison import words as told
from evalrun.reports.comparison.console import print_comparison
from evalrun.reports.screen import print_record
from paired_runs import case, passes, write_run

HOSTILE = "</script><img src=x onerror=alert(1)> [bold]x[/bold] `| \x1b[31m \u202e {{ 7*7 }} <!-- --> | https://x.example"


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """It answers better and refuses less, so that the average shows nothing."""
    old = passes("ans", [[1]] * 74 + [[0]] * 16) | passes("una", [[1]] * 36 + [[0]] * 4)
    new = passes("ans", [[1]] * 86 + [[0]] * 4) | passes("una", [[1]] * 28 + [[0]] * 12)
    return compared(tmp_path_factory.mktemp("moved"), old, new, {"right": 0.15, "correctly_refused": 0.25})


def compared(folder: Path, old: Any, new: Any, drops: Any = None, **fields: Any) -> Comparison:
    """A comparison of two runs made of outcomes."""
    runs = [write_run(folder / name, rows, **fields) for name, rows in (("old", old), ("new", new))]
    return compare(read_run(runs[0]), read_run(runs[1]), drops)


def screen(comparison: Comparison, width: int = 80, encoding: str = "utf-8", full: bool = False) -> str:
    """The comparison as it is printed."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding)
    print_comparison(comparison, stream, full=full, width=width)
    return raw.getvalue().decode(encoding)


# ---------------------------------------------------------------- figures


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.04, "+.04"), (-0.15, "-.15"), (0.0, ".00"), (-0.0, ".00"), (0.004, "+.004"), (-0.00001, "-.000"),
     (1.0, "+1.0"), (-1.0, "-1.0"), (0.999, "+1.0"), (None, "–")],
)  # fmt: skip
def test_signed(value: float | None, text: str) -> None:
    """A change has its sign; .00 is said of no change at all only."""
    assert text == told.signed(value)


@pytest.mark.parametrize(
    ("p", "text"),
    [(1.0, "1.0"), (0.22, ".22"), (0.1, ".10"), (0.0999, ".100"), (0.05, ".050"), (0.001, ".001"),
     (0.00099, "<.001"), (0.0, "<.001"), (None, "–")],
)  # fmt: skip
def test_p_values(p: float | None, text: str) -> None:
    """Two digits, three below .10, and never 0."""
    assert text == told.p_value(p)


@pytest.mark.parametrize(
    ("number", "text"), [(7, "7"), (40, "40"), (101, "110"), (709, "710"), (12345, "13,000")]
)
def test_about(number: int, text: str) -> None:
    """Numbers of questions are rounded up to two digits."""
    assert text == told.about(number)


# ---------------------------------------------------------------- the screen


def test_screen(moved: Comparison) -> None:
    """Head, changes by population, what it means, gates, flips, notes, sentence: in this order."""
    text = screen(moved, 100)
    parts = [
        "evalrun diff", "same dataset, same judge, 130 of 130 questions paired, 1 draw each",
        "! one model call each", "old   new  change  95% interval", "all, 130 questions",
        "answerable, 90 questions", "unanswerable, 40 questions", "retrieval, 90 questions",
        '".85 or .88?" This test cannot tell: 20 questions flipped, 12 up, 8 down.',
        "Seeing +.03 with 80% power takes about", "But the average hides opposite moves:",
        "GATES", "right: drop at most .15", "refused: drop at most .25", "WORSE  una-", "BETTER ans-",
        "both answers: --full, or --html FILE", "note   judged rates are the judge's own reading",
        "undecided: do not call this an improvement yet", "exit 3",
    ]  # fmt: skip
    places = [text.find(part) for part in parts]
    assert -1 not in places, parts[places.index(-1)] + "\n" + text
    assert sorted(places) == places


def test_screen_fits(moved: Comparison) -> None:
    """Nothing is wider than the terminal, from 80 columns on."""
    for width in (80, 100, 140):
        for full in (False, True):
            assert all(len(line) <= width for line in screen(moved, width, full=full).splitlines())


def test_long_gates_fit(moved: Comparison) -> None:
    """What weakens a verdict stands on a line of its own where it does not fit."""
    long = drop(event="refused, should have answered it", decision="holds", judge_measured=False)
    text = screen(moved.model_copy(update={"drops": (long,)}))
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "holds\n           (judge unmeasured)" in text


def test_screen_in_ascii(moved: Comparison) -> None:
    """On a terminal without UTF-8 the screen is ASCII, and so is the JSON."""
    assert screen(moved, encoding="ascii", full=True).isascii()
    stream = io.TextIOWrapper(io.BytesIO(), "ascii")
    print_record(moved.model_copy(update={"notes": ("–",)}), stream)


def test_full_screen(moved: Comparison) -> None:
    """With full every flip is there with both answers."""
    text = screen(moved, 120, full=True)
    for flip in moved.flips:
        assert flip.case in text
    assert "old  correctly refused: correctly_refused answer to una-030, draw 1" in text
    assert "new  answered: answered answer to una-030, draw 1" in text


# ---------------------------------------------------------------- advice


def test_headline_where_it_is_clear(tmp_path: Path) -> None:
    """Where the interval excludes 0 the sentence says by how much at least, and what moved against it."""
    old = passes("ans", [[1]] * 50 + [[0]] * 40) | passes("una", [[1]] * 40)
    new = passes("ans", [[1]] * 90) | passes("una", [[1]] * 36 + [[0]] * 4)
    there = compared(tmp_path / "a", old, new)
    assert re.fullmatch(
        r'"\.69 or \.97\?"  It got better, by at least \.\d\d: 44 questions flipped, 40 up, 4 down\.',
        told.headline(there)[0],
    )
    assert ['But "refused" is likely worse.'] == told.headline(there)[1:]
    back = told.headline(compared(tmp_path / "b", new, old))
    assert "It got worse, by at least" in back[0]


def test_headline_without_change(tmp_path: Path) -> None:
    """Where nothing changed the sentence says what could still hide."""
    rows = passes("ans", [[1]] * 8)
    assert [
        'No question changed in "right"; a difference of up to .32 could still hide behind 8 questions.'
    ] == told.headline(compared(tmp_path, rows, rows))


def test_headline_of_very_little(tmp_path: Path) -> None:
    """One question, or none with a score in both runs, decides nothing, and is said to."""
    one = compared(tmp_path / "a", passes("ans", [[1]]), passes("ans", [[0]]))
    assert ['One question decides nothing about "right".'] == told.headline(one)
    none = compared(tmp_path / "b", passes("ans", [[1], [None]]), passes("ans", [[None], [1]]))
    assert "no question has a score in both runs" in told.headline(none)[0]
    for found in (one, none):
        assert "exit 0" in screen(found)
        assert page.render(found)
        assert markdown.render(found)


def test_several_draws(tmp_path: Path) -> None:
    """With several draws questions change rather than flip, and nothing warns of a single call."""
    rows = [[1, 1, 0]] * 6 + [[0, 1, 0]] * 6
    found = compared(tmp_path, passes("ans", rows), passes("ans", [[1, 1, 1], *rows[1:]]))
    assert "1 question changed, 1 up, 0 down" in told.headline(found)[0]
    assert ("", "3 draws each") == (told.one_call(found), told.head(found).rpartition(", ")[2])


def test_one_run_of_several_draws_does_not_speak_for_the_other(tmp_path: Path) -> None:
    """Only the run with one model call a question is named."""
    found = compared(tmp_path, passes("ans", [[1, 1, 0]] * 9), passes("ans", [[1]] * 9))
    assert "one model call a question in the new run" in told.one_call(found)


def drop(**fields: Any) -> Drop:
    """A drop with these fields."""
    plain: dict[str, Any] = {
        "metric": "right", "event": "right", "population": "unanswerable", "good": "higher", "margin": 0.05,
        "decision": "undecided", "n": 40, "change": -0.15, "low": -0.3, "high": 0.01,
    }  # fmt: skip
    return Drop(**(plain | fields))


def test_drops_in_words() -> None:
    """A drop shows the limit that decided; where less is better, it is a rise."""
    assert ("drop at most .05", "-.30 to +.01", "UNDECIDED") == (
        told.drop_needs(drop()), told.drop_measured(drop()), told.drop_word(drop()),
    )  # fmt: skip
    assert "about 180 unanswerable questions would decide; you have 40" == told.drop_advice(drop(needed=171))
    assert "because" == told.drop_advice(drop(why="because"))
    assert "because; 2 questions left out, without a score in one of the runs" == told.drop_advice(
        drop(why="because", left_out=2)
    )
    assert "1 question left out, without a score in one of the runs" == told.drop_advice(
        drop(decision="holds", left_out=1)
    )
    rise = {"good": "lower", "change": 0.1, "low": -0.01, "high": 0.2}
    assert ("rise at most .05", "at worst +.20") == (
        told.drop_needs(drop(**rise)), told.drop_measured(drop(**rise, decision="holds")),
    )  # fmt: skip
    assert "at best -.01" == told.drop_measured(drop(**rise, decision="fails"))
    assert "at worst -.30" == told.drop_measured(drop(decision="holds"))
    assert "holds (judge unmeasured)" == told.drop_word(drop(decision="holds", judge_measured=False))
    assert "–" == told.drop_measured(drop(low=None, high=None))


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    """Lost answers, left out questions and unpaired ones are told, once for all metrics."""
    old = passes("ans", [[1, 1]] * 18 + [[None, None], [1, None]])
    new = passes("ans", [[1, 1]] * 21)
    runs = [read_run(write_run(tmp_path / name, rows)) for name, rows in (("old", old), ("new", new))]
    text = screen(compare(runs[0], runs[1], common_cases=True), 120)
    said = (
        "answers without a score: 3 in the old run, 0 in the new; "
        "1 question left out, without a score in one of the runs: right, grounded"
    )
    assert 1 == " ".join(text.split()).count(said)
    assert "not compared: ans-020 (only in the new run)" in text


# ---------------------------------------------------------------- Markdown and page


def test_markdown(moved: Comparison) -> None:
    """Markdown has the table, the gates and both answers, worse first."""
    text = markdown.render(moved).decode()
    assert text.startswith("## ❔ undecided")
    assert "| refused | .90 | .70 | -.20 |" in text
    assert "8 questions got worse" in text
    assert text.index("got worse") < text.index("got better")
    assert "  - new: answered: `answered answer to una-030, draw 1`" in text


def test_page(moved: Comparison) -> None:
    """The page shows every change, verdict and flip, runs no script and loads nothing."""
    text = page.render(moved).decode()
    for flip in moved.flips:
        assert f'id="case={flip.case}"' in text
    for change in moved.changes:
        assert change.event in text
    assert "UNDECIDED" in text
    assert "<script" not in text
    assert not re.search(r'(?:src|href)="(?!#|data:,)', text)
    assert "default-src 'none'" in unescape(text)
    assert "unsafe" not in text
    assert 2 == text.count("<style>")


def test_hostile_text(tmp_path: Path) -> None:
    """Text of questions, answers and models opens no element, no markup and no escape sequence."""
    old, new = passes("ans", [[1]] * 9), passes("ans", [[0]] + [[1]] * 8)
    cases = {name: case(name, question=HOSTILE) for name in old}
    found = compared(
        tmp_path, old, new, {"right": 0.1}, cases=cases, answers=dict.fromkeys(old, HOSTILE), name="q",
        bot={"kind": HOSTILE},
    )  # fmt: skip
    html, text = page.render(found).decode(), markdown.render(found).decode()
    assert "<img" not in html
    body = html.partition("<body>")[2].replace(str(tmp_path), "")  # the folder's number may be 49
    assert "49" not in re.sub(r"sha256[-:]\S+", "", body)
    assert "{{ 7*7 }}" in html
    for shown in (html, text, screen(found, full=True)):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    assert "[bold]x[/bold]" in screen(found, 200, full=True)
    inside = [line for line in text.splitlines() if "onerror" in line]
    assert inside
    assert all("``" in line for line in inside)
