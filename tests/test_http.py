"""One client per service: URLs, proxies, deadlines, retries and waits."""

from __future__ import annotations

import asyncio
import email.utils
import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web

from evalrun.errors import UnavailableError
from evalrun.http import Limits, Service, Watch, is_loopback, join_url, proxy_of, retry_after
from fakes.servers import Json, scripted, serving

CASES = Path(__file__).parent / "cases"
QUICK = Limits(concurrency=4, timeout=60, retries=0)


def case(name: str) -> Any:
    """A case file."""
    return json.loads((CASES / name).read_text("utf-8"))


async def ok(request: web.Request) -> web.Response:
    """Answers everything."""
    return web.json_response({"answer": "ok"})


async def nobody(port_of: str = "127.0.0.1") -> str:
    """A URL where nobody listens any more."""
    async with serving(ok, port_of) as url:
        return url


# ---------------------------------------------------------------- addresses


@pytest.mark.parametrize("known", case("nw-04-base-urls.json")["cases"])
def test_a_path_is_joined_to_a_base_with_one_slash(known: Json) -> None:
    """NW-04: a slash at the end changes nothing, a path of the base is kept, and none is made up."""
    version = "" if known["base"].rstrip("/").endswith(("//h:1/v1", "/api/v1")) else "/v1"
    path = version + case("nw-04-base-urls.json")["chat_path"]
    assert known["url"] == join_url(known["base"], path)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:1/x", True),
        ("http://127.8.9.1", True),
        ("http://[::1]:8/", True),
        ("http://localhost", True),
        ("http://bot.localhost:1", True),
        ("http://localhost.example.org", False),
        ("http://10.0.0.1", False),
        ("http://bot.example.org", False),
    ],
)
def test_loopback_is_known_by_address_and_by_name(url: str, expected: bool) -> None:
    """Only this machine counts as this machine."""
    assert expected == is_loopback(url)


async def test_a_bad_status_is_returned_and_a_dead_port_names_the_url() -> None:
    """A status is the caller's to judge; no connection is an error that says where."""
    async with serving(scripted([{"status": 404, "body": "no"}])) as url, Service("bot", url, QUICK) as bot:
        assert 404 == (await bot.call("GET", "/ask")).status_code
        assert f"{url}/ask" == bot.shown("/ask")
    url = await nobody()
    async with Service("the bot", url, QUICK) as bot:
        with pytest.raises(UnavailableError) as caught:
            await bot.call("POST", "/ask", {})
    assert f"the bot: {url}/ask: " in caught.value.message


async def test_the_port_of_a_launched_bot_is_in_no_message() -> None:
    """Its port is another one in each run, and messages stand in files that must be the same bytes."""
    url = await nobody()
    async with Service("the bot", url, QUICK, launched=True) as bot:
        with pytest.raises(UnavailableError) as caught:
            await bot.call("POST", "/ask", {})
    assert "the bot: /ask: no connection, or it broke off" == caught.value.message
    assert url in caught.value.hint
    assert "/ask" == bot.shown("/ask")


# ---------------------------------------------------------------- the network


