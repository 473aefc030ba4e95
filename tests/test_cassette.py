"""Recorded exchanges: their keys, when one is replayed, recorded or refused, and what is never stored."""

from __future__ import annotations

import asyncio
import base64
import gc
import gzip
import json
import os
import re
import shutil
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web

from evalrun.cassette import (
    Address,
    Book,
    Cassette,
    CassetteTransport,
    Mode,
    RecordingMiss,
    Unstorable,
    addressed,
    difference,
    exchange_key,
)
from evalrun.errors import InputError, RecordingError
from evalrun.jsonl import packed
from evalrun.network import network
from evalrun.redaction import Redaction
from fakes.servers import Handler, Json, scripted, serving
from known import json_of, known

A0, A1, B0 = Address("a", 0), Address("a", 1), Address("b", 0)


class Refusing(httpx.AsyncBaseTransport):
    """Stands where the network would be and lets nobody through."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Never comes back."""
        raise AssertionError(f"a connection to {request.url} was tried")


class Desk:
    """One cassette with one transport, and a client on it."""

    def __init__(self, cassette: Cassette, book: Book, upstream: httpx.AsyncBaseTransport, url: str) -> None:
        self.cassette = cassette
        self.seen: list[Any] = []
        self.transport = CassetteTransport(cassette, book, upstream, self.seen.append)
        self.client = httpx.AsyncClient(transport=self.transport, base_url=url)

    async def ask(
        self, address: Address | None, body: Any, path: str = "/api/chat", **headers: str
    ) -> httpx.Response:
        """One request of an address."""
        with addressed(address):
            return await self.client.post(path, json=body, headers=headers)


@asynccontextmanager
async def desk(
    path: Path | None,
    mode: Mode,
    url: str = "http://model",
    book: Book = "bot",
    whole: bool = False,
    **options: Any,
) -> AsyncIterator[Desk]:
    """A cassette in ``mode``; it is closed at the end, and nothing but ``url`` is reached."""
    cassette = Cassette(path, mode, **options)
    upstream = Refusing() if mode == "replay" or url == "http://model" else network(url, 8)
    made = Desk(cassette, book, upstream, url)
    try:
        yield made
    finally:
        cassette.close(whole=whole)
        await made.client.aclose()


def chat(text: str, **options: Any) -> Json:
    """The body of a model call."""
    return {
        "model": "m",
        "messages": [{"role": "user", "content": text}],
        "stream": False,
        "options": options,
    }


def says(*texts: str) -> Handler:
    """A model server that says one text after the other."""
    return scripted([{"json": {"message": {"content": text}, "done_reason": "stop"}} for text in texts])


def said(response: httpx.Response) -> str:
    """What a model said."""
    return str(response.json()["message"]["content"])


def lines_of(path: Path, book: Book = "bot") -> list[Json]:
    """The lines of a book."""
    return [json.loads(line) for line in (path / f"{book}.jsonl").read_text("utf-8").split("\n") if line]


def names(path: Path) -> list[str]:
    """The files in a folder."""
    return sorted(file.name for file in path.iterdir())


# ---------------------------------------------------------------- keys


def test_the_key_is_the_digest_of_method_path_body_and_occurrence() -> None:
    """A golden vector: nulls and empty lists of the body are left out, the order of its keys is nothing."""
    body: Json = {"b": [], "model": "m", "a": None, "options": {"seed": 1, "stop": None}}
    golden = "sha256:fca2f693908ab3099b731c4e7f2635d6568a20dfe1c2dfd651a6a6575ac92efd"
    assert golden == exchange_key("POST", "/api/chat", body)
    assert golden != exchange_key("POST", "/api/chat", body, 1)


def test_what_is_ignored_changes_no_key() -> None:
    """A date in a prompt is blanked before the key is taken, wherever it stands."""
    ignore = [re.compile(r"\d{4}-\d\d-\d\d")]
    old, new = (
        exchange_key("POST", "/", chat(f"It is {day}."), 0, ignore) for day in ("2026-01-01", "2026-02-02")
    )
    assert old == new
    assert old != exchange_key("POST", "/", chat("It was 2026-01-01."), 0, ignore)


PARTS = json_of("ca-02-key-parts.json")


def with_parts(parts: Json) -> Json:
    """A request's body."""
    messages = [
        {"role": "system", "content": parts["system"]},
        {"role": "user", "content": parts["prompt"]},
        *parts.get("more", []),
    ]
    options = {key: parts[key] for key in ("temperature", "seed", "max_tokens", "top_p") if key in parts}
    return {"model": parts["model"], "messages": messages, "options": options}


