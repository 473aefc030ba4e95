"""A program of the user's, run in a group of its own: started, listened to, and always stopped whole.

Owns the process, the end of what it wrote, and that nothing of it outlives its stop, nor evalrun however that
ends. What is sent to it and what its output means belongs to ``launch`` and to the ``command`` target.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from evalrun.errors import UnavailableError
from evalrun.redaction import secrets_of, without

_TAIL_LINES = 20
_TAIL_BYTES = 8192
GRACE_SECONDS = 5.0
_AT_ONCE_SECONDS = 1.0
_KEEPER = 'trap "" TERM INT HUP; read -r _; kill -TERM 0; sleep 1; kill -KILL 0'
"""What leads the group of a program: it waits for the end of its input, which only evalrun holds open. Where
evalrun ends without a word, as by kill -9, that end comes, and the whole group goes."""
_SAME = """
import os, signal, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
os.read(0, 1)
os.killpg(0, signal.SIGTERM)
time.sleep(1)
os.killpg(0, signal.SIGKILL)
"""
"""The same where there is no shell, as in a container without a system; it takes longer to start."""


def find_program(name: str, folder: Path, what: str = "target.launch.command") -> str:
    """The program a command starts with: a path from ``folder``, one on PATH, or one beside this Python.

    Raises:
        UnavailableError: there is none; ``what`` is the key of the config that names it.
    """
    if os.sep in name:
        return str((folder / name).resolve())
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.is_file() else shutil.which(name)
    if found is None:
        other = "; a running bot needs target.url instead of target.launch" if "launch" in what else ""
        raise UnavailableError(
            f"{what}: '{name}' is not installed here", f"install it, or give its path{other}"
        )
    return found


class Process:
    """A running program; make one with :meth:`start`.

    What it writes to its standard error is read all the time, and its end kept; so is its standard output,
    unless it is ``piped``: then :attr:`stdin` and :attr:`stdout` are the caller's.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        keeper: subprocess.Popen[bytes] | None,
        *,
        piped: bool,
        secrets: tuple[str, ...] = (),
    ) -> None:
        self._process = process
        self._secrets = secrets
        self._keeper = keeper
        self._tail = b""
        self.dismissed = False
        stream = process.stderr if piped else process.stdout
        assert stream is not None
        self._reader = asyncio.create_task(self._read(stream))

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        env: Mapping[str, str],
        folder: Path,
        *,
        what: str,
        piped: bool = False,
    ) -> Process:
        """Start ``command`` in ``folder`` with ``env`` added to the environment.

        Raises:
            UnavailableError: it cannot be started; ``what`` is the key of the config that names it.
        """
        program = find_program(command[0], folder, what)
        pipe, variables = asyncio.subprocess.PIPE, {**os.environ, "PYTHONUNBUFFERED": "1", **env}
        keeper = _keeper()
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                *command[1:],
                cwd=folder,
                env=variables,
                stdin=pipe if piped else asyncio.subprocess.DEVNULL,
                stdout=pipe,
                stderr=pipe if piped else asyncio.subprocess.STDOUT,
                # In the keeper's group from its first moment on: there is none in which it could be orphaned.
                process_group=keeper.pid if keeper else 0,
            )
        except BaseException as error:
            _end(keeper)
            if isinstance(error, OSError):
                raise UnavailableError(f"{what}: {program}: {error.strerror}") from None
            raise
        return cls(process, keeper, piped=piped, secrets=secrets_of(variables))

    @property
    def stdin(self) -> asyncio.StreamWriter:
        """Where a piped program reads from."""
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def stdout(self) -> asyncio.StreamReader:
        """Where a piped program writes to."""
        assert self._process.stdout is not None
        return self._process.stdout

    @property
    def returncode(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.returncode

    async def _read(self, stream: asyncio.StreamReader) -> None:
        # By chunk, not by line: a line may be longer than any limit, and who does not read blocks the bot.
        while chunk := await stream.read(_TAIL_BYTES):
            self.note(chunk)

    def note(self, output: bytes) -> None:
        """Keep ``output`` as the last that was written."""
        self._tail = (self._tail + output)[-_TAIL_BYTES:]

    def last_words(self) -> str:
        """The last lines it wrote, indented, without the keys in its environment."""
        text = without(self._tail.decode("utf-8", "replace"), self._secrets)
        if len(self._tail) == _TAIL_BYTES:  # it may begin within a key
            text = text[max(map(len, self._secrets), default=0) :]
        lines = text.rstrip().split("\n")[-_TAIL_LINES:]
        return "\n".join(f"    {line.rstrip()}" for line in lines)

    async def wait(self) -> int:
        """How it ended, once it has."""
        return await self._process.wait()

    async def drained(self) -> None:
        """Wait a moment for the rest of what a program that ended has written."""
        await asyncio.wait([self._reader], timeout=1.0)

    def dismiss(self) -> None:
        """Ask it and all that it started to end, once, and wait for nothing."""
        if not self.dismissed:
            self._signal(signal.SIGTERM)
        self.dismissed = True

    async def stop(self) -> None:
        """End it and all that it started: first politely, then not, and soon where a user will not wait."""
        self.dismiss()
        task = asyncio.current_task()
        grace = _AT_ONCE_SECONDS if task and task.cancelling() else GRACE_SECONDS
        try:
            await asyncio.wait_for(self._process.wait(), grace)
        except TimeoutError:
            pass
        finally:
            # A child of it may have outlived it: the whole group goes.
            self._signal(signal.SIGKILL)
            await self._process.wait()
            _end(self._keeper)
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)

    def _signal(self, number: signal.Signals) -> None:
        group = self._keeper.pid if self._keeper else self._process.pid
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


def _keeper() -> subprocess.Popen[bytes] | None:
    """Start the leader of a new group; None where nothing can be it."""
    for command in (["sh", "-c", _KEEPER], [sys.executable, "-I", "-S", "-c", _SAME]):
        with contextlib.suppress(OSError):
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                process_group=0,
            )
    return None


def _end(keeper: subprocess.Popen[bytes] | None) -> None:
    """End a keeper, but not by the end of its input: it is to do nothing any more."""
    if keeper is None:
        return
    keeper.kill()
    keeper.wait()
    assert keeper.stdin is not None
    keeper.stdin.close()