@pytest.mark.parametrize("number", [0, 1, 2])
async def test_this_machine_is_reached_without_a_proxy(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """NW-01: a proxy of the environment catches no call to 127.0.0.1, localhost or [::1]."""
    known = case("nw-01-proxy.json")
    for name, value in known["env"].items():
        monkeypatch.setenv(name, value)
    host = "::1" if "::1" in known["urls"][number] else "127.0.0.1"
    async with serving(ok, host) as url:
        base = known["urls"][number].format(port=url.rpartition(":")[2]).removesuffix("/ask")
        async with Service("bot", base, QUICK) as bot:
            assert 200 == (await bot.call("POST", "/ask", {})).status_code


@pytest.mark.filterwarnings("ignore:.*proxy_auth:DeprecationWarning", "ignore:BasicAuth:DeprecationWarning")
async def test_another_host_is_reached_through_the_proxy_and_the_error_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """NW-01: the proxy is used for others; where it does not answer, it is named, without its password."""
    asked: list[str] = []

    async def proxy(request: web.Request) -> web.Response:
        asked.append(str(request.url))
        return web.json_response({"answer": "from the proxy"})

    async with serving(proxy) as url:
        monkeypatch.setenv("HTTP_PROXY", url)
        async with Service("bot", "http://bot.example.org:81", QUICK) as bot:
            assert "from the proxy" == (await bot.call("GET", "/ask")).json()["answer"]
        assert ["http://bot.example.org:81/ask"] == asked
    port = url.rpartition(":")[2]
    monkeypatch.setenv("HTTP_PROXY", f"http://me:secret@127.0.0.1:{port}")
    async with Service("bot", "http://bot.example.org:81", QUICK) as bot:
        with pytest.raises(UnavailableError) as caught:
            await bot.call("GET", "/ask")
    assert f"http://bot.example.org:81/ask through the proxy 127.0.0.1:{port}: " in str(caught.value)
    assert "secret" not in str(caught.value)


def test_the_environment_names_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for all kinds of URL is taken too, and hosts of NO_PROXY are left out."""
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ALL_PROXY", "http://p:1")
    monkeypatch.setenv("NO_PROXY", "inside.example.org")
    assert "http://p:1" == proxy_of("http://bot.example.org")
    assert None is proxy_of("http://inside.example.org")
    assert None is proxy_of("http://127.0.0.1:8000")


async def test_an_unknown_kind_of_proxy_stops_remote_calls_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """NW-02: this machine is reached all the same; elsewhere one line says which kind cannot be used."""
    monkeypatch.setenv("ALL_PROXY", case("nw-02-socks5h.json")["env"]["ALL_PROXY"])
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with serving(ok) as url, Service("bot", url, QUICK) as bot:
        assert 200 == (await bot.call("GET", "/ask")).status_code
    with pytest.raises(UnavailableError, match="socks5h"):
        Service("bot", "http://bot.example.org", QUICK)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_localhost_is_found_on_either_address(host: str) -> None:
    """NW-03: a server that listens on one kind of address only is reached by name."""
    async with serving(ok, host) as url:
        base = case("nw-03-localhost.json")["url"].format(port=url.rpartition(":")[2]).removesuffix("/ask")
        async with Service("bot", base, QUICK) as bot:
            assert 200 == (await bot.call("POST", "/ask", {})).status_code


async def test_localhost_without_a_server_names_what_was_tried() -> None:
    """NW-03: the error names the host and port that were tried."""
    port = (await nobody()).rpartition(":")[2]
    async with Service("bot", f"http://localhost:{port}", QUICK) as bot:
        with pytest.raises(UnavailableError) as caught:
            await bot.call("POST", "/ask", {})
    assert f"localhost:{port}" in caught.value.message
    assert "127.0.0.1" in caught.value.message


async def test_no_cookie_goes_from_one_draw_to_the_next() -> None:
    """A bot that keeps its conversations by cookie gets a new one with each call."""
    got: list[str | None] = []

    async def handle(request: web.Request) -> web.Response:
        got.append(request.headers.get("cookie"))
        response = web.json_response({})
        response.set_cookie("session", "1")
        return response

    async with serving(handle) as url:
        base = url.replace("127.0.0.1", "localhost")
        for address in (url, base):
            async with Service("bot", address, QUICK) as bot:
                await bot.call("POST", "/ask", {})
                await bot.call("POST", "/ask", {})
    assert [None] * 4 == got


async def test_what_is_no_http_is_an_error_of_the_service() -> None:
    """A server that speaks something else gives an error of this service, not a fault of ours."""

    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-babble\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(babble, "127.0.0.1", 0)
    async with server, Service("bot", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", QUICK) as bot:
        with pytest.raises(UnavailableError):
            await bot.call("GET", "/ask")


async def test_a_broken_encoding_is_an_error_of_the_service() -> None:
    """A body that is not what its header says is no reply."""
    reply = {"headers": {"content-encoding": "gzip"}, "body": "plain"}
    async with serving(scripted([reply])) as url, Service("bot", url, QUICK) as bot:
        with pytest.raises(UnavailableError):
            await bot.call("GET", "/ask")


# ---------------------------------------------------------------- retries and deadlines


def response(**headers: str) -> httpx.Response:
    """A reply with these headers."""
    return httpx.Response(429, headers={name.replace("_", "-"): value for name, value in headers.items()})


def test_the_wait_is_read_in_both_forms_and_nonsense_is_no_wait() -> None:
    """Seconds, or a date; a date that is gone is no wait at all."""
    assert 7.0 == retry_after(response(retry_after="7"))
    later = retry_after(response(retry_after=email.utils.formatdate(time.time() + 30, usegmt=True)))
    assert later is not None
    assert 28 < later <= 30
    assert 0.0 == retry_after(response(retry_after="Wed, 21 Oct 2015 07:28:00 GMT"))
    for text in ("", "soon", "²", "Wed, 99 Oct 99999 07:28:00 GMT"):
        assert retry_after(httpx.Response(429, headers={b"retry-after": text.encode("latin-1")})) is None


async def test_a_wait_given_as_date_or_seconds_is_kept() -> None:
    """CC-01: the call waits until the date, then the seconds, then has its answer."""
    script = case("cc-01-retry-after-date.json")["server_in_order"]
    at: list[float] = []

    async def handle(request: web.Request) -> web.Response:
        at.append(time.time())
        reply = script[len(at) - 1]
        headers = dict(reply.get("headers", {}))
        if headers.get("retry-after", "").startswith("<now"):
            headers["retry-after"] = email.utils.formatdate(at[0] + 2, usegmt=True)
        return web.json_response(reply.get("json", {}), status=reply["status"], headers=headers)

    async with serving(handle) as url, Service("bot", url, Limits(retries=2)) as bot:
        reply = await bot.call("POST", "/ask", {})
    assert {"answer": "ok"} == reply.json()
    assert 2 == bot.retries
    # A date has whole seconds: the wait asked for is up to one shorter than two.
    assert at[1] >= int(at[0] + 2) - 0.01
    assert at[2] - at[1] >= 1


async def test_a_longer_wait_than_we_keep_is_not_shortened() -> None:
    """A server that asks for an hour is not asked again after a minute; its reply is what there is."""
    script: list[Json] = [{"status": 429, "headers": {"retry-after": "3600"}}, {"json": {"answer": "ok"}}]
    async with serving(scripted(script)) as url, Service("bot", url, Limits(retries=2)) as bot:
        assert 429 == (await bot.call("POST", "/ask", {})).status_code
    assert 0 == bot.retries


async def test_workers_that_are_turned_away_together_do_not_come_back_together() -> None:
    """CC-02: the second attempts are spread over at least half of the second that they may wait."""
    workers = case("cc-02-lockstep.json")["workers"]
    seen: dict[str, list[float]] = {}

    async def handle(request: web.Request) -> web.Response:
        seen.setdefault((await request.json())["worker"], []).append(time.monotonic())
        first = len(seen[(await request.json())["worker"]]) == 1
        return web.json_response({}, status=429 if first else 200)

    async with serving(handle) as url, Service("bot", url, Limits(concurrency=workers, retries=1)) as bot:
        replies = await asyncio.gather(*(bot.call("POST", "/", {"worker": str(i)}) for i in range(workers)))
    assert {200} == {reply.status_code for reply in replies}
    second = [times[1] for times in seen.values()]
    assert max(second) - min(second) > 0.5


async def test_one_call_that_never_answers_ends_alone() -> None:
    """CC-03: its deadline ends it, unrepeated, and the others have their answers."""
    known = case("cc-03-one-never-answers.json")
    asked = 0

    async def handle(request: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        if asked == 7:
            await asyncio.sleep(30)
        return web.json_response({})

    limits = Limits(concurrency=known["concurrency"], timeout=1.0, retries=2)
    async with serving(handle) as url, Service("bot", url, limits) as bot:
        calls = (bot.call("POST", "/ask", {}) for _ in range(known["rows"]))
        replies = await asyncio.gather(*calls, return_exceptions=True)
    lost = [reply for reply in replies if isinstance(reply, UnavailableError)]
    assert 1 == len(lost)
    assert "no whole reply within 1 s" in str(lost[0])
    assert known["rows"] == asked


async def test_a_reply_that_trickles_is_ended_by_the_deadline() -> None:
    """A deadline is for the whole reply: a byte now and then does not push it back."""

    async def trickle(request: web.Request) -> web.StreamResponse:
        reply = web.StreamResponse()
        await reply.prepare(request)
        for _ in range(100):
            await reply.write(b" ")
            await asyncio.sleep(0.05)
        return reply

    async with serving(trickle) as url, Service("bot", url, Limits(timeout=0.3, retries=0)) as bot:
        with pytest.raises(UnavailableError, match=r"no whole reply within 0\.3 s"):
            await bot.call("GET", "/")


async def test_a_watcher_is_told_of_each_attempt_and_may_end_them() -> None:
    """Each attempt is announced; where the watcher says that it is final, no other is made."""
    begun: list[int] = []
    script: list[Json] = [{"status": 502, "headers": {"retry-after": "0"}}, {"json": {}}]
    limits = Limits(retries=2)
    async with serving(scripted(script)) as url, Service("bot", url, limits) as bot:
        watch = Watch(begin=lambda: begun.append(1), final=lambda: False)
        assert 200 == (await bot.call("POST", "/", {}, watch=watch)).status_code
    assert [1, 1] == begun
    async with serving(scripted(script)) as url, Service("bot", url, limits) as bot:
        watch = Watch(begin=lambda: begun.append(1), final=lambda: True)
        assert 502 == (await bot.call("POST", "/", {}, watch=watch)).status_code
    assert [1, 1, 1] == begun


async def test_a_service_is_asked_no_more_at_once_than_it_allows() -> None:
    """The limit holds whatever the number of tasks that ask."""
    running, most = 0, 0

    async def handle(request: web.Request) -> web.Response:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return web.json_response({})

    async with serving(handle) as url, Service("bot", url, Limits(concurrency=3)) as bot:
        await asyncio.gather(*(bot.call("POST", "/", {}) for _ in range(12)))
    assert 3 == most


async def test_a_rate_spaces_calls_out() -> None:
    """Twenty calls a second: the fifth is not before 0.2 s after the first."""
    at: list[float] = []

    async def handle(request: web.Request) -> web.Response:
        at.append(time.monotonic())
        return web.json_response({})

    async with serving(handle) as url, Service("bot", url, Limits(concurrency=8, rate=20)) as bot:
        await asyncio.gather(*(bot.call("POST", "/", {}) for _ in range(5)))
    assert max(at) - min(at) > 0.15
