"""The tap is no open proxy: whatever is written to its socket goes to its one upstream, or nowhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from evalrun.cassette import Cassette
from evalrun.tap import Tap
from fakes.servers import serving


@asynccontextmanager
async def between() -> AsyncIterator[tuple[int, int, list[str], list[str]]]:
    """Port of a live tap, port of a server beside it, and what its upstream and that server were asked."""
    asked: list[str] = []
    elsewhere: list[str] = []

    async def upstream(request: web.Request) -> web.Response:
        asked.append(f"{request.headers['Host']} {request.method} {request.path_qs}")
        if request.path.endswith("/moved"):
            return web.Response(status=307, headers={"location": f"{beside}/stolen"})
        return web.json_response({"message": {"content": "hello"}})

    async def other(request: web.Request) -> web.Response:
        elsewhere.append(request.path_qs)
        return web.Response()

    async with serving(other) as beside, serving(upstream) as url:
        tap = Tap(f"{url}/base", Cassette(None, "live"), {}, lambda line: None, timeout=5, concurrency=4)
        async with tap:
            ports = (urlsplit(tap.url).port or 0, urlsplit(beside).port or 0)
            yield *ports, asked, elsewhere
        assert all(line.startswith(urlsplit(url).netloc) for line in asked)


async def said(port: int, raw: str) -> str:
    """What the tap writes back to ``raw`` until it hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(raw.encode())
    read = await asyncio.wait_for(reader.read(), 30)
    writer.close()
    return read.decode("latin-1")


def request(line: str, host: str, *headers: str) -> str:
    return "\r\n".join([f"{line} HTTP/1.1", f"Host: {host}", *headers, "Connection: close", "", ""])


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:{other}/api/tags",
        "//127.0.0.1:{other}/api/tags",
        "/http://127.0.0.1:{other}/api/tags",
        "/@127.0.0.1:{other}/api/tags",
        "/../../api/tags",
        "/%2e%2e/%2e%2e/api/tags",
        "/\\127.0.0.1:{other}/",
        "http://user@127.0.0.1:{other}/x",
    ],
)
async def test_no_target_leads_elsewhere(target: str) -> None:
    """Absolute targets, two slashes, user parts and dots stay below the upstream's own base path."""
    async with between() as (port, other, asked, elsewhere):
        for host in (f"127.0.0.1:{port}", f"127.0.0.1:{other}"):
            await said(port, request(f"GET {target.format(other=other)}", host))
    assert [] == elsewhere
    assert all(" GET /base/" in line for line in asked)


async def test_no_tunnel_is_opened() -> None:
    """CONNECT is refused, and what follows it goes nowhere."""
    async with between() as (port, other, asked, elsewhere):
        told = await said(port, request(f"CONNECT 127.0.0.1:{other}", f"127.0.0.1:{port}") + "GET / HTTP/1.1")
    assert told.startswith("HTTP/1.1 4")
    assert ([], []) == (asked, elsewhere)


async def test_redirects_are_not_followed_nor_passed_on() -> None:
    """An upstream that sends a bot elsewhere is asked no more; the bot is told no address."""
    async with between() as (port, _, asked, elsewhere):
        told = await said(port, request("GET /moved", f"127.0.0.1:{port}"))
    assert told.startswith("HTTP/1.1 502")
    assert "\nlocation:" not in told.lower()
    assert (1, []) == (len(asked), elsewhere)


@pytest.mark.parametrize(
    ("host", "headers"),
    [
        ("127.0.0.1:{port}", ["Origin: http://evil.example"]),
        ("127.0.0.1:{port}", ["Origin: null"]),
        ("127.0.0.1:{port}", ["Origin: http://127.0.0.1:{port}"]),
        ("evil.example:{port}", []),
        ("127.0.0.1.evil.example", []),
        ("", []),
    ],
)
async def test_a_web_page_is_not_answered(host: str, headers: list[str]) -> None:
    """A page of another origin, or one whose name was bound anew to this machine, reaches no model."""
    async with between() as (port, _, asked, _elsewhere):
        filled = [one.format(port=port) for one in headers]
        told = await said(port, request("GET /api/tags", host.format(port=port), *filled))
        assert told.startswith("HTTP/1.1 4")
        assert "access-control-" not in told.lower()
        assert [] == asked
        for name in (f"localhost:{port}", f"[::1]:{port}", f"host.docker.internal:{port}"):
            assert (await said(port, request("GET /api/tags", name))).startswith("HTTP/1.1 200")
    assert 3 == len(asked)
