"""The same questions through ``http``, ``openai``, ``command`` and ``python`` come to the same scores."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evalrun.cli import main
from evalrun.journal import RunFolder

BOT = Path(__file__).parent.parent / "fakes" / "plain_bot.py"
TURNS = [{"role": "user", "content": "About a card."}, {"role": "assistant", "content": "Yes?"}]
QUESTIONS: list[dict[str, Any]] = [
    {"id": "hours", "question": "When is it open?", "relevant_ids": ["opening"], "must_contain": ["ten"]},
    {"id": "price", "question": "And what costs it?", "relevant_ids": ["cards"], "history": TURNS},
    {"id": "weeks", "question": "Lent for what?", "relevant_ids": ["loans"], "must_contain": ["seven"]},
    {"id": "none", "question": "Say something.", "expect": "refuse"},
]
LINE = {"question": "{question}", "history": "{history}"}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The bot, listening."""
    with subprocess.Popen(
        [sys.executable, "-S", str(BOT), "serve"], stdout=subprocess.PIPE, text=True
    ) as bot:
        assert bot.stdout is not None
        yield f"http://127.0.0.1:{int(bot.stdout.readline())}"
        bot.terminate()


def targets(server: str) -> dict[str, Any]:
    """The one bot as each kind of target."""
    found = {"answer": "text", "contexts": "sources"}
    return {
        "http": {
            "url": server,
            "path": "ask",
            "body": {"q": "{question}", "turns": "{history}"},
            "answer": "reply.text",
            "contexts": "reply.sources",
        },
        "openai": {"url": server, "model": "m", "contexts": "sources"},
        "command": {"command": [sys.executable, "-S", str(BOT), "lines"], "body": LINE, **found},
        "python": {"function": "plain_bot_copy:answer", "args": LINE, **found},
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Questions, and the bot as a module beside the config."""
    (tmp_path / "cases.jsonl").write_text(
        "".join(json.dumps(one | {"category": "x"}) + "\n" for one in QUESTIONS), "utf-8"
    )
    shutil.copy(BOT, tmp_path / "plain_bot_copy.py")
    return tmp_path


def config(folder: Path, kind: str, options: Any) -> str:
    """A config for one target."""
    whole = {
        "name": kind,
        "dataset": "cases.jsonl",
        "target": {"kind": kind, **options},
        "draws": 2,
        "scorers": ["recall@1", "recall@2", "mrr", "contains", "refusal_rule"],
        "provenance": "claimed",
    }
    path = folder / f"{kind}.yaml"
    path.write_text(json.dumps(whole), "utf-8")
    return str(path)


def evalrun(*args: str) -> str:
    """What a command prints; it must end well."""
    done = CliRunner().invoke(main, args)
    assert 0 == done.exit_code, done.output
    return done.output


def test_the_same_bot_has_the_same_scores_whatever_its_wire(folder: Path, server: str) -> None:
    """Answers, contexts and every score; each run is verified, and the screen says where contexts agreed."""
    scores, answers = {}, {}
    for kind, options in targets(server).items():
        output = folder / "runs" / kind
        printed = evalrun("run", config(folder, kind, options), "--live", "--output", str(output))
        assert "the contexts of all draws agree in 4 of 4 questions" in printed
        assert "every link holds" in evalrun("verify", str(output))
        run = RunFolder(output)
        scores[kind] = [(one.case, one.index, one.metric, one.status, one.value) for one in run.scores()]
        answers[kind] = [(one.case, one.answer, one.context, one.level) for one in run.draws()]
    assert {"http", "openai", "command", "python"} == set(scores)
    assert all(scores["http"] == one for one in scores.values())
    assert all(answers["http"] == one for one in answers.values())
    statuses = {
        (case, metric): status for case, index, metric, status, _ in scores["http"] if index in (None, 0)
    }
    assert ("pass", "fail") == (statuses["hours", "contains"], statuses["weeks", "contains"])
    assert {"claimed"} == {level for *_, level in answers["http"]}


@pytest.mark.parametrize("kind", ["http", "openai", "command", "python"])
def test_validate_tells_what_is_missing_and_asks_once(folder: Path, server: str, kind: str) -> None:
    """Question, context, answer and proof of one draw; and what the bot cannot offer."""
    printed = evalrun("validate", config(folder, kind, targets(server)[kind]), "--probe")
    for part in (
        "asked: When is it open?",
        "context: opening, ",
        "answer: The library is open",
        "proof: claimed",
    ):
        assert part in printed
    assert ("note: no seed: " in printed) is (kind != "openai")


def test_a_chat_endpoint_is_recorded_and_replayed(folder: Path, server: str) -> None:
    """Its calls go through the tap: without the endpoint the same run comes out of the recording."""
    path = Path(config(folder, "openai", targets(server)["openai"]))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"cassette": {"path": "cassette"}}), "utf-8")
    evalrun("run", str(path), "--record", "--output", str(folder / "a"))
    replay = ["run", str(path), "--set", "target.url=http://127.0.0.1:9", "--output"]
    evalrun(*replay, str(folder / "b"))
    first, second = (RunFolder(folder / name) for name in "ab")
    assert list(first.draws()) == list(second.draws())
    assert 8 == len(list(second.exchanges()))
