"""Rates corrected by labels: which labels may correct which rate, by which method, and why there is none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evalrun import gates, stats
from evalrun.agreement import agree
from evalrun.certificate import carried, used
from evalrun.correction import correct
from evalrun.errors import UserError
from evalrun.journal import RunFolder
from evalrun.jsonl import pretty_json, to_line
from evalrun.labelling import one_a_case
from evalrun.labels import load_labels
from evalrun.records import Certificate, Correction, Estimate, Gate
from labelled_runs import Row, labelled, write_all, write_labels
from paired_runs import Outcomes, case, write_run

FIRST = "grounded"


def many(count: int, draws: int = 1, bad: int = 0) -> dict[str, list[str | None]]:
    """Answerable cases whose answers the judge calls grounded, but for ``bad`` of them."""
    return {f"q{n:02}": [FIRST if n >= bad else "unsupported"] * draws for n in range(count)}


def corrected(
    folder: RunFolder, *files: Path
) -> tuple[dict[tuple[str, str], Estimate], tuple[Certificate, ...]]:
    """Estimates by name and certificates of a run with these label files."""
    header = folder.header
    assert header.judge is not None
    estimates, certificates = correct(
        header.estimates,
        [used(load_labels(path)) for path in files],
        header.judge.fingerprint,
        list(folder.cases()),
        folder.draws(),
        folder.judgements(),
    )
    return {(one.metric, one.group): one for one in estimates}, certificates


def of(estimates: dict[tuple[str, str], Estimate], metric: str, group: str = "all") -> Correction:
    """The correction of one estimate."""
    found = estimates[metric, group].corrected
    assert found is not None
    return found


def faithful(tmp_path: Path, outcomes: Outcomes, labels: dict[str, bool], **header: Any) -> Correction:
    """The correction of the faithful rate of a run by labels of first draws."""
    run = write_run(tmp_path / "run", outcomes)
    path = write_labels(tmp_path / "f.jsonl", labelled(run, labels), **({"dimension": "faithful"} | header))
    return of(corrected(run, path)[0], "faithful")


def both(folder: RunFolder, place: Path, refusal: dict[str, bool], true: dict[str, bool]) -> list[Path]:
    """Label files of both dimensions on first draws."""
    return [
        write_labels(place / "r.jsonl", labelled(folder, refusal), dimension="refusal"),
        write_labels(place / "f.jsonl", labelled(folder, true), dimension="faithful"),
    ]


# ---------------------------------------------------------------- random


def test_one_draw_a_question_and_some_labelled_is_prediction_powered(tmp_path: Path) -> None:
    """20 of 40 labelled: PPI++ over labelled and other questions."""
    found = faithful(tmp_path, many(40, bad=8), {f"q{n:02}": n >= 6 for n in range(0, 40, 2)})
    labels = [float(n >= 6) for n in range(0, 40, 2)]
    said = [float(n >= 8) for n in range(0, 40, 2)]
    others = [float(n >= 8) for n in range(1, 40, 2)]
    expected = stats.ppi_ci(labels, said, others)
    assert (expected.estimate, expected.low, expected.high) == (found.value, found.low, found.high)
    assert ("ppi", 20) == (found.method, found.labels)


def test_every_question_labelled_once_uses_its_other_draws(tmp_path: Path) -> None:
    """Three draws a question, one of each labelled: the judge's other verdicts narrow the interval."""
    outcomes = many(10, 3) | {"q00": ["grounded", "unsupported", "unsupported"]}
    found = faithful(tmp_path, outcomes, {f"q{n:02}": n > 2 for n in range(10)})
    labels = [float(n > 2) for n in range(10)]
    expected = stats.labelled_draw_ci(labels, [[1, 0, 0], *[[1, 1, 1]] * 9])
    assert (expected.estimate, expected.low) == (found.value, found.low)
    assert "labelled-draw" == found.method


