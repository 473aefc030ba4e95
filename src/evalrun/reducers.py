"""How the draws of a question become one value: ``grounded:pass^3`` is ``grounded`` reduced by ``pass^3``.

Owns the names of reducers and what each makes of a question's draws. The mean over questions and its interval
belong to ``summary``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from evalrun.errors import UserError
from evalrun.records import Metric

if TYPE_CHECKING:  # a config is read, and a bot launched, without the statistics
    from evalrun.stats import Values

NAMES = {
    "pass^K": "the chance that K draws all pass",
    "pass@K": "the chance that at least one of K draws passes",
    "majority": "whether more than half of the draws pass; a tie counts against the bot",
    "mean": "the share of draws that pass, as without a reducer",
}
"""Reducer → what it makes of a question."""
_SPEC = re.compile(r"(?P<kind>pass\^|pass@|majority|mean)(?P<k>[1-9][0-9]*)?\Z")


@dataclass(frozen=True)
class Reducer:
    """One way to reduce. ``k``: of how many draws a pass^k or pass@k is, 0 for the others."""

    kind: Literal["pass^", "pass@", "majority", "mean"]
    k: int = 0

    @classmethod
    def of(cls, name: str) -> Reducer:
        """The reducer of that name.

        Raises:
            UserError: there is none.
        """
        found = _SPEC.match(name)
        if found is None or (found["kind"].startswith("pass") != bool(found["k"])):
            raise UserError(f"unknown reducer '{name}'", f"known: {', '.join(NAMES)}, with K from 1")
        return cls(found["kind"], int(found["k"] or 0))  # type: ignore[arg-type]

    @property
    def words(self) -> str:
        """What it says behind an event: ``refused, all of 3``."""
        number = f"{self.k} draws" if self.k > 1 else "1 draw"
        return {
            "pass^": f"all of {number}",
            "pass@": f"any of {number}",
            "majority": "most draws",
            "mean": "mean of draws",
        }[self.kind]

    def value(self, draws: Sequence[float | None], *, tie: float) -> float | None:
        """The value of one question; None with no scored draw, or with fewer than ``k``.

        Passes are 1.0, fails 0.0. ``tie``: what a majority makes of as many passes as fails.
        """
        known = [draw for draw in draws if draw is not None]
        passed = math.fsum(known)
        if not known:
            return None
        if self.kind == "mean":
            return passed / len(known)
        if self.kind == "majority":
            return tie if 2 * passed == len(known) else float(2 * passed > len(known))
        from evalrun.stats import pass_at_k, pass_hat_k

        estimate = pass_hat_k if self.kind == "pass^" else pass_at_k
        return estimate(len(known), round(passed), self.k)


def split(name: str) -> tuple[str, str]:
    """``grounded:pass^3`` → (``grounded``, ``pass^3``); a name without a reducer → (name, "")."""
    base, _, reducer = name.partition(":")
    return base, reducer


def reduced(metric: Metric, reducer: str, draws: int) -> Metric:
    """The metric that ``reducer`` makes of ``metric`` where a question has ``draws`` draws.

    Raises:
        UserError: no such reducer, or one that this metric or so few draws leave nothing to reduce.
    """
    found, name = Reducer.of(reducer), f"{metric.id}:{reducer}"
    if metric.per == "case":
        raise UserError(f"'{name}': {metric.id} is measured once a question", f"write {metric.id}")
    if metric.kind != "rate":
        raise UserError(f"'{name}': only what passes or fails can be reduced", f"write {metric.id}")
    if found.k > draws:
        hint = f"raise draws to {found.k}, or write {found.kind}{draws}"
        raise UserError(f"'{name}' needs {found.k} draws a question, this config has {draws}", hint)
    kind = "score" if found.k else "rate"
    return metric.model_copy(update={"id": name, "event": f"{metric.event}, {found.words}", "kind": kind})


def reduce(metric: Metric, values: Values) -> Values:
    """The values of a metric, a row a question: its draws, or their one value where it has a reducer."""
    name = split(metric.id)[1]
    if not name or name == "mean":
        return values
    reducer, tie = Reducer.of(name), 0.0 if metric.better == "higher" else 1.0
    return [[reducer.value(draws, tie=tie)] for draws in values]
