"""Start a bot, wait until it is ready, show what it said when it dies, and always stop it.

Owns its port and what it is told. The process belongs to ``process``, what the bot is asked to targets.
"""

from __future__ import annotations

import asyncio
import shlex
import socket
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import SystemRandom
from types import TracebackType

import httpx

from evalrun.addresses import join_url
from evalrun.errors import UnavailableError
from evalrun.process import Process

_POLL_SECONDS = 0.02
_PORTS = range(20_000, 30_000)


def free_port() -> int:
    """A loopback port that nobody listens on at this moment.

    Not one of those that a system gives to whoever connects: it could do so before the bot listens there.
    """
    for port in (*SystemRandom().sample(_PORTS, 50), 0):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise UnavailableError("no port of this machine is free", "close what listens on them")


class Launch:
    """A bot run for the time of an ``async with``; :attr:`url` is where it listens.

    Args:
        command: program and arguments; ``{port}`` and ``{tap}`` are filled in.
        env: variables for it, filled in likewise; None values are taken out of the environment.
        folder: where it runs.
        ready: path that answers 200 when it is ready.
        timeout: seconds it may take to get ready.
        tap: URL of the tap, or an empty string.
        fresh_cache: whether it starts with an empty cache folder, so that all its calls are seen.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        folder: Path,
        *,
        ready: str,
        timeout: float,
        tap: str,
        fresh_cache: bool = False,
    ) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [self._filled(part, tap) for part in command]
        self._env = {name: self._filled(value, tap) for name, value in env.items()}
        self._folder = folder
        self._cache = tempfile.TemporaryDirectory(prefix="evalrun-") if fresh_cache else None
        if self._cache is not None:
            self._env |= {"XDG_CACHE_HOME": self._cache.name, "RAGBOT_CACHE": self._cache.name}
        self._ready = join_url(self.url, ready)
        self._timeout = timeout
        self._process: Process | None = None

    def _filled(self, text: str, tap: str) -> str:
        return text.replace("{port}", str(self.port)).replace("{tap}", tap)

    async def __aenter__(self) -> Launch:
        self._process = await Process.start(
            self._command, self._env, self._folder, what="target.launch.command"
        )
        try:
            await self._wait_until_ready()
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()

    def last_words(self) -> str:
        """The last lines the bot wrote."""
        return self._process.last_words() if self._process else ""

    def dismiss(self) -> None:
        """Tell the bot that it may end; the end of the ``async with`` waits for it."""
        if self._process is not None:
            self._process.dismiss()

    async def _wait_until_ready(self) -> None:
        assert self._process is not None
        deadline = asyncio.get_running_loop().time() + self._timeout
        # Certificates are not read for a bot on this machine: that takes longer than most bots to start.
        async with httpx.AsyncClient(trust_env=False, verify=False, timeout=2.0) as client:
            said = ""
            while asyncio.get_running_loop().time() < deadline:
                if self._process.returncode is not None:
                    raise await self._died()
                try:
                    status = (await client.get(self._ready)).status_code
                    if status == 200:
                        return
                    said = f", it answers HTTP {status} there"
                except httpx.TransportError:
                    pass
                await asyncio.sleep(_POLL_SECONDS)
        raise UnavailableError(
            f"the bot was not ready at {self._ready} within {self._timeout:g} s{said}; {self._words()}",
            f"raise target.launch.timeout{', name another path in target.launch.ready' if said else ''}, "
            f"or run the command by hand: {shlex.join(self._command)}",
        )

    async def _died(self) -> UnavailableError:
        assert self._process is not None
        await self._process.drained()
        return UnavailableError(self.ended(), "run it by hand: " + shlex.join(self._command))

    def ended(self) -> str:
        """How the bot ended by itself, with its last output; empty while it runs, or once dismissed."""
        if self._process is None or self._process.dismissed or self._process.returncode is None:
            return ""
        return f"the bot ended with code {self._process.returncode}; {self._words()}"

    def _words(self) -> str:
        words = self.last_words()
        return f"its last output:\n{words}" if words.strip() else "it wrote nothing"

    async def _stop(self) -> None:
        if self._process is not None:
            await self._process.stop()
        if self._cache is not None:
            self._cache.cleanup()