def test_some_questions_of_several_draws_labelled(tmp_path: Path) -> None:
    """The others enter by their mean."""
    outcomes = many(12, 2) | {"q11": ["grounded", "unsupported"]}
    found = faithful(tmp_path, outcomes, {f"q{n:02}": n > 2 for n in range(10)})
    expected = stats.ppi_ci([float(n > 2) for n in range(10)], [1.0] * 10, [1.0, 0.5])
    assert (expected.estimate, expected.high) == (found.value, found.high)


def test_a_kind_judge_is_brought_down(tmp_path: Path) -> None:
    """Seeded fault: it calls all of 40 faithful, 20 labels say half are not; the gate turns red by it."""
    run = write_run(tmp_path / "run", many(40))
    rows = labelled(run, {f"q{n:02}": n % 4 == 0 for n in range(0, 40, 2)})
    path = write_labels(tmp_path / "f.jsonl", rows, dimension="faithful")
    before, gate = run.header.estimates, Gate(metric="faithful", min=0.8)
    raw = gates.decide(gate, {(one.metric, one.group): one for one in before})
    assert ("holds", False) == (raw.decision, raw.judge_measured)
    verdict = gates.decide(gate, corrected(run, path)[0])
    assert ("fails", True, 0.5) == (verdict.decision, verdict.judge_measured, verdict.value)


def test_labels_of_one_kind_only_still_correct(tmp_path: Path) -> None:
    """All right by the labels: the labels alone, as plain Wilson; nothing is NaN."""
    found = faithful(tmp_path, many(12), {f"q{n:02}": True for n in range(12)})
    expected = stats.wilson_ci(12, 12)
    assert pytest.approx((1.0, expected.low, 1.0)) == (found.value, found.low, found.high)


@pytest.mark.parametrize("count", [1, 7])
def test_too_few_labels_correct_nothing(tmp_path: Path, count: int) -> None:
    """Fewer than eight, and the reason has both numbers."""
    found = faithful(tmp_path, many(20), {f"q{n:02}": True for n in range(count)})
    assert (None, f"{count} label{'s' if count != 1 else ''}, needs 8") == (found.value, found.why)


def test_missing_verdicts_count_against_the_gate(tmp_path: Path) -> None:
    """One of forty has none: the limits a gate reads are that much wider than those shown."""
    found = faithful(tmp_path, many(39) | {"q39": [None]}, {f"q{n:02}": n > 1 for n in range(20)})
    assert found.bounds is not None
    assert found.low is not None
    assert found.high is not None
    assert pytest.approx(found.low - 1 / 40) == found.bounds.lower
    assert pytest.approx(min(found.high + 1 / 40, 1)) == found.bounds.upper


def test_a_group_is_corrected_by_its_own_labels(tmp_path: Path) -> None:
    """Labels of answerable questions say nothing of the unanswerable ones."""
    outcomes: dict[str, list[str | None]] = {
        **many(12), **{f"una{n}": ["correctly_refused"] for n in range(9)}
    }  # fmt: skip
    run = write_run(tmp_path / "run", outcomes)
    rows = labelled(run, {f"q{n:02}": True for n in range(12)} | {"una0": True})
    path = write_labels(tmp_path / "f.jsonl", rows, dimension="faithful")
    estimates, _ = corrected(run, path)
    assert 12 == of(estimates, "faithful", "answerable").labels
    assert "1 label, needs 8" == of(estimates, "faithful", "unanswerable").why


# ---------------------------------------------------------------- outcomes


def test_outcomes_are_made_of_both_labels(tmp_path: Path) -> None:
    """Refused and faithful is a refusal, refused and unfaithful is no refusal; each outcome by its own."""
    run = write_run(tmp_path / "run", many(10))
    numbers = range(10)
    files = both(
        run,
        tmp_path,
        {f"q{n:02}": n < 3 for n in numbers},
        {f"q{n:02}": n not in (0, 9) for n in numbers},
    )
    estimates, _ = corrected(run, *files)
    shares = {
        name: of(estimates, name, "answerable").value for name in ("over_refused", "unsupported", "grounded")
    }
    assert {"over_refused": 0.2, "unsupported": 0.2, "grounded": 0.6} == {
        name: round(value or 0, 9) for name, value in shares.items()
    }