@known(
    "CA-02",
    PARTS,
    {
        "base": PARTS["base"],
        "variants": [{"prompt": "P "}, {"prompt": "p"}, {"temperature": "0"}, {"seed": True}],
    },
    {
        "base": PARTS["base"] | {"prompt": "é"},
        "variants": [{"prompt": "e\u0301"}, {"more": [{"role": "user", "content": ""}]}, {"top_p": 0}],
    },
    {
        "base": PARTS["base"] | {"path": "/api/chat"},
        "variants": [{"path": "/v1/chat"}, {"path": "/api/generate"}, {"url": "http://[::1]:7/v1"}],
    },
)
async def test_each_part_of_a_request_is_in_the_key_and_the_host_is_not(given: Any, tmp_path: Path) -> None:
    """Another path, model, prompt or parameter is a miss; the same request to another host is a hit."""
    base = given["base"]
    path = base.get("path", "/api/chat")
    async with serving(says("first")) as url, desk(tmp_path, "record", url) as made:
        await made.ask(A0, with_parts(base), path)
    async with desk(tmp_path, "replay", base["url"].removesuffix("/v1")) as made:
        assert "first" == said(await made.ask(A0, with_parts(base), path))
    for variant in given["variants"]:
        host = variant.get("url", base["url"]).removesuffix("/v1")
        async with desk(tmp_path, "replay", host) as made:
            asking = made.ask(A0, with_parts(base | variant), variant.get("path", path))
            if "url" in variant:
                assert "first" == said(await asking)
            else:
                with pytest.raises(RecordingMiss):
                    await asking


# ---------------------------------------------------------------- replay and record


CA_01 = json_of("ca-01-draws.json")


@known(
    "CA-01",
    CA_01,
    {"row": {"question": ""}, "draws": 1, "server_in_order": ["A", "B"]},
    {"row": {"question": "Wer?"}, "draws": 4, "server_in_order": ["A", "A", "B", "A", "C"]},
)
async def test_draws_keep_their_replies_and_a_new_one_costs_one_call(given: Any, tmp_path: Path) -> None:
    """A call a draw when recorded; none when replayed, in the same places; one for a draw more."""
    body, draws, replies = chat(given["row"]["question"]), given["draws"], given["server_in_order"]
    async with serving(says(*replies)) as url:
        async with desk(tmp_path, "record", url) as made:
            cold = [said(await made.ask(Address("q1", draw), body)) for draw in range(draws)]
            assert draws == made.cassette.calls
        async with desk(tmp_path, "replay") as made:
            warm = [said(await made.ask(Address("q1", draw), body)) for draw in reversed(range(draws))]
            assert 0 == made.cassette.calls
        async with desk(tmp_path, "record", url) as made:
            more = [said(await made.ask(Address("q1", draw), body)) for draw in range(draws + 1)]
            assert 1 == made.cassette.calls
    assert replies[:draws] == cold == warm[::-1]
    assert replies[: draws + 1] == more


FINE: Json = {"status": 200, "json": {"answer": "fine"}}


@known(
    "CA-03",
    json_of("ca-03-errors-not-cached.json")["server_in_order"],
    [{"status": 500, "json": {"answer": "no"}}, {"status": 302}, {"status": 404, "body": "fine"}, FINE],
    [{"json": {"error": {"message": "overloaded", "code": 529}}}, {"json": {"error": None}}, FINE],
    [{"status": 408}, {"status": 425}, {"json": {"error": ""}}, {"status": 299, "json": {"answer": "fine"}}],
)
async def test_no_failure_is_stored(given: list[Json], tmp_path: Path) -> None:
    """Whatever is no 2xx, and a 2xx that is only an error, is passed on and forgotten; a reply is kept."""
    async with serving(scripted(given)) as url:
        for number, expected in enumerate(given, start=1):
            async with desk(tmp_path, "record", url) as made:
                reply = await made.ask(A0, chat("x"))
                assert 1 == made.cassette.calls
            assert expected.get("status", 200) == reply.status_code
            assert (number == len(given)) == (tmp_path / "bot.jsonl").exists()
    async with desk(tmp_path, "replay") as made:
        assert "fine" == (await made.ask(A0, chat("x"))).json()["answer"]


VC_03 = json_of("vc-03-sequence.json")
FAILED: Json = {"status": 503, "headers": {"retry-after": "0"}}


def answers(*texts: str) -> list[Json]:
    """Replies of a bot."""
    return [{"status": 200, "json": {"answer": text}} for text in texts]


