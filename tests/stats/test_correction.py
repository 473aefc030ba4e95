"""A corrected rate says when it cannot be had, and when the correction left the scale."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evalrun import stats


def defined(found: stats.Corrected) -> tuple[float | None, float | None, float | None, str | None]:
    """Estimate, limits and reason."""
    return found.estimate, found.low, found.high, found.reason


def test_unknown_design() -> None:
    """Labels chosen nobody knows how correct nothing."""
    assert (None, None, None, "not_a_random_sample") == defined(stats.unknown_design())


def test_too_few_labels() -> None:
    """No label and one label give no interval."""
    assert "no_data" == stats.ppi_ci([], [], [1, 0]).reason == stats.labelled_draw_ci([], []).reason
    assert "too_few_clusters" == stats.ppi_ci([1], [1], [1, 0]).reason
    assert "too_few_clusters" == stats.labelled_draw_ci([1], [[1, 0]]).reason
    assert "no_data" == stats.by_verdict_ci(0, 0, 0, 0, 0, 0).reason
    assert "no_data" == stats.lang_reiczigel_ci(5, 10, 0, 0, 8, 9).reason
    assert "no_data" == stats.rogan_gladen_known(0, 0, 0.9, 0.9).reason


def test_a_useless_judge() -> None:
    """A judge no better than a coin, or not surely better, corrects nothing."""
    assert "judge_uninformative" == stats.lang_reiczigel_ci(20, 40, 10, 20, 10, 20).reason
    assert "judge_uninformative" == stats.lang_reiczigel_ci(20, 40, 3, 4, 3, 5).reason
    assert "judge_uninformative" == stats.rogan_gladen_known(20, 40, 0.6, 0.4).reason


def test_off_the_scale() -> None:
    """A correction beyond 1 is clipped, flagged and kept raw."""
    found = stats.lang_reiczigel_ci(100, 100, 45, 50, 45, 50)
    assert (1.0, True) == (found.estimate, found.clipped)
    assert found.raw is not None
    assert found.raw > 1
    inside = stats.lang_reiczigel_ci(26, 35, 24, 26, 6, 9)
    assert not inside.clipped
    assert not stats.unknown_design().clipped


def test_a_judge_that_knows_helps() -> None:
    """With many verdicts of a perfect judge the interval is narrower than that of the labels alone."""
    labels = [1, 1, 1, 0] * 10
    found = stats.ppi_ci(labels, labels, [1, 1, 1, 0] * 100)
    alone = stats.rate_ci([[label] for label in labels])
    assert found.n_eff is not None
    assert alone.n_eff is not None
    assert found.n_eff > 3 * alone.n_eff
    assert 1 / (1 + 40 / 400) == pytest.approx(found.judge_weight)


def test_a_corrected_rate_can_be_gated() -> None:
    """Bounds of a corrected rate are its own limits, the exact ones at its effective number."""
    found = stats.by_verdict_ci(130, 175, 15, 14, 15, 3)
    bounds = stats.bounds_between(found, found)
    assert bounds is not None
    assert (found.low, found.high) == (bounds.lower, bounds.upper)
    assert bounds.lower_exact < bounds.lower
    assert stats.bounds_between(found, stats.unknown_design()) is None
    elsewhere = stats.lang_reiczigel_ci(26, 35, 24, 26, 6, 9)
    own = stats.bounds_between(elsewhere, elsewhere)
    assert own is not None
    assert (elsewhere.low, elsewhere.high) == (own.lower_exact, own.upper_exact)


def test_bad_labels() -> None:
    """Labels that are no share, that lack a verdict or outnumber their units are refused."""
    with pytest.raises(ValueError, match="reference, item 1: nan"):
        stats.ppi_ci([1, float("nan")], [1, 1], [])
    with pytest.raises(ValueError, match="judge_unlabelled, item 0"):
        stats.ppi_ci([1, 0], [1, 1], [2.0])
    with pytest.raises(ValueError, match="2 labels and 1 verdicts"):
        stats.ppi_mean([1, 0], [1], [])
    with pytest.raises(ValueError, match="verdicts of 1 questions"):
        stats.labelled_draw_ci([1, 0], [[1]])
    with pytest.raises(ValueError, match="labelled draw"):
        stats.labelled_draw_ci([1, 0], [[1], []])
    with pytest.raises(ValueError, match="verdicts of question 1, item 0"):
        stats.labelled_draw_ci([1, 0], [[1], [7.0]])


@pytest.mark.parametrize(
    ("counts", "name"),
    [
        ((11, 10, 2, 1, 2, 1), "judge_yes"),
        ((5, 10, 6, 1, 2, 1), "yes_labelled"),
        ((5, 10, 2, 3, 2, 1), "yes_reference"),
        ((5, 10, 2, 1, 6, 1), "no_labelled"),
        ((5, 10, 2, 1, 2, 3), "no_reference"),
        ((5, 10, 2, -1, 2, 1), "yes_reference"),
    ],
)
def test_impossible_counts(counts: tuple[int, int, int, int, int, int], name: str) -> None:
    """A part larger than its whole is named."""
    with pytest.raises(ValueError, match=name):
        stats.by_verdict_ci(*counts)


def test_confidence_is_checked_first() -> None:
    """A confidence outside (0, 1) is refused even without labels."""
    calls: list[Callable[[], stats.Interval]] = [
        lambda: stats.ppi_ci([], [], [], 1.0),
        lambda: stats.labelled_draw_ci([], [], 0.0),
        lambda: stats.by_verdict_ci(0, 0, 0, 0, 0, 0, 95),
        lambda: stats.lang_reiczigel_ci(0, 0, 0, 0, 0, 0, -1),
        lambda: stats.kappa_ci([[0, 0], [0, 0]], 2),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="confidence"):
            call()


DOCUMENTS = [f"d{question // 3}" for question in range(36)]


def test_labels_of_one_document_count_together() -> None:
    """Twelve documents of which every label is yes or every label no say what twelve labels say."""
    labels = [float(question // 3 >= 4) for question in range(36)]
    alone, known = stats.labelled_draw_ci(labels, [[1.0]] * 36), stats.wilson_ci(8, 12)
    found = stats.labelled_draw_ci(labels, [[1.0]] * 36, 0.95, DOCUMENTS)
    assert "labelled-draw-nested" == found.method
    assert (known.low, known.high) == pytest.approx((found.low, found.high), abs=0.01)
    assert (found.low or 1) < (alone.low or 0) - 0.08
    apart = stats.labelled_draw_ci(labels, [[1.0]] * 36, 0.95, list(range(36)))
    assert (alone.low, alone.high) == pytest.approx((apart.low, apart.high))


def test_other_questions_of_a_document_count_with_its_labels() -> None:
    """Two of three labelled, the judge right about all: no better known than by all labels."""
    truth = [float(question // 3 >= 4) for question in range(36)]
    marked = [question for question in range(36) if question % 3 != 2]
    rest = [question for question in range(36) if question % 3 == 2]
    y, others = [truth[question] for question in marked], [truth[question] for question in rest]
    documents = [DOCUMENTS[question] for question in (*marked, *rest)]
    found = stats.ppi_ci(y, y, others, 0.95, documents)
    assert "ppi-nested" == found.method
    assert (found.low or 1) <= (stats.labelled_draw_ci(truth, [[1.0]] * 36, 0.95, DOCUMENTS).low or 0) + 0.02
    assert (found.low or 1) < (stats.ppi_ci(y, y, others).low or 0) - 0.08


def test_labels_of_few_documents_correct_nothing() -> None:
    """Fewer than eight: coverage could not be shown."""
    few = [f"d{question % 7}" for question in range(36)]
    assert "too_few_clusters" == stats.labelled_draw_ci([1.0] * 36, [[1.0]] * 36, 0.95, few).reason
    assert "too_few_clusters" == stats.ppi_ci([1.0] * 20, [1.0] * 20, [1.0] * 16, 0.95, few).reason
