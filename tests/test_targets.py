"""How a bot is asked over its wire, and what is made of a reply that is not what was promised."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from evalrun.errors import UnavailableError
from evalrun.records import Case, Chunk, Context, Message
from evalrun.registry import UnknownName
from evalrun.targets import TARGETS, BadReply
from fakes.servers import Json
from fakes.targets import WATCH, bot

CASE = Case(id="a", question="Where {seed}?", category="x", history=(Message(role="user", content="Hello."),))
CONTEXT = Context.of((Chunk(id="1", text="One.", similarity=0.5),))


def test_targets_are_found_by_name() -> None:
    """All that come with it, and the nearest to a slip."""
    assert {"command", "http", "openai", "python", "ragbot"} <= {*TARGETS.names()}
    with pytest.raises(UnknownName) as caught:
        TARGETS.get("ragbott")
    assert "did you mean 'ragbot'?" == caught.value.hint


# ---------------------------------------------------------------- ragbot


async def test_ragbot_is_asked_for_a_context_and_for_an_answer_from_it() -> None:
    """Question, history and k; then the same with context and seed, and only such parameters as are set."""
    async with bot("ragbot", CONTEXT.model_dump(), k=3) as (target, asked):
        assert CONTEXT == await target.retrieve(CASE)
    history = [{"role": "user", "content": "Hello."}]
    assert ("POST /retrieve", {"question": CASE.question, "k": 3, "history": history}) == (
        asked[0]["call"],
        asked[0]["body"],
    )
    async with bot("ragbot", {"answer": "Here.", "context": CONTEXT.model_dump()}) as (target, asked):
        reply = await target.answer(CASE, CONTEXT, 7, WATCH)
    assert ("Here.", CONTEXT) == (reply.answer, reply.context)
    wanted = {
        "question": CASE.question,
        "context": CONTEXT.model_dump(mode="json", exclude={"numbered"}),
        "history": history,
    }
    assert ("POST /answer", wanted | {"seed": 7, "temperature": 0.7}) == (asked[0]["call"], asked[0]["body"])


@pytest.mark.parametrize(
    ("reply", "status", "message"),
    [
        (
            {"error": "Sorry, I can't answer that right now"},
            200,
            "/answer: not a reply: answer: Field required",
        ),
        ({"answer": 5}, 200, "/answer: not a reply: answer: "),
        ({"answer": "x", "surprise": 1}, 200, "/answer: not a reply: surprise: "),
        ("<html>", 200, "/answer: not a reply: "),
        ("Sorry, I cannot process your request.", 500, "/answer: HTTP 500: Sorry, I cannot process"),
        ({}, 404, "/answer: HTTP 404"),
    ],
)
async def test_what_is_no_reply_of_ragbot_is_an_error(reply: Any, status: int, message: str) -> None:
    """SE-01: no text of a failure becomes an answer."""
    async with bot("ragbot", reply, status) as (target, _):
        with pytest.raises(UnavailableError) as caught:
            await target.answer(CASE, CONTEXT, 7, WATCH)
    assert caught.value.message.startswith(message)


async def test_a_bot_without_trace_is_told_how_to_start() -> None:
    """404 on the grader's calls has one usual cause."""
    async with bot("ragbot", {}, 404) as (target, _):
        with pytest.raises(UnavailableError) as caught:
            await target.retrieve(CASE)
        with pytest.raises(UnavailableError, match="/about: HTTP 404"):
            await target.about()
    assert "start the bot with: ragbot serve --trace" == caught.value.hint


async def test_what_a_bot_says_of_itself_must_be_json() -> None:
    """Something else listens there, perhaps."""
    async with bot("ragbot", {"model": "m"}) as (target, _):
        assert {"model": "m"} == await target.about()
    async with bot("ragbot", "<html>") as (target, _):
        with pytest.raises(BadReply, match="/about: the reply is not JSON"):
            await target.about()


# ---------------------------------------------------------------- any other


async def test_slots_of_a_body_are_replaced_by_values_and_text_is_left_alone() -> None:
    """A string that is exactly a slot becomes the value; one that only holds it stays."""
    body = {"q": "{question}", "past": ["{history}"], "n": {"seed": "{seed}"}, "note": "a {question}", "k": 3}
    options: Json = {"path": "ask", "body": body, "answer": "data.text"}
    async with bot("http", {"data": {"text": "Here."}}, **options) as (target, asked):
        assert "Here." == (await target.answer(CASE, None, 7, WATCH)).answer
        assert None is await target.retrieve(CASE)
        assert {} == await target.about()
        assert target.offers.seed
    history = [{"role": "user", "content": "Hello."}]
    wanted = {"q": "Where {seed}?", "past": [history], "n": {"seed": 7}, "note": "a {question}", "k": 3}
    assert ("POST /ask", wanted) == (asked[0]["call"], asked[0]["body"])


