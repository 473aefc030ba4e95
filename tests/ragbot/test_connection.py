"""Real sockets: slow clients, clients that leave, requests that are too long, and web pages of elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
import pytest
from ragbot_fakes import ScriptedModel, make_twin, running

from ragbot.connection import Connection, server
from ragbot.guard import MAX_BODY, MAX_HEAD

QUESTION = {"question": "Where do you work?"}
LIMIT = 30
"""Seconds after which a test has failed; no test waits for it."""


class Hasty(Connection):
    """A connection that waits for nobody long."""

    sending = 0.3
    taking = 0.3


class EndlessModel(ScriptedModel):
    """Never comes to an end by itself: one piece and then nothing, or ``pieces`` for ever."""

    def __init__(self, piece: str = "I ", *, talks: bool = False) -> None:
        super().__init__(piece)
        self.asked = asyncio.Event()
        self.given_up = asyncio.Event()
        self._talks = talks

    async def stream(self, call: Any) -> Any:
        async for piece in self._until_given_up():
            yield piece

    async def complete(self, call: Any) -> Any:
        return [piece async for piece in self._until_given_up()]

    async def _until_given_up(self) -> AsyncIterator[str]:
        try:
            self.asked.set()
            while True:
                yield self.pieces[0]
                await asyncio.sleep(0 if self._talks else 3600)
        finally:
            self.given_up.set()


class Client:
    """What a test writes to a socket and reads from it, byte by byte."""

    def __init__(self, port: int, *, buffer: int | None = None) -> None:
        self._port = port
        self._socket = socket.socket()
        if buffer is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self._socket.setblocking(False)

    async def __aenter__(self) -> Client:
        await asyncio.get_running_loop().sock_connect(self._socket, ("127.0.0.1", self._port))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._socket.close()

    def head(self, line: str, *headers: str, host: str | None = None) -> bytes:
        named = f"Host: {host or f'127.0.0.1:{self._port}'}"
        return "\r\n".join([f"{line} HTTP/1.1", named, *headers, "", ""]).encode("latin-1")

    def post(self, path: str, body: Any = None, *headers: str, host: str | None = None) -> bytes:
        data = body if isinstance(body, bytes) else json.dumps(body or QUESTION).encode()
        kind = () if any(one.lower().startswith("content-type") for one in headers) else (JSON,)
        return self.head(f"POST {path}", *kind, f"Content-Length: {len(data)}", *headers, host=host) + data

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._socket, data)

    async def drip(self, data: bytes) -> bool:
        """A byte at a time, each well before a deadline; whether the server took them all."""
        for at in range(len(data)):
            try:
                await self.send(data[at : at + 1])
            except (ConnectionError, BrokenPipeError):
                return False
            await asyncio.sleep(0.03)
        return True

    async def piece(self) -> bytes:
        try:
            return await asyncio.wait_for(asyncio.get_running_loop().sock_recv(self._socket, 65_536), LIMIT)
        except ConnectionError:
            return b""

    async def rest(self) -> bytes:
        """Everything until the server closes."""
        read = b""
        while piece := await self.piece():
            read += piece
        return read

    async def reply(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of a reply with a length."""
        read = b""
        while b"\r\n\r\n" not in read:
            piece = await self.piece()
            assert piece, read
            read += piece
        head, _, body = read.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", "0"))
        while len(body) < length:
            body += await self.piece()
        return int(first.split()[1]), headers, body


JSON = "Content-Type: application/json"


async def healthy(port: int) -> bool:
    async with httpx.AsyncClient(trust_env=False) as client:
        return bool((await client.get(f"http://127.0.0.1:{port}/healthz")).json() == {"ready": True})


# ---------------------------------------------------------------- slow clients

Slow = Callable[[Client], Coroutine[Any, Any, object]]


async def _silent(client: Client) -> None:
    return None


async def _slow_head(client: Client) -> bool:
    return await client.drip(b"GET /about HTTP/1.1\r\n" + b"X-A: b\r\n" * 100)


