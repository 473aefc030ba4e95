"""A whole run with label files: certificates in its folder, corrected gates, and what verify makes of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from evalrun.agreement import agree
from evalrun.errors import ExitCode
from evalrun.journal import RunFolder
from evalrun.labels import load_labels
from evalrun.records import RunHeader
from evalrun.verify import verify_run
from fakes.project import GREEN, TOPICS, UNKNOWN, Outcome, Project, fair, honest, question_of
from labelled_runs import Row, write_all

LIE = " I invented the moon."


def label(project: Project, known: RunFolder) -> None:
    """Label the first draw of every case as it is: a refusal or not, and whether it holds the lie."""
    rows: dict[str, list[Row]] = {"refusal": [], "faithful": []}
    for draw in known.draws():
        if draw.index == 0 and draw.digest and draw.answer:
            rows["refusal"].append((draw.case, draw.digest, draw.case in UNKNOWN))
            rows["faithful"].append((draw.case, draw.digest, LIE not in draw.answer))
    for dimension, right in rows.items():
        wrong = [(case, draw, not said) for case, draw, said in right]
        raters = {"r1": wrong, "r2": right, "adjudicated": right}
        write_all(project.folder / f"{dimension}.jsonl", raters, dimension=dimension)
    project.config["labels"] = ["refusal.jsonl", "faithful.jsonl"]


@dataclass(frozen=True)
class Runs:
    """One project, run as it is and run again with labels."""

    project: Project
    alone: Outcome
    measured: Outcome


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Seeded fault: half of what is known is answered with a lie, and the judge calls everything faithful."""
    project = Project(tmp_path_factory.mktemp("kind"))
    told = [asked[0] for place, asked in enumerate(TOPICS.values()) if place % 2]
    project.model.say = lambda body: honest(body) + (LIE if question_of(body) in told else "")
    project.judge.say = lambda body: fair(body).replace('"supported": "no"', '"supported": "yes"')
    alone = project.run("--record")
    label(project, alone.folder)
    yield Runs(project, alone, project.run())
    project.stop()


def test_a_kind_judge_is_seen_through_by_labels(runs: Runs) -> None:
    """All gates hold by its own word; with labels those on what is faithful do not, and say why."""
    assert (ExitCode.OK, GREEN) == (runs.alone.code, runs.alone.decisions)
    assert "judge unmeasured" in runs.alone.text
    done = runs.measured
    assert ExitCode.NOT_ENOUGH_EVIDENCE == done.code
    assert GREEN | {"grounded": "undecided", "faithful": "undecided"} == done.decisions
    found = {verdict.gate.metric: verdict for verdict in done.folder.header.verdicts}
    assert (0.5, True) == (found["grounded"].value, found["grounded"].judge_measured)
    assert (0.75, True) == (found["faithful"].value, found["faithful"].judge_measured)


def test_every_report_shows_the_certificate_and_both_rates(runs: Runs) -> None:
    """Console, Markdown, HTML and JUnit: how often the judge is right, the corrected rate, its own word."""
    folder = runs.measured.folder.path
    page, summary = ((folder / name).read_text("utf-8") for name in ("report.html", "summary.md"))
    said = "clears 1.0 [.74, 1.0] of faithful answers, finds .00 [.00, .60] of unfaithful answers"
    for text in (runs.measured.text, summary, page):
        plain = " ".join(text.replace("\\", "").split())
        assert said in plain
        assert ".50 [.22, .78]c" in plain
        assert "the judge alone says 1.0" in plain.lower()
        assert "16 random draws, model reading, 2026-11-30, faithful.jsonl" in plain
    assert "judge: faithful</th><td>12</td><td>4</td>" in page
    assert "the judge alone says 1.0" in (folder / "junit.xml").read_text("utf-8")


def test_certificate_of_a_run_is_what_agree_says_of_it(runs: Runs) -> None:
    """The same numbers on the same draws, kept with the labels they came from."""
    header = runs.measured.folder.header
    assert ["refusal", "faithful"] == [one.dimension for one in header.certificates]
    for certificate, file in zip(header.certificates, header.labels, strict=True):
        labels = load_labels(runs.project.folder / file.file)
        agreed = agree(runs.measured.folder, labels)
        assert header.judge is not None
        assert header.judge.fingerprint == certificate.fingerprint
        assert (labels.digest, "adjudicated") == (file.digest, certificate.rater)
        assert ("", 16) == (certificate.void, certificate.n)
        assert (agreed.table, agreed.kappa) == (certificate.table, certificate.kappa)
        assert (agreed.sensitivity, agreed.specificity) == (certificate.sensitivity, certificate.specificity)


def test_verify_derives_certificate_and_corrected_rates_without_the_files(runs: Runs, tmp_path: Path) -> None:
    """The folder is enough; a label turned round in it is told by what it was for."""
    folder = tmp_path / "run"
    shutil.copytree(runs.measured.folder.path, folder)
    assert [] == verify_run(folder)[0]
    whole = json.loads((folder / "run.json").read_text("utf-8"))
    row = whole["labels"][1]["rows"][0]
    row["label"] = not row["label"]
    (folder / "run.json").write_text(json.dumps(whole), "utf-8")
    broken = verify_run(folder)[0]
    assert any(line.startswith("run.json: certificate: that of faithful.jsonl") for line in broken)
    assert any(line.startswith("run.json: estimate: faithful, all") for line in broken)


def test_the_same_replay_with_labels_gives_the_same_bytes(runs: Runs) -> None:
    """Labels, certificates and corrected rates too."""
    again = runs.project.run()
    assert runs.measured.files()["run.json"] == again.files()["run.json"]


def test_a_header_of_before_is_still_read(runs: Runs) -> None:
    """Without labels and certificates."""
    whole = json.loads((runs.measured.folder.path / "run.json").read_text("utf-8"))
    del whole["labels"], whole["certificates"]
    assert () == RunHeader.model_validate(whole).certificates


def test_every_fault_of_label_files_is_told_before_anything_is_asked(project: Project) -> None:
    """A bad line and a dimension that no judge reads: both at once, exit 2."""
    write_all(project.folder / "odd.jsonl", {"r1": [("talks", "sha256:" + "0" * 64, True)]}, dimension="tone")
    (project.folder / "bad.jsonl").write_text("{}\n", "utf-8")
    project.config["labels"] = ["odd.jsonl", "bad.jsonl"]
    done = project.run("--live")
    assert ExitCode.USAGE == done.code
    assert "odd.jsonl:1: dimension 'tone' is nothing that a judge reads" in " ".join(done.text.split())
    assert "bad.jsonl:1" in done.text
    assert [] == project.model.bodies
