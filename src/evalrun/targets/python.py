"""A Python function as the bot, imported from the config's folder.

Owns finding the function, calling it, and telling its failures by file and line. A function that is not async
runs in a thread of its own, so that a slow one delays nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import inspect
import re
import sys
import threading
import traceback
from collections.abc import Callable
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo

from evalrun.errors import UnavailableError, UserError
from evalrun.http import Watch
from evalrun.provenance import Rule
from evalrun.records import Case, Context, Reply
from evalrun.redaction import Redaction
from evalrun.targets import TARGETS, BadReply, Calling, Setting, Target, called
from evalrun.targets.wire import BotOptions, Reading, filled, has_slot, values_of

_NAME = re.compile(r"(?P<module>[^\W\d]\w*(?:\.[^\W\d]\w*)*):(?P<function>[^\W\d]\w*)\Z")


def _function_name(text: str, info: ValidationInfo) -> str:
    """``package.module:function``, of a package that is there; nothing is imported yet."""
    found = _NAME.match(text)
    if found is None:
        raise ValueError("is not package.module:function: write it like bot:answer")
    top, folder = found["module"].partition(".")[0], (info.context or {}).get("folder")
    path = [str(folder), *sys.path] if folder is not None else None
    if folder is not None and top not in sys.builtin_module_names and not PathFinder.find_spec(top, path):
        raise ValueError(f"names no module '{top}' in {folder} or in this environment")
    return text


class PythonOptions(BotOptions):
    """``target`` of a config for a function: ``package.module:function``, seen from the config's folder.

    It is called with ``args`` as keywords, whose slots are filled as those of a ``body`` (see ``http``);
    ``"{tap}"`` is the address at which its model calls are seen. It returns the answer as text, or an object
    in which ``answer`` and ``contexts`` are found. An async function is awaited; another runs in a thread.
    """

    kind: Literal["python"]
    function: Annotated[str, AfterValidator(_function_name)]
    args: dict[str, Any] = Field(default_factory=lambda: {"question": "{question}"}, repr=False)

    @property
    def template(self) -> Any:
        """The keywords."""
        return self.args

    @property
    def tapped(self) -> bool:
        """Whether the function is told where the tap is."""
        return has_slot(self.args, "tap")


@TARGETS("python")
class Python(Target):
    """A Python function, async or not."""

    Options = PythonOptions

    def __init__(self, options: PythonOptions, setting: Setting) -> None:
        self.offers = options.offers
        self._options = options
        self._setting = setting
        self._folder = setting.folder.resolve()
        self._reading = Reading.of(options)
        self._carrier = setting.carried(lambda: Calling(self._called))
        if setting.asks:
            self._function = load_function(options.function, self._folder)
            _check_takes(self._function, options)

    @property
    def rule(self) -> Rule:
        """What proves a draw."""
        return self._options.rule

    async def answer(self, case: Case, context: Context | None, seed: int, watch: Watch) -> Reply:
        """One call, one answer."""
        values = {**values_of(case, seed), "tap": self._setting.tap}
        watch.begin()
        deadline = asyncio.timeout(self._setting.limits.timeout)
        try:
            async with deadline:
                args = filled(self._options.args, values)
                found = await (called(self._carrier, "python", args) if self._carrier else self._called(args))
        except UnavailableError:  # the recording's, or of a reply that it cannot hold
            raise
        except (Exception, SystemExit) as error:
            if deadline.expired():
                seconds = f"{self._setting.limits.timeout:g} s"
                raise UnavailableError(f"{self._options.function}: no answer within {seconds}") from None
            raise self._failed(error) from None
        found = Redaction(secrets=self._setting.secrets).of_request(found)
        return self._reading.reply([found]) if not isinstance(found, str) else self._text(found)

    async def _called(self, args: dict[str, Any]) -> Any:
        if inspect.iscoroutinefunction(self._function):
            return await self._function(**args)
        found = await _in_thread(lambda: self._function(**args))
        return await found if inspect.isawaitable(found) else found

    def _text(self, answer: str) -> Reply:
        if self._options.contexts is not None:
            raise BadReply(f"{self._options.function} returned text, and no contexts: drop target.contexts")
        return Reply(answer=answer)

    def _failed(self, error: BaseException) -> UnavailableError:
        where = _place(error, self._folder)
        return UnavailableError(f"{where}: {type(error).__name__}: {error}")


async def _in_thread(call: Callable[[], Any]) -> Any:
    """The result of ``call`` in a daemon thread: one that never ends must not keep evalrun from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if not future.done():
            future.set_exception(error) if error is not None else future.set_result(result)

    def run() -> None:
        result, fault = None, None
        try:
            result = call()
        except BaseException as error:
            fault = (
                error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error}")
            )
            fault.__traceback__ = error.__traceback__
        with contextlib.suppress(RuntimeError):  # the run is over, nobody waits
            loop.call_soon_threadsafe(settle, result, fault)

    threading.Thread(target=run, daemon=True, name="evalrun bot").start()
    return await future


def load_function(name: str, folder: Path) -> Callable[..., Any]:
    """The function of ``package.module:function``, with ``folder`` first on the path of imports.

    Raises:
        UserError: it cannot be imported; names the line that failed.
    """
    module_name, _, function_name = name.partition(":")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        where = _place(error, folder)
        raise UserError(
            f"target.function: {module_name} cannot be imported: {where}: {type(error).__name__}: {error}",
            "mend it, or name another module",
        ) from None
    function = getattr(module, function_name, None)
    if not callable(function):
        raise UserError(
            f"target.function: {module_name} has no function '{function_name}'",
            "known: " + ", ".join(sorted(_functions(module))),
        )
    made: Callable[..., Any] = function
    return made


def _functions(module: Any) -> list[str]:
    return [name for name, value in vars(module).items() if inspect.isfunction(value) and name[0] != "_"]


def _check_takes(function: Callable[..., Any], options: PythonOptions) -> None:
    """The function can be called with these keywords.

    Raises:
        UserError: it cannot.
    """
    try:
        inspect.signature(function).bind(**options.args)
    except TypeError as error:
        raise UserError(
            f"target.args: {options.function} cannot be called with them: {error}",
            f"it is {options.function}{inspect.signature(function)}",
        ) from None
    except ValueError:  # a function in C may have no signature to look at
        return


def _place(error: BaseException, folder: Path) -> str:
    """``file:line`` where an error happened: the last place in the user's own files, else the last of all."""
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_relative(error.filename, folder)}:{error.lineno}"
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(folder)]
    last = (own or frames)[-1] if frames else None
    return f"{_relative(last.filename, folder)}:{last.lineno}" if last else "target.function"


def _relative(name: str, folder: Path) -> str:
    path = Path(name)
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else path.name