async def _slow_body(client: Client) -> bool:
    await client.send(client.head("POST /chat", JSON, "Content-Length: 1000"))
    return await client.drip(b" " * 999)


async def _slow_chunks(client: Client) -> bool:
    await client.send(client.head("POST /chat", JSON, "Transfer-Encoding: chunked"))
    return await client.drip(b"1\r\n \r\n" * 200)


async def _slow_second_request(client: Client) -> bool:
    await client.send(client.head("GET /healthz"))
    assert 200 == (await client.reply())[0]
    return await client.drip(b"GET /about HTTP/1.1\r\n" + b"X-A: b\r\n" * 100)


async def _half_a_pipelined_request(client: Client) -> None:
    half = client.head("POST /chat", JSON, "Content-Length: 1000")
    await client.send(client.head("GET /healthz") + half)
    assert 200 == (await client.reply())[0]


@pytest.mark.parametrize(
    "slow",
    [_silent, _slow_head, _slow_body, _slow_chunks, _slow_second_request, _half_a_pipelined_request],
    ids=lambda slow: slow.__name__.strip("_"),
)
async def test_slow_request_is_cut_off(slow: Slow) -> None:
    """Head, body and chunks a byte at a time, or no byte at all: the server hangs up, and answers others."""
    twin, searches = make_twin()
    async with running(twin, connection=Hasty) as port, Client(port) as client:
        taken = await slow(client)
        assert taken is not True
        assert not (await client.rest()).startswith(b"HTTP/1.1 200")
        assert await healthy(port)
    assert [] == searches


async def test_reader_who_takes_nothing_is_cut_off() -> None:
    """A stream that nobody reads ends, and with it the model call behind it."""
    model = EndlessModel("word " * 2_000, talks=True)
    twin, _ = make_twin(model)
    async with running(twin, connection=Hasty) as port, Client(port, buffer=4_096) as client:
        await client.send(client.post("/chat"))
        await asyncio.wait_for(model.given_up.wait(), LIMIT)
        assert await healthy(port)


async def test_patience_with_a_slow_model() -> None:
    """The deadlines are the client's own: a model may take longer, and a kept connection may rest longer."""

    class LateModel(ScriptedModel):
        async def complete(self, call: Any) -> Any:
            await asyncio.sleep(3 * Hasty.sending)
            return await super().complete(call)

    twin, _ = make_twin(LateModel())
    async with running(twin, connection=Hasty) as port, Client(port) as client:
        await client.send(client.post("/retrieve"))
        status, _, context = await client.reply()
        assert 200 == status
        await client.send(client.post("/answer", QUESTION | {"context": json.loads(context)}))
        assert 200 == (await client.reply())[0]
        await asyncio.sleep(3 * Hasty.sending)
        await client.send(client.head("GET /healthz"))
        assert 200 == (await client.reply())[0]


@pytest.mark.parametrize("path", ["/chat", "/answer"])
async def test_client_who_leaves_frees_the_model(path: str) -> None:
    """Streamed or not: with its client an answer's model call ends, while it waits for the model."""
    model = EndlessModel()
    twin, _ = make_twin(model)
    async with running(twin) as port, Client(port) as client:
        await client.send(client.post("/retrieve"))
        context = json.loads((await client.reply())[2])
        body = QUESTION if path == "/chat" else QUESTION | {"context": context}
        await client.send(client.post(path, body))
        await asyncio.wait_for(model.asked.wait(), LIMIT)
        assert not model.given_up.is_set()
        await client.__aexit__()
        await asyncio.wait_for(model.given_up.wait(), LIMIT)
        assert await healthy(port)
    assert model.closed


async def test_pieces_come_before_the_answer_is_whole() -> None:
    """A reader sees the first piece while the model is at the next one."""
    model = EndlessModel()
    twin, _ = make_twin(model)
    async with running(twin) as port, Client(port) as client:
        await client.send(client.post("/chat"))
        read = b""
        while b"event: token" not in read:
            read += await client.piece()
        assert not model.given_up.is_set()


