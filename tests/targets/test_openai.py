"""A chat endpoint as the bot: what is sent, what is read, and that no key gets out."""

from __future__ import annotations

from typing import Any

import pytest

from evalrun.errors import UnavailableError, UserError
from evalrun.records import Case, Message
from evalrun.targets import BadReply
from fakes.targets import WATCH, bot, made

TURNS = (Message(role="user", content="Hello."), Message(role="assistant", content="Hi."))
CASE = Case(id="a", question="Where?", category="x", history=TURNS)
SAID = {
    "choices": [{"message": {"role": "assistant", "content": "Here."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 2},
    "citations": [{"id": "d1", "text": "One."}],
}


async def test_question_history_and_system_text_become_messages() -> None:
    """With seed and what the config sets, and nothing else; model, finish and tokens are kept."""
    async with bot("openai", SAID, model="m", system="Be brief.") as (target, asked):
        reply = await target.answer(CASE, None, 7, WATCH)
    turns = [{"role": turn.role, "content": turn.content} for turn in TURNS]
    messages = [{"role": "system", "content": "Be brief."}, *turns, {"role": "user", "content": "Where?"}]
    wanted = {"model": "m", "messages": messages, "seed": 7, "stream": False, "temperature": 0.7}
    assert [("POST /chat/completions", wanted)] == [(one["call"], one["body"]) for one in asked]
    assert ("Here.", None, "m", "stop", 9, 2) == (
        reply.answer,
        reply.context,
        reply.model,
        reply.finish_reason,
        reply.usage.prompt_tokens,
        reply.usage.completion_tokens,
    )


async def test_contexts_are_read_where_the_endpoint_returns_them() -> None:
    """By JMESPath, as from any bot."""
    async with bot("openai", SAID, model="m", contexts="citations") as (target, _):
        reply = await target.answer(CASE, None, 7, WATCH)
        assert target.offers.contexts
    assert ["d1"] == reply.context.ids


async def test_the_key_comes_from_the_environment_and_stays_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is sent; a server that repeats it in an error does not bring it into a run."""
    monkeypatch.setenv("BOT_KEY", "sk-0123456789")
    wrong = "Incorrect API key provided: sk-0123456789"
    async with bot("openai", wrong, 401, model="m", key_env="BOT_KEY") as (target, asked):
        with pytest.raises(UnavailableError) as caught:
            await target.answer(CASE, None, 7, WATCH)
    assert "Bearer sk-0123456789" == asked[0]["headers"]["authorization"]
    assert "/chat/completions: HTTP 401: Incorrect API key provided: [hidden]" == caught.value.message
    for wrong in ("sk-\nx", "sk-ü"):
        monkeypatch.setenv("BOT_KEY", wrong)
        with pytest.raises(UserError, match="BOT_KEY holds what no key holds"):
            made("openai", "http://x", model="m", key_env="BOT_KEY")


@pytest.mark.parametrize("reply", [{"error": {"message": "overloaded"}}, {"choices": []}, {"choices": [{}]}])
async def test_a_reply_without_a_choice_is_no_answer(reply: Any) -> None:
    """Whatever its status says."""
    async with bot("openai", reply, model="m") as (target, _):
        with pytest.raises(BadReply, match=r"no text at 'choices\[0\]\.message\.content' in the reply"):
            await target.answer(CASE, None, 7, WATCH)


def test_the_address_has_its_version() -> None:
    """As with judges: a base URL that names none gets ``/v1``."""
    assert "http://h:1/v1" == made("openai", "", model="m", url="http://h:1/")._options.url
    assert "http://h:1/v2" == made("openai", "", model="m", url="http://h:1/v2")._options.url
