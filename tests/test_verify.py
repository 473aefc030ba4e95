"""``evalrun verify``: one changed byte in any link of a run is found, and the link is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evalrun.cli import main
from evalrun.errors import ExitCode, UserError
from evalrun.verify import verify_run

QUALITY = Path(__file__).parent.parent / "configs" / "quality.yaml"
Line = dict[str, Any]


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped recording, replayed once."""
    folder = tmp_path_factory.mktemp("runs") / "quality"
    result = CliRunner().invoke(main, ["run", str(QUALITY), "--output", str(folder), "--quiet"])
    assert 0 == result.exit_code, result.output
    return folder


@pytest.fixture
def run(shipped: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    copy = tmp_path / "run"
    shutil.copytree(shipped, copy)
    return copy


def change(path: Path, wanted: Callable[[Line], bool], edit: Callable[[Line], None]) -> Line:
    """Edit the first line of a journal that is wanted, and write the file back; returns the edited line."""
    lines: list[Line] = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
    line = next(line for line in lines if wanted(line))
    edit(line)
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    return line


def broken(run: Path) -> str:
    """What verify says of a run, in one text."""
    return "\n".join(verify_run(run)[0])


def test_a_run_as_it_was_written_holds(run: Path) -> None:
    """Every link of the shipped run can be derived again."""
    assert "" == broken(run)


@pytest.mark.parametrize("name", ["cases", "contexts", "draws", "judgements", "scores", "exchanges"])
def test_a_file_that_is_gone_is_told_as_that(run: Path, name: str) -> None:
    """And not as all that stands on it: verify ends with 5, report and export with 2."""
    (run / f"{name}.jsonl").unlink()
    assert f"{name}.jsonl: the file is gone" == broken(run)
    verified, *shown = (
        CliRunner().invoke(main, [command, str(run)]) for command in ("verify", "report", "export")
    )
    assert (5, f"not all of the run is there\n{name}.jsonl: the file is gone") == (
        verified.exit_code,
        verified.output.strip().partition(": ")[2].partition(": ")[2],
    )
    for one in shown:
        assert (2, True) == (one.exit_code, f"{name}.jsonl is gone" in one.output)


def test_a_run_without_its_times_holds_and_says_so(run: Path) -> None:
    """No link stands on meta.json."""
    (run / "meta.json").unlink()
    done = CliRunner().invoke(main, ["verify", str(run)])
    assert (0, True) == (done.exit_code, "note: meta.json is gone" in done.output)


def test_a_changed_answer_is_found(run: Path) -> None:
    """An answer edited after the run has another digest, and is not what the model said."""
    line = change(run / "draws.jsonl", lambda _: True, lambda draw: draw.update(answer=draw["answer"] + "!"))
    where = f"{line['case']}, draw {line.get('index', 0) + 1}"
    assert f"{where}: answer: question, context and answer do not have the draw's digest" in broken(run)
    assert f"{where}: proof: the answer is not what the model said" in broken(run)


def test_a_changed_context_is_found(run: Path) -> None:
    """A context edited after the run has another digest than it claims."""

    def edit(line: Line) -> None:
        line["context"]["chunks"][0]["text"] += " "

    line = change(run / "contexts.jsonl", lambda _: True, edit)
    assert f"{line['case']}: context: its chunks do not have the digest" in broken(run)


@pytest.mark.parametrize(("source", "what"), [("bot", "the prompt"), ("judge", "the judge's prompt")])
def test_a_changed_prompt_is_found(run: Path, source: str, what: str) -> None:
    """A prompt edited after the run does not give the key of its exchange."""

    def edit(line: Line) -> None:
        line["request"]["messages"][-1]["content"] += "."

    line = change(run / "exchanges.jsonl", lambda line: line["source"] == source, edit)
    assert f"{line['case']}, draw {line['draw'] + 1}: {what} is not the one its key was taken from" in broken(
        run
    )


def test_a_changed_model_reply_is_found(run: Path) -> None:
    """A recorded reply edited after the run no longer proves its draw."""

    def edit(line: Line) -> None:
        reply = json.loads(line["reply"])
        reply["message"]["content"] += " Really."
        line["reply"] = json.dumps(reply)

    line = change(run / "exchanges.jsonl", lambda line: line["source"] == "bot", edit)
    assert f"{line['case']}, draw {line['draw'] + 1}: proof: the answer is not what the model said" in broken(
        run
    )


def test_a_changed_verdict_is_found(run: Path) -> None:
    """A judgement edited after the run does not follow from the judge's reply."""
    line = change(
        run / "judgements.jsonl",
        lambda line: line.get("faithful") is False,
        lambda line: line.update(faithful=True),
    )
    assert f"{line['case']}, draw {line['index'] + 1}: verdict: faithful do not follow" in broken(run)


def test_a_changed_score_is_found(run: Path) -> None:
    """A score edited after the run does not follow from its draw, nor its estimate from it."""
    line = change(
        run / "scores.jsonl",
        lambda line: line["metric"] == "faithful" and line["status"] == "fail",
        lambda line: line.update(status="pass"),
    )
    told = broken(run)
    assert f"{line['case']}, draw {line['index'] + 1}: score: faithful does not follow from the draw" in told
    assert "run.json: estimate: faithful, all does not follow from the scores" in told


def test_a_changed_estimate_or_gate_is_found(run: Path) -> None:
    """Numbers and decisions of ``run.json`` are derived again."""
    header = json.loads((run / "run.json").read_text("utf-8"))
    header["verdicts"][0]["decision"] = "fails"
    next(one for one in header["estimates"] if one["metric"] == "right")["value"] = 0.99
    (run / "run.json").write_text(json.dumps(header), "utf-8")
    told = broken(run)
    assert "run.json: estimate: right, all does not follow from the scores" in told
    assert "run.json: gate: recall@5, all (this list) does not follow from its estimate" in told


@pytest.mark.parametrize(
    ("key", "value", "code", "said"),
    [
        ("config", {}, ExitCode.PROVENANCE, "its config names no model for the judge"),
        ("metrics", [], ExitCode.USAGE, "run.json: estimates of metrics that are not there: answered"),
        ("exit_code", 99, ExitCode.USAGE, "run.json: exit_code: Input should be less than or equal to 5"),
    ],
)
def test_a_header_that_is_none_of_a_run_is_told(
    run: Path, key: str, value: object, code: ExitCode, said: str
) -> None:
    """Also where what is derived again needs what was taken out."""
    header = json.loads((run / "run.json").read_text("utf-8"))
    (run / "run.json").write_text(json.dumps(header | {key: value}), "utf-8")
    done = CliRunner().invoke(main, ["verify", str(run)])
    assert code == done.exit_code
    assert said in done.output


def test_a_byte_that_breaks_no_link_is_still_a_changed_file(run: Path) -> None:
    """A space between two fields changes no value, but the file is not the one the run wrote."""
    path = run / "cases.jsonl"
    path.write_bytes(path.read_bytes().replace(b'{"', b'{ "', 1))
    assert "cases.jsonl: the file is not the one the run wrote" == broken(run)


def test_the_command_ends_with_five_and_names_the_link(run: Path) -> None:
    """Broken provenance has its own exit code; a whole run ends with 0."""
    assert 0 == CliRunner().invoke(main, ["verify", str(run)]).exit_code
    change(run / "draws.jsonl", lambda _: True, lambda draw: draw.update(answer="Something else."))
    result = CliRunner().invoke(main, ["verify", str(run)])
    assert 5 == result.exit_code
    assert "the answer is not what the model said" in result.output


def test_a_folder_without_a_run_is_told(tmp_path: Path) -> None:
    """A folder that holds no finished run is a user's mistake, not a broken chain."""
    with pytest.raises(UserError, match=r"no run\.json here"):
        verify_run(tmp_path)