# ---------------------------------------------------------------- many clients


class Narrow(Connection):
    """A connection to a server that holds few."""

    holding = 20


async def _crowd(port: int, places: contextlib.AsyncExitStack, number: int) -> list[Client]:
    return [await places.enter_async_context(Client(port)) for _ in range(number)]


def _held() -> int:
    """How many sockets of this process, in which server and clients both are, are connected."""
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors")
async def test_many_who_say_nothing_keep_nobody_out() -> None:
    """Who has waited longest without a request gives way: a newcomer is answered, and few are held."""
    twin, _ = make_twin()
    async with running(twin, connection=Narrow) as port, contextlib.AsyncExitStack() as places:
        before = _held()
        crowd = await _crowd(port, places, 300)
        for client in crowd[::3]:
            with contextlib.suppress(ConnectionError):
                await client.send(b"GET /ab")
        assert await healthy(port)
        assert await healthy(port)
        assert _held() - before <= 300 + Narrow.holding
        assert b"" == await asyncio.wait_for(crowd[0].piece(), LIMIT)
        await crowd[-1].send(crowd[-1].head("GET /healthz"))
        assert 200 == (await crowd[-1].reply())[0]


async def test_who_is_being_answered_does_not_give_way() -> None:
    """Idle clients go before a kept connection that was used later, and no stream is cut off for them."""
    model = EndlessModel("word ", talks=False)
    twin, _ = make_twin(model)
    async with running(twin, connection=Narrow) as port, contextlib.AsyncExitStack() as places:
        asking, kept = await _crowd(port, places, 2)
        await asking.send(asking.post("/chat"))
        read = b""
        while b"event: token" not in read:
            read += await asking.piece()
        idle = await _crowd(port, places, Narrow.holding - 2)
        await kept.send(kept.head("GET /healthz"))
        assert 200 == (await kept.reply())[0]
        await _crowd(port, places, Narrow.holding - 2)
        assert await healthy(port)
        for client in idle:
            assert b"" == await client.piece()
        assert not model.given_up.is_set()


async def test_where_all_are_being_answered_a_newcomer_is_not() -> None:
    """One more than is held is hung up on at once, until another one is done."""
    model = EndlessModel()
    twin, _ = make_twin(model)
    async with running(twin, connection=Narrow) as port, contextlib.AsyncExitStack() as places:
        crowd = await _crowd(port, places, Narrow.holding)
        for client in crowd:
            await client.send(client.post("/chat"))
            assert b"200" in await client.piece()
        (late,) = await _crowd(port, places, 1)
        assert b"" == await late.piece()
        assert not model.given_up.is_set()
        await crowd[0].__aexit__()
        await asyncio.wait_for(model.given_up.wait(), LIMIT)
        assert await healthy(port)


# ---------------------------------------------------------------- what is too long, or no request


async def test_long_head_is_refused() -> None:
    """Whole or unfinished, headers have a limit."""
    twin, _ = make_twin()
    async with running(twin) as port:
        async with Client(port) as client:
            await client.send(client.head("GET /about", "X-A: " + "b" * MAX_HEAD))
            status, _, body = await client.reply()
            assert (431, ["error"]) == (status, list(json.loads(body)))
        async with Client(port) as client:
            await client.send(b"GET /about HTTP/1.1\r\nX-A: " + b"b" * 2 * MAX_HEAD)
            assert 400 == (await client.reply())[0]
            assert b"" == await client.rest()


