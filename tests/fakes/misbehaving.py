"""Servers that misbehave on purpose, byte by byte: silent, slow, deaf, rude, endless, no HTTP at all.

Owns what they do with a connection; which call meets them, and what it must come to, is the test's.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

Deed = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


@asynccontextmanager
async def doing(deed: Deed) -> AsyncIterator[str]:
    """A server that does ``deed`` with every connection; its URL."""
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            await deed(reader, writer)
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def deaf() -> Iterator[str]:
    """A server that accepts nobody, with all places in its queue taken: who connects hears nothing."""
    with socket.socket() as server, contextlib.ExitStack() as waiting:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4):
            client = waiting.enter_context(socket.socket())
            client.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                client.connect(server.getsockname())
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


async def request(reader: asyncio.StreamReader) -> bytes:
    """The head of the next request, read to its end with its body."""
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            await reader.readexactly(int(line.partition(b":")[2]))
    return head


def writes(*parts: bytes, every: float = 0.0) -> Deed:
    """Reads a request, writes the parts one after the other, and hangs up."""

    async def deed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(every)

    return deed


async def says_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Accepts, reads, and never answers."""
    await reader.read(-1)
    await asyncio.sleep(3600)


async def drips(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends a byte now and then, for ever."""
    await request(reader)
    writer.write(HEAD + b"content-length: 1000000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.02)


async def drips_headers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Never comes to the end of its headers."""
    writer.write(HEAD)
    while True:
        writer.write(b"x-more: 1\r\n")
        await writer.drain()
        await asyncio.sleep(0.02)


async def floods(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends as much as it can, for ever."""
    writer.write(HEAD + b"\r\n")
    while True:
        writer.write(b" " * 1_000_000)
        await writer.drain()


def bomb(mebibytes: int) -> bytes:
    """A small reply that unpacks to so much."""
    packed = gzip.compress(bytes(mebibytes << 20), 9)
    return HEAD + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed) + packed


def hang_up(writer: asyncio.StreamWriter) -> None:
    """Reset the connection, instead of closing it."""
    wire = writer.get_extra_info("socket")
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.close()


class Resets:
    """Resets its first connections, after ``parts`` of a reply, and answers the rest; counts both."""

    def __init__(self, times: int, *parts: bytes) -> None:
        self.times = times
        self.asked = 0
        self._parts = parts

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        self.asked += 1
        if self.asked > self.times:
            writer.write(HEAD + b"content-length: 2\r\nconnection: close\r\n\r\n{}")
            await writer.drain()
            return
        for part in self._parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.02)
        hang_up(writer)
