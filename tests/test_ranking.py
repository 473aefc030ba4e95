"""Ranking metrics: every relevant chunk counts once, and a question without one has no score."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalrun.ranking import all_relevant_at_k, ndcg_at_k, recall_at_k, reciprocal_rank

CASES = Path(__file__).parent / "cases"


def load(name: str) -> Any:
    """A case file."""
    return json.loads((CASES / name).read_text(encoding="utf-8"))


def both(case: dict[str, Any]) -> dict[str, float | None]:
    """Recall and nDCG of one question with binary grades."""
    ranked, relevant, k = case["retrieved"], case["relevant"], case["k"]
    return {
        "recall": recall_at_k(ranked, relevant, k),
        "ndcg": ndcg_at_k(ranked, dict.fromkeys(relevant, 1), k),
    }


@pytest.mark.parametrize(
    "case",
    [
        case
        for name in ("rm-01-duplicates", "rm-04-short-lists", "rm-05-suffix-collision")
        for case in load(f"{name}.json")["cases"]
    ],
)
def test_values(case: dict[str, Any]) -> None:
    """Repeats count once, short and empty lists are fine, and no id is invented."""
    assert case["expect"] == pytest.approx(both(case), abs=5e-5)


def test_nothing_relevant() -> None:
    """A question without relevant chunks has no score, and leaves the others alone."""
    found = load("rm-02-empty-relevant.json")
    scores = {name: both(query) for name, query in found["queries"].items()}
    for name, query in found["queries"].items():
        assert query["expect"] == pytest.approx(scores[name], abs=5e-5)
    for metric in ("recall", "ndcg"):
        known = [value for query in scores.values() if (value := query[metric]) is not None]
        assert (found["expect_mean"][metric], found["expect_mean"]["n"]) == (
            pytest.approx(sum(known) / len(known), abs=1e-4),
            len(known),
        )


def test_ids_are_text() -> None:
    """A number as an id is refused by every metric, on either side: it would be a quiet miss."""
    case = load("rm-03-int-vs-str.json")
    ranked, relevant = case["retrieved"], case["relevant"]
    for a, b in ((ranked, relevant), (relevant, ranked)):
        with pytest.raises(TypeError, match="ids are text; 1 is int"):
            recall_at_k(a, b, 2)
        with pytest.raises(TypeError, match="ids are text"):
            all_relevant_at_k(a, b, 2)
        with pytest.raises(TypeError, match="ids are text"):
            reciprocal_rank(a, b)
        with pytest.raises(TypeError, match="ids are text"):
            ndcg_at_k(a, dict.fromkeys(b, 1), 2)


def test_all_relevant() -> None:
    """All relevant chunks must be among the first k; more of them than k cannot be."""
    assert 1.0 == all_relevant_at_k(["a", "x", "b"], ["a", "b"], 3)
    assert 0.0 == all_relevant_at_k(["a", "x", "b"], ["a", "b"], 2)
    assert 0.0 == all_relevant_at_k(["a", "b"], ["a", "b"], 1)
    assert all_relevant_at_k(["a"], [], 1) is None


def test_reciprocal_rank() -> None:
    """The first relevant rank counts, 0 where none was retrieved, none where none exists."""
    assert 0.5 == reciprocal_rank(["x", "a", "a"], {"a"})
    assert 0.0 == reciprocal_rank(["x"], {"a"})
    assert reciprocal_rank(["x"], set()) is None


def test_grades() -> None:
    """A better order scores higher, a chunk of grade 0 is judged and not relevant, bad grades are refused."""
    grades = {"a": 3.0, "b": 1.0, "c": 0.0}
    assert 1.0 == ndcg_at_k(["a", "b", "c"], grades, 3)
    worse = ndcg_at_k(["b", "a"], grades, 3)
    assert worse is not None
    assert 0 < worse < 1
    assert ndcg_at_k(["c"], {"c": 0.0}, 3) is None
    for bad in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="grades"):
            ndcg_at_k(["a"], {"a": bad}, 1)


def test_k_starts_at_one() -> None:
    """The first zero chunks are no question."""
    for metric in (recall_at_k, all_relevant_at_k):
        with pytest.raises(ValueError, match="k must be"):
            metric(["a"], ["a"], 0)
