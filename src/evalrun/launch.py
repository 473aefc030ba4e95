"""Start a bot, wait until it is ready, show what it said when it dies, and always stop it.

Owns the process and its port. What the bot is asked belongs to targets.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import httpx

from evalrun.errors import UnavailableError
from evalrun.http import join_url

_TAIL_LINES = 20
_TAIL_BYTES = 8192
_GRACE_SECONDS = 5.0
_POLL_SECONDS = 0.05


def free_port() -> int:
    """A loopback port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def find_program(name: str, folder: Path) -> str:
    """The program a command starts with: a path from ``folder``, one on PATH, or one beside this Python.

    Raises:
        UnavailableError: there is none.
    """
    if os.sep in name:
        return str((folder / name).resolve())
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.is_file() else shutil.which(name)
    if found is None:
        raise UnavailableError(
            f"target.launch.command: '{name}' is not installed here",
            "install it, or give its path; a running bot needs target.url instead of target.launch",
        )
    return found


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
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._tail = b""

    def _filled(self, text: str, tap: str) -> str:
        return text.replace("{port}", str(self.port)).replace("{tap}", tap)

    async def __aenter__(self) -> Launch:
        program = find_program(self._command[0], self._folder)
        try:
            self._process = await asyncio.create_subprocess_exec(
                program,
                *self._command[1:],
                cwd=self._folder,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **self._env},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise UnavailableError(f"target.launch.command: {program}: {error.strerror}") from None
        self._reader = asyncio.create_task(self._read())
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

    async def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        # By chunk, not by line: a line may be longer than any limit, and who does not read blocks the bot.
        while chunk := await self._process.stdout.read(_TAIL_BYTES):
            self._tail = (self._tail + chunk)[-_TAIL_BYTES:]

    def last_words(self) -> str:
        """The last lines the bot wrote."""
        lines = self._tail.decode("utf-8", "replace").rstrip().split("\n")[-_TAIL_LINES:]
        return "\n".join(f"    {line.rstrip()}" for line in lines)

    async def _wait_until_ready(self) -> None:
        assert self._process is not None
        deadline = asyncio.get_running_loop().time() + self._timeout
        # Certificates are not read for a bot on this machine: that takes longer than most bots to start.
        async with httpx.AsyncClient(trust_env=False, verify=False, timeout=2.0) as client:
            while asyncio.get_running_loop().time() < deadline:
                if self._process.returncode is not None:
                    raise await self._died()
                try:
                    if (await client.get(self._ready)).status_code == 200:
                        return
                except httpx.TransportError:
                    pass
                await asyncio.sleep(_POLL_SECONDS)
        raise UnavailableError(
            f"the bot was not ready at {self._ready} within {self._timeout:g} s; "
            f"its last output:\n{self.last_words()}",
            "raise target.launch.timeout, or run the command by hand: " + " ".join(self._command),
        )

    async def _died(self) -> UnavailableError:
        assert self._process is not None
        if self._reader is not None:
            await asyncio.wait([self._reader], timeout=1.0)
        return UnavailableError(self.ended(), "run it by hand: " + " ".join(self._command))

    def ended(self) -> str:
        """How the bot ended by itself, with its last output; empty while it runs."""
        if self._process is None or self._process.returncode is None:
            return ""
        return f"the bot ended with code {self._process.returncode}; its last output:\n{self.last_words()}"

    async def _stop(self) -> None:
        process = self._process
        if process is None:
            return
        self._signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), _GRACE_SECONDS)
        except TimeoutError:
            self._signal(signal.SIGKILL)
            await process.wait()
        # A child of the bot may have outlived it: the whole group goes.
        self._signal(signal.SIGKILL)
        if self._cache is not None:
            self._cache.cleanup()
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
