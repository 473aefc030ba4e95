"""What really connects: proxies, redirects, certificates, and whatever keeps a reply from arriving."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from evalrun.errors import UnavailableError, UnreachableError, UserError
from evalrun.http import Limits, Service, Watch
from evalrun.launch import free_port
from evalrun.models import model
from evalrun.network import proxy_of
from evalrun.records import Case, Message
from evalrun.targets import TARGETS, Setting
from fakes import misbehaving
from fakes.misbehaving import HEAD, Deed, doing, writes
from fakes.servers import Json, scripted, serving
from known import json_of, known

QUICK = Limits(concurrency=4, timeout=60, retries=0)
CASE = {"id": "a", "question": "?", "category": "known"}


async def ok(request: web.Request) -> web.Response:
    """Answers everything."""
    return web.json_response({"answer": "ok"})


async def nobody(port_of: str = "127.0.0.1") -> str:
    """A URL where nobody listens any more."""
    async with serving(ok, port_of) as url:
        return url


async def failing(url: str, limits: Limits = QUICK, method: str = "POST", **options: Any) -> UnavailableError:
    """The error of one call."""
    async with Service("the bot", url, limits, **options) as bot:
        with pytest.raises(UnavailableError) as caught:
            await bot.call(method, "/ask", {} if method == "POST" else None)
    return caught.value


# ---------------------------------------------------------------- the network


NW_01 = json_of("nw-01-proxy.json")


@known(
    "NW-01",
    NW_01,
    {"env": {"http_proxy": "http://127.0.0.1:9", "NO_PROXY": ""}, "urls": ["http://LOCALHOST:{port}/ask"]},
    {"env": {"ALL_PROXY": "socks5://127.0.0.1:9"}, "urls": ["http://127.0.0.1:{port}", *NW_01["urls"]]},
    {"env": NW_01["env"], "urls": ["http://[0:0:0:0:0:0:0:1]:{port}/x/", "http://localhost:{port}/"]},
)
async def test_this_machine_is_reached_without_a_proxy(given: Json, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy of the environment catches no call to 127.0.0.1, localhost or [::1]."""
    for name, value in given["env"].items():
        monkeypatch.setenv(name, value)
    for address in given["urls"]:
        async with serving(ok, "::1" if ":1]" in address else "127.0.0.1") as url:
            base = address.format(port=url.rpartition(":")[2]).removesuffix("/ask")
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


