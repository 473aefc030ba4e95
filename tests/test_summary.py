"""From scores to estimates: who is counted, what is missing, draws reduced per case first."""

from __future__ import annotations

import gc
import random
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalrun import stats
from evalrun.gates import decide
from evalrun.records import Bounds, Case, Estimate, Gate, Metric, Score, Status
from evalrun.summary import Table, groups_of, summarise
from known import json_of, known

RATE = Metric(id="m", event="m", kind="rate", better="higher")
SCORE = Metric(id="m", event="m", kind="score", better="higher")
KNOWN = RATE.model_copy(update={"population": "answerable"})


def cases(*categories: str, expect: str = "answer") -> list[Case]:
    """A case for each category named."""
    return [
        Case.model_validate({"id": f"{expect}{i}", "question": "?", "category": name, "expect": expect})
        for i, name in enumerate(categories)
    ]


def score(case: Case, status: Status, index: int = 0, value: float | None = None) -> Score:
    """A score of a case."""
    reason = "service: HTTP 500" if status == "error" else None
    return Score(case=case.id, index=index, metric="m", status=status, value=value, reason=reason)


def whole(estimates: Sequence[Estimate], group: str = "all") -> Estimate:
    """The estimate of a group."""
    return next(one for one in estimates if one.group == group)


def test_a_metric_is_estimated_where_it_counts() -> None:
    """All of the questions: both populations and each category; one population: it, and its categories."""
    asked = [*cases("a", "b"), *cases("b", "c", expect="refuse")]
    assert {"all": 4, "answerable": 2, "unanswerable": 2, "a": 1, "b": 2, "c": 1} == {
        name: len(members) for name, members in groups_of(RATE, asked).items()
    }
    assert {"answerable": 2, "a": 1, "b": 1} == {
        name: len(members) for name, members in groups_of(KNOWN, asked).items()
    }
    assert () == summarise([KNOWN], cases("c", expect="refuse"), [], 1)


@known(
    "SE-02",
    json_of("se-02-denominator.json")["outcomes"],
    ["error"] * 6 + ["pass"] * 3 + ["fail"],
    ["fail", "error"] * 10 + ["pass"],
)
def test_errors_stay_in_the_plan_and_leave_the_rate(given: list[Status]) -> None:
    """Planned, scored, failed, passed: the rate is of those scored, limits and gate know the rest."""
    asked, passed, failed = cases(*["a"] * len(given)), given.count("pass"), given.count("error")
    found = whole(summarise([RATE], asked, [score(c, s) for c, s in zip(asked, given, strict=True)], 1))
    scored = len(given) - failed
    assert (len(given), scored, failed, passed, scored) == (
        found.planned, found.scored, found.failed, found.numerator, found.n,
    )  # fmt: skip
    assert found.value == pytest.approx(passed / scored)
    assert found.coverage == pytest.approx(scored / len(given))
    assert {"service": failed} == found.failures
    assert found.bounds is not None
    assert found.low is not None
    assert found.bounds.lower < found.low
    assert found.high is not None
    assert found.bounds.upper > found.high
    for limit in ({"min": 0.01}, {"max": 0.99}):
        verdict = decide(Gate.model_validate({"metric": "m", "group": "all", **limit}), {("m", "all"): found})
        assert "undecided" == verdict.decision
        assert "coverage" in verdict.why


SE_03 = json_of("se-03-error-score.json")


@known(
    "SE-03",
    (SE_03["scores"], SE_03["expect"]["mean"]),
    ([None, None, 0.0, 0.5, None], 0.25),
    ([1.0] + [None] * 30 + [1.0], 1.0),
    ([None, 0.3, 0.3, None, 0.0], 0.2),
)
def test_a_judge_error_is_no_score(given: tuple[list[float | None], float]) -> None:
    """The mean of the real ones, with the errors beside it: neither 0 nor -1."""
    values, mean = given
    asked = cases(*["a"] * len(values))
    lines = [
        score(case, "error" if value is None else "number", value=value)
        for case, value in zip(asked, values, strict=True)
    ]
    found = whole(summarise([SCORE], asked, lines, 1))
    assert found.value == pytest.approx(mean)
    assert (len(values) - values.count(None), values.count(None)) == (found.n, found.failed)


@known(
    "SE-05",
    json_of("se-05-empty-category.json")["categories"],
    {"work": ["error", "pass"], "awards": [], "phone": ["error"]},
    {"work": ["pass"], "awards": [], "phone": ["not_applicable"] * 3},
)
def test_a_group_with_nothing_in_it_has_no_number(given: dict[str, list[Status]]) -> None:
    """All errors: no rate, no limits, n = 0, and a gate on it is undecided; no questions: no estimate."""
    asked, lines = list[Case](), list[Score]()
    for name, outcomes in given.items():
        made = [
            case.model_copy(update={"id": f"{name}{i}"})
            for i, case in enumerate(cases(*[name] * len(outcomes)))
        ]
        asked += made
        lines += [score(case, status) for case, status in zip(made, outcomes, strict=True)]
    found = {one.group: one for one in summarise([RATE], asked, lines, 1)}
    assert "awards" not in found
    phone = found["phone"]
    assert (0, None, None, None) == (phone.n, phone.value, phone.low, phone.high)
    assert "no_data" == phone.reason
    work = [outcome for outcome in given["work"] if outcome in ("pass", "fail")]
    assert work.count("pass") / len(work) == found["work"].value
    for name in ("phone", "awards"):
        gate = Gate(metric="m", group=name, min=0.5)
        assert "undecided" == decide(gate, {("m", group): one for group, one in found.items()}).decision


