"""A Python function as the bot: found, called in a thread or awaited, its failures told by file and line."""

from __future__ import annotations

import asyncio
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from evalrun.errors import UnavailableError, UserError
from evalrun.records import Case, Message
from evalrun.targets import TARGETS, BadReply
from evalrun.validation import Line, check
from fakes.targets import WATCH, made

CASE = Case(id="a", question="Where?", category="x", history=(Message(role="user", content="Hello."),))


def function(folder: Path, text: str, **options: Any) -> Any:
    """A target over ``answer`` of a module with this text, whose name no other test uses."""
    module = f"bot_{folder.name.replace('-', '_')}"
    (folder / f"{module}.py").write_text(textwrap.dedent(text), encoding="utf-8")
    return made("python", "http://tap", folder, function=f"{module}:answer", **options)


async def ask(target: Any) -> Any:
    """The reply to the one question."""
    return await target.answer(CASE, None, 7, WATCH)


async def test_a_function_is_called_with_values_and_returns_text(tmp_path: Path) -> None:
    """Each slot is a keyword of its own type; what is no slot is passed as it is."""
    args = {"q": "{question}", "past": "{history}", "seed": "{seed}", "url": "{tap}", "k": 3}
    target = function(
        tmp_path, "def answer(q, *, past, seed, url, k):\n    return repr((q, past, seed, url, k))", args=args
    )
    wanted = ("Where?", [{"role": "user", "content": "Hello."}], 7, "http://tap", 3)
    assert repr(wanted) == (await ask(target)).answer
    assert (True, True, True) == (target.offers.seed, target.offers.history, target._options.tapped)


async def test_an_async_function_is_awaited_and_an_object_is_read(tmp_path: Path) -> None:
    """Answer and contexts by JMESPath, as from any bot."""
    text = """
        import asyncio
        async def answer(question):
            await asyncio.sleep(0)
            return {"said": question, "docs": [{"id": "d1", "text": "One."}]}
    """
    reply = await ask(function(tmp_path, text, answer="said", contexts="docs"))
    assert ("Where?", ["d1"], False) == (reply.answer, reply.context.ids, reply.context.numbered)


async def test_a_function_that_is_not_async_runs_in_a_thread(tmp_path: Path) -> None:
    """Four that sleep take the time of about one."""
    target = function(tmp_path, "import time\ndef answer(question):\n    time.sleep(1)\n    return 'x'")
    started = time.perf_counter()
    await asyncio.gather(*(ask(target) for _ in range(4)))
    assert time.perf_counter() - started < 3.5


async def test_an_exception_is_an_error_with_file_and_line(tmp_path: Path) -> None:
    """The last place in the user's own file, also when a library raised it."""
    text = "import json\ndef answer(question):\n    return json.loads('{')\n"
    with pytest.raises(UnavailableError) as caught:
        await ask(function(tmp_path, text))
    name = f"bot_{tmp_path.name.replace('-', '_')}.py"
    assert caught.value.message.startswith(f"{name}:3: JSONDecodeError: Expecting property name")
    assert caught.value.__suppress_context__


async def test_a_function_that_ends_the_program_ends_only_its_draw(tmp_path: Path) -> None:
    """``sys.exit`` in a bot is a failure like any other."""
    with pytest.raises(UnavailableError, match=r":3: .*SystemExit: 3"):
        await ask(function(tmp_path, "import sys\ndef answer(question):\n    sys.exit(3)\n"))


async def test_a_function_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    """In its thread or awaited; a timeout of its own is a failure of its own."""
    slow = function(tmp_path, "import time\ndef answer(question):\n    time.sleep(20)", seconds=0.3)
    with pytest.raises(UnavailableError, match=r":answer: no answer within 0\.3 s"):
        await ask(slow)
    (own := tmp_path / "own").mkdir()
    with pytest.raises(UnavailableError, match=r"\.py:2: TimeoutError: upstream"):
        await ask(function(own, "async def answer(question):\n    raise TimeoutError('upstream')"))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("def reply(question): ...", {}, r"has no function 'answer'\n    known: reply"),
        ("x = 1/0", {}, r"cannot be imported: bot_\w+\.py:1: ZeroDivisionError: division by zero"),
        ("def answer(:", {}, r"cannot be imported: bot_\w+\.py:1: SyntaxError: "),
        ("def answer(q): ...", {}, r"target\.args: bot_\w+:answer cannot be called with them: .*'q'"),
    ],
)
def test_a_function_that_cannot_be_had_is_an_error_of_the_user(
    tmp_path: Path, text: str, options: Any, message: str
) -> None:
    """Told before the first question, with the line, and without a traceback."""
    with pytest.raises(UserError, match=message):
        function(tmp_path, text, **options)


async def test_what_is_neither_text_nor_an_object_with_it_is_no_answer(tmp_path: Path) -> None:
    """None from a function that forgot to return, and text where contexts are wanted."""
    with pytest.raises(BadReply, match="no text at 'answer' in the reply: null"):
        await ask(function(tmp_path, "def answer(question): pass"))
    (other := tmp_path / "other").mkdir()
    with pytest.raises(BadReply, match="returned text, and no contexts"):
        await ask(function(other, "def answer(question): return 'x'", contexts="docs"))


def test_a_name_is_checked_when_the_config_is_read(tmp_path: Path) -> None:
    """Its form, and that there is such a module, without importing it."""
    (tmp_path / "here_it_is.py").write_text("raise SystemExit")
    options = TARGETS.get("python").Options

    def problems(name: str) -> list[str]:
        value = {"kind": "python", "function": name}
        return [str(one) for one in check(options, value, Line("c"), context={"folder": tmp_path})[1]]

    assert [] == problems("here_it_is:answer")
    assert "is not package.module:function" in problems("answer")[0]
    assert "names no module 'not_there'" in problems("not_there:answer")[0]