@known(
    "NW-02",
    json_of("nw-02-socks5h.json")["env"]["ALL_PROXY"],
    "socks4a://127.0.0.1:9",
    "ftp://127.0.0.1:9",
    "127.0.0.1:9",
    "://",
    "http://[::1:9",
    "http://127.0.0.1:port",
    "http:",
)
async def test_an_unknown_kind_of_proxy_stops_remote_calls_only(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This machine is reached all the same; elsewhere one line says that the proxy cannot be used."""
    for name in ("HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ALL_PROXY", given)
    async with serving(ok) as url, Service("bot", url, QUICK) as bot:
        assert 200 == (await bot.call("GET", "/ask")).status_code
    with pytest.raises(UnavailableError, match="proxy") as caught:
        Service("bot", "http://bot.example.org", QUICK)
    assert "\n" not in caught.value.message


NW_03 = json_of("nw-03-localhost.json")["url"]


@known("NW-03", NW_03, NW_03.replace("localhost", "LocalHost"), NW_03.replace("{port}/ask", "{port}//x/?"))
async def test_localhost_is_found_on_either_address(given: str) -> None:
    """A server that listens on one kind of address only is reached by name."""
    for host in ("127.0.0.1", "::1"):
        async with serving(ok, host) as url:
            base = given.format(port=url.rpartition(":")[2]).removesuffix("/ask")
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


async def test_a_connection_that_is_refused_is_told_in_plain_words() -> None:
    """Where nobody was and what the machine says, and nothing of how it was tried."""
    url = await nobody()
    error = await failing(url)
    assert error.message.endswith(f": no connection to {url.removeprefix('http://')}: Connection refused")


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


# ---------------------------------------------------------------- no whole reply


@pytest.mark.parametrize(
    "deed",
    [
        misbehaving.says_nothing,
        misbehaving.drips,
        misbehaving.drips_headers,
    ],
    ids=["silent", "drips", "headers"],
)
async def test_a_deadline_holds_for_the_whole_reply(deed: Deed) -> None:
    """A server that accepts and is silent, or drips for ever, is given up, and asked no second time: it may
    have done what it was asked.
    """
    async with doing(deed) as url:
        error = await failing(url, Limits(timeout=0.2, retries=2))
    assert "no whole reply within 0.2 s" in error.message
    assert not isinstance(error, UnreachableError)


async def test_a_server_that_accepts_nobody_is_known_as_such() -> None:
    """Connecting has a deadline of its own: nothing was asked yet, and so it may be tried again."""
    with misbehaving.deaf() as url:
        async with Service("bot", url, Limits(timeout=0.4, retries=1)) as bot:
            with pytest.raises(UnreachableError, match="timeout"):
                await bot.call("POST", "/ask", {})
    assert 1 == bot.retries


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((b"SSH-2.0-babble\r\n\r\n",), "no HTTP"),
        ((b"",), "the server disconnected"),
        ((HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n",), "no HTTP"),
        ((HEAD + b"content-length: many\r\n\r\n{}",), "no HTTP"),
        ((HEAD + b"x: " + b"a" * 100_000 + b"\r\n\r\n{}",), "no HTTP"),
        ((HEAD + b"content-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}",), "no HTTP"),
        ((HEAD + b"content-length: 9\r\n\r\n{}",), "received 2 of 9 bytes"),
        ((b"HTTP/1.1 200 OK\r\n",), "the server disconnected"),
    ],
    ids=["ssh", "nothing", "chunk", "length", "header", "gzip", "short", "half"],
)
async def test_what_is_no_whole_http_is_an_error_of_the_service(parts: tuple[bytes, ...], words: str) -> None:
    """Whatever comes over the wire, it is one kind of error, with its address and without a traceback."""
    async with doing(writes(*parts)) as url:
        error = await failing(url, Limits(timeout=5, retries=0))
    assert f"the bot: {url}/ask: " in error.message
    assert words.lower() in error.message.lower()


async def test_what_is_no_http_is_not_asked_again() -> None:
    """Only a connection that broke may be better the next time."""
    deed = writes(b"SSH-2.0-babble\r\n\r\n")
    async with doing(deed) as url, Service("bot", url, Limits(timeout=5, retries=2)) as bot:
        with pytest.raises(UnavailableError):
            await bot.call("POST", "/ask", {})
    assert 0 == bot.retries


@pytest.mark.parametrize("parts", [(), (HEAD,), (HEAD + b"content-length: 9\r\n\r\n{",)])
async def test_a_connection_that_is_reset_is_tried_again(parts: tuple[bytes, ...]) -> None:
    """Before the reply, in its headers or in its middle; a half reply is never taken for a whole one."""
    resets = misbehaving.Resets(1, *parts)
    async with doing(resets) as url, Service("bot", url, Limits(timeout=5, retries=1)) as bot:
        assert {} == (await bot.call("POST", "/ask", {})).json()
    assert (2, 1) == (resets.asked, bot.retries)
    always = misbehaving.Resets(9, *parts)
    async with doing(always) as url:
        assert isinstance(await failing(url), UnreachableError)


@pytest.mark.parametrize(
    "deed", [misbehaving.floods, writes(misbehaving.bomb(80))], ids=["endless", "packed"]
)
async def test_a_reply_without_end_is_cut_off(deed: Deed) -> None:
    """As it comes, or unpacked from a few bytes: memory stays bounded."""
    async with doing(deed) as url:
        error = await failing(url)
    assert "a reply of more than 64 MiB" in error.message


# ---------------------------------------------------------------- redirects


def leading(status: int, to: str, asked: list[tuple[str, str, bytes]]) -> Any:
    """Answers ``/ask`` with a redirect to ``to`` and all else with what it was asked."""

    async def handle(request: web.Request) -> web.Response:
        asked.append((request.method, request.path_qs, await request.read()))
        if request.path == "/ask":
            return web.Response(status=status, headers={"location": to})
        return web.json_response({"auth": request.headers.get("authorization")})

    return handle


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("to", ["/ask/", "there?k=1", "http://localhost:{port}/there"])
async def test_a_redirect_on_the_same_server_is_followed_as_it_was_asked(status: int, to: str) -> None:
    """A POST stays a POST with its body and its key, as the slash at the end of a path asks for it."""
    asked: list[tuple[str, str, bytes]] = []
    port = free_port()
    async with serving(leading(status, to.format(port=port), asked), port=port):
        url = f"http://localhost:{port}"
        async with Service("bot", url, QUICK, headers={"authorization": "Bearer k"}) as bot:
            reply = await bot.call("POST", "/ask", {"question": "?"})
    assert {"auth": "Bearer k"} == reply.json()
    assert ["POST", "POST"] == [method for method, _, _ in asked]
    assert asked[0][2] == asked[1][2] != b""


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_redirect_that_would_make_a_post_a_get_is_an_error(status: int) -> None:
    """The question would be lost on the way; the message says where it leads. A GET may follow."""
    asked: list[tuple[str, str, bytes]] = []
    async with serving(leading(status, "/there", asked)) as url:
        error = await failing(url)
        assert f"HTTP {status} to /there: a POST would become a GET; write the address" in error.message
        assert 1 == len(asked)
        async with Service("bot", url, QUICK) as bot:
            assert 200 == (await bot.call("GET", "/ask")).status_code


async def test_a_key_goes_to_no_other_server() -> None:
    """Neither key nor question follows a redirect away; the message names the server it leads to."""
    got: list[str] = []

    async def stranger(request: web.Request) -> web.Response:
        got.append(request.path)
        return web.json_response({})

    async with serving(stranger) as other, serving(leading(307, f"{other}/x?token=1", [])) as url:
        error = await failing(url, headers={"authorization": "Bearer k"})
    assert [] == got
    assert f"HTTP 307 to {other}/x: another server gets nothing from here" in error.message


@pytest.mark.parametrize("to", ["//evil.example/x", "https://127.0.0.1/x", "http://[", "javascript:x"])
async def test_a_redirect_to_elsewhere_is_an_error_in_any_form(to: str) -> None:
    """Another host, scheme or port, or no address at all."""
    async with serving(leading(307, to, [])) as url:
        assert "HTTP 307" in (await failing(url)).message


async def test_redirects_in_a_circle_come_to_an_end() -> None:
    """After five of them."""
    asked: list[tuple[str, str, bytes]] = []
    async with serving(leading(307, "/ask", asked)) as url:
        assert "more than 5 redirects, the last one to /ask" in (await failing(url)).message
    assert 6 == len(asked)


async def test_a_redirect_of_a_launched_bot_is_told_without_its_port() -> None:
    """Messages stand in files that must be the same bytes in each run."""
    async with serving(leading(301, "/there", [])) as url:
        error = await failing(url, launched=True)
    assert (
        "the bot: /ask: HTTP 301 to /there: a POST would become a GET; write the address that it leads to"
        == (error.message)
    )


# ---------------------------------------------------------------- certificates


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an authority of our own (``ca.pem``) and what it signed for 127.0.0.1, and no name."""
    folder = tmp_path_factory.mktemp("authority")
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed here")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    may_sign = ("-addext", "keyUsage=critical,keyCertSign")  # Python 3.13 asks for it
    of_ca = ("-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=our own", *may_sign)
    names = "subjectAltName=IP:127.0.0.1"
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "basicConstraints=critical,CA:FALSE")
    of_server = ("-x509", *key, "-keyout", "server.key", "-out", "server.pem", "-subj", "/CN=bot", *signed)
    for arguments in (of_ca, (*of_server, "-addext", names)):
        subprocess.run(["openssl", "req", *arguments], cwd=folder, check=True, capture_output=True)
    return folder


