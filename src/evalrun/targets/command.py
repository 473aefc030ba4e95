"""A program that reads a JSON line and writes one; started once, with several questions in flight.

Owns which line answers which question, how long one may take, and what becomes of those in flight when the
program ends. The process itself belongs to ``process``, what stands in a line to ``wire``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any, Literal

from pydantic import Field, field_serializer

from evalrun.digest import read_json
from evalrun.errors import UnavailableError
from evalrun.http import Watch
from evalrun.process import Process
from evalrun.provenance import Rule
from evalrun.records import Case, Context, Reply
from evalrun.redaction import shown_values, without
from evalrun.settings import Argument, VariableName
from evalrun.targets import TARGETS, BadReply, Calling, Setting, Target, called
from evalrun.targets.wire import BotOptions, Reading, filled, shown, values_of

_WHAT = "target.command"
_CHUNK = 1 << 16
_LINE_LIMIT = 16 * 1024 * 1024
_HOPELESS = 10
"""Ends without a single answer ever, after which a program is not started again."""


class CommandOptions(BotOptions):
    """``target`` of a config for a program.

    It is started once in the config's folder, reads one JSON object a line and writes one a line: ``body``
    with its slots filled (as for ``http``) and an ``id``, which the reply repeats, so that several may be in
    flight and answered in any order. ``{tap}`` in ``command`` and ``env`` is where its model calls are seen.
    What it writes to standard error, and lines that are no JSON object, are shown when it fails.
    """

    kind: Literal["command"]
    command: tuple[Argument, ...] = Field(min_length=1, repr=False)
    env: dict[VariableName, Argument] = Field(default_factory=dict, repr=False)
    body: dict[str, Any] = Field(default_factory=lambda: {"question": "{question}"}, repr=False)

    @field_serializer("env")
    def _without_secrets(self, env: dict[str, str]) -> dict[str, str]:
        return shown_values(env)

    @property
    def template(self) -> Any:
        """The body."""
        return self.body

    @property
    def tapped(self) -> bool:
        """Whether the program is told where the tap is."""
        return any("{tap}" in text for text in (*self.command, *self.env.values()))


class Ended(UnavailableError):
    """The program ended before it answered."""


@TARGETS("command")
class Command(Target):
    """A program that reads a JSON line and writes one."""

    Options = CommandOptions

    def __init__(self, options: CommandOptions, setting: Setting) -> None:
        self.offers = options.offers
        self._options = options
        self._setting = setting
        self._reading = Reading.of(options)
        self._carrier = setting.carried(lambda: Calling(self._asked_for))
        self._process: Process | None = None
        self._listener: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._writing = asyncio.Lock()
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._asked = self._answered = self._ended = self._retries = 0
        self._last_words = ""

    @property
    def rule(self) -> Rule:
        """What proves a draw."""
        return self._options.rule

    @property
    def retries(self) -> int:
        """How many questions were put again after the program ended."""
        return self._retries

    async def about(self) -> dict[str, Any]:
        """Nothing but that it can be started.

        Raises:
            UnavailableError: it cannot.
        """
        if self._setting.asks:
            await self._running()
        return {}

    async def answer(self, case: Case, context: Context | None, seed: int, watch: Watch) -> Reply:
        """One line, one line back; put again where the program ended."""
        line = filled(self._options.body, values_of(case, seed))
        for attempt in range(self._setting.limits.retries + 1):
            watch.begin()
            self._retries += attempt > 0
            try:
                carrier = self._carrier
                found = await (called(carrier, "command", line) if carrier else self._asked_for(line))
                return self._reading.reply([found])
            except Ended:
                if attempt == self._setting.limits.retries or watch.final() or self.ended():
                    raise
        raise AssertionError("unreachable")

    def ended(self) -> str:
        """Its last words, where it never answered anything however often it was started."""
        return self._last_words if self._ended >= _HOPELESS and not self._answered else ""

    async def close(self) -> None:
        """End it: first by the end of its input and a polite signal, then not politely."""
        await self._stop("the run is over")

    # ------------------------------------------------------------ one question

    async def _asked_for(self, line: dict[str, Any]) -> Any:
        process = await self._running()
        self._asked += 1
        number, before = self._asked, self._answered
        future = self._pending[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(self._setting.limits.timeout):
                await self._send(process, {**line, "id": number})
                return await future
        except TimeoutError:
            seconds = f"{self._setting.limits.timeout:g} s"
            words = _said(process)
            if self._answered == before and process is self._process:
                # It does nothing any more, or it would have answered something else meanwhile.
                await self._stop("it was stopped: it did not answer another question in time")
            raise UnavailableError(f"{_WHAT}: no answer within {seconds}{words}") from None
        finally:
            self._pending.pop(number, None)

    async def _send(self, process: Process, line: dict[str, Any]) -> None:
        data = json.dumps(line).encode() + b"\n"
        # A program that has ended is no news here: whoever listens to it fails the question.
        with contextlib.suppress(ConnectionError):
            async with self._writing:
                process.stdin.write(data)
                await process.stdin.drain()

    # ------------------------------------------------------------ the program

    async def _running(self) -> Process:
        async with self._starting:
            if self._process is None:
                if words := self.ended():
                    raise UnavailableError(words)
                self._process = await Process.start(
                    [self._tapped(part) for part in self._options.command],
                    {name: self._tapped(text) for name, text in self._options.env.items()},
                    self._setting.folder,
                    what=_WHAT,
                    piped=True,
                )
                self._listener = asyncio.create_task(self._listen(self._process))
            return self._process

    def _tapped(self, text: str) -> str:
        return text.replace("{tap}", self._setting.tap)

    async def _listen(self, process: Process) -> None:
        """Hand each line to its question; when the program ends, fail those in flight."""
        rest = b""
        while chunk := await process.stdout.read(_CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._take(process, line)
            if len(rest) > _LINE_LIMIT:
                break
        if len(rest) > _LINE_LIMIT:
            reason = f"it wrote a line of more than {_LINE_LIMIT >> 20} MiB"
        else:
            await process.drained()
            code = await process.wait()
            reason = f"the program ended with code {code}"
        self._last_words = f"{_WHAT}: {reason}{_said(process)}"
        self._ended += 1
        self._process = None
        self._fail(Ended(self._last_words))
        await process.stop()

    def _take(self, process: Process, line: bytes) -> None:
        try:
            text = line.decode(json.detect_encoding(line))
            value = read_json(without(text, self._setting.secrets))
        except ValueError:
            value = None
        if not isinstance(value, dict):
            process.note(line + b"\n" if line.strip() else b"")
            return
        if "id" not in value:
            self._fail(BadReply(f"{_WHAT}: a reply without the id of its question: {shown(value)}"))
            return
        self._answered += 1
        number = value.pop("id")
        future = self._pending.get(number) if isinstance(number, int) else None
        if future is not None and not future.done():
            if value.get("error"):
                future.set_exception(UnavailableError(f"{_WHAT}: {shown(value['error'])}"))
            else:
                future.set_result(value)

    def _fail(self, error: Exception) -> None:
        for future in self._pending.values():
            if not future.done():
                future.set_exception(error)

    async def _stop(self, reason: str) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.gather(self._listener, return_exceptions=True)
        process.stdin.close()
        await process.stop()
        self._fail(Ended(f"{_WHAT}: {reason}{_said(process)}"))


def _said(process: Process) -> str:
    words = process.last_words()
    return f"; its last output:\n{words}" if words.strip() else ""
