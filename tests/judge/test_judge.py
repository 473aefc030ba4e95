"""The judge asks, asks once more, and then records an error: never a score from an unreadable reply."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from evalrun.errors import UnavailableError
from evalrun.judge import Judge, load_rubric
from evalrun.models import Completion
from evalrun.records import Case, Chunk, Context, Draw, Message

RUBRIC = load_rubric(Path(__file__).parents[2] / "configs" / "rubrics" / "claims.yaml")
DIRECT = load_rubric(Path(__file__).parents[2] / "configs" / "rubrics" / "direct.yaml")
CONTEXT = Context.of((Chunk(id="work", text="I write Go at Vindlage."),))
CASE = Case(id="go-01", question="Which language do you write?", category="x")
DRAW = Draw(case="go-01", index=2, seed=7, digest="sha256:d", answer="I write Go.")
GOOD = json.dumps(
    {"claims": [{"claim": "writes Go", "quote": "I write Go", "supported": "yes"}], "answer_is_refusal": "no"}
)


class Scripted:
    """A judge model that replies from a list and remembers what it was asked."""

    name = "scripted"
    digest: str | None = None

    def __init__(self, *replies: str | Completion | Exception) -> None:
        self.replies = list(replies)
        self.asked: list[dict[str, Any]] = []

    async def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any],
        temperature: float,
        seed: int,
        max_tokens: int,
        num_ctx: int,
    ) -> Completion:
        options = {"temperature": temperature, "seed": seed, "max_tokens": max_tokens, "num_ctx": num_ctx}
        self.asked.append({"messages": tuple(messages), "schema": schema, **options})
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, Completion) else Completion(reply, "stop", 2_000, 40)

    async def close(self) -> None:
        """Nothing to give back."""


async def test_a_readable_reply_is_one_call_and_one_judgement() -> None:
    """Everything a report needs is on the judgement, the model's own text included."""
    model = Scripted(GOOD)
    found = await Judge(RUBRIC, model).judge(CASE, DRAW, CONTEXT)
    assert ("go-01", 2, "sha256:d", 1, GOOD) == (
        found.case,
        found.index,
        found.digest,
        found.attempts,
        found.raw,
    )
    assert (False, True, None, None) == (found.refusal, found.faithful, found.correct, found.error)
    assert 1 == len(model.asked)


async def test_what_is_sent_is_fixed() -> None:
    """Seed 0, the rubric's limits and always a window."""
    model = Scripted(GOOD)
    await Judge(RUBRIC, model, 0.0).judge(CASE, DRAW, CONTEXT)
    sent = {key: model.asked[0][key] for key in ("seed", "temperature", "max_tokens", "num_ctx")}
    assert {"seed": 0, "temperature": 0.0, "max_tokens": RUBRIC.max_tokens, "num_ctx": RUBRIC.num_ctx} == sent


async def test_a_reference_asks_for_correct() -> None:
    """The schema of a case with a reference requires one more field, which is then read."""
    model = Scripted(GOOD[:-1] + ', "correct": "no"}')
    case = CASE.model_copy(update={"reference": "Rust"})
    found = await Judge(RUBRIC, model).judge(case, DRAW, CONTEXT)
    assert found.correct is False
    assert "correct" in model.asked[0]["schema"]["required"]


@pytest.mark.parametrize(
    "bad",
    [
        "no idea",
        Completion("", "length", 2_000, 400),
        Completion(GOOD, "length", 2_000, 400),
        '{"claims": [], "answer_is_refusal": "no"}',
    ],
)
async def test_an_unreadable_reply_is_asked_about_once(bad: str | Completion) -> None:
    """The second request is another body that shows the reply and the reason; its verdict counts."""
    model = Scripted(bad, GOOD)
    found = await Judge(RUBRIC, model).judge(CASE, DRAW, CONTEXT)
    assert (2, True, None) == (found.attempts, found.faithful, found.error)
    first, second = (asked["messages"] for asked in model.asked)
    assert (first, bad if isinstance(bad, str) else bad.text) == (second[:-2], second[-2].content)


async def test_a_second_unreadable_reply_is_an_error() -> None:
    """No refusal, no faithful, no score: a reason, and the raw text is kept."""
    found = await Judge(RUBRIC, Scripted("x", "still x")).judge(CASE, DRAW, CONTEXT)
    assert (2, None, None, "still x") == (found.attempts, found.refusal, found.faithful, found.raw)
    assert "expected one JSON object, found none" == found.error


@pytest.mark.parametrize(("tokens", "part"), [(200, "cut"), (8_000, "does not fit")])
async def test_a_cut_prompt_is_an_error_at_once(tokens: int, part: str) -> None:
    """A judge that did not see its whole prompt is not believed and not asked again."""
    model = Scripted(Completion(GOOD, "stop", tokens, 40, RUBRIC.num_ctx))
    found = await Judge(RUBRIC, model).judge(CASE, DRAW, CONTEXT)
    assert part in (found.error or "")
    assert 1 == len(model.asked)


async def test_a_server_with_a_window_of_its_own_is_not_held_to_the_rubrics() -> None:
    """It refuses what exceeds its window, so a reply means that the prompt fitted."""
    found = await Judge(RUBRIC, Scripted(Completion(GOOD, "stop", 8_000, 40))).judge(CASE, DRAW, CONTEXT)
    assert None is found.error


async def test_a_model_that_cannot_be_had_is_no_judgement() -> None:
    """Trouble with the service is raised; it says nothing about the answer."""
    with pytest.raises(UnavailableError):
        await Judge(RUBRIC, Scripted(UnavailableError("gone"))).judge(CASE, DRAW, CONTEXT)


async def test_a_judge_that_obeys_text_outside_the_fences_is_not_moved() -> None:
    """JI-01: what a stub reads after the last fence is the same with and without an injection."""
    injected = (Path(__file__).parents[1] / "cases" / "ji-01-answer.txt").read_text(encoding="utf-8")
    seen = []
    for answer in ("She studied physics.", injected):
        content = (
            Judge(RUBRIC, Scripted())
            .messages(CASE, DRAW.model_copy(update={"answer": answer}), CONTEXT)[-1]
            .content
        )
        seen.append(content.rsplit(">>", 1)[1])
    assert seen[0] == seen[1]
    assert "verified" not in seen[1]


def test_the_fingerprint_is_of_all_that_makes_the_judge() -> None:
    """Another model, weights, rubric, checks or temperature is another judge."""
    other, weights = Scripted(), Scripted()
    other.name, weights.digest = "other", "sha256:w"
    fewer = RUBRIC.model_copy(update={"checks": ("quotes",)})
    judges = [
        Judge(RUBRIC, Scripted()),
        Judge(RUBRIC, other),
        Judge(RUBRIC, weights),
        Judge(DIRECT, Scripted()),
        Judge(fewer, Scripted()),
        Judge(RUBRIC, Scripted(), 0.5),
    ]
    assert 6 == len({judge.fingerprint for judge in judges})
    assert Judge(RUBRIC, Scripted()).fingerprint == judges[0].fingerprint
