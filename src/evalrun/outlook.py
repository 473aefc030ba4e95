"""What the gates would say of a run that is still going on, for its progress line.

Owns the scores of gated metrics while draws come in, and one short text about them. A gate is
called settled only when no answer still to come could change it; no verdict of the finished run is made here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from evalrun import gates
from evalrun.records import Case, Gate, Metric, Score
from evalrun.reducers import split
from evalrun.summary import Table, estimate, groups_of

_PAUSE = 20  # times what the last look took: so looking costs at most a twentieth of the run


class Outlook:
    """The gates of a plan, seen from the middle of its run."""

    def __init__(
        self,
        wanted: Sequence[Gate],
        metrics: Sequence[Metric],
        cases: Sequence[Case],
        draws: int,
        clock: Callable[[], float] = time.perf_counter,
        *,
        labelled: bool = False,
    ) -> None:
        by_id = {metric.id: metric for metric in metrics}
        self._draws, self._clock, self._labelled = draws, clock, labelled
        self._gates = [
            (gate, by_id[gate.metric], groups_of(by_id[gate.metric], cases).get(gate.group, []))
            for gate in wanted
            if gate.metric in by_id and gate.max_drop is None
        ]
        self._gated = {split(gate.metric)[0] for gate, _, _ in self._gates}
        self._table, self._text, self._again = Table(cases), "", float("-inf")

    def add(self, score: Score) -> None:
        """Take in one score; those that no gate asks about are let go."""
        if score.metric in self._gated:
            self._table.add(score)

    def text(self) -> str:
        """``faithful .58 so far, needs >= .50; recall@5 holds``; empty without a gate. Looks now and then."""
        began = self._clock()
        if began >= self._again:
            self._text = "; ".join(self._seen(*known) for known in self._gates)
            self._again = self._clock() + _PAUSE * (self._clock() - began)
        return self._text

    def _seen(self, gate: Gate, metric: Metric, members: Sequence[Case]) -> str:
        name = gate.metric if gate.group == "all" else f"{gate.metric} {gate.group}"
        found = estimate(metric, gate.group, members, self._table, self._draws)
        if found.value is None:
            return f"{name} -"
        # Bounds count what is missing against the gate and for it: a decision by them stands whatever comes.
        open_ended = gate.model_copy(update={"min_coverage": 0.0, "require_measured_judge": False})
        whole = found.failed == 0
        decided = gates.decide(open_ended, {(gate.metric, gate.group): found}).decision
        if self._labelled and metric.judged:
            decided = "undecided"  # the labels have a word in it at the end
        if decided != "undecided" and (whole or gate.infer == "population"):
            return f"{name} {decided}"
        return f"{name} {gates.number(found.value)} so far, needs {gate.needs}"
