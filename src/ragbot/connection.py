"""How long a client may take to send a request and to take what it is sent, and how many may be connected.

Owns the server's settings, deadlines and number of connections: who is late or one too many is cut off, and
what was done for them ends. Leaves what a request may be to ``guard``.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from types import FrameType
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ragbot.guard import MAX_HEAD


def _most() -> int:
    """Connections: a third of the files that this process may have open, and 512 at most."""
    try:
        import resource
    except ImportError:  # there is no such limit
        return 512
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 512 if files == resource.RLIM_INFINITY else min(512, files // 3)


class Connection(H11Protocol):
    """One connection of a client."""

    sending = 20.0
    """Seconds in which a request must arrive whole, from the connection or from its own first byte."""
    taking = 30.0
    """Seconds in which a client must take what was sent to it, all of it."""

    holding = _most()
    """Connections at once. One more, and that gives way which has waited longest for a whole request."""

    _since = 0.0
    _arriving: asyncio.TimerHandle | None = None
    _taken: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client came: its first request is awaited."""
        super().connection_made(transport)
        # asyncio asks for it only where the listening socket names its protocol: without it every reply waits
        # 40 ms for the client to acknowledge its head.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Any byte that the client does not take pauses the writing, so that its deadline can be watched.
        transport.set_write_buffer_limits(high=0)
        self._arriving = self.loop.call_later(self.sending, transport.abort)
        self._since = self.loop.time()
        if len(self.connections) > self.holding:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """A piece of a request, or several requests."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """The next request begins, of which a part may be here already."""
        super().on_response_complete()
        self._since = self.loop.time()
        self._watch()

    def pause_writing(self) -> None:
        """The client takes less than it is sent."""
        super().pause_writing()
        self._taken = self._taken or self.loop.call_later(self.taking, self.transport.abort)

    def resume_writing(self) -> None:
        """The client has taken everything."""
        super().resume_writing()
        self._taken = _cancelled(self._taken)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone, or was cut off."""
        super().connection_lost(exc)
        self._arriving = _cancelled(self._arriving)
        self._taken = _cancelled(self._taken)

    @property
    def _waits(self) -> bool:
        """Whether no request of this client is whole: nobody works for it."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def _make_room(self) -> None:
        """Hang up on whom it costs least: this new client, where all others are being answered."""
        waiting = [one for one in self.connections if isinstance(one, Connection) and one._waits]
        oldest = min(waiting, key=lambda one: one._since)
        self.connections.discard(oldest)
        oldest.transport.abort()

    def _watch(self) -> None:
        """Start the clock where a part of a request is here, and stop it where the rest is, too."""
        state = self.conn.their_state
        if state is h11.SEND_BODY or (state is h11.IDLE and self.conn.trailing_data[0]):
            self._arriving = self._arriving or self.loop.call_later(self.sending, self.transport.abort)
        else:
            self._arriving = _cancelled(self._arriving)


def _cancelled(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    if timer is not None:
        timer.cancel()
    return None


class Server(uvicorn.Server):
    """Ends at once when it is told to while nobody is being answered: uvicorn would take 0.2 s over it."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal came."""
        if sig == signal.SIGTERM and not self.server_state.tasks:
            signal.signal(sig, signal.SIG_DFL)
            signal.raise_signal(sig)
        super().handle_exit(sig, frame)


def server(app: Any, connection: type[Connection] = Connection) -> Server:
    """A server of ``app``, for sockets that listen already."""
    config = uvicorn.Config(
        app,
        http=connection,
        h11_max_incomplete_event_size=MAX_HEAD,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        backlog=connection.holding,  # so many are taken in one go, before any of them is counted
        # Idle connections are kept longer than a slow model answers, and a stream does not hold up the end.
        timeout_keep_alive=120,
        timeout_graceful_shutdown=2,
    )
    return Server(config)