def test_draws_are_reduced_per_case_first() -> None:
    """Three passes of one question weigh as much as one fail of another; n counts questions."""
    one, two = cases("a", "a")
    lines = [*(score(one, "pass", index) for index in range(3)), score(two, "fail", 0)]
    lines += [score(two, "error", index) for index in (1, 2)]
    found = whole(summarise([RATE], [one, two], lines, 3))
    assert 0.5 == found.value
    assert (2, 3, 6, 4, 2) == (found.n, found.draws, found.planned, found.scored, found.failed)


def test_a_lost_draw_counts_as_either_in_the_limits_of_a_gate() -> None:
    """Lower limits as if each lost draw had failed, upper ones as if it had passed."""
    asked = cases(*["a"] * 9)

    def bounds(second: Status) -> Bounds:
        lines = [line for case in asked for line in (score(case, "pass"), score(case, second, 1))]
        lines[0] = score(asked[0], "fail")
        found = whole(summarise([RATE], asked, lines, 2)).bounds
        assert found is not None
        return found

    lost = bounds("error")
    assert (bounds("fail").lower, bounds("fail").lower_exact) == (lost.lower, lost.lower_exact)
    assert (bounds("pass").upper, bounds("pass").upper_exact) == (lost.upper, lost.upper_exact)
    assert lost.lower < lost.upper


def test_what_was_never_asked_is_missing() -> None:
    """A run that stopped early has planned more than it has scores for; that is not scored as anything."""
    one, two = cases("a", "a")
    found = whole(summarise([RATE], [one, two], [score(one, "pass")], 2))
    assert (4, 1, 3) == (found.planned, found.scored, found.failed)
    assert {"not asked": 3} == found.failures
    assert 1.0 == found.value


def test_what_does_not_apply_is_not_missing() -> None:
    """It leaves the plan; where nothing applies there is no coverage, and no number."""
    one, two = cases("a", "a")
    found = whole(summarise([RATE], [one, two], [score(one, "pass"), score(two, "not_applicable")], 1))
    assert (2, 1, 1, 0, 1.0) == (
        found.planned,
        found.scored,
        found.not_applicable,
        found.failed,
        found.coverage,
    )
    nothing = whole(summarise([RATE], [one], [score(one, "not_applicable")], 1))
    assert (None, None, 0) == (nothing.value, nothing.coverage, nothing.n)


def test_a_metric_of_a_case_has_one_score_a_case() -> None:
    """Draws change nothing in retrieval: planned are the questions."""
    metric = SCORE.model_copy(update={"per": "case", "deterministic": True})
    asked = cases("a", "a")
    lines = [Score(case=case.id, index=None, metric="m", status="number", value=0.5) for case in asked]
    found = whole(summarise([metric], asked, lines, 3))
    assert (2, 2, 1, 0.5) == (found.planned, found.scored, found.draws, found.value)


def test_a_quantity_has_an_interval_and_no_limits_for_gates() -> None:
    """Seconds are no share."""
    metric = Metric(id="m", event="m", kind="quantity", better="lower", unit="s")
    asked = cases(*["a"] * 4)
    lines = [score(case, "number", value=float(i)) for i, case in enumerate(asked)]
    found = whole(summarise([metric], asked, lines, 1))
    assert (1.5, None, None) == (found.value, found.bounds, found.numerator)
    assert found.low is not None
    assert found.low < 1.5


def test_the_order_of_scores_changes_no_bit() -> None:
    """Whoever finishes first: the same estimates, to the last digit."""
    asked = cases(*["a", "b"] * 10)
    draw = random.Random(7)
    lines = [
        score(case, "number", index, draw.random()) if draw.random() > 0.1 else score(case, "error", index)
        for case in asked
        for index in range(3)
    ]
    first = summarise([SCORE], asked, lines, 3)
    for _ in range(5):
        draw.shuffle(lines)
        assert first == summarise([SCORE], asked, lines, 3)


# ---------------------------------------------------------------- questions that share a document


def clustered(sizes: Sequence[int]) -> list[Case]:
    """So many questions from each of so many documents."""
    return [
        Case(id=f"d{document}q{number}", question="?", category="a", cluster=f"d{document}")
        for document, size in enumerate(sizes)
        for number in range(size)
    ]


def passed(asked: Sequence[Case], passes: Sequence[bool]) -> list[Score]:
    """A score of each case."""
    return [score(case, "pass" if ok else "fail") for case, ok in zip(asked, passes, strict=True)]


