"""One question as data for the drawer of the page."""

from __future__ import annotations

from evalrun.records import Case, Chunk, Context, Draw
from evalrun.reports.detail import case_data
from evalrun.reports.rows import Detail, Row

CASE = Case(id="a", question="Where?", category="x")
ONE, TWO = (Context.of((Chunk(id=name, text=f"{name}."),)) for name in ("one", "two"))


def test_each_context_stands_with_the_draws_it_served() -> None:
    """A bot that retrieves for each answer: none is shown as what another draw was given."""
    draws = [
        Draw(case="a", index=index, seed=1, context=context.digest if context else None)
        for index, context in enumerate((TWO, ONE, TWO, None))
    ]
    detail = Detail(CASE, {ONE.digest: ONE, TWO.digest: TWO}, draws)
    row = Row("a", "Where?", "x", "answerable", ["none"] * 4)
    data, _ = case_data(row, detail, ())
    shown = [(one["draws"], [chunk[0] for chunk in one["chunks"]]) for one in data["contexts"]]
    assert [([0, 2], ["two"]), ([1], ["one"])] == shown
