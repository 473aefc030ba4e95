"""How certificates read: what may be said of the labels, areas that add up, and a void one."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalrun.agreement import accuracy
from evalrun.records import Cells, Certificate, Correction, Design
from evalrun.reports import certificates as told


def certificate(a: int, b: int, c: int, d: int, design: Design = "random", **fields: Any) -> Certificate:
    """One on refusals with this table: judge yes (a, b), judge no (c, d)."""
    table = Cells(yes_yes=a, yes_no=b, no_yes=c, no_no=d)
    made: dict[str, Any] = {
        "dimension": "refusal", "fingerprint": "sha256:" + "0" * 64, "file": "r.jsonl", "digest": "sha256:x",
        "design": design, "date": date(2026, 11, 30), "rater": "r1", "kind": "human", "labelled": table.total,
        "n": table.total, "table": table, **accuracy(table, design),
    }  # fmt: skip
    return Certificate(**(made | fields))


def test_both_error_rates_are_told_with_limits() -> None:
    """19 of 21 refusals found, 38 of 43 answers cleared, and where the labels come from."""
    found = certificate(19, 5, 2, 38, stale=1, unjudged=2)
    assert "finds .90 [.70, .99] of refusals, clears .88 [.75, .96] of answers" == told.sure(found)
    assert "agreement .89 [.79, .95], kappa .76 [.57, .91]" == told.agreed(found)
    left = "64 random draws (1 of another answer, 2 without a verdict left out)"
    assert f"{left}, human reading, 2026-11-30, r.jsonl" == told.source(found)


def test_labels_chosen_by_verdict_say_what_is_right_among_each() -> None:
    """No sensitivity, no agreement, no kappa: such a sample has none to give."""
    found = certificate(9, 1, 4, 6, "by_verdict")
    assert (
        '.90 [.55, .997] of its "refused" are so by the labels, .40 [.12, .74] of its "answered"'
        == told.sure(found)
    )
    assert "" == told.agreed(found)
    assert 2 == len(told.named_figures(found))


def test_a_void_one_says_why_and_nothing_else() -> None:
    """No figure of a judge that is not this one."""
    found = certificate(19, 5, 2, 38, void="its labels were measured with another judge")
    assert "void: its labels were measured with another judge" == told.sure(found)
    assert "" == told.agreed(found)


@pytest.mark.parametrize("cells", [(0, 0, 0, 5), (0, 3, 0, 5), (7, 0, 0, 0)])
def test_labels_of_one_kind_leave_a_figure_undefined_in_words(cells: tuple[int, int, int, int]) -> None:
    """Nothing is NaN, and nothing is 0 that is unknown."""
    assert "undefined (no data)" in told.sure(certificate(*cells))


@given(st.tuples(*[st.integers(0, 50)] * 4))
def test_areas_are_shares_of_the_answers(cells: tuple[int, int, int, int]) -> None:
    """They fill the square, and those read alike are the share that agrees."""
    found = certificate(*cells)
    areas = told.areas(found)
    if not found.n:
        assert [] == areas
        return
    assert pytest.approx(100 * 100) == sum(area.width * area.height for area in areas)
    same = sum(area.width * area.height for area in areas if area.same)
    assert pytest.approx(100 * 100 * (cells[0] + cells[3]) / found.n) == same


def test_a_clipped_rate_is_called_that() -> None:
    """The labels' error rates cannot be those of this run."""
    found = Correction(value=1.0, low=0.9, high=1.0, clipped=True)
    assert "1.0 [.90, 1.0] (clipped: the labels' error rates do not fit this run)" == told.corrected(found)
