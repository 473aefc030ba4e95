"""What a run has spent, held against its budget.

Owns when a budget is reached and how that is said. What was sent and counted is known to the cassette; that
nothing new is begun from then on is the pipeline's.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from evalrun.cassette import Book, Spent
from evalrun.reports import words
from evalrun.reports.words import count
from evalrun.settings import Budget, Price


@dataclass(frozen=True)
class Spending:
    """The spending of one session of a run, which begins now."""

    budget: Budget
    prices: Mapping[Book, Price]
    spent: Mapping[Book, Spent]
    _started: float = field(default_factory=time.perf_counter)

    @property
    def calls(self) -> int:
        """Calls to models."""
        return sum(spent.calls for spent in self.spent.values())

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return sum(spent.tokens for spent in self.spent.values())

    @property
    def cost(self) -> float | None:
        """In the currency of the prices; None where a model that was asked has none."""
        if not self.prices or any(book not in self.prices for book, _ in self._asked):
            return None
        return math.fsum(
            self.prices[book].of(spent.prompt_tokens, spent.completion_tokens) for book, spent in self._asked
        )

    @property
    def _asked(self) -> list[tuple[Book, Spent]]:
        return [(book, spent) for book, spent in self.spent.items() if spent.calls]

    @property
    def reached(self) -> str:
        """Why nothing new may be begun; empty while the budget lasts."""
        return next(self._reached(), "")

    def _reached(self) -> Iterator[str]:
        budget = self.budget
        if budget.calls is not None and self.calls >= budget.calls:
            yield f"the budget of {count(budget.calls, 'call')} is spent"
        if budget.seconds is not None and time.perf_counter() - self._started >= budget.seconds:
            yield f"the budget of {budget.seconds:g} s is spent"
        if budget.tokens is not None and self.tokens >= budget.tokens:
            yield f"the budget of {count(budget.tokens, 'token')} is spent"
        if budget.cost is not None and (self.cost or 0) >= budget.cost:
            yield f"the cost budget of {budget.cost:g} is spent"
        if budget.tokens is not None or budget.cost is not None:
            yield from self._uncounted()

    def _uncounted(self) -> Iterator[str]:
        """A budget of tokens or cost that could be overrun unseen is as good as spent."""
        for book, spent in self.spent.items():
            if spent.uncounted:
                key = "cost" if self.budget.tokens is None else "tokens"
                yield f"budget.{key} cannot be kept: the model of the {book} does not count its tokens"

    def __str__(self) -> str:
        parts = [words.count(self.calls, "call"), words.count(self.tokens, "token")]
        return ", ".join([*parts, *([f"cost {words.amount(self.cost)}"] if self.cost else [])])
