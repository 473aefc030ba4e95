"""Ranking metrics: every relevant chunk counts once, and a question without one has no score."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalrun.dataset import load_dataset
from evalrun.errors import InputError
from evalrun.ranking import all_relevant_at_k, ndcg_at_k, recall_at_k, reciprocal_rank
from known import json_of, known


def both(case: dict[str, Any]) -> dict[str, float | None]:
    """Recall and nDCG of one question with binary grades."""
    ranked, relevant, k = case["retrieved"], case["relevant"], case["k"]
    return {
        "recall": recall_at_k(ranked, relevant, k),
        "ndcg": ndcg_at_k(ranked, dict.fromkeys(relevant, 1), k),
    }


def asked(retrieved: str, relevant: str, k: int, recall: float, ndcg: float) -> dict[str, Any]:
    """A case as the files have it: ids divided by spaces."""
    expect = {"recall": recall, "ndcg": ndcg}
    return {"retrieved": retrieved.split(), "relevant": relevant.split(), "k": k, "expect": expect}


def check(cases: list[dict[str, Any]]) -> None:
    """Each case has the values it names."""
    for case in cases:
        assert case["expect"] == pytest.approx(both(case), abs=5e-5)


@known(
    "RM-01",
    json_of("rm-01-duplicates.json")["cases"],
    [asked("work " * 50, "work", 50, 1.0, 1.0), asked("x work " * 9, "work", 18, 1.0, 0.6309)],
    [asked("a b a b a b", "b a", 6, 1.0, 1.0), asked("a a b", "b", 2, 0.0, 0.0)],
    [asked("a a b b c c", "c", 3, 0.0, 0.0), asked("z a z a", "a", 4, 1.0, 0.6309)],
)
def test_a_repeated_id_counts_once(given: list[dict[str, Any]]) -> None:
    """At its first rank; recall and nDCG never exceed 1, and a repeat still takes up a place of the k."""
    check(given)


@known(
    "RM-04",
    json_of("rm-04-short-lists.json")["cases"],
    [asked("", "a b c", 1, 0.0, 0.0), asked("a", "a b c d", 1000, 0.25, 0.3904)],
    [asked("x", "a", 1, 0.0, 0.0), asked("b a", "a", 10**9, 1.0, 0.6309)],
)
def test_short_and_empty_lists_are_fine(given: list[dict[str, Any]]) -> None:
    """Nothing retrieved is a 0 and no NaN; a k beyond the list is no fault."""
    check(given)


@known(
    "RM-05",
    json_of("rm-05-suffix-collision.json")["cases"],
    [asked(f"a a {name} z", "a_1 a-2 a.2 a#2 a:2 a(2)", 4, 0.0, 0.0) for name in ("a", "b")],
    [asked("a a a_2", "a_2", 3, 1.0, 0.5), asked("A a", "a_1 ａ", 2, 0.0, 0.0)],
)
def test_no_id_is_made_up(given: list[dict[str, Any]]) -> None:
    """A repeat is not told apart by a suffix, which another chunk may have as its own id."""
    check(given)


def nothing(*queries: tuple[str, str, float | None, float | None], n: int, recall: float, ndcg: float) -> Any:
    """Queries (retrieved, relevant, recall, nDCG) at k = 2, and the means over the ``n`` that have values."""
    found = {
        f"q{number}": {
            "retrieved": retrieved.split(), "relevant": relevant.split(), "k": 2,
            "expect": {"recall": one, "ndcg": two},
        }
        for number, (retrieved, relevant, one, two) in enumerate(queries)
    }  # fmt: skip
    return {"queries": found, "expect_mean": {"recall": recall, "ndcg": ndcg, "n": n}}


@known(
    "RM-02",
    json_of("rm-02-empty-relevant.json"),
    nothing(("", "", None, None), ("a", "", None, None), ("a", "a", 1.0, 1.0), n=1, recall=1.0, ndcg=1.0),
    nothing(
        ("x y", "a", 0.0, 0.0), ("a a", "", None, None), ("b a", "a b", 1.0, 1.0), n=2, recall=0.5, ndcg=0.5
    ),
)
def test_nothing_relevant(given: Any) -> None:
    """A question without relevant chunks has no score, and leaves the others alone, wherever it stands."""
    scores = {name: both(query) for name, query in given["queries"].items()}
    for name, query in given["queries"].items():
        assert query["expect"] == pytest.approx(scores[name], abs=5e-5)
    for metric in ("recall", "ndcg"):
        values = [value for query in scores.values() if (value := query[metric]) is not None]
        assert (given["expect_mean"][metric], given["expect_mean"]["n"]) == (
            pytest.approx(sum(values) / len(values), abs=1e-4),
            len(values),
        )


RM_03 = json_of("rm-03-int-vs-str.json")


@known("RM-03", (RM_03["retrieved"], RM_03["relevant"]), (["1", "2"], ["1", 1.0]), (["x", True], [None]))
def test_ids_are_text(given: tuple[list[Any], list[Any]], tmp_path: Path) -> None:
    """What is no text is refused by every metric, on either side, and by the dataset: it would be a miss."""
    ranked, relevant = given
    for a, b in ((ranked, relevant), (relevant, ranked)):
        with pytest.raises(TypeError, match=r"ids are text; .* is (int|float|bool|NoneType)"):
            recall_at_k(a, b, 2)
        with pytest.raises(TypeError, match="ids are text"):
            all_relevant_at_k(a, b, 2)
        with pytest.raises(TypeError, match="ids are text"):
            reciprocal_rank(a, b)
        with pytest.raises(TypeError, match="ids are text"):
            ndcg_at_k(a, dict.fromkeys(b, 1), 2)
    path = tmp_path / "d.jsonl"
    path.write_text(json.dumps({"id": "q", "question": "?", "relevant_ids": relevant}))
    with pytest.raises(InputError, match="ids must be text"):
        load_dataset(path)


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