@known(
    "VC-03",
    (VC_03["request"] | {"path": "/api/chat"}, VC_03["recorded"]),
    ({"path": "/v1/chat/completions", "json": {"question": "same"}}, [FAILED, FAILED, *answers("A")]),
    ({"path": "/api/generate", "json": []}, [FAILED, *answers("A", "A", "B", "A")]),
)
async def test_identical_requests_of_one_draw_are_told_apart_by_their_order(
    given: tuple[Json, list[Json]], tmp_path: Path
) -> None:
    """A failure is not stored; the replies come back in order, and a further one is a miss, not the last."""
    request, recorded = given
    replies = [one["json"]["answer"] for one in recorded if one["status"] == 200]
    async with serving(scripted(recorded)) as url, desk(tmp_path, "record", url) as made:
        for one in recorded[: -len(replies)]:
            assert one["status"] == (await made.ask(A0, request["json"], request["path"])).status_code
            made.transport.begin(A0)
        for _ in replies:
            await made.ask(A0, request["json"], request["path"])
    async with desk(tmp_path, "replay") as made:
        assert replies == [
            (await made.ask(A0, request["json"], request["path"])).json()["answer"] for _ in replies
        ]
        with pytest.raises(RecordingMiss, match="the same request, asked once more"):
            await made.ask(A0, request["json"], request["path"])


async def test_a_new_attempt_counts_identical_requests_from_the_start(tmp_path: Path) -> None:
    """A draw that is asked again gets the reply it got before."""
    async with serving(says("A", "B")) as url, desk(tmp_path, "record", url) as made:
        assert "A" == said(await made.ask(A0, chat("x")))
        made.transport.begin(A0)
        assert "A" == said(await made.ask(A0, chat("x")))
        assert "B" == said(await made.ask(A0, chat("x")))


VC_04 = json_of("vc-04-replay-miss.json")


@known(
    "VC-04",
    (VC_04["cassette"], VC_04["request"], []),
    ("a b/ü.json", {"path": "/api/chat", "json": chat("new")}, ["bot.jsonl", "judge.jsonl", "source.json"]),
    ("..", {"path": "/", "json": None}, ["judge.jsonl"]),
)
async def test_a_replay_without_its_line_connects_to_nothing_and_writes_nothing(
    given: tuple[str, Json, list[str]], tmp_path: Path
) -> None:
    """No folder, an empty one, or files without this line: an error that names file and request, no
    connection, and no file that was not there.
    """
    name, request, files = given
    missing = tmp_path / "gone" / name
    if name != "..":
        with pytest.raises(RecordingError, match=re.escape(f"{missing}: no recording here")):
            Cassette(missing, "replay")
    assert not missing.exists()
    folder = tmp_path / "there"
    folder.mkdir()
    for file in files:
        (folder / file).write_text("{}" if file == "source.json" else "")
    async with desk(folder, "replay") as made:
        with pytest.raises(RecordingMiss) as caught:
            await made.ask(A0, request["json"], request["path"])
    assert f"no recording of {request['path']}: never recorded" == caught.value.message
    assert "bot.jsonl" in caught.value.hint
    assert sorted(files) == sorted(path.name for path in folder.iterdir())


VC_02 = json_of("vc-02-gzip.json")["server"]


@known(
    "VC-02",
    (VC_02["headers"], gzip.compress(json.dumps(VC_02["json_gzipped"]).encode()), VC_02["json_gzipped"]),
    (
        VC_02["headers"] | {"content-encoding": "deflate"},
        zlib.compress('{"answer": "\u2028 \U0001f600"}'.encode()),
        {"answer": "\u2028 \U0001f600"},
    ),
    (
        {"content-type": "application/json; charset=utf-16", "content-encoding": "gzip"},
        gzip.compress('{"answer": "café"}'.encode("utf-16")),
        {"answer": "café"},
    ),
    (
        {"content-type": "application/json", "content-encoding": "identity"},
        b'{"answer": "caf\\u00e9"}',
        {"answer": "café"},
    ),
)
async def test_a_compressed_reply_is_stored_as_text_and_replayed_as_it_was(
    given: tuple[dict[str, str], bytes, Json], tmp_path: Path
) -> None:
    """What was unpacked once is not unpacked again, of whatever packing."""
    headers, data, value = given

    async def handle(request: web.Request) -> web.Response:
        return web.Response(body=data, headers=headers)

    async with serving(handle) as url, desk(tmp_path, "record", url) as made:
        live = await made.ask(A0, chat("x"))
    async with desk(tmp_path, "replay") as made:
        replayed = await made.ask(A0, chat("x"))
    assert value == live.json() == replayed.json()
    assert value == json.loads(lines_of(tmp_path)[0]["reply"])
    assert live.headers["content-type"] == replayed.headers["content-type"] == "application/json"
    assert str(len(live.content)) == live.headers["content-length"] == replayed.headers["content-length"]


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, br", "compress"])
async def test_a_reply_that_cannot_be_unpacked_is_not_stored(tmp_path: Path, encoding: str) -> None:
    """It was not asked for; its bytes are no text, and are told instead of written down."""

    async def handle(request: web.Request) -> web.Response:
        asked.append(request.headers["accept-encoding"])
        return web.Response(body=b"\x0b\x02\x80{}\x03", headers={"content-encoding": encoding})

    asked: list[str] = []
    async with serving(handle) as url:
        cassette = Cassette(tmp_path, "record")
        transport = CassetteTransport(cassette, "bot", network(url, 1))
        with pytest.raises(httpx.RemoteProtocolError, match=f"packed as '{encoding.split(', ')[-1]}'"):
            await transport.handle_async_request(httpx.Request("POST", f"{url}/api/chat", headers={}))
        await transport.aclose()
        cassette.close()
    assert ["gzip, deflate"] == asked
    assert [] == names(tmp_path)


