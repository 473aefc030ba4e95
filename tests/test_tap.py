"""The proxy between a bot and its model's server: which call belongs to which draw, what a bot is told."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web

from evalrun.cassette import Address, Cassette, Mode
from evalrun.errors import UserError
from evalrun.records import Exchange
from evalrun.tap import Tap, upstream_url
from evalrun.wires import output_of
from fakes.misbehaving import Resets, doing, drips
from fakes.model_servers import ACCESS, REGION, SECRET, BedrockServer
from fakes.servers import FakeModel, Json, scripted, serving

A, B = Address("a", 0), Address("b", 1)
SEEDS = {11: A, 22: B}


def chat(seed: int | None, text: str = "hi") -> Json:
    """The body of a model call."""
    options = {} if seed is None else {"seed": seed}
    return {"model": "m", "messages": [{"role": "user", "content": text}], "options": options}


@asynccontextmanager
async def tapped(
    upstream: str, path: Path | None = None, mode: Mode = "live", seconds: float = 30
) -> AsyncIterator[tuple[Tap, httpx.AsyncClient, list[Exchange]]]:
    """A tap before ``upstream``, a bot's client on it, and what it saw."""
    cassette, seen = Cassette(path, mode), list[Exchange]()
    tap = Tap(upstream, cassette, SEEDS, seen.append, timeout=seconds, concurrency=4)
    async with tap, httpx.AsyncClient(base_url=tap.url, trust_env=False) as client:
        yield tap, client, seen
    cassette.close()


async def test_a_call_belongs_to_the_draw_of_its_seed() -> None:
    """Two draws at once are told apart; what was seen of one is handed out once."""
    async with (
        serving(scripted([{"json": {"message": {"content": "x"}}}])) as url,
        tapped(url) as (tap, bot, _),
    ):
        await bot.post("/api/chat", json=chat(22))
        await bot.post("/api/chat", json=chat(11))
        assert [(22, "b", 1)] == [
            (line.request["options"]["seed"], line.case, line.draw) for line in tap.seen(B)
        ]
        assert () == tap.seen(B)
        assert 1 == len(tap.seen(A))


async def test_a_call_without_a_known_seed_belongs_to_the_current_draw_if_there_is_one() -> None:
    """A bot that passes no seed on is asked one draw at a time; with none current the call is nobody's."""
    reply = {"json": {"message": {"content": "x"}}}
    async with serving(scripted([reply])) as url, tapped(url) as (tap, bot, seen):
        await bot.post("/api/chat", json=chat(None))
        tap.current = A
        await bot.post("/api/chat", json=chat(None))
        await bot.post("/api/chat", json=chat(99))
        assert [None, "a", "a"] == [line.case for line in seen]
        assert 2 == len(tap.seen(A))


async def test_a_new_attempt_forgets_what_was_seen_before() -> None:
    """What an attempt saw proves nothing for the next."""
    reply = {"json": {"message": {"content": "x"}}}
    async with serving(scripted([reply])) as url, tapped(url) as (tap, bot, _):
        await bot.post("/api/chat", json=chat(11))
        tap.begin(A)
        assert () == tap.seen(A)


async def test_other_calls_pass_and_belong_to_nobody() -> None:
    """Embeddings and lists of models go through with their query, and prove nothing."""
    asked: list[str] = []

    async def handle(request: web.Request) -> web.Response:
        asked.append(f"{request.method} {request.path_qs}")
        return web.json_response({"ok": 1})

    async with serving(handle) as url, tapped(url) as (_, bot, seen):
        assert {"ok": 1} == (await bot.get("/api/tags?verbose=1")).json()
        assert {"ok": 1} == (await bot.post("/api/embed", json={"input": ["x"]})).json()
        assert [(None, None, None)] * 2 == [(line.case, line.draw, line.turn) for line in seen]
    assert ["GET /api/tags?verbose=1", "POST /api/embed"] == asked


async def test_the_raw_body_and_the_key_go_upstream_and_nothing_else_does() -> None:
    """The model's server gets the bytes that the bot sent, its authorization, and no other header of it."""
    got: list[Any] = []

    async def handle(request: web.Request) -> web.Response:
        got.append(
            (await request.read(), request.headers.get("authorization"), request.headers.get("x-mine"))
        )
        return web.json_response({"message": {"content": "x"}})

    raw = b'{"model": "m",\n  "keep_alive": null, "options": {"seed": 11}}'
    headers = {"authorization": "Bearer k", "x-mine": "1", "content-type": "application/json"}
    async with serving(handle) as url, tapped(url) as (_, bot, seen):
        await bot.post("/api/chat", content=raw, headers=headers)
    assert [(raw, "Bearer k", None)] == got
    assert {"model": "m", "options": {"seed": 11}} == seen[0].request
    assert "Bearer" not in json.dumps(seen[0].model_dump())


