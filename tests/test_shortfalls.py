"""What a bot cannot offer is said before anything is spent, with what follows from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalrun.errors import InputError
from evalrun.planning import Plan, load, make_plan

QUESTION = {"id": "a", "question": "Where?", "category": "x", "relevant_ids": ["d"]}
URL = "http://127.0.0.1:1"


def plan(folder: Path, target: Any, *more: Any, question: Any = QUESTION, **config: Any) -> Plan:
    """The plan of a config with this target, over one question and those of ``more``."""
    lines = "".join(json.dumps(case) + "\n" for case in (question, *more))
    (folder / "cases.jsonl").write_text(lines, "utf-8")
    whole = {"name": "x", "dataset": "cases.jsonl", "target": target, "scorers": ["recall@2", "latency"]}
    (folder / "config.yaml").write_text(json.dumps(whole | config), "utf-8")
    return make_plan(load(folder / "config.yaml"), "live")


def http(**options: Any) -> Any:
    """A bot over HTTP."""
    return {"kind": "http", "url": URL} | options


def test_a_bot_that_only_answers_has_no_contexts_and_no_seed(tmp_path: Path) -> None:
    """Each of them is a line that names what cannot be measured."""
    wanted = (
        "no contexts: recall@2 cannot be measured",
        "no seed: no draw can be asked for again",
        "no temperature: the bot answers at its own, not at that of this config",
    )
    assert wanted == plan(tmp_path, http(), temperature=0.5).shortfalls


def test_a_scorer_that_no_question_has_anything_for_is_said(tmp_path: Path) -> None:
    """It would be missing from every screen and page without a word."""
    target = http(contexts="docs", body={"q": "{question}", "s": "{seed}"})
    scorers = ["latency", "recall@2", "contains", "regex"]
    line = "not measured, since no question has what it takes: contains, regex"
    assert (line,) == plan(tmp_path, target, scorers=scorers).shortfalls
    some = QUESTION | {"id": "b", "must_contain": ["x"], "metadata": {"regex": "x"}}
    assert () == plan(tmp_path, target, some, scorers=scorers).shortfalls


def test_labels_that_correct_nothing_are_named(tmp_path: Path) -> None:
    """Of two files of one kind the first alone corrects; both measure the judge."""
    header = {"dimension": "faithful", "design": "random", "seed": 1, "date": "2026-11-30"}
    label = {"draw": "sha256:" + "0" * 64, "case": "a", "rater": "r1", "label": True}
    raters = {"raters": {"r1": {"kind": "human", "how": "read"}}}
    for name in ("one", "two"):
        lines = (json.dumps(header | raters), json.dumps(label), "")
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines), "utf-8")
    judge = {
        "model": "ollama/m",
        "rubric": str(Path(__file__).parent.parent / "configs" / "rubrics" / "claims.yaml"),
    }
    target = http(contexts="docs", body={"q": "{question}", "s": "{seed}"})
    more = {"judge": judge, "scorers": ["faithful"], "provenance": "claimed"}
    line = (
        "two.jsonl only measures the judge: rates are corrected by one.jsonl, "
        "whose labels are of 'faithful', too, and chosen in the same way (random)"
    )
    assert () == plan(tmp_path, target, labels=["one.jsonl"], **more).shortfalls
    assert (line,) == plan(tmp_path, target, labels=["one.jsonl", "two.jsonl"], **more).shortfalls


def test_contexts_without_ids_lead_to_quotes(tmp_path: Path) -> None:
    """Known where the expression makes objects without one; where quotes are used, nothing is lost."""
    target = http(contexts="docs[].{text: body}", body={"q": "{question}", "s": "{seed}"})
    line = "no ids: recall@2 cannot be measured by ids; name what is relevant by quotes"
    assert (line,) == plan(tmp_path, target).shortfalls
    quoted = QUESTION | {"relevant_ids": [{"quote": "a fair in Lyon"}]}
    assert () == plan(tmp_path, target, question=quoted).shortfalls


def test_several_draws_of_a_bot_that_retrieves_on_each(tmp_path: Path) -> None:
    """Which context is judged, and which is measured, is said."""
    target = http(contexts="docs", body={"q": "{question}", "s": "{seed}"})
    (line,) = plan(tmp_path, target, draws=2).shortfalls
    assert line.startswith("no retrieval of its own: each draw is judged on the context it came with")


def test_a_bot_through_the_tap_without_a_seed_is_asked_one_at_a_time(tmp_path: Path) -> None:
    """What follows from no seed is another thing there."""
    target = {"kind": "command", "command": ["x"], "env": {"OLLAMA_HOST": "{tap}"}, "contexts": "docs"}
    assert ("no seed: one call in flight through the tap",) == plan(tmp_path, target).shortfalls


def test_a_gate_on_what_cannot_be_measured_is_refused(tmp_path: Path) -> None:
    """It could not hold, whatever the bot answers."""
    gate = {"metric": "recall@2", "min": 0.5, "infer": "this_set"}
    for target, reason in (
        (http(), "the bot returns no contexts"),
        (http(contexts="docs[].{text: body}"), "the bot's contexts have no ids"),
    ):
        with pytest.raises(InputError, match=f"gate 'recall@2, all .*' cannot hold: {reason}"):
            plan(tmp_path, target, gates=[gate])


def test_a_history_that_the_bot_would_not_get_is_an_error(tmp_path: Path) -> None:
    """The question alone is another question."""
    turns = {
        "id": "b",
        "question": "And then?",
        "category": "x",
        "history": [{"role": "user", "content": "x"}],
    }
    with pytest.raises(InputError, match="case 'b' has a history, which the bot would not be given"):
        plan(tmp_path, http(), turns)
    assert plan(tmp_path, http(body={"q": "{question}", "turns": "{history}"}), turns)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({"kind": "http"}, "no bot to ask"),
        ({"kind": "http", "launch": {"command": ["bot", "8000"]}}, "the bot is not told where to listen"),
        (
            {"kind": "command", "command": ["x"], "launch": {"command": ["y"]}},
            "kind 'command' has nothing to launch",
        ),
        ({"kind": "openai", "model": "m", "key_env": "NO_SUCH_KEY"}, "variable NO_SUCH_KEY is not set"),
    ],
)
def test_a_bot_that_cannot_be_asked_is_told_at_load(tmp_path: Path, target: Any, message: str) -> None:
    """With the place in the config."""
    with pytest.raises(InputError, match=message):
        plan(tmp_path, target)


def test_a_context_from_the_tap_needs_the_tap(tmp_path: Path) -> None:
    """Nothing can be cut out of prompts that nobody sees; beside contexts of its own it is one too many."""
    cut = {"from": "tap", "between": ["Sources:", "Question:"]}
    with pytest.raises(InputError, match=r"'target\.context' is cut out of the bot's model calls, and none"):
        plan(tmp_path, http(context=cut))
    program = {"kind": "command", "command": ["x"], "env": {"MODEL_URL": "{tap}"}, "context": cut}
    assert plan(tmp_path, program).shortfalls[0].startswith("no ids: recall@2 cannot be measured by ids")
    with pytest.raises(InputError, match="stands beside 'contexts': keep one of them"):
        plan(tmp_path, program | {"contexts": "docs"})
