"""By how much a metric may get worse from one run to the next: non-inferiority, decided by limits alone.

Owns the verdict on an allowed drop. "Not significantly worse" is no verdict here: the interval has to exclude
a drop larger than allowed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from evalrun import stats
from evalrun.comparison.pairs import Pairs, interval_of
from evalrun.errors import ExitCode, UserError, worst
from evalrun.records import Decision, Gate, Population, Record
from evalrun.stats.draws import filled, share_scored
from evalrun.summary import CONFIDENCE

MIN_N: int = Gate.model_fields["min_n"].default
MIN_COVERAGE: float = Gate.model_fields["min_coverage"].default
"""Those of any gate: fewer questions, or a smaller share of draws with a score, decide nothing."""
_MOST = 100_000


class Drop(Record):
    """The verdict on one allowed drop.

    ``low`` and ``high`` bound the change new less old, wider than for display, draws without a score counted
    against the metric at one end and for it at the other. ``n`` questions were compared,
    ``left_out`` have no score in one of the runs. ``needed``: about how many questions would decide.
    """

    metric: str
    event: str
    population: Literal["all", Population]
    good: Literal["higher", "lower"]
    margin: float
    decision: Decision
    n: int
    left_out: int = 0
    change: float | None = None
    low: float | None = None
    high: float | None = None
    why: str = ""
    needed: int | None = None
    judge_measured: bool | None = None


def read_drops(texts: Sequence[str]) -> dict[str, float]:
    """``right=.05`` → {"right": 0.05}.

    Raises:
        UserError: it is not METRIC=MARGIN with a margin in [0, 1), or a metric stands twice.
    """
    drops: dict[str, float] = {}
    for text in texts:
        name, _, margin = text.rpartition("=")
        value = _number(margin)
        if not name or value is None or not 0 <= value < 1:
            raise UserError(f"--max-drop {text}: not METRIC=MARGIN", "a margin is in [0, 1): right=.05")
        if name in drops:
            raise UserError(f"--max-drop {name}: given twice", "keep one of them")
        drops[name] = value
    return drops


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def decide_drop(
    pairs: Pairs,
    margin: float,
    *,
    measured: bool = False,
    min_n: int = MIN_N,
    min_coverage: float = MIN_COVERAGE,
) -> Drop:
    """Whether ``metric`` got worse by less than ``margin``, for certain; or by more; or neither is shown.

    This decides for ``evalrun diff`` and for the gates alike. ``measured``: whether the judge's agreement
    with labels is known. Fewer questions than ``min_n``, or a smaller share of draws with a score than
    ``min_coverage`` in either run, decide nothing.
    """
    metric = pairs.metric
    sign = 1 if metric.better == "higher" else -1
    change = interval_of(metric.kind)(pairs.new, pairs.old, CONFIDENCE, "noninferiority")
    ends = (_improvement(pairs, pessimistic=True).low, _improvement(pairs, pessimistic=False).high)
    limits = sorted(sign * end for end in ends if end is not None)
    drop = Drop(
        metric=metric.id,
        event=metric.event,
        population=metric.population,
        good=metric.better,
        margin=margin,
        decision="undecided",
        n=len(pairs.means),
        left_out=pairs.left_out,
        change=change.estimate,
        low=limits[0] if len(limits) == 2 else None,
        high=limits[1] if len(limits) == 2 else None,
        judge_measured=measured if metric.judged else None,
    )
    if why := _not_measured(pairs, min_n, min_coverage):
        return drop.model_copy(update={"why": why})
    lowest, highest = ends
    if lowest is None or highest is None or change.estimate is None:
        return drop.model_copy(update={"why": "no interval"})
    if lowest > -margin:
        return drop.model_copy(update={"decision": "holds"})
    if highest < -margin:
        return drop.model_copy(update={"decision": "fails"})
    needed = _needed(sign * change.estimate, lowest, highest, margin, len(pairs.old))
    why = f"a drop of {margin:g} is neither shown nor excluded"
    return drop.model_copy(update={"needed": needed, "why": why})


def _improvement(pairs: Pairs, *, pessimistic: bool) -> stats.Interval:
    """The interval of how much better the new run is, every missing draw counted for one side."""
    higher = pairs.metric.better == "higher"
    best, least = (1.0, 0.0) if higher else (0.0, 1.0)
    new = filled(pairs.new, least if pessimistic else best)
    old = filled(pairs.old, best if pessimistic else least)
    first, second = (new, old) if higher else (old, new)
    return interval_of(pairs.metric.kind)(first, second, CONFIDENCE, "noninferiority")


def _not_measured(pairs: Pairs, min_n: int, min_coverage: float) -> str:
    if len(pairs.means) < min_n:
        return f"questions compared: {len(pairs.means)}, needs {min_n}"
    for name, rows in (("old", pairs.old), ("new", pairs.new)):
        covered = share_scored(rows)
        if covered is not None and covered < min_coverage:
            return f"coverage {covered:.2f} in the {name} run, needs {min_coverage:g}: not measured"
    return ""


def _needed(better: float, lowest: float, highest: float, margin: float, n: int) -> int | None:
    """About how many questions would decide if the change stayed as it is: limits close in by √n."""
    room = better + margin
    reach = better - lowest if room > 0 else highest - better
    if not room or reach <= 0:
        return None
    needed = n * (reach / abs(room)) ** 2
    return math.ceil(needed) if n < needed < _MOST else None


def exit_code(drops: Sequence[Drop]) -> ExitCode:
    """What a comparison with these verdicts returns."""
    codes = {
        "holds": ExitCode.OK,
        "fails": ExitCode.GATE_FAILED,
        "undecided": ExitCode.NOT_ENOUGH_EVIDENCE,
    }
    return worst(codes[drop.decision] for drop in drops)
