"""The two twins as they are shipped: one passes with warnings, the other does not, and diff says why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from evalrun.cli import main
from evalrun.comparison import compare
from evalrun.comparison.measured import read_run
from evalrun.errors import ExitCode
from evalrun.journal import RunFolder
from evalrun.reports.rows import because, read_details, read_rows

CONFIGS = Path(__file__).parent.parent / "configs"


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, RunFolder]]:
    """Exit code and run folder of a replay of each."""
    found = {}
    for name in ("quality", "quality-weak"):
        folder = tmp_path_factory.mktemp("runs") / name
        argv = ["run", str(CONFIGS / f"{name}.yaml"), "--quiet", "--output", str(folder)]
        found[name] = (CliRunner().invoke(main, argv).exit_code, RunFolder(folder))
    return found


def test_every_gate_of_the_better_twin_holds_or_warns(twins: dict[str, tuple[int, RunFolder]]) -> None:
    """Exit 0, every answer observed and judged."""
    code, folder = twins["quality"]
    assert ExitCode.OK == code
    assert "holds" == folder.header.verdicts[0].decision
    assert not any(verdict.red for verdict in folder.header.verdicts)
    assert {"observed": 192} == folder.header.levels


def test_the_weaker_twin_fails_and_its_inventions_are_named(twins: dict[str, tuple[int, RunFolder]]) -> None:
    """Exit 1 by the rates that labels correct, and the worst question shows what was made up."""
    code, folder = twins["quality-weak"]
    failing = {verdict.gate.metric for verdict in folder.header.verdicts if verdict.decision == "fails"}
    assert ExitCode.GATE_FAILED == code
    assert {"faithful", "grounded"} == failing
    worst = read_rows(folder).worst()[0]
    assert because(worst, read_details(folder, [worst.id])[worst.id], {}).startswith("invented: ")


def test_diff_finds_the_drop_by_the_labels(twins: dict[str, tuple[int, RunFolder]]) -> None:
    """The judge alone sees none of it; the labels of one draw a question show a drop that excludes 0."""
    old, new = (read_run(folder) for _, folder in twins.values())
    found = compare(old, new, {"faithful (labels)": 0.05})
    changes = {change.metric: change for change in found.changes}
    judged, labelled = changes["faithful"], changes["faithful (labels)"]
    assert judged.low is not None
    assert judged.high is not None
    assert judged.low < 0 < judged.high
    assert (38 / 64, 24 / 64) == (labelled.old, labelled.new)
    assert labelled.high is not None
    assert labelled.high < 0
    assert "likely worse" == labelled.word
    assert "fails" == found.drops[0].decision


def test_diff_of_a_twin_with_itself_changes_nothing(twins: dict[str, tuple[int, RunFolder]]) -> None:
    """All zeros, p = 1, by judge and labels alike; the intervals are not zero."""
    run = read_run(twins["quality"][1])
    for change in compare(run, run).changes:
        assert 0 == change.change
        assert change.p in (None, 1.0)
        assert change.low is not None
        assert change.high is not None
        assert change.low < 0 < change.high


def test_agree_takes_the_labels_that_a_run_read(
    twins: dict[str, tuple[int, RunFolder]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the weaker twin have a name of their own; nobody has to say it again."""
    monkeypatch.chdir(CONFIGS.parent)
    argv = ["agree", "--dimension", "faithful", "--json", str(twins["quality-weak"][1].path)]
    done = CliRunner().invoke(main, argv)
    assert 0 == done.exit_code, done.output
    assert 64 == json.loads(done.output)["n"]
