"""Runs of one config → how each of its numbers went, with its interval, from run to run.

Owns which runs and which numbers stand together, and what changed between two runs. The numbers are the
runs' own; nothing is computed of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from evalrun.records import Estimate, Gate, Verdict
from evalrun.view.listing import Finished

MOST = 24
"""The newest runs that a trend shows."""
_CONCLUDED = (0, 1, 3)
"""Exit codes of runs whose numbers mean what they say."""


@dataclass(frozen=True)
class Point:
    """A number of one run, and the verdict of the gate on it; either may be missing."""

    run: Finished
    estimate: Estimate | None
    verdict: Verdict | None

    @property
    def figures(self) -> tuple[float | None, float | None, float | None]:
        """Value, low, high: as the gate read them where there is one, else as estimated.

        A gate on this list of questions infers nothing: both limits are the value.
        """
        if self.verdict and self.verdict.gate.infer == "this_set":
            return (self.verdict.value,) * 3
        read = self.verdict if self.verdict and self.verdict.value is not None else self.estimate
        return (read.value, read.low, read.high) if read else (None, None, None)


@dataclass(frozen=True)
class Track:
    """One number over the runs, oldest first; ``gate`` is the newest run's gate on it."""

    metric: str
    group: str
    newest: Estimate
    gate: Gate | None
    points: tuple[Point, ...]

    @property
    def scale(self) -> float:
        """The upper end of its axis: 1, or a little more than the largest mark of a quantity."""
        if self.newest.kind != "quantity":
            return 1.0
        marks = [mark for point in self.points for mark in point.figures if mark is not None]
        bounds = [bound for bound in (self.gate.min, self.gate.max) if bound is not None] if self.gate else []
        return 1.15 * max([*marks, *bounds], default=1.0) or 1.0


@dataclass(frozen=True)
class Trend:
    """The runs of one config, oldest first, what is new in each, and the tracks of their numbers."""

    config: str
    runs: tuple[Finished, ...]
    changes: tuple[str, ...]
    tracks: tuple[Track, ...]
    older: int
    left_out: int


def trends(runs: Iterable[Finished]) -> list[Trend]:
    """One trend a config that has at least two runs to compare, the config of the newest run first."""
    by_config: dict[str, list[Finished]] = {}
    for run in runs:
        by_config.setdefault(run.header.name, []).append(run)
    made = (_trend(config, found) for config, found in by_config.items())
    return [trend for trend in made if len(trend.runs) > 1]


def _trend(config: str, newest_first: list[Finished]) -> Trend:
    counted = [run for run in newest_first if concluded(run)]
    shown = tuple(reversed(counted[:MOST]))
    return Trend(
        config=config,
        runs=shown,
        changes=tuple(_change(before, run) for before, run in zip((None, *shown), shown, strict=False)),
        tracks=tuple(_tracks(shown)),
        older=len(counted) - len(shown),
        left_out=len(newest_first) - len(counted),
    )


def concluded(run: Finished) -> bool:
    """Whether its numbers mean what they say: a whole run that ended with a verdict."""
    header = run.header
    return header.complete and not header.partial and header.exit_code in _CONCLUDED


def _change(before: Finished | None, run: Finished) -> str:
    """What keeps a run from being compared with the one before it."""
    if before is None:
        return ""
    old, new = before.header, run.header
    judges = [header.judge.fingerprint if header.judge else "" for header in (old, new)]
    found = [
        word
        for word, changed in (
            ("other questions", old.dataset.digest != new.dataset.digest),
            ("another judge", judges[0] != judges[1]),
            ("config changed", old.config_digest != new.config_digest),
        )
        if changed
    ]
    return ", ".join(found)


def _tracks(runs: tuple[Finished, ...]) -> Iterator[Track]:
    if not runs:
        return
    newest = {(e.metric, e.group): e for e in runs[-1].header.estimates}
    gates = {(v.gate.metric, v.gate.group): v.gate for v in _on_rates(runs[-1])}
    leading = [(m.id, m.population) for m in runs[-1].header.metrics]
    for key in dict.fromkeys([*gates, *leading]):
        if key in newest and newest[key].value is not None:
            points = tuple(_point(run, key) for run in runs)
            yield Track(*key, newest=newest[key], gate=gates.get(key), points=points)


def _point(run: Finished, key: tuple[str, str]) -> Point:
    estimate = next((e for e in run.header.estimates if (e.metric, e.group) == key), None)
    verdict = next((v for v in _on_rates(run) if (v.gate.metric, v.gate.group) == key), None)
    return Point(run, estimate, verdict)


def _on_rates(run: Finished) -> list[Verdict]:
    """The verdicts of gates on a value; those on a change since a baseline have another axis."""
    return [verdict for verdict in run.header.verdicts if verdict.gate.max_drop is None]
