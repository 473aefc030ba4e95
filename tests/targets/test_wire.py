"""Templates of requests, and answers and contexts found in whole and streamed replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evalrun.http import Limits, Watch
from evalrun.records import Case
from evalrun.targets import BadReply, Setting
from evalrun.targets.http import Http, HttpOptions
from evalrun.targets.wire import (
    Reading,
    body_values,
    context_of,
    filled,
    may_have_ids,
    shown,
    slot_faults,
)
from fakes.servers import serving
from known import json_of, known

VALUES = {"question": 'a "{seed}" \\', "history": [], "seed": 7}
TEXT = st.text(max_size=20)
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT | st.sampled_from(["{question}", "{seed}", "x {seed}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=12,
)


@given(TREES)
def test_filling_changes_slots_only(template: Any) -> None:
    """Undoing it on the text gives the template back: no value is spliced into other text."""
    text, marked = json.dumps(template), {name: {"slot": name} for name in VALUES}
    again = json.loads(json.dumps(filled(template, marked)))
    for name in VALUES:
        text = text.replace(f'"{{{name}}}":', f'"{{key {name}}}":')
    for name in VALUES:
        text = text.replace(f'"{{{name}}}"', json.dumps({"slot": name}))
        text = text.replace(f'"{{key {name}}}":', f'"{{{name}}}":')
    assert json.loads(text) == again


def read(text: str, media_type: str = "", answer: str = "answer", contexts: str | None = None) -> Any:
    """The reply in a body."""
    return Reading(answer, contexts).reply(*body_values(text, media_type))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_server_sent_events_are_joined(end: str) -> None:
    """The texts at the path, in order; contexts from whichever event brings them."""
    events = [
        ": ping",
        'event: sources\ndata: {"docs": [{"id": "d", "text": "One."}]}',
        'data: {"delta": {"text": "In "}}',
        'data: {"delta":\ndata: {"text": "Lyon."}}',
        'data: {"usage": {"tokens": 3}, "error": null}',
        "data: [DONE]",
    ]
    body = "".join(event.replace("\n", end) + end + end for event in events)
    reply = read(body, "text/event-stream", "delta.text", "docs")
    assert ("In Lyon.", ["d"]) == (reply.answer, reply.context.ids)


NW_05 = json_of("nw-05-stream.json")
NW_05_BYTES = bytes.fromhex(NW_05["bytes_hex"])
SAID = NW_05["expect_text"].encode()


@known(
    "NW-05",
    (NW_05_BYTES, NW_05["chunk_sizes"], "text/event-stream"),
    (NW_05_BYTES.removesuffix(b"\n\n").replace(b"\n\n", b"\r\n\r\n"), [1, 5, 999], "text/event-stream"),
    (b'\xef\xbb\xbf: hi\rdata:{"t":\rdata: "' + SAID + b'"}\r\r', [1, 4], "text/event-stream; charset=utf-8"),
    (
        b'data: {"t": "se\xc3\xb1or "}\n\r\ndata: {"t": "' + SAID[7:] + b'"}\r\n\nretry: 5',
        [1, 2],
        "text/event-stream",
    ),
    (b'{"t": "se\xc3\xb1or "}\r\n\n{"t": "' + SAID[7:] + b'"}', [1, 3, 7], "application/x-ndjson"),
    (b'{"t": "' + SAID + b'"}\n', [1, 2], "application/json"),
)
async def test_a_stream_may_be_cut_anywhere(given: tuple[bytes, list[int], str], tmp_path: Path) -> None:
    """A character, a line or an event that comes in two pieces is whole: one byte at a time, CR LF, a
    comment, and no line end at the end.
    """
    data, sizes, media_type = given
    for size in sizes:

        async def handle(request: web.Request, size: int = size) -> web.StreamResponse:
            reply = web.StreamResponse(headers={"content-type": media_type})
            await reply.prepare(request)
            for at in range(0, len(data), size):
                await reply.write(data[at : at + size])
            return reply

        async with serving(handle) as url:
            bot = Http(HttpOptions(kind="http", answer="t"), Setting(url, Limits(retries=0), tmp_path))
            watch = Watch(begin=lambda: None, final=lambda: True)
            reply = await bot.answer(Case(id="q", question="?", category="c"), None, 0, watch)
            await bot.close()
        assert SAID.decode() == reply.answer


def test_plain_text_events_are_joined_by_the_event_itself() -> None:
    """``@`` is the event: a bot that streams words and no JSON."""
    assert "In Lyon." == read("data: In \n\ndata: Lyon.\n\ndata: [DONE]\n\n", answer="@").answer


def test_ndjson_is_joined() -> None:
    """Whatever its media type says."""
    assert "In Lyon." == read('{"answer": "In "}\n{"answer": "Lyon."}\n\n{"done": true}\n').answer


def test_whole_json_of_several_lines_is_one_value() -> None:
    """A reply that is only printed prettily is no stream."""
    assert "x" == read('{\n "answer": "x"\n}\n').answer


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('data: {"answer": "In "}\n\ndata: {"error": "overloaded"}\n\n', "the stream holds an error: "),
        ('data: {"answer": "In "}\n\nevent: error\ndata: gone\n\n', "the stream holds an error: gone"),
        ('{"answer": "In "}\n{"error": {"code": 5}}\n', "the stream holds an error: "),
        ("data: [DONE]\n\n", "no text at 'answer' in the reply: an empty stream"),
        ('data: {"text": "x"}\n\ndata: {}\n\n', "and 1 more events; set target.answer"),
        ('{"answer": "In', "the reply is no JSON: "),
        ("[" * 100_000, "the reply is no JSON: "),
    ],
)
def test_a_stream_that_went_wrong_is_no_answer(text: str, message: str) -> None:
    """Half an answer is not graded, and an error is not taken for the end."""
    with pytest.raises(BadReply) as caught:
        read(text)
    assert message in caught.value.message


def test_ids_count_where_all_have_one() -> None:
    """Numbers are taken as text; one item without an id makes all of them nameless."""
    named = context_of([{"id": 7, "text": "a", "similarity": 0.5, "url": "u"}, {"id": "b", "text": "c"}])
    assert (["7", "b"], False, 0.5) == (named.ids, named.numbered, named.chunks[0].similarity)
    for items in (["a", "c"], [{"id": "7", "text": "a"}, "c"], [{"id": None, "text": "a"}]):
        found = context_of(items)
        assert found.numbered
        assert ["1", "2"][: len(items)] == found.ids
    with pytest.raises(BadReply, match="an id that is no text"):
        context_of([{"id": {}, "text": "a"}])


@pytest.mark.parametrize(
    ("expression", "may"),
    [
        ("sources", True),
        ("a.b[*].hit", True),
        ("sources[].{id: key, text: body}", True),
        ("sources[].{text: body}", False),
        ("a | [?score > `1`].{text: t, url: u}", False),
    ],
)
def test_an_expression_tells_when_there_can_be_no_ids(expression: str, may: bool) -> None:
    """Where it makes objects of other keys; anything else may have them."""
    assert may is may_have_ids(expression)


@given(TREES)
def test_a_shortened_value_fits_a_line(value: Any) -> None:
    """Whatever is in it."""
    assert len(shown(value)) <= 200
    assert "\n" not in shown(value)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"input": {"query": "{questoin}"}}, "did you mean 'question'?"),
        ({"input": "Please: {question}"}, "never filled within one"),
        ("hello", "the bot would be asked nothing"),
    ],
)
def test_a_body_that_never_sends_the_question_is_named(body: Any, said: str) -> None:
    """At load: else the bot answers nothing in particular, and every rate looks like one."""
    assert said in "; ".join(slot_faults(body))
    assert [] == slot_faults({"q": "{question}", "note": "left {alone}", "other": "{other}"})


def test_headers_that_no_request_can_hold_are_refused() -> None:
    """Without the value, which may be a key; space around one is left out: a file's last line ends."""
    wrong = {"Bad Name": "x", "X-Ü": "x", "": "x", "X-A": "kü", "X-B": "k\nX-C: d", "Content-Length": "4"}
    with pytest.raises(ValidationError) as caught:
        HttpOptions.model_validate({"kind": "http", "headers": wrong})
    assert set(wrong) == {error["loc"][1] for error in caught.value.errors()}
    made = HttpOptions.model_validate({"kind": "http", "headers": {"Authorization": "Bearer k\n"}})
    assert {"Authorization": "Bearer k"} == made.headers