def test_questions_of_one_document_count_together() -> None:
    """Twelve documents of which every question passes or every question fails say what twelve questions say,
    and the estimate names the method and the number of documents.
    """
    asked = clustered([3] * 12)
    passes = [int(case.cluster[1:]) % 4 > 0 for case in asked if case.cluster]
    found = whole(summarise([RATE], asked, passed(asked, passes), 1))
    oracle = stats.nested_rate_ci([[float(ok)] for ok in passes], [case.cluster for case in asked])
    assert ("wilson-nested", 12.0, 36) == (found.method, found.documents, found.n)
    assert (oracle.low, oracle.high) == (found.low, found.high)
    flat = [case.model_copy(update={"cluster": None}) for case in asked]
    alone = whole(summarise([RATE], flat, passed(flat, passes), 1))
    assert ("wilson-effective", None) == (alone.method, alone.documents)
    assert None not in (found.low, alone.low, found.high, alone.high)
    assert found.high - found.low > 1.5 * (alone.high - alone.low)  # type: ignore[operator]
    assert found.bounds is not None
    assert found.low == found.bounds.lower


def test_few_documents_are_shown_and_decide_nothing() -> None:
    """The interval stays, with its reason; a gate has nothing to go by."""
    asked = clustered([6] * 4)
    found = whole(summarise([RATE], asked, passed(asked, [True] * 24), 1))
    assert ("too_few_clusters", None) == (found.reason, found.bounds)
    assert found.low is not None


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.booleans()), min_size=8, max_size=40),
    st.randoms(use_true_random=False),
)
def test_one_question_a_document_is_no_cluster(
    rows: list[tuple[int, int, bool]], chance: random.Random
) -> None:
    """A cluster of one changes nothing, in whatever order scores come; names of clusters carry no weight."""
    asked = [Case(id=f"q{i}", question="?", category="a", cluster=f"d{i}") for i in range(len(rows))]
    plain = [case.model_copy(update={"cluster": None}) for case in asked]
    scores = [
        score(case, "error" if lost else "pass" if ok else "fail", index)
        for case, (first, second, lost) in zip(asked, rows, strict=True)
        for index, (ok, lost) in enumerate(((first, False), (second, lost)))
    ]
    shuffled = chance.sample(scores, len(scores))
    assert summarise([RATE], plain, scores, 2) == summarise([RATE], asked, shuffled, 2)
    pairs = [case.model_copy(update={"cluster": f"d{i // 2}"}) for i, case in enumerate(plain)]
    named = [case.model_copy(update={"cluster": f"x{i // 2}"}) for i, case in enumerate(plain)]
    assert summarise([RATE], pairs, scores, 2) == summarise([RATE], named, shuffled, 2)


# ---------------------------------------------------------------- speed


def test_a_large_run_is_summarised_in_a_few_passes_over_its_scores() -> None:
    """10,000 questions of 5 draws: at most so many times a bare loop that looks at every score once.

    Measured on an idle processor that is 0.2 s; processor seconds, the least of interleaved turns.
    """
    asked = [
        Case(id=f"q{i}", question="?", category="ab"[i % 2], expect="answer" if i % 3 else "refuse")
        for i in range(10_000)
    ]
    scores = [
        score(case, "error" if (i + k) % 97 == 0 else "pass" if (i * k) % 3 else "fail", k)
        for i, case in enumerate(asked)
        for k in range(5)
    ]

    def bare() -> object:
        seen: dict[str, list[str]] = {}
        for one in scores:
            seen.setdefault(one.case, []).append(one.status)
        return seen

    ratios = [seconds(lambda: summarise([RATE], asked, scores, 5)) / seconds(bare) for _ in range(5)]
    assert min(ratios) <= 40


def test_scores_of_a_large_run_take_little_room() -> None:
    """Passes and fails of 2,000 questions in ten metrics: a fifth of what a dict a metric takes."""
    asked = [Case(id=f"q{i}", question="?", category="a") for i in range(2_000)]
    statuses: tuple[Status, ...] = ("pass", "fail", "not_applicable")

    def lines() -> Iterator[Score]:
        for i, case in enumerate(asked):
            for k in range(10):
                status = statuses[(i * k) % 3]
                yield Score(case=case.id, index=0, metric=f"m{k}", status=status)

    def table() -> object:
        made = Table(asked)
        for line in lines():
            made.add(line)
        return made

    def bare() -> object:
        made: dict[str, dict[str, list[str]]] = {}
        for line in lines():
            made.setdefault(line.metric, {}).setdefault(line.case, []).append(line.status)
        return made

    assert 5 * room(table) <= room(bare)


def room(make: Callable[[], object]) -> int:
    """Bytes that what a function makes takes."""
    tracemalloc.start()
    made = make()
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del made
    return taken


def seconds(function: Callable[[], object]) -> float:
    """Processor seconds of one call."""
    start = time.process_time()
    function()
    return time.process_time() - start