def test_an_outcome_without_one_of_the_dimensions_is_not_corrected(tmp_path: Path) -> None:
    """And says which is lacking."""
    run = write_run(tmp_path / "run", many(10))
    path = write_labels(
        tmp_path / "f.jsonl", labelled(run, {f"q{n:02}": True for n in range(10)}), dimension="faithful"
    )
    assert "no labels of 'refusal'" == of(corrected(run, path)[0], "grounded", "answerable").why


def test_right_is_corrected_where_no_reference_is_asked(tmp_path: Path) -> None:
    """With a reference it takes more than the labels say."""
    plain = write_run(tmp_path / "plain", many(10), scorers=("outcome", "correct"))
    names = {f"q{n:02}": n > 2 for n in range(10)}
    none = dict.fromkeys(names, False)
    found = of(corrected(plain, *both(plain, tmp_path, none, names))[0], "right")
    assert 0.7 == pytest.approx(found.value)
    asked = {name: case(name, reference="Berlin") for name in names}
    run = write_run(tmp_path / "asked", many(10), cases=asked, scorers=("outcome", "correct"))
    estimates, _ = corrected(run, *both(run, tmp_path, none, names))
    assert "labels do not say whether an answer agrees with its reference" == of(estimates, "right").why
    assert 0.7 == pytest.approx(of(estimates, "grounded", "answerable").value)


# ---------------------------------------------------------------- by verdict


def stratified(tmp_path: Path, judge: str | None, seed: int = 3) -> tuple[RunFolder, Path]:
    """40 questions, 3 draws, 10 called unfaithful; 6 labels among each verdict, of draws a seed chooses."""
    run = write_run(tmp_path / "run", many(40, 3, bad=10))
    frame = {draw.case: draw.digest or "" for draw in one_a_case(run.draws(), seed)}
    rows: list[Row] = [(f"q{n:02}", frame[f"q{n:02}"], n > 3) for n in (*range(6), *range(20, 26))]
    more = {"judge": judge} if judge else {}
    path = write_labels(
        tmp_path / "f.jsonl", rows, dimension="faithful", design="by_verdict", seed=seed, **more
    )
    return run, path


def test_labels_chosen_by_verdict_weigh_by_the_verdicts(tmp_path: Path) -> None:
    """Six of each: what is right among the judge's yes and its no, weighed by how often it said so."""
    run, path = stratified(tmp_path, fingerprint(tmp_path))
    estimates, (certificate,) = corrected(run, path)
    found, expected = of(estimates, "faithful"), stats.by_verdict_ci(30, 40, 6, 6, 6, 2)
    assert (expected.estimate, expected.low, expected.high) == (found.value, found.low, found.high)
    assert (None, "not_a_random_sample") == (certificate.kappa.value, certificate.kappa.reason)


def fingerprint(tmp_path: Path) -> str:
    """That of the judge of every run here."""
    judge = write_run(tmp_path / "other", many(1)).header.judge
    assert judge is not None
    return judge.fingerprint


def test_labels_chosen_by_another_judges_verdicts_are_void(tmp_path: Path) -> None:
    """The strata are those of another judge; or nobody knows whose."""
    run, path = stratified(tmp_path, "sha256:" + "0" * 64)
    estimates, (certificate,) = corrected(run, path)
    assert certificate.void.startswith("its labels were chosen by the verdicts of another judge (0000")
    assert f"f.jsonl: {certificate.void}" == of(estimates, "faithful").why


