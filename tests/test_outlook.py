"""What the gates would say of a run that is still going on."""

from __future__ import annotations

import pytest

from evalrun.outlook import Outlook
from evalrun.records import Case, Gate, Metric, Score, Status

CASES = [Case(id=f"c{number:02}", question="What?", category="any") for number in range(40)]
FAITHFUL = Metric(id="faithful", event="faithful", kind="rate", better="higher", judged=True)
RECALL = Metric(id="recall@5", event="found", kind="score", better="higher", per="case", deterministic=True)
LOW = Gate(metric="faithful", min=0.5, require_measured_judge=True)


def outlook(*gates: Gate) -> Outlook:
    """One draw a case; the clock stands still, so that every look is a fresh one."""
    return Outlook(gates, [FAITHFUL, RECALL], CASES, 1, clock=lambda: 0.0)


def scored(seen: Outlook, count: int, status: Status, start: int = 0) -> None:
    for case in CASES[start : start + count]:
        seen.add(Score(case=case.id, index=0, metric="faithful", status=status))


@pytest.mark.parametrize(
    ("passed", "failed", "text"),
    [
        (0, 0, "faithful -"),
        (4, 1, "faithful .80 so far, needs >= .50"),
        (35, 0, "faithful holds"),
        (0, 30, "faithful fails"),
    ],
)
def test_a_gate_is_settled_only_when_nothing_to_come_can_change_it(
    passed: int, failed: int, text: str
) -> None:
    """35 of 40 hold whatever the last 5 are; 4 of 5 are a number so far and no more."""
    seen = outlook(LOW)
    scored(seen, passed, "pass")
    scored(seen, failed, "fail", start=passed)
    assert text == seen.text()


def test_what_was_settled_is_what_the_whole_run_says() -> None:
    """For every order of bad and good answers, a settled gate stays as it was said to be."""
    for bad_first in (True, False):
        for bad in range(0, 41, 5):
            seen, settled = outlook(LOW), ""
            first, second = ("fail", "pass") if bad_first else ("pass", "fail")
            split = bad if bad_first else 40 - bad
            for number in range(40):
                scored(seen, 1, first if number < split else second, start=number)  # type: ignore[arg-type]
                now = seen.text()
                assert settled in ("", now)
                settled = now if now in ("faithful holds", "faithful fails") else ""


def test_a_gate_on_this_list_waits_for_the_whole_list() -> None:
    """Its number can still move either way, so it is a number so far until the last question."""
    seen = outlook(Gate(metric="recall@5", min=0.7, infer="this_set"))
    for case in CASES[:-1]:
        seen.add(Score(case=case.id, index=None, metric="recall@5", status="number", value=1.0))
    assert "recall@5 1.0 so far, needs >= .70" == seen.text()
    seen.add(Score(case=CASES[-1].id, index=None, metric="recall@5", status="number", value=1.0))
    assert "recall@5 holds" == seen.text()


def test_looking_costs_a_twentieth_of_the_time() -> None:
    """After a look that took a second, the same text is shown for twenty."""
    times = iter([0.0, 1.0, 1.0, 2.0, 20.9, 21.1, 22.0, 22.0])
    seen = Outlook([LOW], [FAITHFUL], CASES, 1, clock=lambda: next(times))
    assert "faithful -" == seen.text()
    scored(seen, 40, "pass")
    assert "faithful -" == seen.text()
    assert "faithful -" == seen.text()
    assert "faithful holds" == seen.text()


def test_without_gates_there_is_nothing_to_say() -> None:
    """A filtered run evaluates no gates, and its progress speaks of none."""
    assert "" == outlook().text()
