"""What a run has spent: what counts, when a budget is reached, and how much that was."""

from __future__ import annotations

import pytest

from evalrun.cassette import Book, Spent
from evalrun.settings import Budget, Price
from evalrun.spending import Spending

PRICES: dict[Book, Price] = {"bot": Price(prompt=1, completion=10), "judge": Price(prompt=2, completion=0)}


def spending(
    budget: Budget | None = None,
    bot: Spent | None = None,
    judge: Spent | None = None,
    prices: dict[Book, Price] | None = None,
) -> Spending:
    """Of a bot and a judge that were asked as often as given."""
    return Spending(budget or Budget(), prices or {}, {"bot": bot or Spent(), "judge": judge or Spent()})


def asked(calls: int, prompt: int = 0, completion: int = 0, uncounted: int = 0) -> Spent:
    """So many calls, with what they took all told."""
    return Spent(calls, prompt, completion, uncounted)


def test_calls_and_tokens_of_both_models_add_up() -> None:
    """Read and written, of bot and judge."""
    found = spending(bot=asked(2, 100, 10), judge=asked(1, 200, 5))
    assert (3, 315, None) == (found.calls, found.tokens, found.cost)
    assert "3 calls, 315 tokens" == str(found)


def test_each_model_is_paid_by_its_own_price() -> None:
    """A million tokens cost what the config says."""
    found = spending(bot=asked(1, 1_000_000, 100_000), judge=asked(1, 500_000, 9), prices=PRICES)
    assert 3.0 == found.cost
    assert "2 calls, 1,600,009 tokens, cost 3" == str(found)


def test_a_model_that_was_never_asked_needs_no_price() -> None:
    """One that was asked does: else the cost is not known."""
    only_bot: dict[Book, Price] = {"bot": PRICES["bot"]}
    assert 1.0 == spending(bot=asked(1, 1_000_000), prices=only_bot).cost
    assert spending(bot=asked(1, 1_000_000), judge=asked(1), prices=only_bot).cost is None


@pytest.mark.parametrize(
    ("budget", "below", "at"),
    [
        (Budget(calls=3), asked(2), asked(3)),
        (Budget(tokens=100), asked(1, 90, 9), asked(1, 90, 10)),
        (Budget(cost=0.5), asked(1, 499_999), asked(1, 500_000)),
    ],
)
def test_a_budget_is_reached_at_its_limit_not_below(budget: Budget, below: Spent, at: Spent) -> None:
    """And said with the limit."""
    assert "" == spending(budget, below, prices=PRICES).reached
    assert "is spent" in spending(budget, at, prices=PRICES).reached


def test_without_a_budget_nothing_is_ever_reached() -> None:
    """However much was spent, counted or not."""
    assert "" == spending(bot=asked(10**6, 10**12, 10**12, 10**6)).reached


@pytest.mark.parametrize(("budget", "key"), [(Budget(tokens=10**9), "tokens"), (Budget(cost=10**9), "cost")])
def test_tokens_that_nobody_counts_end_a_budget_of_them(budget: Budget, key: str) -> None:
    """It could be overrun unseen; a budget of calls is kept all the same."""
    found = spending(budget, judge=asked(1, uncounted=1), prices=PRICES)
    assert f"budget.{key} cannot be kept: the model of the judge does not count its tokens" == found.reached
    assert "" == spending(Budget(calls=5), judge=asked(1, uncounted=1)).reached


def test_a_reply_without_a_count_of_its_answer_is_uncounted() -> None:
    """A prompt that a server still held in memory may have none."""
    spent = Spent()
    spent.add(None, 7)
    assert (7, 0) == (spent.tokens, spent.uncounted)
    spent.add(5, None)
    assert (12, 1) == (spent.tokens, spent.uncounted)
