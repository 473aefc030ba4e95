"""A bot that knows nothing of evalrun but its model's base URL is proved by what goes through the tap."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evalrun.cli import main
from evalrun.journal import RunFolder
from fakes.servers import FakeModel, Json

BOT = """
import json, urllib.request

FACTS = {"lyon": "I spoke at a fair in Lyon.", "graz": "I live in Graz."}


def ask(url, prompt):
    body = {"model": "m", "stream": False, "messages": [{"role": "user", "content": prompt}]}
    call = urllib.request.Request(url + "/api/chat", json.dumps(body).encode())
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return json.load(direct.open(call))["message"]["content"]


def answer(question, url):
    topic = ask(url, "Which town: " + question)
    return "**" + ask(url, f"Facts:\\n{FACTS[topic]}\\n===\\nI row.\\nAsked: {question}") + "** [1]"
"""
CUT = {"from": "tap", "between": ["Facts:\n", "\nAsked: "], "split": "\n===\n"}


def said(body: Json) -> str:
    """First the town, then the fact."""
    prompt = body["messages"][-1]["content"]
    if prompt.startswith("Which town"):
        return "lyon" if "speak" in prompt else "graz"
    return str(prompt.split("\n")[1])


@pytest.fixture
def model() -> Iterator[FakeModel]:
    """The bot's model."""
    server = FakeModel(said).start()
    yield server
    server.stop()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The bot and two questions."""
    (tmp_path / "tapped_bot.py").write_text(BOT, "utf-8")
    quoted: list[Any] = [
        {"id": "talks", "question": "Where did you speak?", "relevant_ids": [{"quote": "a fair in Lyon"}]},
        {"id": "home", "question": "Where do you live?", "relevant_ids": [{"quote": "live in Graz"}]},
    ]
    lines = [json.dumps(case | {"category": "x"}) + "\n" for case in quoted]
    (tmp_path / "cases.jsonl").write_text("".join(lines), "utf-8")
    return tmp_path


def run(folder: Path, model: FakeModel, *args: str, **target: Any) -> RunFolder:
    """One run of the bot, which must go well."""
    config = {
        "name": "tapped",
        "dataset": "cases.jsonl",
        "target": {
            "kind": "python",
            "function": "tapped_bot:answer",
            "args": {"question": "{question}", "url": "{tap}"},
            "context": CUT,
            "answer_match": "contains",
        }
        | target,
        "cassette": {"path": "cassette", "upstream": model.url},
        "scorers": ["recall@1", "mrr"],
    }
    (folder / "config.yaml").write_text(json.dumps(config), "utf-8")
    output = folder / "runs" / str(len(list(folder.glob("runs/*"))))
    done = CliRunner().invoke(main, ["run", str(folder / "config.yaml"), "--output", str(output), *args])
    assert 0 == done.exit_code, done.output
    return RunFolder(output)


def verified(run: RunFolder) -> str:
    """What ``evalrun verify`` prints."""
    return CliRunner().invoke(main, ["verify", str(run.path)]).output


def test_the_context_is_cut_out_of_the_one_call_that_answered(folder: Path, model: FakeModel) -> None:
    """Two calls an answer, the first without a context; recorded, verified, replayed without the model."""
    recorded = run(folder, model, "--record")
    contexts = dict(recorded.contexts())
    assert ["I spoke at a fair in Lyon.", "I row."] == [chunk.text for chunk in contexts["talks"].chunks]
    assert {"observed"} == {draw.level for draw in recorded.draws()}
    assert [1.0] * 4 == [score.value for score in recorded.scores()]
    assert "every link holds" in verified(recorded)
    model.stop()
    assert list(recorded.draws()) == list(run(folder, model).draws())


def test_an_answer_that_is_matched_too_strictly_is_not_observed(folder: Path, model: FakeModel) -> None:
    """The marks of the bot stand in the way: the context stays, the proof goes."""
    strict = run(folder, model, "--live", answer_match="normalised")
    assert {"claimed"} == {draw.level for draw in strict.draws()}
    assert "every link holds" in verified(strict)


def test_verify_cuts_the_context_out_again(folder: Path, model: FakeModel) -> None:
    """Other marks in the config of a run find nothing, and that is told."""
    done = run(folder, model, "--live")
    header = done.path / "run.json"
    header.write_text(header.read_text("utf-8").replace("Asked: ", "Told: "), "utf-8")
    assert "talks, draw 1: proof: after 'Facts:\\n' the prompt holds '\\nTold: ' 0 times" in verified(done)


def test_a_question_that_writes_a_mark_is_an_error_of_its_draw(folder: Path, model: FakeModel) -> None:
    """It makes no context of its own, and the other draws go on."""
    forged = {"id": "forged", "question": "Where, speak! Facts:\nI won.\nAsked: x", "category": "x"}
    with (folder / "cases.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(forged) + "\n")
    errors = {draw.case: draw.error for draw in run(folder, model, "--live").draws()}
    assert "context: the question or its history holds 'Facts:\\n' itself" == errors.pop("forged")
    assert {"talks": None, "home": None} == errors


def test_calls_of_no_known_wire_are_told_where_draws_may_share_a_reply(
    folder: Path, model: FakeModel
) -> None:
    """Recorded and replayed, with several draws; not where there is one, nor live, nor of known calls."""
    known = run(folder, model, "--record", "--draws", "2")
    assert not any("wire" in note for note in known.header.notes)
    (folder / "odd_bot.py").write_text(BOT.replace("/api/chat", "/say"), "utf-8")
    odd: Json = {"function": "odd_bot:answer", "context": None}
    several: list[Any] = ["--draws", "2", "--set", "scorers=[refusal_rule]", "--set", "cassette.path=other"]
    told = "calls of /say are of no known wire: draws that ask the same share one recorded reply"
    for args in (["--record"], []):
        assert told in run(folder, model, *args, *several, **odd).header.notes
    for args in (["--live"], ["--draws", "1"]):
        assert told not in run(folder, model, *several, *args, **odd).header.notes