@asynccontextmanager
async def secure(folder: Path, handler: Any = ok) -> AsyncIterator[str]:
    """A server with the certificate in ``folder``."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    async with serving(handler, context=context) as url:
        yield url


async def test_a_certificate_that_nobody_signed_for_us_is_refused(authority: Path) -> None:
    """Nothing is sent, it is tried once, and the message says how to trust an authority of one's own."""
    async with secure(authority) as url, Service("the bot", url, Limits(retries=2)) as bot:
        with pytest.raises(UnavailableError) as caught:
            await bot.call("POST", "/ask", {})
    assert "CERTIFICATE_VERIFY_FAILED" in caught.value.message
    assert "SSL_CERT_FILE=" in caught.value.message
    assert not isinstance(caught.value, UnreachableError)
    assert 0 == bot.retries


async def test_an_authority_of_our_own_is_trusted_when_told(
    authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``SSL_CERT_FILE`` names it; the name in the certificate still has to be that of the server."""
    monkeypatch.setenv("SSL_CERT_FILE", str(authority / "ca.pem"))
    async with secure(authority) as url:
        async with Service("bot", url, QUICK) as bot:
            assert 200 == (await bot.call("POST", "/ask", {})).status_code
        assert "CERTIFICATE_VERIFY_FAILED" in (await failing(url.replace("127.0.0.1", "localhost"))).message


async def test_a_plain_server_behind_https_is_an_error(authority: Path) -> None:
    """And the other way round."""
    async with serving(ok) as url:
        assert isinstance(await failing(url.replace("http:", "https:")), UnavailableError)
    async with secure(authority) as url:
        assert isinstance(await failing(url.replace("https:", "http:")), UnavailableError)


@pytest.mark.parametrize("content", [None, "no certificates"])
async def test_authorities_that_cannot_be_read_are_told_before_anything_is_asked(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is missing, or holds something else: exit 2, and not a traceback."""
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with pytest.raises(UserError, match=r"SSL_CERT_FILE: no certificates can be read from .*ca\.pem"):
        Service("bot", "https://bot.example", QUICK)
    Service("bot", "http://bot.example", QUICK)


# ---------------------------------------------------------------- IPv6


@pytest.mark.parametrize("provider", ["ollama", "openai"])
async def test_a_judge_is_reached_at_an_ipv6_literal(provider: str) -> None:
    """As a config or ``OLLAMA_HOST`` names it."""
    reply = {"message": {"role": "assistant", "content": "yes"}, "done": True, "done_reason": "stop"}
    reply |= {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}
    async with serving(scripted([{"json": reply}]), "::1") as url:
        assert "[::1]" in url
        judge = model.get(provider)("m", url)
        said = await judge.complete([Message(role="user", content="?")], {}, 0.0, 0, 9, 9)
        await judge.close()
    assert "yes" == said.text


async def test_a_bot_is_reached_at_an_ipv6_literal(tmp_path: Path) -> None:
    """A ragbot or any other; a slash at the end of its address changes nothing."""
    asked: list[str] = []

    async def handle(request: web.Request) -> web.Response:
        asked.append(request.path_qs)
        return web.json_response({"answer": "ok", "name": "twin"})

    async with serving(handle, "::1") as url:
        ragbot = TARGETS.get("ragbot").Options(kind="ragbot", url=f"{url}/")
        http = TARGETS.get("http").Options(kind="http", url=f"{url}/api/?key=1", path="/ask")
        for options in (ragbot, http):
            bot = TARGETS.get(options.kind)(options, Setting(options.url, QUICK, tmp_path))
            if options.kind == "ragbot":
                assert {"answer": "ok", "name": "twin"} == await bot.about()
            else:
                watch = Watch(begin=lambda: None, final=lambda: False)
                assert "ok" == (await bot.answer(Case.model_validate(CASE), None, 1, watch)).answer
            await bot.close()
    assert ["/about", "/api/ask?key=1"] == asked