def test_labels_of_draws_that_could_not_be_chosen_correct_nothing(tmp_path: Path) -> None:
    """A seed that chooses other draws than those labelled."""
    run, path = stratified(tmp_path, fingerprint(tmp_path))
    lines = path.read_text("utf-8").splitlines()
    header = json.loads(lines[0]) | {"seed": 4}
    path.write_text("\n".join([json.dumps(header), *lines[1:]]) + "\n", "utf-8")
    assert "labels not of the draws that its seed chooses" in of(corrected(run, path)[0], "faithful").why


# ---------------------------------------------------------------- external


def external(path: Path, pairs: Sequence[tuple[bool, bool]], judge: str, dimension: str = "faithful") -> Path:
    """Labels of draws of another run with the verdict of a judge beside each: (label, verdict)."""
    head = {
        "dimension": dimension, "design": "external", "date": "2026-11-30", "judge": judge,
        "raters": {"r1": {"kind": "human", "how": "read"}},
    }  # fmt: skip
    rows = [
        {"draw": f"sha256:{n:064x}", "case": f"x{n}", "rater": "r1", "label": label, "judge": verdict}
        for n, (label, verdict) in enumerate(pairs)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in [head, *rows]), "utf-8")
    return path


PAIRS = [(True, True)] * 27 + [(True, False)] * 3 + [(False, False)] * 16 + [(False, True)] * 4


def test_a_judge_measured_elsewhere_is_corrected_by_its_error_rates(tmp_path: Path) -> None:
    """Sensitivity 27 of 30, specificity 16 of 20; what it assumes stands with it."""
    run = write_run(tmp_path / "run", many(40, bad=10))
    estimates, (certificate,) = corrected(run, external(tmp_path / "e.jsonl", PAIRS, fingerprint(tmp_path)))
    found, expected = of(estimates, "faithful"), stats.lang_reiczigel_ci(30, 40, 27, 30, 16, 20)
    assert pytest.approx((expected.estimate, expected.low)) == (found.value, found.low)
    assert "the judge errs here as it did in e.jsonl" == found.assumes
    assert (27, 30) == (certificate.sensitivity.count, certificate.sensitivity.n)


def test_a_changed_judge_voids_what_was_measured_elsewhere(tmp_path: Path) -> None:
    """Another fingerprint, and the rate stays the judge's own reading."""
    run = write_run(tmp_path / "run", many(40))
    estimates, (certificate,) = corrected(run, external(tmp_path / "e.jsonl", PAIRS, "sha256:" + "1" * 64))
    assert certificate.void.startswith("its labels were measured with another judge (1111111111111111); this")
    assert of(estimates, "faithful").value is None


@pytest.mark.parametrize(
    ("pairs", "why"),
    [
        ([(True, True)] * 20, "the labels hold one kind of answer only"),
        ([(True, True), (True, False), (False, True), (False, False)] * 5, "no more than a coin"),
        ([(True, True)] * 3, "3 labels, needs 8"),
    ],
)
def test_a_judge_that_cannot_be_corrected_for_says_why(
    tmp_path: Path, pairs: list[tuple[bool, bool]], why: str
) -> None:
    """One class only, no better than chance, too few."""
    run = write_run(tmp_path / "run", many(20))
    found = of(corrected(run, external(tmp_path / "e.jsonl", pairs, fingerprint(tmp_path)))[0], "faithful")
    assert found.value is None
    assert why in found.why


# ---------------------------------------------------------------- labels that do not fit


def test_labels_of_another_run_are_no_random_sample_of_this_one(tmp_path: Path) -> None:
    """One in four was made for another answer: what still fits was chosen by the bot, not by a seed."""
    run = write_run(tmp_path / "run", many(20))
    rows = labelled(run, {f"q{n:02}": True for n in range(15)})
    rows += [(f"q{n:02}", "sha256:" + "0" * 64, True) for n in range(15, 20)]
    path = write_labels(tmp_path / "f.jsonl", rows, dimension="faithful")
    estimates, (certificate,) = corrected(run, path)
    assert certificate.void.startswith("of 20 labelled questions 5 have another answer in this run")
    assert f"f.jsonl: {certificate.void}" == of(estimates, "faithful").why


