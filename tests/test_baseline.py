"""The baseline of a config: what is written, that no text is in it, and that a comparison can read it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalrun.baseline import accept, read_baseline
from evalrun.comparison import compare
from evalrun.comparison.measured import read_run
from evalrun.errors import InputError, UserError
from evalrun.journal import RunFolder
from paired_runs import case, passes, write_run

ROWS = passes("ans", [[1, 0], [1, 1], [None, 1], [None, None]]) | passes("una", [[0, 1], [None, None]])


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config file; a baseline only needs to know where it is."""
    path = tmp_path / "configs" / "q.yaml"
    path.parent.mkdir()
    path.touch()
    return path


@pytest.fixture
def run(tmp_path: Path, config: Path) -> RunFolder:
    """A run with answers lost, of both kinds of questions."""
    return write_run(tmp_path / "run", ROWS, config_path=str(config))


def test_what_is_written(run: RunFolder, config: Path) -> None:
    """NAME.baseline.jsonl beside the config: a header, then a line a case with digest, outcomes, scores."""
    done = accept(run)
    assert config.with_name("quality.baseline.jsonl") == done.path
    assert (6, 2, "the first baseline") == (done.cases, done.draws, done.told.partition(":")[0])
    header, *lines = map(json.loads, done.path.read_text("utf-8").splitlines())
    assert ("baseline.v1", "quality", "twin.v1", 2) == (
        header["format"], header["name"], header["dataset"], header["draws"],
    )  # fmt: skip
    assert list(ROWS) == [line["case"] for line in lines]
    assert {
        "case": "ans-000",
        "digest": lines[0]["digest"],
        "outcomes": ["grounded", "unsupported"],
        "scores": {"faithful": [1.0, 0.0], "recall@5": [1.0], "right": [1.0, 0.0]},
    } == lines[0]
    assert [None, "grounded"] == lines[2]["outcomes"]


def test_no_text(run: RunFolder) -> None:
    """Neither question nor answer nor context is in the file."""
    text = accept(run).path.read_text("utf-8")
    for private in ("Question", "answer to", "Berlin", "builds"):
        assert private not in text, private


def test_read_back(run: RunFolder) -> None:
    """What is read from a baseline is what the run measured, missing draws included."""
    measured, kept = read_run(run), read_baseline(accept(run).path)
    assert measured.values == kept.values
    assert measured.outcomes == kept.outcomes
    assert (measured.digests, measured.metrics, measured.checks) == (kept.digests, kept.metrics, kept.checks)
    assert ("baseline", measured.source.judge) == (kept.source.kind, kept.source.judge)


def test_compared_like_the_run(tmp_path: Path, run: RunFolder, config: Path) -> None:
    """A comparison with the baseline gives the same changes and verdicts as one with the run."""
    rows = ROWS | {"ans-001": ["unsupported", "grounded"]}
    new = read_run(write_run(tmp_path / "new", rows, config_path=str(config)))
    by_run = compare(read_run(run), new, {"right": 0.1})
    by_file = compare(read_baseline(accept(run).path), new, {"right": 0.1})
    assert (by_run.changes, by_run.drops) == (by_file.changes, by_file.drops)
    assert ("ans-001", None, "grounded") == (
        by_file.flips[0].case, by_file.flips[0].old_answers[0].text, by_file.flips[0].old_answers[0].outcome,
    )  # fmt: skip
    assert any("keeps no answers" in note for note in by_file.notes)


def test_accepted_again(tmp_path: Path, run: RunFolder, config: Path) -> None:
    """The same run gives the same bytes; another says how many lines changed."""
    first = accept(run).path.read_bytes()
    assert "unchanged" == accept(run).told
    assert first == accept(run).path.read_bytes()
    rows = ROWS | {"ans-001": ["unsupported", "grounded"]}
    assert (
        "1 line changed since the one before"
        == accept(write_run(tmp_path / "new", rows, config_path=str(config))).told
    )


def test_without_a_judge(tmp_path: Path, config: Path) -> None:
    """A run without outcomes keeps its scores."""
    run = write_run(tmp_path / "plain", ROWS, judge=None, scorers=["recall@5"], config_path=str(config))
    assert read_run(run).values == read_baseline(accept(run).path).values


def test_refused(tmp_path: Path, config: Path) -> None:
    """A partial run is no baseline; nor is one whose config is not here or whose name leads elsewhere."""
    with pytest.raises(UserError, match="partial"):
        accept(write_run(tmp_path / "a", ROWS, config_path=str(config), partial="--limit 6"))
    with pytest.raises(UserError, match="is not here"):
        accept(write_run(tmp_path / "b", ROWS, config_path="nowhere/q.yaml"))
    with pytest.raises(UserError, match="cannot be the name of a file"):
        accept(write_run(tmp_path / "c", ROWS, config_path=str(config), name="../escaped"))
    assert [config] == list(config.parent.iterdir())


def test_bad_files(tmp_path: Path, run: RunFolder) -> None:
    """Every bad line is told with its place; a torn, empty or doubled file is refused."""
    lines = accept(run).path.read_bytes().splitlines(keepends=True)
    bad = tmp_path / "bad.baseline.jsonl"
    bad.write_bytes(b"".join([lines[0], b'{"case": 1}\n', lines[1], b"no json\n"]))
    with pytest.raises(InputError) as caught:
        read_baseline(bad)
    assert [f"{bad}:2", f"{bad}:4"] == [problem.where for problem in caught.value.problems]
    for content in (b"", lines[0] + lines[1] + lines[1], b"".join(lines)[:-9], lines[1]):
        bad.write_bytes(content)
        with pytest.raises(InputError):
            read_baseline(bad)


def test_a_changed_question_is_not_compared(tmp_path: Path, run: RunFolder, config: Path) -> None:
    """A question that reads differently now has no partner in the baseline."""
    changed = {"ans-001": case("ans-001", question="Another question?")}
    rows = {name: ROWS[name] for name in ROWS} | passes("ans-more", [[1, 1]] * 20)
    old = read_baseline(accept(write_run(tmp_path / "o", rows, config_path=str(config))).path)
    new = read_run(write_run(tmp_path / "n", rows, cases=changed, config_path=str(config)))
    found = compare(old, new, common_cases=True)
    assert ["ans-001"] == [one.case for one in found.unpaired]