async def test_a_path_of_the_upstream_is_kept_and_is_no_part_of_a_recording(tmp_path: Path) -> None:
    """A server under /ollama gets its calls there; the recording is the same as of one without a path."""
    asked: list[str] = []

    async def handle(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.json_response({"message": {"content": "x"}})

    async with serving(handle) as url, tapped(f"{url}/ollama", tmp_path, "record") as (_, bot, seen):
        await bot.post("/api/chat", json=chat(11))
    assert ["/ollama/api/chat"] == asked
    assert ["/api/chat"] == [line.path for line in seen]
    async with tapped("http://elsewhere.invalid", tmp_path, "replay") as (_, bot, _seen):
        assert 200 == (await bot.post("/api/chat", json=chat(11))).status_code


async def test_a_miss_is_marked_and_belongs_to_its_draw(tmp_path: Path) -> None:
    """The bot is told 502 with a mark; the draw is final, and no other draw is touched by it."""
    async with tapped("http://elsewhere.invalid", tmp_path, "replay") as (tap, bot, seen):
        reply = await bot.post("/api/chat", json=chat(11))
        assert (502, "1") == (reply.status_code, reply.headers["x-evalrun-miss"])
        assert "miss" == reply.json()["evalrun"]
        assert [] == seen
        assert tap.missed(A) is not None
        assert tap.missed(B) is None
        await bot.post("/api/embed", json={"input": ["x"]})
        assert tap.missed(B) is not None


async def test_an_upstream_that_fails_is_a_bad_gateway() -> None:
    """No connection, no reply in time, no HTTP: the bot is told so, and its status and wait are passed on."""
    model = FakeModel(lambda body: "x").start()
    model.stop()
    async with tapped(model.url) as (_, bot, seen):
        reply = await bot.post("/api/chat", json=chat(11))
        assert 502 == reply.status_code
        assert "model server: " in reply.json()["error"]
    slow = FakeModel(lambda body: "x").start()
    slow.delay = 2
    async with tapped(slow.url, seconds=0.2) as (_, bot, _seen):
        assert 502 == (await bot.post("/api/chat", json=chat(11))).status_code
    slow.stop()
    busy = {"status": 503, "headers": {"retry-after": "7"}, "json": {"error": "busy"}}
    async with serving(scripted([busy])) as url, tapped(url) as (_, bot, _seen):
        reply = await bot.post("/api/chat", json=chat(11))
        assert (503, "7", "busy") == (reply.status_code, reply.headers["retry-after"], reply.json()["error"])
    assert [] == seen


async def test_a_reply_in_an_unknown_packing_is_told_to_the_bot(tmp_path: Path) -> None:
    """Nothing of it is stored; a request that the bot packed is read."""

    async def handle(request: web.Request) -> web.Response:
        got.append(await request.json())
        headers = {"content-encoding": "br"} if len(got) > 1 else {}
        return web.Response(body=b'{"message": {"content": "x"}}', headers=headers)

    got: list[Json] = []
    raw = gzip.compress(json.dumps(chat(11)).encode())
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    async with serving(handle) as url, tapped(url, tmp_path, "record") as (_, bot, seen):
        assert 200 == (await bot.post("/api/chat", content=raw, headers=headers)).status_code
        reply = await bot.post("/api/chat", json=chat(22))
    assert 502 == reply.status_code
    assert "packed as 'br'" in reply.json()["error"]
    assert [chat(11), chat(22)] == got
    assert 1 == len(seen) == len((tmp_path / "bot.jsonl").read_text().splitlines())


TOKEN = "a-token-of-the-tap-1"


async def test_beyond_loopback_only_a_call_with_the_token_is_let_in(tmp_path: Path) -> None:
    """As the first part of the path, or as a bearer; everything else is 403, counted and never forwarded."""

    async def handle(request: web.Request) -> web.Response:
        got.append((request.path_qs, request.headers.get("authorization")))
        return web.json_response({"message": {"content": "x"}})

    got: list[Any] = []
    key, bearer = {"authorization": "Bearer model-key"}, {"authorization": f"Bearer {TOKEN}"}
    cassette, seen = Cassette(tmp_path, "record"), list[Exchange]()
    async with serving(handle) as url, httpx.AsyncClient(trust_env=False) as bot:
        where: Any = {"bind": "127.0.0.2", "host": "bots.test", "token": TOKEN}
        tap = Tap(url, cassette, SEEDS, seen.append, timeout=30, concurrency=4, **where)

        async def status(path: str, headers: dict[str, str]) -> int:
            return (await bot.post(path, json=chat(11), headers=headers)).status_code

        async with tap:
            assert re.fullmatch(rf"http://bots\.test:\d+/{TOKEN}", tap.url)
            base = tap.url.replace("bots.test", "127.0.0.2")
            bare = base.removesuffix(f"/{TOKEN}")
            assert 200 == await status(f"{base}/api/chat?x=1", key)
            assert 200 == await status(f"{bare}/api/chat", bearer)
            assert 200 == await status(f"{base}/api/chat", bearer)
            for path in ("", "/", "/api/chat", f"/{TOKEN}x/api/chat", f"/api/chat?t={TOKEN}", f"//{TOKEN}/x"):
                assert 403 == await status(bare + path, key)
            assert 200 == await status(f"{base}/api/chat", {"host": "bots.test:80"})
            assert 403 == await status(f"{base}/api/chat", {"host": "elsewhere.test"})
            with pytest.raises(httpx.ConnectError):
                await bot.get(bare.replace("127.0.0.2", "127.0.0.1"))
        assert 6 == tap.refused
    cassette.close()
    assert [("/api/chat?x=1", "Bearer model-key"), *[("/api/chat", None)] * 3] == got
    assert {"/api/chat"} == {line.path for line in seen}
    assert TOKEN not in (tmp_path / "bot.jsonl").read_text() + (tmp_path / "source.json").read_text()


async def test_an_address_of_another_machine_cannot_be_listened_on() -> None:
    """Told with the key of the config."""
    live = Cassette(None, "live")
    tap = Tap("http://h", live, {}, lambda line: None, timeout=1, concurrency=1, bind="192.0.2.1")
    with pytest.raises(UserError, match=r"tap\.bind: cannot listen on 192\.0\.2\.1"):
        await tap.__aenter__()


async def test_it_listens_on_this_machine_only_and_takes_a_large_prompt() -> None:
    """The address is loopback; a prompt of two megabytes passes."""
    async with (
        serving(scripted([{"json": {"message": {"content": "x"}}}])) as url,
        tapped(url) as (tap, bot, _),
    ):
        assert tap.url.startswith("http://127.0.0.1:")
        assert 200 == (await bot.post("/api/chat", json=chat(11, "x" * 2_000_000))).status_code


async def test_a_version_in_the_upstream_and_in_the_call_is_written_once(tmp_path: Path) -> None:
    """A bot adds ``/v1`` or not, the upstream names it or not: the same call, the same line."""
    assert "http://h/v1/chat/completions" == upstream_url("http://h/v1", "/v1/chat/completions")
    assert "http://h/v1/chat/completions" == upstream_url("http://h/v1", "/chat/completions")
    assert "http://h/v1/chat/completions" == upstream_url("http://h", "/v1/chat/completions")
    assert "http://h/ollama/api/chat" == upstream_url("http://h/ollama", "/api/chat")
    reply = {"json": {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}}
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "seed": 22}
    keys = []
    async with serving(scripted([reply])) as url:
        for base, path in ((f"{url}/v1", "/v1/chat/completions"), (url, "/chat/completions")):
            async with tapped(base) as (tap, bot, _):
                await bot.post(path, json=body)
                keys += [(line.key, line.path, line.draw) for line in tap.seen(B)]
    assert [(keys[0][0], "/v1/chat/completions", 1)] * 2 == keys


