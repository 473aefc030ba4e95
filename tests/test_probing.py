"""What one reply of a bot of unknown shape shows: answer, contexts, what the bot takes."""

from __future__ import annotations

import json
from typing import Any

import httpx
import jmespath
import pytest
from aiohttp import web

from evalrun.errors import UnavailableError
from evalrun.probing import ASKED, answer_in, contexts_in, missing_field, probe
from fakes.servers import serving


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ({"answer": "x", "id": "a much longer text than the answer is"}, "answer"),
        ({"data": {"bot-reply": "some words"}, "lang": "en"}, 'data."bot-reply"'),
        ({"choices": [{"message": {"role": "assistant", "content": "x"}}]}, "choices[0].message.content"),
        ({"reply": {"text": "x"}, "sources": [{"text": "longer than the answer"}]}, "reply.text"),
        ({"query": ASKED, "said": "hm"}, "said"),
        ("plain", "@"),
        ({"count": 3}, None),
        ([], None),
    ],
)
def test_where_the_answer_is(reply: Any, answer: str | None) -> None:
    """By name first, else the longest text that is no passage and not the question itself."""
    assert answer == answer_in(reply)


@pytest.mark.parametrize(
    ("item", "made"),
    [
        ({"docId": "a", "text": "t"}, "[].{id: docId, text: text}"),
        ({"doc_id": 7, "content": "t"}, "[].{id: doc_id, text: content}"),
        ({"ID": "a", "pageContent": "t"}, "[].{id: ID, text: pageContent}"),
        ({"page_content": "t", "metadata": {"source": "a"}}, "[].{id: metadata.source, text: page_content}"),
        ({"chunk_id": "a", "Passage": "t", "score": 1}, "[].{id: chunk_id, text: Passage}"),
        ({"source": "a", "snippet": "t"}, "[].{id: source, text: snippet}"),
        ({"document-id": "a", "Text": "t"}, '[].{id: "document-id", text: Text}'),
        ({"ok": True, "id": True, "snippet": "t"}, "[].{text: snippet}"),
    ],
)
def test_a_passage_has_its_id_and_text_by_many_names(item: Any, made: str) -> None:
    """Whichever way their words are written; every one is found by the JMESPath that is made of them."""
    found = contexts_in({"answer": "x", "sources": [item, item]})
    assert f"sources{made}" == found
    [first, _] = jmespath.search(found, {"sources": [item, item]})
    assert "t" == first["text"]


@pytest.mark.parametrize(
    ("reply", "contexts", "first"),
    [
        ({"sources": [{"id": "a", "text": "t"}]}, "sources", {"id": "a", "text": "t"}),
        ({"sources": ["t", "u"]}, "sources", "t"),
        ({"r": {"docs": [{"page_content": "t"}]}}, "r.docs[].{text: page_content}", {"text": "t"}),
        ({"chunks": [{"key": 7, "body": "t"}]}, "chunks[].{id: key, text: body}", {"id": 7, "text": "t"}),
        ({"suggestions": ["Ask me more"]}, None, None),
        ({"choices": [{"message": {"content": "x"}}]}, None, None),
        ({"sources": []}, None, None),
        ({"sources": [{"title": "t"}]}, None, None),
    ],
)
def test_where_the_contexts_are(reply: Any, contexts: str | None, first: Any) -> None:
    """Texts under a known name, or objects with a text; the expression finds them."""
    found = contexts_in(reply)
    assert contexts == found
    if found is not None:
        assert first == jmespath.search(found, reply)[0]


def test_a_fastapi_bot_says_what_it_misses() -> None:
    """Its one missing field, wherever it lies; several are no answer."""
    one = {"loc": ["body", "ask", "utterance"], "type": "missing"}
    assert {"ask": {"utterance": "{question}"}} == missing_field(httpx.Response(422, json={"detail": [one]}))
    for detail in ([one, one], [], "text", [{"loc": ["query", "q"], "type": "missing"}]):
        assert missing_field(httpx.Response(422, json={"detail": detail})) is None


async def test_bodies_are_tried_until_one_is_taken() -> None:
    """The question goes in as a value; what was refused is not asked again."""
    asked = []

    async def handle(request: web.Request) -> web.Response:
        asked.append(body := await request.json())
        return web.json_response({"reply": "yes"}, status=200 if "message" in body else 400)

    async with serving(handle) as url:
        found = await probe(url, {})
    assert ({"message": "{question}"}, "reply", None) == (found.body, found.answer, found.contexts)
    assert [{"question": ASKED}, {"query": ASKED}, {"message": ASKED}] == asked


@pytest.mark.parametrize(
    ("status", "text", "said"), [(404, "none", "takes none of"), (200, "<html>", "not JSON")]
)
async def test_a_bot_that_takes_nothing_is_an_error(status: int, text: str, said: str) -> None:
    """With what was tried and what the last reply was."""

    async def handle(request: web.Request) -> web.Response:
        return web.Response(status=status, text=text)

    async with serving(handle) as url:
        with pytest.raises(UnavailableError, match=said):
            await probe(url, {}, [json.loads('{"q": "{question}"}')])


def test_a_blank_text_is_no_answer() -> None:
    """A bot that says nothing shows nowhere where its answer would be."""
    assert "source" == answer_in({"answer": " \n", "source": "a"})
    assert answer_in({"answer": ""}) is None
