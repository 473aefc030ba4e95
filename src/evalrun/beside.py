"""A run beside the baseline of its config: the same questions, paired, metric by metric and group by group.

Owns the refusal of a baseline that a run cannot be held against, and the values from which gates on a drop
are decided and which reports show. The file is ``baseline``'s, the decision that of ``gates``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evalrun.baseline import read_baseline
from evalrun.comparison.measured import Measured, Values, case_digest, same_meaning, values_of
from evalrun.comparison.pairs import Pairs, Row
from evalrun.digest import sha256_bytes
from evalrun.errors import UserError
from evalrun.records import BaselineInfo, BaselineValue, Case, Estimate, Metric, Score

FILE = "baseline.jsonl"
"""What the copy in a run folder is called."""
RENEW = "renew it: evalrun run CONFIG --set 'gates=[]', then evalrun accept RUN"


@dataclass(frozen=True)
class Baseline:
    """A baseline file, read: its bytes, so that the run keeps what it was held against, and what they say."""

    path: Path
    data: bytes
    measured: Measured

    @classmethod
    def read(cls, path: Path) -> Baseline:
        """The baseline in ``path``.

        Raises:
            InputError: a line that is not of such a file.
        """
        return cls(path, path.read_bytes(), read_baseline(path))

    def unfit(self, metric: Metric, dataset: str, digest: str) -> tuple[str, str] | None:
        """Why a drop of ``metric`` since this baseline cannot be measured, and what to do; None if it can.

        ``dataset`` and ``digest`` are name and digest of the questions that are asked now.
        """
        source, before = self.measured.source, self.measured.metrics.get(metric.id)
        if source.dataset_digest != digest:
            return (
                f"the baseline is of another dataset: {source.dataset} ({source.dataset_digest[:15]}…), "
                f"this is {dataset} ({digest[:15]}…)",
                RENEW,
            )
        if before is None:
            return f"the baseline does not measure '{metric.id}'", RENEW
        if not same_meaning(metric, before):
            return f"in the baseline '{metric.id}' means something else", RENEW
        return None

    def check_judge(self, name: str, fingerprint: str) -> None:
        """Refuse readings of another judge: what changed may be the judge.

        Raises:
            UserError: the baseline was read by another judge, or by none.
        """
        source = self.measured.source
        if source.judge != fingerprint:
            judge = f"{source.judge_name} ({source.judge[:15]}…)" if source.judge else "no judge"
            raise UserError(
                f"{self.path}: the baseline was read by {judge}, this run's judge is {name} "
                f"({fingerprint[:15]}…): what changed may be the judge",
                RENEW,
            )

    def old_rows(self, metric: str, cases: Iterable[Case]) -> list[Row]:
        """The values of ``metric`` in the baseline, of those of ``cases`` that it has."""
        known = self.measured.values[metric]
        return [known[case.id] for case in cases if case.id in known]


@dataclass(frozen=True)
class Beside:
    """A finished run beside its baseline."""

    baseline: Baseline
    metrics: Mapping[str, Metric]
    cases: Sequence[Case]
    values: Mapping[str, Values]
    paired: frozenset[str] = field(default=frozenset())

    @classmethod
    def of(
        cls,
        baseline: Baseline,
        metrics: Iterable[Metric],
        cases: Sequence[Case],
        scores: Iterable[Score],
        draws: int,
    ) -> Beside:
        """Pair a run with its baseline, by case id and digest of what each case asks."""
        known = {metric.id: metric for metric in metrics}
        old = baseline.measured.digests
        paired = frozenset(case.id for case in cases if old.get(case.id) == case_digest(case))
        return cls(baseline, known, cases, values_of(known.values(), draws, cases, scores), paired)

    def pairs(self, metric: str, group: str) -> Pairs:
        """Both sides of one metric on the questions of a group."""
        chosen = [case.id for case in self.cases if case.id in self.paired and group in case.groups]
        old = self.baseline.measured.values[metric]
        return Pairs.of(self.metrics[metric], chosen, old, self.values[metric])

    def info(self, estimates: Iterable[Estimate]) -> BaselineInfo:
        """The baseline as a run's header keeps it, with a value for every estimate that both have."""
        return BaselineInfo(
            name=self.baseline.path.name,
            sha256=sha256_bytes(self.baseline.data),
            config_digest=self.baseline.measured.source.config_digest,
            values=tuple(
                BaselineValue(metric=one.metric, group=one.group, value=value)
                for one in estimates
                if (value := self._value(one.metric, one.group)) is not None
            ),
        )

    def _value(self, metric: str, group: str) -> float | None:
        before = self.baseline.measured.metrics.get(metric)
        if before is None or metric not in self.values or not same_meaning(before, self.metrics[metric]):
            return None
        return self.pairs(metric, group).old_mean