async def test_a_call_signed_for_the_tap_is_signed_anew_for_bedrock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bot's signature holds the tap's host; the server checks its own. Streams come back whole."""
    boto3 = pytest.importorskip("boto3")
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    server = BedrockServer(lambda body: "I live in Graz.")
    asked = {
        "modelId": "eu.vendor.m-v1:0",
        "messages": [{"role": "user", "content": [{"text": "hi"}]}],
        "requestMetadata": {"seed": "22"},
    }

    def bot(url: str) -> list[str]:
        client = boto3.session.Session().client("bedrock-runtime", endpoint_url=url, region_name=REGION)
        whole = client.converse(**asked)["output"]["message"]["content"][0]["text"]
        events = client.converse_stream(**asked)["stream"]
        streamed = [
            event["contentBlockDelta"]["delta"]["text"] for event in events if "contentBlockDelta" in event
        ]
        return [whole, "".join(streamed)]

    try:
        async with tapped(server.start()) as (tap, _, _):
            said = await asyncio.to_thread(bot, tap.url)
            seen = tap.seen(B)
    finally:
        server.stop()
    assert ["I live in Graz."] * 2 == said == [output_of(line.path, line.reply).text for line in seen]
    assert ["stop", "stop"] == [line.finish for line in seen]
    assert not any(secret in line.model_dump_json() for line in seen for secret in (ACCESS, SECRET))


async def test_a_signed_call_without_the_extra_is_told_to_the_bot(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tap cannot sign; the bot hears why."""
    monkeypatch.setitem(sys.modules, "botocore", None)
    monkeypatch.delenv("AWS_BEARER_TOKEN_BEDROCK", raising=False)
    signed = "AWS4-HMAC-SHA256 Credential=A/20260101/eu-west-1/bedrock/aws4_request, SignedHeaders=host"
    async with tapped("http://127.0.0.1:9") as (_, bot, _):
        reply = await bot.post("/model/m/converse", json={}, headers={"authorization": signed})
    assert (502, "calling Bedrock needs boto3, which is not installed") == (
        reply.status_code,
        reply.json()["error"],
    )