async def test_contexts_are_texts_or_objects_with_text() -> None:
    """Where one has no id, all are counted, and the context says so; the digest is theirs."""
    reply = {"answer": "x", "found": ["One.", {"text": "Two.", "id": 7}, {"text": "Three."}]}
    async with bot("http", reply, contexts="found") as (target, _):
        found = (await target.answer(CASE, None, 7, WATCH)).context
        assert not target.offers.seed
    wanted = (Chunk(id="1", text="One."), Chunk(id="2", text="Two."), Chunk(id="3", text="Three."))
    assert Context.of(wanted).model_copy(update={"numbered": True}) == found


@pytest.mark.parametrize(
    ("reply", "status", "options", "message"),
    [
        (
            {"reply": {"text": "x" * 100}, "k": [1, 2, 3]},
            200,
            {},
            f'no text at \'answer\' in the reply: {{"reply": {{"text": "{"x" * 39}…"}}, '
            '"k": [1, 2, "…"]}; set target.answer to the JMESPath of the text there',
        ),
        ({"answer": ["x"]}, 200, {}, 'no text at \'answer\' in the reply: {"answer": ["x"]}; '),
        ([], 200, {}, "no text at 'answer' in the reply: []; "),
        ("Sorry.", 200, {}, "the reply is no JSON: 'Sorry.'"),
        (
            {"answer": "x"},
            200,
            {"contexts": "found"},
            'no list at \'found\' in the reply: {"answer": "x"}; set target.contexts to the JMESPath',
        ),
        (
            {"answer": "x", "found": [1]},
            200,
            {"contexts": "found"},
            "context 1 is neither text nor an object with a text: 1; write target.contexts like ",
        ),
        ({"parts": None}, 200, {"answer": "join(' ', parts)"}, "join(' ', parts): "),
        ({"answer": "x"}, 201, {"contexts": "length(answer, found)"}, "length(answer, found): "),
    ],
)
async def test_a_reply_without_an_answer_says_what_it_has(
    reply: Any, status: int, options: Json, message: str
) -> None:
    """An expression that finds nothing, or cannot be applied, is an error of the draw."""
    async with bot("http", reply, status, **options) as (target, _):
        with pytest.raises(BadReply) as caught:
            await target.answer(CASE, None, 7, WATCH)
    assert caught.value.message.startswith(message)


async def test_keys_are_sent_and_hidden_everywhere_else() -> None:
    """SE: a bot that repeats its headers, in an error or an answer, does not bring a key into a run."""
    headers = {"Authorization": "Bearer bot-key-1", "X-Tenant": "library"}
    reply = {"answer": "The library knows bot-key-1."}
    async with bot("http", reply, headers=headers) as (target, asked):
        assert "The library knows [hidden]." == (await target.answer(CASE, None, 7, WATCH)).answer
        dumped = target._options.model_dump(mode="json")["headers"]
    assert "Bearer bot-key-1" == asked[0]["headers"]["authorization"]
    assert {"Authorization": "[hidden]", "X-Tenant": "library"} == dumped
    async with bot("http", "who is bot-key-1?", 403, headers=headers) as (target, _):
        with pytest.raises(UnavailableError, match=r"who is \[hidden\]\?"):
            await target.answer(CASE, None, 7, WATCH)


async def test_a_streamed_reply_is_joined() -> None:
    """Server-sent events by their media type, contexts among them."""
    events = 'data: {"docs": ["One."]}\n\ndata: {"d": "In "}\n\ndata: {"d": "Lyon."}\n\n'
    options: Json = {"media_type": "text/event-stream", "answer": "d", "contexts": "docs"}
    async with bot("http", events, **options) as (target, _):
        reply = await target.answer(CASE, None, 7, WATCH)
    assert ("In Lyon.", ["1"]) == (reply.answer, reply.context.ids)


def test_an_address_without_a_scheme_is_refused() -> None:
    """When the config is read, not at the first call."""
    with pytest.raises(ValidationError, match="is not the address of a bot"):
        TARGETS.get("http").Options(kind="http", url="localhost:8000")


async def test_a_status_is_told_with_the_url_that_was_tried() -> None:
    """NW-04: a 404 alone helps nobody."""
    async with bot("http", "Sorry, I cannot.", 404, path="/v1/ask") as (target, _):
        with pytest.raises(
            UnavailableError, match=r"http://127\.0\.0\.1:\d+/v1/ask: HTTP 404: Sorry, I cannot\."
        ):
            await target.answer(CASE, None, 7, WATCH)


def test_expressions_are_checked_when_the_config_is_read() -> None:
    """Not when the first answer is there."""
    with pytest.raises(ValidationError, match="not a JMESPath expression"):
        TARGETS.get("http").Options(kind="http", answer="a..b")
