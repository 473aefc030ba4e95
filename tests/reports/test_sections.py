"""What stands under which heading, and what a heading's number of questions is not true of."""

from __future__ import annotations

from evalrun.journal import RunFolder
from evalrun.records import Estimate, Gate, Verdict
from evalrun.reports import words
from evalrun.reports.rows import read_rows
from evalrun.reports.sections import Section, sections


def applies_to(estimate: Estimate, questions: int, not_applicable: int) -> Estimate:
    """The estimate, over so many questions."""
    return estimate.model_copy(update={"n": questions, "not_applicable": not_applicable})


def test_a_rate_of_fewer_questions_than_its_heading_says_of_how_many(quality: RunFolder) -> None:
    """As where six of twenty questions have a reference; what is missing has a column of its own."""
    [rate, *_] = quality.header.estimates
    heading = Section("answerable, 20 questions", (rate,), size=20)
    assert f"{rate.event}, of 6" == heading.label(applies_to(rate, 6, 14))
    assert rate.event == heading.label(applies_to(rate, 20, 0))
    assert rate.event == heading.label(applies_to(rate, 19, 0)), "one is missing"
    assert "" == Section("by technique", (rate,), by_group=True).of(applies_to(rate, 6, 14))


def test_questions_of_shared_documents_are_counted_by_the_metric_of_most(quality: RunFolder) -> None:
    """Retrieval applies to some questions of a group: it does not say how many there are."""
    [rate, *_] = quality.header.estimates
    nested = rate.model_copy(update={"group": "all", "method": "wilson-nested", "documents": 20.0, "n": 30})
    fewer = nested.model_copy(update={"metric": "recall@5", "documents": 11.0, "n": 20})
    for order in ((nested, fewer), (fewer, nested)):
        header = quality.header.model_copy(update={"estimates": order})
        assert "all 30 questions, as much as 20 documents" in words.documents_line(header)


def test_retrieval_is_shown_of_the_group_that_its_gate_reads(quality: RunFolder) -> None:
    """Two figures of one name, of 36 and of 48 questions, would puzzle; the heading counts what applies."""
    header, rows = quality.header, read_rows(quality).rows
    found = next(e for e in header.estimates if e.metric == "recall@5" and e.group == "answerable")
    wide = found.model_copy(update={"group": "all", "n": 48, "value": 0.85})
    gate = Verdict(gate=Gate(metric="recall@5", group="all", min=0.5), decision="holds")
    for verdicts, heading in (
        ((gate,), "retrieval, 48 questions"),
        ((), "retrieval, answerable, 36 questions"),
    ):
        update = {"estimates": (*header.estimates, wide), "verdicts": verdicts}
        shown = sections(header.model_copy(update=update), rows)
        assert heading in [section.title for section in shown]


def test_a_risk_stands_with_its_name(quality: RunFolder) -> None:
    """An id says nothing to who does not know the list; one that is no risk is left as it is."""
    [rate, *_] = quality.header.estimates
    section = Section("by OWASP risk", (rate,), by_group=True)
    names = [
        section.label(rate.model_copy(update={"group": group})) for group in ("LLM08:2026", "LLM99:2025")
    ]
    assert ["LLM08:2026 Hidden Context Exposure", "LLM99:2025"] == names