async def test_a_deflated_reply_is_stored_as_text(tmp_path: Path) -> None:
    """As one that is packed by gzip."""

    async def handle(request: web.Request) -> web.Response:
        return web.Response(body=zlib.compress(b'{"a": 1}'), headers={"content-encoding": "deflate"})

    async with serving(handle) as url, desk(tmp_path, "record", url) as made:
        assert {"a": 1} == (await made.ask(A0, chat("x"))).json()
    assert ['{"a": 1}'] == [line["reply"] for line in lines_of(tmp_path)]


async def test_a_reply_in_another_encoding_keeps_its_letters(tmp_path: Path) -> None:
    """Latin-1 from the server is UTF-8 in the file and towards the bot, which is told so or told nothing."""

    async def handle(request: web.Request) -> web.Response:
        return web.Response(
            body="é".encode("latin-1"), headers={"content-type": "text/plain; charset=latin-1"}
        )

    async with serving(handle) as url, desk(tmp_path, "record", url) as made:
        assert "é" == (await made.ask(A0, chat("x"))).text
    async with desk(tmp_path, "replay") as made:
        assert "é" == (await made.ask(A0, chat("x"))).text


KEY = "FAKE-KEY-1111"


def with_headers(**headers: str) -> list[Json]:
    """Two requests that carry a key in these headers."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return [{"path": "/ask", "headers": named, "json": {"question": text}} for text in ("a", "b")]


@known(
    "VC-01",
    json_of("vc-01-header-secret.json")["requests"],
    with_headers(
        Cookie=f"session={KEY}", Proxy_Authorization=f"Basic {base64.b64encode(KEY.encode()).decode()}"
    ),
    with_headers(X_Anything=KEY, Referer=f"http://u:{KEY}@h/", User_Agent=f"bot/{KEY}"),
)
async def test_no_header_reaches_the_file(given: list[Json], tmp_path: Path) -> None:
    """A key sent in a header is in no file: not when recorded, added to, or when lines are dropped."""

    def clean() -> bool:
        data = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        texts = (KEY.encode(), base64.b64encode(KEY.encode())[:-4], b"Bearer", b"127.0.0.1")
        return bool(data) and not any(text in data for text in texts)

    async def send(made: Desk, number: int) -> httpx.Response:
        request = given[number]
        address = (A0, B0)[number]
        return await made.ask(address, request["json"], request["path"], **request["headers"])

    async with serving(says("A", "B", "C")) as url:
        async with desk(tmp_path, "record", url) as made:
            await send(made, 0)
        assert clean()
        async with desk(tmp_path, "record", url) as made:
            await send(made, 0)
            await send(made, 1)
        assert clean()
        async with desk(tmp_path, "record", url, refresh=True) as made:
            await made.ask(A0, {"question": "c"}, "/api/chat", **given[0]["headers"])
            await send(made, 1)
        assert clean()
    async with desk(tmp_path, "replay") as made:
        assert "B" == said(await send(made, 1))


async def test_a_key_that_a_server_repeats_is_hidden(tmp_path: Path) -> None:
    """VC-01: not in a reply, not in a request, not after a rewrite; the replay matches without it."""
    secret = "FAKE-KEY-1111"
    rules = Redaction(secrets=(secret,))
    body = chat(f"my key is {secret}")
    async with serving(says(f"you sent {secret}", "B")) as url:
        async with desk(tmp_path, "record", url, redaction=rules) as made:
            assert "you sent [hidden]" == said(await made.ask(A0, body))
        async with desk(tmp_path, "record", url, redaction=rules) as made:
            await made.ask(A0, body)
            await made.ask(B0, chat("another"))
    assert not any(secret in (tmp_path / name).read_text() for name in names(tmp_path))
    async with desk(tmp_path, "replay", redaction=rules) as made:
        assert "you sent [hidden]" == said(await made.ask(A0, body))


# ---------------------------------------------------------------- what is taken out of replies

DATUM = Redaction((re.compile("Jane Doe"),))


async def test_what_is_redacted_reads_the_same_when_recorded_and_replayed(tmp_path: Path) -> None:
    """Who asks never sees what is not stored; the line counts the places; the key is that of the request."""
    async with (
        serving(says("Jane Doe and Jane Doe")) as url,
        desk(tmp_path, "record", url, redaction=DATUM) as made,
    ):
        first = said(await made.ask(A0, chat("x")))
        assert first == json.loads(made.seen[0].reply)["message"]["content"]
    async with desk(tmp_path, "replay", redaction=DATUM) as made:
        assert first == said(await made.ask(A0, chat("x"))) == "[redacted] and [redacted]"
    assert "Jane" not in (tmp_path / "bot.jsonl").read_text("utf-8")
    assert [2] == [line["redacted"] for line in lines_of(tmp_path)]


async def test_a_pattern_that_comes_later_takes_hold_at_once(tmp_path: Path) -> None:
    """A replay reads through it; the next recording writes what it left, and asks nobody for it."""
    async with serving(says("Jane Doe")) as url, desk(tmp_path, "record", url) as made:
        await made.ask(A0, chat("x"))
    async with desk(tmp_path, "replay", redaction=DATUM) as made:
        assert "[redacted]" == said(await made.ask(A0, chat("x")))
    assert "Jane" in (tmp_path / "bot.jsonl").read_text("utf-8")
    async with desk(tmp_path, "record", redaction=DATUM) as made:
        await made.ask(A0, chat("x"))
    assert "Jane" not in (tmp_path / "bot.jsonl").read_text("utf-8")


async def test_a_reply_that_cannot_be_redacted_is_not_stored(tmp_path: Path) -> None:
    """It is refused with the reason, and counted."""
    replies = [{"json": {"Jane Doe": "rows"}}]
    async with (
        serving(scripted(replies)) as url,
        desk(tmp_path, "record", url, redaction=DATUM) as made,
    ):
        with pytest.raises(Unstorable, match="name of a field"):
            await made.ask(A0, chat("x"))
        assert 1 == len(made.cassette.refused)
    assert not (tmp_path / "bot.jsonl").exists()


# ---------------------------------------------------------------- packed


async def test_a_packed_cassette_replays_and_can_be_unpacked_again(tmp_path: Path) -> None:
    """Nothing is left beside it; the same lines are the same bytes, without name and time."""
    async with serving(says("A", "B")) as url, desk(tmp_path, "record", url, compress=True) as made:
        await made.ask(A0, chat("x"))
        await made.ask(B0, chat("y"))
    data = (tmp_path / "bot.jsonl.gz").read_bytes()
    assert ["bot.jsonl.gz", "source.json"] == names(tmp_path)
    async with desk(tmp_path, "replay") as made:
        assert "B" == said(await made.ask(B0, chat("y")))
    async with desk(tmp_path, "record", compress=True) as made:
        await made.ask(A0, chat("x"))
    assert data == (tmp_path / "bot.jsonl.gz").read_bytes() == packed(gzip.decompress(data))
    assert b"\x1f\x8b\x08\x00\x00\x00\x00\x00" == data[:8]
    async with desk(tmp_path, "record") as made:
        assert "A" == said(await made.ask(A0, chat("x")))
    assert ["bot.jsonl", "source.json"] == names(tmp_path)
    assert gzip.decompress(data) == (tmp_path / "bot.jsonl").read_bytes()


async def test_a_packed_recording_that_was_killed_keeps_every_whole_line(tmp_path: Path) -> None:
    """What comes is written plain beside it, and is packed at the next end; half a line is dropped."""
    async with serving(says("A")) as url, desk(tmp_path, "record", url, compress=True) as made:
        await made.ask(A0, chat("x"))
    async with serving(says("B")) as url:
        cassette = Cassette(tmp_path, "record", compress=True)
        killed = Desk(cassette, "bot", network(url, 8), url)
        await killed.ask(B0, chat("y"))
        await killed.client.aclose()
        del cassette, killed
        gc.collect()  # a lock ends with the process that had it
    with (tmp_path / "bot.jsonl").open("ab") as file:
        file.write(b'{"torn')
    async with desk(tmp_path, "replay") as made:
        assert ("A", "B") == (said(await made.ask(A0, chat("x"))), said(await made.ask(B0, chat("y"))))
    async with desk(tmp_path, "record", compress=True) as made:
        await made.ask(A0, chat("x"))
    assert ["bot.jsonl.gz", "source.json"] == names(tmp_path)
    assert 2 == len(gzip.decompress((tmp_path / "bot.jsonl.gz").read_bytes()).splitlines())


def test_a_packed_cassette_that_is_cut_off_is_told(tmp_path: Path) -> None:
    """With its name, not with a traceback."""
    (tmp_path / "bot.jsonl.gz").write_bytes(packed(b"{}\n" * 100)[:-5])
    with pytest.raises(InputError, match=r"bot.jsonl.gz: is cut off"):
        Cassette(tmp_path, "replay")


async def test_a_live_run_stores_nothing() -> None:
    """Every call goes upstream, and there is no folder."""
    async with serving(says("A", "B")) as url, desk(None, "live", url) as made:
        assert ["A", "B"] == [said(await made.ask(A0, chat("x"))) for _ in range(2)]
        assert 2 == made.cassette.calls


def test_without_a_cassette_there_is_only_live() -> None:
    """Replay and record need a place to read from or write to."""
    with pytest.raises(RecordingError, match="no cassette is configured"):
        Cassette(None, "record")


# ---------------------------------------------------------------- stale lines


async def test_a_changed_request_is_stale_and_says_what_changed(tmp_path: Path) -> None:
    """The difference is that to the draw's own recording, in the words of the prompt."""
    async with serving(says("A")) as url, desk(tmp_path, "record", url) as made:
        await made.ask(A0, chat("I live in Graz, near the river.") | {"tools": None, "images": []})
    async with desk(tmp_path, "replay") as made:
        with pytest.raises(RecordingMiss) as caught:
            await made.ask(A0, chat("I live in Linz, near the river.") | {"tools": None, "images": []})
        with pytest.raises(RecordingMiss, match=r"request fields: options\.seed"):
            await made.ask(A0, chat("I live in Graz, near the river.", seed=4) | {"tools": None})
    assert caught.value.miss.stale
    assert "prompt message 1: 'I live in Graz, near the river.' became" in caught.value.message
    assert [A0, A0] == [miss.address for miss in made.cassette.misses]


