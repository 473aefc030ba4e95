"""Scores as they come, question by question and draw by draw, checked and reduced to question means.

Owns the reading of values and the treatment of what is missing; a question is the unit of sampling, a draw
is a repeated measurement of it. What to make of the means is the business of the intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evalrun.stats.effective import FloatArray

Values = Sequence[Sequence[float | None]]
"""A sequence of questions, each a sequence of draws; None is a draw that was planned and has no score."""


@dataclass(frozen=True)
class Questions:
    """Questions with a scored draw: their means, their numbers of draws, their places in the input, and the
    sum of squared deviations of the draws of each from its mean.

    Sums are exact before they are rounded, so that neither the order of questions nor the CPU changes a bit.
    """

    means: FloatArray
    sizes: NDArray[np.int64]
    places: tuple[int, ...]
    within: FloatArray

    @property
    def n(self) -> int:
        """Number of questions."""
        return len(self.places)

    @cached_property
    def mean(self) -> float:
        """Mean of the question means; each question weighs the same whatever its number of draws."""
        return math.fsum(self.means.tolist()) / self.n

    @cached_property
    def variance(self) -> float:
        """Sample variance (n - 1) of the question means; at least two questions."""
        return math.fsum(((self.means - self.mean) ** 2).tolist()) / (self.n - 1)

    def only(self, places: Sequence[int]) -> Questions:
        """The questions at ``places``, which are places of this."""
        at = {place: i for i, place in enumerate(self.places)}
        chosen = [at[place] for place in places]
        return Questions(self.means[chosen], self.sizes[chosen], tuple(places), self.within[chosen])

    @property
    def most(self) -> float:
        """n²/Σ(1/k): what the draws are worth if independent (n·k at equal k)."""
        return self.n**2 / math.fsum((1 / self.sizes).tolist())


@dataclass(frozen=True)
class Sums:
    """Planned questions, each reduced to what intervals need: one entry a question in each array.

    ``sums``: of the scored draws; ``scored`` and ``lost``: how many; ``within``: as in :class:`Questions`.
    """

    sums: FloatArray
    scored: NDArray[np.int64]
    lost: NDArray[np.int64]
    within: FloatArray

    def only(self, places: NDArray[np.int64]) -> Sums:
        """The questions at ``places``."""
        return Sums(self.sums[places], self.scored[places], self.lost[places], self.within[places])

    def read(self) -> Questions:
        """The questions with a scored draw."""
        kept = np.flatnonzero(self.scored)
        sizes = self.scored[kept]
        return Questions(self.sums[kept] / sizes, sizes, tuple(kept.tolist()), self.within[kept])

    def filled(self, missing: float) -> Questions:
        """All questions with ``missing`` for every lost draw; one without draws gets one. No ``within``."""
        if not self.lost.any() and self.scored.all():
            return self.read()
        lost = np.where(self.scored + self.lost > 0, self.lost, 1)
        sizes = self.scored + lost
        means = (self.sums + missing * lost) / sizes
        return Questions(means, sizes, tuple(range(len(sizes))), np.full(len(sizes), np.nan))


def spread(draws: Sequence[float]) -> float:
    """Sum of squared deviations from the mean."""
    mean = math.fsum(draws) / len(draws)
    return math.fsum((score - mean) ** 2 for score in draws)


def read(values: Values | Questions, low: float = 0.0, high: float = 1.0) -> Questions:
    """Question means; missing draws are left out, and so are questions without any draw.

    What is read already is returned as it is.

    Raises:
        ValueError: a score is NaN or outside [``low``, ``high``]; the message names both, from 0.
    """
    if isinstance(values, Questions):
        return values
    kept = [
        (place, present)
        for place, draws in enumerate(values)
        if (present := [_checked(s, place, draw, low, high) for draw, s in enumerate(draws) if s is not None])
    ]
    means = np.array([math.fsum(present) / len(present) for _, present in kept], dtype=np.float64)
    sizes = np.array([len(present) for _, present in kept], dtype=np.int64)
    within = np.array([spread(present) for _, present in kept], dtype=np.float64)
    return Questions(means, sizes, tuple(place for place, _ in kept), within)


def filled(values: Values, missing: float) -> list[list[float]]:
    """The same questions with ``missing`` for every missing draw; a question without draws gets one."""
    return [[missing if score is None else score for score in draws] or [missing] for draws in values]


def share_scored(values: Values) -> float | None:
    """Scored over planned draws, a question without draws counting as one planned; None without questions."""
    planned = sum(max(len(draws), 1) for draws in values)
    scored = sum(score is not None for draws in values for score in draws)
    return scored / planned if planned else None


def _checked(score: float, question: int, draw: int, low: float, high: float) -> float:
    if not low <= score <= high or math.isinf(score):
        raise ValueError(f"question {question}, draw {draw}: {score} is not a number in [{low:g}, {high:g}]")
    return float(score)