# ---------------------------------------------------------------- a model server that misbehaves


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_the_upstream_may_be_an_ipv6_literal_with_a_path(host: str) -> None:
    """Its path comes before that of the call."""
    asked: list[str] = []

    async def handle(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.json_response({"message": {"content": "x"}})

    async with serving(handle, host) as url, tapped(f"{url}/ollama") as (_, bot, _):
        assert 200 == (await bot.post("/api/chat", json=chat(11))).status_code
    assert ["/ollama/api/chat"] == asked


async def test_a_model_that_drips_is_given_up_at_the_deadline() -> None:
    """The bot is told so, and it is no sign that nobody is there."""
    async with doing(drips) as url, tapped(url, seconds=0.3) as (tap, bot, seen):
        reply = await bot.post("/api/chat", json=chat(11))
        assert (502, "model server: no whole reply within 0.3 s") == (
            reply.status_code,
            reply.json()["error"],
        )
        assert not tap.upstream_gone
        assert [] == seen


async def test_it_is_known_whether_a_model_is_there() -> None:
    """Where its connections break, nobody is; after the next reply somebody is again."""
    async with doing(Resets(1)) as url, tapped(url) as (tap, bot, _):
        assert 502 == (await bot.post("/api/chat", json=chat(11))).status_code
        assert tap.upstream_gone
        assert 200 == (await bot.post("/api/chat", json=chat(11))).status_code
        assert not tap.upstream_gone


@pytest.mark.parametrize(
    ("status", "gone"), [(502, True), (503, True), (504, True), (500, False), (429, False), (404, False)]
)
async def test_a_gateway_may_say_that_no_model_is_there(status: int, gone: bool) -> None:
    """The bot gets its reply as it is; one that says when to come back is the model's own."""
    replies: list[dict[str, object]] = [
        {"status": status, "json": {}},
        {"status": status, "json": {}, "headers": {"retry-after": "0"}},
    ]
    async with serving(scripted(replies)) as url, tapped(url) as (tap, bot, _):
        assert status == (await bot.post("/api/chat", json=chat(11))).status_code
        assert gone == tap.upstream_gone
        assert status == (await bot.post("/api/chat", json=chat(11))).status_code
        assert not tap.upstream_gone


async def test_one_429_of_the_model_is_a_pause_for_the_whole_bot() -> None:
    """The bot is told of it, and what it asks meanwhile waits."""
    at: list[float] = []

    async def handle(request: web.Request) -> web.Response:
        at.append(time.monotonic())
        if len(at) == 1:
            return web.json_response({}, status=429, headers={"retry-after": "1"})
        return web.json_response({"message": {"content": "x"}})

    async with serving(handle) as url, tapped(url) as (_, bot, _):
        first = await bot.post("/api/chat", json=chat(11))
        assert (429, "1") == (first.status_code, first.headers["retry-after"])
        assert 200 == (await bot.post("/api/chat", json=chat(22))).status_code
    assert at[1] - at[0] >= 0.99


async def test_a_redirect_of_the_model_leads_a_bot_nowhere() -> None:
    """Neither the bot nor its key follows: the tap has one upstream."""
    script = [{"status": 307, "headers": {"location": "http://127.0.0.1:9/api/chat"}}]
    async with serving(scripted(script)) as url, tapped(url) as (_, bot, _):
        reply = await bot.post("/api/chat", json=chat(11), headers={"authorization": "Bearer k"})
    assert 502 == reply.status_code
    assert "another server gets nothing from here" in reply.json()["error"]