async def test_recording_refuses_a_stale_draw_and_overwrites_nothing(tmp_path: Path) -> None:
    """Without leave to refresh, a changed draw is not asked for; one without a line is."""
    async with serving(says("A", "B")) as url:
        async with desk(tmp_path, "record", url) as made:
            await made.ask(A0, chat("old"))
        before = lines_of(tmp_path)
        async with desk(tmp_path, "record", url) as made:
            with pytest.raises(RecordingMiss):
                await made.ask(A0, chat("new"))
            assert "B" == said(await made.ask(A1, chat("new")))
    assert before == [line for line in lines_of(tmp_path) if line.get("draw") != 1]


async def test_a_draw_of_several_calls_is_recorded_whole(tmp_path: Path) -> None:
    """A second, other call of a draw is not stale because of the first; nor where only the first is there."""
    async with serving(says("A", "B")) as url:
        async with desk(tmp_path, "record", url) as made:
            await made.ask(A0, chat("rewrite the question"))
        async with desk(tmp_path, "record", url) as made:
            assert "A" == said(await made.ask(A0, chat("rewrite the question")))
            assert "B" == said(await made.ask(A0, chat("answer it")))
    assert 2 == len(lines_of(tmp_path))


async def test_a_refresh_replaces_the_lines_of_its_draw_and_no_other(tmp_path: Path) -> None:
    """The stale line goes, the new one stands in its place; lines not asked for stay as they are."""
    async with serving(says("A", "B", "C")) as url:
        async with desk(tmp_path, "record", url) as made:
            await made.ask(A0, chat("old"))
            await made.ask(B0, chat("same"))
        before = (tmp_path / "bot.jsonl").read_bytes().splitlines()
        async with desk(tmp_path, "record", url, refresh=True) as made:
            assert "C" == said(await made.ask(A0, chat("new")))
    after = (tmp_path / "bot.jsonl").read_bytes().splitlines()
    assert before[1] == after[1]
    assert ["C", "B"] == [json.loads(json.loads(line)["reply"])["message"]["content"] for line in after]


