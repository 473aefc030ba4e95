"""The attacks on the shipped twin as they are recorded: what they come to, and how far the reading agrees."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from evalrun.cli import main
from evalrun.errors import ExitCode
from evalrun.journal import RunFolder
from evalrun.reports import words
from evalrun.stats import wilson_ci

ROOT = Path(__file__).parent.parent
CONFIG = ROOT / "configs" / "redteam.yaml"
GUIDE = ROOT / "docs" / "guides" / "redteam.md"
READINGS = ROOT / "data" / "readings" / "redteam-hits.jsonl"
Key = tuple[str, int]


def replayed(folder: Path) -> tuple[int, RunFolder]:
    """Exit code and run folder of a replay."""
    argv = ["redteam", str(CONFIG), "--quiet", "--output", str(folder)]
    return CliRunner().invoke(main, argv).exit_code, RunFolder(folder)


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, RunFolder]:
    """The replay that these tests look at."""
    return replayed(tmp_path_factory.mktemp("attacked") / "run")


def test_two_gates_hold_and_the_one_that_is_undecided_warns(attacked: tuple[int, RunFolder]) -> None:
    """Every answer observed; over-refusal lacks the draws that no rule can tell."""
    code, folder = attacked
    decided = {verdict.gate.metric: verdict.decision for verdict in folder.header.verdicts}
    assert ExitCode.OK == code
    assert {
        "attack_success": "holds",
        "attack_success:pass@2": "holds",
        "over_refusal": "undecided",
    } == decided
    assert {"observed": 324} == folder.header.levels
    assert 0 == folder.meta.calls


def test_some_techniques_succeed_most_of_the_time_and_some_hardly_ever(
    attacked: tuple[int, RunFolder],
) -> None:
    """Figures of the recording, by technique."""
    rates = {
        found.group: found.value for found in attacked[1].header.estimates if found.metric == "attack_success"
    }
    assert 0.35 == pytest.approx(rates["attacks"], abs=0.005)
    assert 0.8 == pytest.approx(rates["guardrail"])
    assert 0.05 == pytest.approx(rates["indirect_injection"])
    assert 0.0 == rates["converter:base64"]


def test_a_second_replay_gives_the_same_bytes(attacked: tuple[int, RunFolder], tmp_path: Path) -> None:
    """Only meta.json and the reports, which take it from there, tell when."""
    first, second = attacked[1], replayed(tmp_path / "again")[1]
    for name in ("run.json", "scores.jsonl", "draws.jsonl", "judgements.jsonl", "exchanges.jsonl"):
        assert (first.path / name).read_bytes() == (second.path / name).read_bytes(), name


def test_the_guide_tells_how_far_a_reading_agrees(attacked: tuple[int, RunFolder]) -> None:
    """By technique, where code decides and where the judge does, with Wilson intervals."""
    read, counted, agreed = readings(), Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    techniques = {case.id: case.attack.technique for case in attacked[1].cases() if case.attack}
    for (case, index), hit in hits(attacked[1]).items():
        who = "judge" if (case, index) in judged(attacked[1]) else "code"
        for group in (techniques[case], "all"):
            counted[group, who] += 1
            agreed[group, who] += hit == read[case, index]
    groups = [*sorted({group for group, _ in counted} - {"all"}), "all"]
    rows = [f"| {group} | {cells(counted, agreed, group)} |" for group in groups]
    assert "\n".join(rows) in GUIDE.read_text(encoding="utf-8").replace("| | |", "|  |  |")


def readings() -> Mapping[Key, bool]:
    """Whether the reading says that an answer is a hit."""
    lines = map(json.loads, READINGS.read_text("utf-8").splitlines()[1:])
    return {(line["case"], line["draw"]): line["hit"] for line in lines}


def hits(run: RunFolder) -> Mapping[Key, bool]:
    """Whether the run counts an answer to an attack as a hit."""
    lines = map(json.loads, (run.path / "scores.jsonl").read_text("utf-8").splitlines())
    scores = [line for line in lines if line["metric"] == "attack_success"]
    return {
        (line["case"], line["index"]): line["status"] == "pass"
        for line in scores
        if line["status"] != "not_applicable"
    }


def judged(run: RunFolder) -> set[Key]:
    """The answers that the judge read."""
    return {(judgement.case, judgement.index) for judgement in run.judgements()}


def cells(counted: Counter[tuple[str, str]], agreed: Counter[tuple[str, str]], group: str) -> str:
    """The cells of a row: counts and interval, for code and for the judge."""
    found = []
    for who in ("code", "judge"):
        n, same = counted[group, who], agreed[group, who]
        limits = wilson_ci(same, n) if n else None
        if limits is None:
            found += ["", ""]
            continue
        interval = words.interval("rate", limits.low, limits.high)
        found += [f"{same} of {n}", f"{words.rate(same / n)} {interval}"]
    return " | ".join(found)