def test_labels_of_two_runs_may_stand_in_one_file_or_two(tmp_path: Path) -> None:
    """Each run takes its own; the other's are no answer of it."""
    run, weak = write_run(tmp_path / "run", many(10)), write_run(tmp_path / "weak", many(10, bad=10))
    names = {f"q{n:02}": n > 1 for n in range(10)}
    mine = write_labels(tmp_path / "mine.jsonl", labelled(run, names), dimension="faithful")
    theirs = write_labels(
        tmp_path / "theirs.jsonl", labelled(weak, dict.fromkeys(names, False)), dimension="faithful"
    )
    one = write_labels(
        tmp_path / "one.jsonl",
        labelled(weak, dict.fromkeys(names, False)) + labelled(run, names),
        dimension="faithful",
    )
    for files in ([theirs, mine], [one]):
        assert 0.8 == of(corrected(run, *files)[0], "faithful").value
        assert 0.0 == of(corrected(weak, *files)[0], "faithful").value


def test_words_shared_with_a_draw_chosen_elsewhere_do_not_change_the_sample(tmp_path: Path) -> None:
    """Two draws of a question are labelled: the one that the seed chooses counts."""
    run = write_run(tmp_path / "run", many(10, 2))
    frame = {draw.case: draw for draw in one_a_case(run.draws(), 5)}
    every = [(draw.case, draw.digest or "", draw == frame[draw.case]) for draw in run.draws()]
    path = write_labels(tmp_path / "f.jsonl", every, dimension="faithful", seed=5)
    assert 1.0 == of(corrected(run, path)[0], "faithful").value


def test_labels_chosen_in_an_unknown_way_correct_nothing(tmp_path: Path) -> None:
    """The certificate stands and says so; the rate is not corrected."""
    found = faithful(tmp_path, many(20), {f"q{n:02}": True for n in range(20)}, design="unknown")
    assert "f.jsonl: nobody wrote down how its draws were chosen" == found.why


def test_without_labels_the_reason_is_that(tmp_path: Path) -> None:
    """Every judged rate says why it is not corrected, no other estimate does."""
    estimates, certificates = corrected(write_run(tmp_path / "run", many(10)))
    assert () == certificates
    assert {True: {"no labels"}, False: {None}} == {
        judged: {
            one.corrected.why if one.corrected else None for one in estimates.values() if one.judged == judged
        }
        for judged in (True, False)
    }


def test_the_adjudicated_rater_counts(tmp_path: Path) -> None:
    """Of three columns the third."""
    run = write_run(tmp_path / "run", many(10))
    names = [f"q{n:02}" for n in range(10)]
    rows = {
        rater: labelled(run, {name: place >= bad for place, name in enumerate(names)})
        for rater, bad in (("r1", 0), ("r2", 5), ("adjudicated", 2))
    }
    path = write_all(tmp_path / "f.jsonl", rows, dimension="faithful")
    estimates, (certificate,) = corrected(run, path)
    assert (0.8, 10, "adjudicated") == (
        of(estimates, "faithful").value,
        certificate.labelled,
        certificate.rater,
    )


# ---------------------------------------------------------------- certificate and agree


def test_certificate_and_agree_give_the_same_numbers(tmp_path: Path) -> None:
    """On the same draws, to the last bit."""
    run = write_run(tmp_path / "run", many(20, 2, bad=6))
    path = write_labels(
        tmp_path / "f.jsonl", labelled(run, {f"q{n:02}": n > 7 for n in range(20)}), dimension="faithful"
    )
    (certificate,), agreed = corrected(run, path)[1], agree(run, load_labels(path))
    for name in ("table", "n", "agreement", "kappa", "sensitivity", "specificity", "by_verdict"):
        assert getattr(agreed, name) == getattr(certificate, name), name
    assert "nan" not in pretty_json(certificate).decode().lower()