async def test_an_interrupted_refresh_loses_no_verdict(tmp_path: Path) -> None:
    """Verdicts go only when every answer was judged anew: until then they may still be needed."""
    async with serving(says("A", "verdict", "B", "verdict on B")) as url:
        async with desk(tmp_path, "record", url) as made:
            await made.ask(A0, chat("q"))
        async with desk(tmp_path, "record", url, book="judge") as made:
            await made.ask(A0, chat("judge A"))
        async with desk(tmp_path, "record", url, refresh=True) as made:
            await made.ask(A0, chat("q, changed"))
        assert 1 == len(lines_of(tmp_path, "judge"))
        async with desk(tmp_path, "record", url, book="judge", refresh=True, whole=True) as made:
            await made.ask(A0, chat("judge B"))
    assert ["verdict on B"] == [
        json.loads(line["reply"])["message"]["content"] for line in lines_of(tmp_path, "judge")
    ]


async def test_calls_that_are_no_generations_are_found_by_their_key_alone(tmp_path: Path) -> None:
    """They belong to no draw, repeats share one line, they come first in the file and need no second call."""
    body = {"input": ["x"]}
    async with serving(scripted([{"json": {"embeddings": [[1]]}}])) as url:
        async with desk(tmp_path, "record", url) as made:
            await made.ask(B0, chat("q"))
            await made.ask(A0, body, "/api/embed")
            await made.ask(A1, body, "/api/embed")
            assert 2 == made.cassette.calls
        async with desk(tmp_path, "record", url, refresh=True) as made:
            await made.ask(A0, chat("new"))
            await made.ask(A0, {"input": ["y"]}, "/api/embed")
    assert [None, None, "a", "b"] == [line.get("case") for line in lines_of(tmp_path)]
    async with desk(tmp_path, "replay") as made:
        assert 200 == (await made.ask(None, body, "/api/embed")).status_code


