"""A program that reads a JSON line and writes one: ids, several in flight, timeouts, its end, no orphan."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from evalrun.errors import UnavailableError
from evalrun.records import Case, Message, Reply
from evalrun.targets import BadReply
from fakes.targets import WATCH, closing, made

PROGRAM = Path(__file__).parent.parent / "fakes" / "program.py"
ALL = {"question": "{question}", "history": "{history}", "seed": "{seed}"}


def program(folder: Path, defect: str = "", **options: Any) -> AbstractAsyncContextManager[Any]:
    """A target over the fake program, run in ``folder``."""
    command = [sys.executable, "-S", str(PROGRAM), *([defect] if defect else [])]
    options = {"env": {"PID_FILE": "pids"}} | options
    return closing(made("command", "http://tap", folder, command=command, **options))


async def ask(target: Any, question: str) -> Any:
    """The reply to one question."""
    case = Case(id="a", question=question, category="x", history=(Message(role="user", content="Hello."),))
    return await target.answer(case, None, 7, WATCH)


def pids(folder: Path) -> list[int]:
    """The processes that were started, in order."""
    return [int(line) for line in (folder / "pids").read_text().split()]


def runs(pid: int) -> bool:
    """Whether a process is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_one_process_answers_many_lines_in_any_order(tmp_path: Path) -> None:
    """A slow question does not hold up a quick one, each gets its own answer, and one process did it all."""
    async with program(tmp_path) as target:
        slow = asyncio.create_task(ask(target, "slow one"))
        quick = await asyncio.gather(*(ask(target, f"quick {number}") for number in range(20)))
        assert [f"quick {number}"[::-1] for number in range(20)] == [reply.answer for reply in quick]
        assert "eno wols" == (await slow).answer
    assert 1 == len(pids(tmp_path))
    assert [False] == [runs(pid) for pid in pids(tmp_path)]


async def test_a_line_holds_the_body_with_values_in_its_slots(tmp_path: Path) -> None:
    """Question, history and seed as values, and the id beside them; contexts are found like anywhere."""
    async with program(
        tmp_path, body=ALL, answer="to_string(asked)", contexts="[asked]|[].{text: question}"
    ) as bot:
        reply = await ask(bot, "Where {seed}?")
    wanted = '{"question":"Where {seed}?","history":[{"role":"user","content":"Hello."}],"seed":7,"id":1}'
    assert wanted == reply.answer
    assert ["Where {seed}?"] == [chunk.text for chunk in reply.context.chunks]
    assert reply.context.numbered


async def test_tap_and_variables_are_filled_in(tmp_path: Path) -> None:
    """In the command and in its environment."""
    show = """if True:
        import json, os, sys
        asked = json.loads(input())
        print(json.dumps({"id": asked["id"], "answer": sys.argv[1] + " " + os.environ["B"]}))
    """
    options: dict[str, Any] = {
        "command": [sys.executable, "-S", "-c", show, "{tap}/v1"],
        "env": {"B": "{tap}"},
    }
    async with closing(made("command", "http://tap", tmp_path, **options)) as target:
        assert "http://tap/v1 http://tap" == (await ask(target, "x")).answer


async def test_a_program_that_crashes_is_an_error_with_its_last_words_and_starts_again(
    tmp_path: Path,
) -> None:
    """The question that did it fails, with exit code and standard error; the next one is answered."""
    async with program(tmp_path) as target:
        assert "a" == (await ask(target, "a")).answer
        with pytest.raises(UnavailableError) as caught:
            await ask(target, "crash")
        assert "b" == (await ask(target, "b")).answer
    assert caught.value.message.startswith(
        "target.command: the program ended with code 9; its last output:\n"
    )
    assert caught.value.message.endswith("    loading\n    division by zero")
    assert 2 == len(pids(tmp_path))


async def test_those_in_flight_at_a_crash_are_asked_again(tmp_path: Path) -> None:
    """Within the retries of the limits: an innocent question is answered by the next process."""
    async with program(tmp_path, retries=1) as target:
        innocent = asyncio.create_task(ask(target, "slow one"))
        await asyncio.sleep(0.3)
        with pytest.raises(UnavailableError, match="ended with code 9"):
            await ask(target, "crash")
        # The second crash took it along once more: nothing is left but to say so, or it was quick enough.
        reply = (await asyncio.gather(innocent, return_exceptions=True))[0]
        assert isinstance(reply, UnavailableError) or (
            isinstance(reply, Reply) and "eno wols" == reply.answer
        )
        assert target.retries >= 1


async def test_a_program_that_hangs_is_stopped_and_started_again(tmp_path: Path) -> None:
    """No answer in time: the draw fails, and the next question goes to a new process."""
    async with program(tmp_path, seconds=4.0) as target:
        with pytest.raises(UnavailableError, match="no answer within 4 s; its last output:\n    loading"):
            await ask(target, "hang")
        assert "b" == (await ask(target, "b")).answer
    assert [False, False] == [runs(pid) for pid in pids(tmp_path)]


async def test_a_program_that_never_answers_is_given_up(tmp_path: Path) -> None:
    """It is started again a few times, not for each of a thousand questions."""
    async with program(tmp_path, "dies") as target:
        for _ in range(12):
            with pytest.raises(UnavailableError) as caught:
                await ask(target, "a")
        assert "no such index: broken.json" in caught.value.message
        assert caught.value.message == target.ended()
        assert "ended with code 1" in target.ended()


async def test_an_error_line_is_an_error_of_its_question(tmp_path: Path) -> None:
    """The program says what went wrong; it goes on."""
    async with program(tmp_path) as target:
        with pytest.raises(UnavailableError, match="the index is gone"):
            await ask(target, "fail")
        assert "b" == (await ask(target, "b")).answer


async def test_a_reply_without_an_id_is_told_at_once(tmp_path: Path) -> None:
    """Not after the timeout: it cannot be known whose it is."""
    async with program(tmp_path, "no-id") as target:
        with pytest.raises(BadReply, match="a reply without the id of its question"):
            await ask(target, "a")


async def test_other_lines_are_no_replies(tmp_path: Path) -> None:
    """What a library prints is kept for the last words, and disturbs nothing."""
    async with program(tmp_path, "chatty") as target:
        assert "a" == (await ask(target, "a")).answer
        with pytest.raises(UnavailableError, match="Loading the model…"):
            await ask(target, "crash")


async def test_a_program_that_is_not_there_is_told_at_the_start(tmp_path: Path) -> None:
    """Before the first question."""
    async with closing(made("command", "", tmp_path, command=["no-such-bot"])) as target:
        with pytest.raises(UnavailableError, match=r"target\.command: 'no-such-bot' is not installed here"):
            await target.about()


def test_what_it_offers_is_read_off_its_body() -> None:
    """Seed and history only where they are sent; contexts where they are found."""
    offers = made("command", "", command=["x"]).offers
    assert (False, False, False) == (offers.seed, offers.history, offers.contexts)
    offers = made("command", "", command=["x"], body=ALL, contexts="sources").offers
    assert (True, True, True, True) == (offers.seed, offers.history, offers.contexts, offers.ids)