async def test_long_body_is_refused() -> None:
    """By its declared length before it is sent, in chunks as soon as it is too long."""
    twin, searches = make_twin()
    async with running(twin) as port:
        async with Client(port) as client:
            await client.send(client.head("POST /chat", JSON, f"Content-Length: {MAX_BODY + 1}"))
            assert 413 == (await client.reply())[0]
            assert b"" == await client.rest()
        async with Client(port) as client:
            await client.send(client.head("POST /chat", JSON, "Transfer-Encoding: chunked"))
            chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"
            for _ in range(MAX_BODY // 65_536):
                await client.send(chunk)
            await client.send(b"1\r\n \r\n")
            assert 413 == (await client.reply())[0]
    assert [] == searches


@pytest.mark.parametrize(
    "raw",
    [
        b"GET /about HTTP/1.1\r\n\r\n",
        b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n",
        b"GET http://127.0.0.1:22/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n",
        b"GET //127.0.0.1:22/about HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n",
        b"GET /../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n",
        b"TRACE /about HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n",
        b"POST /chat HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"POST /chat HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nTransfer-Encoding: gzip\r\n\r\n{}",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
async def test_odd_requests_are_refused(raw: bytes) -> None:
    """No proxying, no files, no tunnels, no two lengths: each is answered with a 4xx or hung up on."""
    twin, searches = make_twin()
    async with running(twin, connection=Hasty) as port:
        async with Client(port) as client:
            await client.send(raw.replace(b"{port}", str(port).encode()))
            first = await client.piece()
            assert b"" == first or first.startswith(b"HTTP/1.1 4")
        assert await healthy(port)
    assert [] == searches


# ---------------------------------------------------------------- pages of elsewhere


@pytest.mark.parametrize(
    ("status", "headers", "host"),
    [
        (403, ["Origin: http://evil.example"], None),
        (403, ["Origin: http://evil.example", "Content-Type: text/plain"], None),
        (403, ["Origin: null", "Content-Type: text/plain"], None),
        (400, ["Origin: http://evil.example:{port}"], "evil.example:{port}"),
        (400, [], "evil.example:{port}"),
        (422, ["Content-Type: text/plain"], None),
        (422, ["Content-Type: application/x-www-form-urlencoded"], None),
    ],
)
async def test_page_of_elsewhere_cannot_ask(status: int, headers: list[str], host: str | None) -> None:
    """A simple POST, a form, a sandboxed frame, a name that was bound anew: no search, no model call."""
    model = ScriptedModel()
    twin, searches = make_twin(model)
    async with running(twin) as port, Client(port) as client:
        filled = [one.replace("{port}", str(port)) for one in headers]
        named = host.replace("{port}", str(port)) if host else None
        await client.send(client.post("/chat", QUESTION, *filled, host=named))
        found, said, _ = await client.reply()
    assert status == found
    assert not any(name.startswith("access-control-") for name in said)
    assert ([], []) == (searches, model.calls)


async def test_preflight_is_refused() -> None:
    """A page of elsewhere that asks whether it may is told no, without a header that a browser could obey."""
    twin, _ = make_twin()
    async with running(twin) as port, Client(port) as client:
        asked = ("Access-Control-Request-Method: POST", "Access-Control-Request-Headers: content-type")
        await client.send(client.head("OPTIONS /chat", "Origin: http://evil.example", *asked))
        status, headers, _ = await client.reply()
    assert 403 == status
    assert not any(name.startswith("access-control-") for name in headers)
    assert "same-origin" == headers["cross-origin-resource-policy"]


def test_a_server_that_answers_nobody_ends_at_once(tmp_path: Path) -> None:
    """Told to by SIGTERM, as whoever launched it does; nobody waits for what has nothing to finish."""
    script = "import signal; from ragbot.connection import server\n"
    script += "server(None).handle_exit(signal.SIGTERM, None); print('goes on')"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, check=False)
    assert (-signal.SIGTERM, b"") == (done.returncode, done.stdout)


async def test_a_server_that_answers_somebody_finishes_first() -> None:
    """The same signal then only says that no further request is taken."""
    served = server(None)
    served.server_state.tasks.add(asyncio.ensure_future(asyncio.sleep(0)))
    served.handle_exit(signal.SIGTERM, None)
    assert served.should_exit