async def test_what_is_ignored_is_no_difference_either(tmp_path: Path) -> None:
    """A date that is blanked in the key is not named as what changed."""
    ignore = [re.compile(r"\d{4}-\d\d-\d\d")]
    async with serving(says("A")) as url, desk(tmp_path, "record", url, ignore=ignore) as made:
        await made.ask(A0, chat("2026-01-01. I row."))
    async with desk(tmp_path, "replay", ignore=ignore) as made:
        assert "A" == said(await made.ask(A0, chat("2026-03-03. I row.")))
        with pytest.raises(RecordingMiss) as caught:
            await made.ask(A0, chat("2026-03-03. I run."))
    assert "'. I row.' became '. I run.'" in caught.value.message


def test_the_difference_is_told_in_one_line() -> None:
    """A change deep in a long prompt is shown with a few words around it; a change of form is named."""
    old, new = "x" * 500 + " Graz " + "y" * 500, "x" * 500 + " Linz " + "y" * 500
    told = difference("/api/chat", chat(old), chat(new))
    assert len(told) < 320
    assert "Graz" in told
    assert "Linz" in told
    two = {"messages": [*chat("a")["messages"], *chat("b")["messages"]]}
    assert "2 prompt messages instead of 1" == difference("/api/chat", chat("a"), two)
    assert "request fields: model, options.seed" == difference(
        "/api/chat", chat("a"), chat("a", seed=1) | {"model": "n"}
    )


# ---------------------------------------------------------------- the judge's book


async def test_equal_bodies_share_one_verdict_under_the_smallest_draw(tmp_path: Path) -> None:
    """One call for all that ask the same, at once or later; the line is that of (a, 0), who came later."""
    asked = 0

    async def handle(request: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0.02)
        return web.json_response({"message": {"content": f"verdict {asked}"}})

    async with serving(handle) as url, desk(tmp_path, "record", url, book="judge") as made:
        replies = await asyncio.gather(*(made.ask(address, chat("judge")) for address in (B0, A1, A0)))
        await made.ask(Address("c", 0), chat("judge"))
    assert {"verdict 1"} == {said(reply) for reply in replies}
    assert 1 == asked
    assert [("a", 0)] == [(line["case"], line["draw"]) for line in lines_of(tmp_path, "judge")]
    async with desk(tmp_path, "replay", book="judge") as made:
        assert "verdict 1" == said(await made.ask(B0, chat("judge")))
        assert 1 == len(made.seen)


# ---------------------------------------------------------------- files


async def test_a_torn_last_line_is_dropped_and_made_again(tmp_path: Path) -> None:
    """Half a line at the end is no line: a replay misses it, a recording fills it in."""
    async with serving(says("A", "B", "B again")) as url:
        async with desk(tmp_path, "record", url) as made:
            await made.ask(A0, chat("x"))
            await made.ask(A1, chat("x"))
        path = tmp_path / "bot.jsonl"
        path.write_bytes(path.read_bytes()[:-20])
        async with desk(tmp_path, "replay") as made:
            assert "A" == said(await made.ask(A0, chat("x")))
            with pytest.raises(RecordingMiss):
                await made.ask(A1, chat("x"))
        async with desk(tmp_path, "record", url) as made:
            assert ["A", "B again"] == [said(await made.ask(address, chat("x"))) for address in (A0, A1)]
            assert 1 == made.cassette.calls
    assert [0, 1] == [line.get("draw") for line in lines_of(tmp_path)]