def test_what_agree_saves_corrects_a_run_of_another_bot(tmp_path: Path) -> None:
    """Labels with the verdicts of one run, used in another of the same judge: the same table."""
    run = write_run(tmp_path / "run", many(40, bad=12))
    path = write_labels(
        tmp_path / "f.jsonl", labelled(run, {f"q{n:02}": n > 9 for n in range(40)}), dimension="faithful"
    )
    saved = tmp_path / "saved.jsonl"
    saved.write_bytes(b"".join(to_line(line) for line in carried(run, load_labels(path), "r1")))
    other = write_run(tmp_path / "bot", many(30, 2, bad=3), answers={f"q{n:02}": "new" for n in range(30)})
    estimates, (certificate,) = corrected(other, saved)
    assert agree(run, load_labels(path)).table == certificate.table
    found = of(estimates, "faithful")
    expected = stats.rogan_gladen_ci(0.9, 30, 28, 30, 10, 10)
    assert pytest.approx((expected.estimate, expected.low)) == (found.value, found.low)


def test_only_a_random_sample_is_carried_elsewhere(tmp_path: Path) -> None:
    """Of labels chosen by verdict the error rates would be biased."""
    run = write_run(tmp_path / "run", many(10))
    rows = labelled(run, {f"q{n:02}": True for n in range(10)})
    path = write_labels(tmp_path / "f.jsonl", rows, dimension="faithful", design="by_verdict")
    with pytest.raises(UserError, match="only draws chosen at random"):
        carried(run, load_labels(path), "r1")


# ---------------------------------------------------------------- questions that share documents


def shared(
    tmp_path: Path, questions: int, documents: int, labels: dict[str, bool], **header: Any
) -> Correction:
    """The correction of the faithful rate of a run whose questions come from so many documents."""
    tmp_path.mkdir(exist_ok=True)
    run = write_run(tmp_path / "run", many(questions))
    cases = [case.model_copy(update={"cluster": f"d{at % documents}"}) for at, case in enumerate(run.cases())]
    path = write_labels(tmp_path / "f.jsonl", labelled(run, labels), **({"dimension": "faithful"} | header))
    judge = run.header.judge
    assert judge is not None
    files = [used(load_labels(path))]
    found, _ = correct(run.header.estimates, files, judge.fingerprint, cases, run.draws(), run.judgements())
    return of({(one.metric, one.group): one for one in found}, "faithful")


def test_labels_of_questions_that_share_documents_count_together(tmp_path: Path) -> None:
    """Ten documents of four questions, each all right or all wrong: the limits of about ten labels."""
    found = shared(tmp_path, 40, 10, {f"q{n:02}": n % 10 > 2 for n in range(40)})
    known = stats.wilson_ci(7, 10)
    assert ("labelled-draw-nested", 40) == (found.method, found.labels)
    assert (known.low, known.high) == pytest.approx((found.low, found.high), abs=0.02)
    partly = shared(tmp_path / "partly", 40, 10, {f"q{n:02}": n % 10 > 2 for n in range(20)})
    assert "ppi-nested" == partly.method


def test_labels_of_too_few_documents_correct_nothing(tmp_path: Path) -> None:
    """With what it takes; labels chosen by verdict do not know of documents."""
    found = shared(tmp_path, 40, 5, {f"q{n:02}": True for n in range(40)})
    assert (None, "the 40 labelled questions are worth 5 documents, needs 8") == (found.value, found.why)
    judge = write_run(tmp_path / "other", many(2)).header.judge
    assert judge is not None
    chosen = {"design": "by_verdict", "judge": judge.fingerprint}
    found = shared(tmp_path / "v", 40, 10, {f"q{n:02}": True for n in range(40)}, **chosen)
    assert (None, "questions share documents, which labels chosen by verdict do not tell") == (
        found.value,
        found.why,
    )