async def test_a_killed_recording_is_put_in_order_by_the_next_one(tmp_path: Path) -> None:
    """Lines that were left as they came are sorted even where nothing new is asked for."""
    async with serving(says("x")) as url:
        async with desk(tmp_path, "record", url) as made:
            for address in (A0, A1, B0):
                await made.ask(address, chat("x"))
        path = tmp_path / "bot.jsonl"
        sealed = path.read_bytes()
        path.write_bytes(b"".join(reversed(sealed.splitlines(keepends=True))))
        (tmp_path / "source.json").unlink()
        async with desk(tmp_path, "record", url) as made:
            await made.ask(A0, chat("x"))
            assert 0 == made.cassette.calls
    assert sealed == path.read_bytes()
    assert (tmp_path / "source.json").is_file()


async def test_lines_are_sorted_whatever_the_order_they_came_in(tmp_path: Path) -> None:
    """Case, draw, turn, key: so that a diff shows which answers changed."""
    addresses = [B0, A1, Address("a", 10), A0]
    async with serving(says("x")) as url, desk(tmp_path, "record", url) as made:
        for address in addresses:
            await made.ask(address, chat("x"))
    found = [(line["case"], line["draw"]) for line in lines_of(tmp_path)]
    assert [("a", 0), ("a", 1), ("a", 10), ("b", 0)] == found


async def test_the_source_says_who_answered_and_when(tmp_path: Path) -> None:
    """Model, parameters without the seed, what the config tells of the server, first and last day."""
    about = {"bot": {"sha256": "abc"}}
    async with serving(says("x")) as url, desk(tmp_path, "record", url, about=about) as made:
        await made.ask(A0, chat("x", seed=5, temperature=0.7))
    source = json.loads((tmp_path / "source.json").read_text("utf-8"))["sources"]["bot"]
    assert "m" == source["model"]
    assert {"temperature": 0.7} == source["parameters"]
    assert {"sha256": "abc"} == source["facts"]
    read = Cassette(tmp_path, "replay")
    assert tuple(source["recorded"]) == read.recorded
    assert "abc" == read.fact("bot", "sha256")
    assert None is read.fact("judge", "sha256")


def test_files_that_are_no_cassette_are_named(tmp_path: Path) -> None:
    """Every broken line is told with its number, a broken source file by its name in one line; a folder or a
    pipe in the place of a book is none.
    """
    book = tmp_path / "bot.jsonl"
    book.write_text('{"case": 1}\n{}\n')
    with pytest.raises(InputError, match=r"bot\.jsonl:1: not a line of a recording") as caught:
        Cassette(tmp_path, "replay")
    assert [f"{book}:1", f"{book}:2"] == [problem.where for problem in caught.value.problems]
    book.unlink()
    for make in (Path.mkdir, os.mkfifo):
        make(book)
        with pytest.raises(InputError, match=r"bot\.jsonl: is no file"):
            Cassette(tmp_path, "replay")
        shutil.rmtree(book) if book.is_dir() else book.unlink()
    (tmp_path / "source.json").write_text("[]")
    with pytest.raises(InputError, match=r"source\.json: not a cassette's source\.json: Input") as caught:
        Cassette(tmp_path, "replay")
    assert "pydantic" not in str(caught.value)


def test_nothing_is_asked_for_a_book_that_is_a_symbolic_link(tmp_path: Path) -> None:
    """It is not written through, so every reply would be lost; it may be replayed."""
    (tmp_path / "elsewhere.jsonl").touch()
    (tmp_path / "bot.jsonl").symlink_to("elsewhere.jsonl")
    with pytest.raises(InputError, match=r"bot\.jsonl: is a symbolic link"):
        Cassette(tmp_path, "record")
    assert "replay" == Cassette(tmp_path, "replay").mode


async def test_a_seconds_estimate_comes_from_the_recording(tmp_path: Path) -> None:
    """What a refresh costs is the mean of what the recorded calls took; embeddings are not counted."""
    async with serving(says("x")) as url, desk(tmp_path, "record", url) as made:
        assert None is made.cassette.seconds_of("bot")
        await made.ask(None, {"input": []}, "/api/embed")
        assert None is made.cassette.seconds_of("bot")
        await made.ask(A0, chat("x"))
        assert made.seen[-1].seconds == made.cassette.seconds_of("bot")
