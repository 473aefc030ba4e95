"""Seeds, one retrieval a case, an answer, and the proof of what was graded."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from evalrun.cassette import Address
from evalrun.digest import draw_digest, tagged
from evalrun.errors import UnavailableError
from evalrun.http import Watch
from evalrun.provenance import Rule
from evalrun.records import Case, Chunk, Context, Message, Reply, Usage
from evalrun.sampler import Sampler, Seeds
from evalrun.targets import BadReply, Offers

CASE = Case(id="talks", question="Where?", category="known")
CONTEXT = Context.of((Chunk(id="a", text="A."), Chunk(id="b", text="B.")))
OTHER = Context.of((Chunk(id="c", text="C."),))


class FakeTarget:
    """A bot that returns what it is given to return; counts its retrievals."""

    rule = Rule()

    def __init__(self, reply: Reply | Exception, context: Context | Exception | None = CONTEXT) -> None:
        self.offers = Offers(retrieval=context is not None, seed=True)
        self.retrieved = 0
        self.seeds: list[int] = []
        self._reply = reply
        self._context = context

    async def about(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    async def retrieve(self, case: Case) -> Context | None:
        """Takes a moment, so that several draws wait for it."""
        self.retrieved += 1
        await asyncio.sleep(0.01)
        if isinstance(self._context, Exception):
            raise self._context
        return self._context

    async def answer(self, case: Case, context: Context | None, seed: int, watch: Watch) -> Reply:
        """The same for everybody."""
        self.seeds.append(seed)
        if isinstance(self._reply, Exception):
            raise self._reply
        return self._reply


def sampler(
    reply: Reply | Exception, context: Context | Exception | None = CONTEXT
) -> tuple[Sampler, FakeTarget]:
    """A sampler without a tap, and its bot."""
    target = FakeTarget(reply, context)
    return Sampler(target, None, Seeds.assign(["talks"], 8)), target  # type: ignore[arg-type]


# ---------------------------------------------------------------- seeds


def test_a_seed_is_the_first_31_bits_of_the_digest_of_case_draw_and_turn() -> None:
    """A golden value, and the draw is found by it."""
    seeds = Seeds.assign(["talks"], 2)
    digest = int(tagged("seed", ["talks", 1, 0]).removeprefix("sha256:"), 16)
    assert digest >> (256 - 31) == seeds.of[Address("talks", 1)]
    assert Address("talks", 1) == seeds.at[seeds.of[Address("talks", 1)]]
    assert all(0 <= seed < 2**31 for seed in seeds.at)


def test_a_draw_keeps_its_seed_whatever_is_asked_beside_it() -> None:
    """More draws or more cases after it change nothing: a recording lives on."""
    few, many = Seeds.assign(["a"], 2), Seeds.assign(["a", "b"], 5)
    assert few.of == {address: many.of[address] for address in few.of}
    assert 10 == len(many.at)


def test_a_taken_seed_gives_way_to_the_next_31_bits() -> None:
    """The digest's next bits, in dataset order; the one who came first keeps it."""
    address = Address("talks", 0)
    digest = int(tagged("seed", list(address)).removeprefix("sha256:"), 16)
    first, second = digest >> 225, digest >> 194 & 2**31 - 1
    seeds = Seeds()
    seeds.at[first] = Address("earlier", 0)
    seeds._add(address)
    assert (second, Address("earlier", 0)) == (seeds.of[address], seeds.at[first])


# ---------------------------------------------------------------- draws


async def test_a_case_is_retrieved_once_for_all_its_draws() -> None:
    """However many draws wait for it at the same time; each is asked with its own seed."""
    made, target = sampler(Reply(answer="Here."))
    drawn = await asyncio.gather(*(made.draw(CASE, index) for index in range(8)))
    assert 1 == target.retrieved
    assert 8 == len(set(target.seeds))
    assert {CONTEXT.digest} == {one.draw.context for one in drawn}


async def test_a_draw_says_what_was_answered_from_what() -> None:
    """Answer, context, model, tokens, and the digest that labels hold on to."""
    reply = Reply(
        answer="Here.", context=CONTEXT, model="m", finish_reason="stop", usage=Usage(completion_tokens=2)
    )
    draw = (await sampler(reply)[0].draw(CASE, 3)).draw
    assert ("talks", 3, "Here.", CONTEXT.digest, "m", "stop", 2, "claimed", None) == (
        draw.case,
        draw.index,
        draw.answer,
        draw.context,
        draw.model,
        draw.finish_reason,
        draw.usage.completion_tokens,
        draw.level,
        draw.error,
    )
    assert draw_digest("Where?", (), CONTEXT.digest, "Here.") == draw.digest


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (UnavailableError("HTTP 500: Sorry, I cannot."), "service: HTTP 500: Sorry, I cannot."),
        (BadReply("no answer"), "service: no answer"),
        (Reply(answer=" \n"), "service: the answer is empty"),
        (Reply(answer="Half an", finish_reason="length"), "cut: the answer was cut at its length limit"),
    ],
)
async def test_what_went_wrong_is_a_reason_and_no_answer(reply: Reply | Exception, error: str) -> None:
    """Nothing is raised; the context is kept, so that retrieval can be measured all the same."""
    drawn = await sampler(reply)[0].draw(CASE, 0)
    assert (error, None, CONTEXT, False) == (drawn.draw.error, drawn.draw.answer, drawn.context, drawn.broken)


async def test_an_answer_from_another_context_is_a_broken_chain() -> None:
    """The bot says itself that it answered from something else than it retrieved."""
    drawn = await sampler(Reply(answer="Here.", context=OTHER))[0].draw(CASE, 0)
    assert drawn.broken
    assert "provenance: the bot answered from another context than the one it retrieved" == drawn.draw.error


async def test_a_digest_that_is_not_its_contexts_is_a_broken_chain() -> None:
    """A context that says it is another."""
    wrong = CONTEXT.model_copy(update={"digest": OTHER.digest})
    drawn = await sampler(Reply(answer="Here."), wrong)[0].draw(CASE, 0)
    assert drawn.broken
    assert "provenance: the retrieved context's digest is not that of its chunks" == drawn.draw.error


async def test_a_failed_retrieval_fails_each_draw_of_its_case() -> None:
    """It is not asked for again: all draws of a case have one context, or none."""
    made, target = sampler(Reply(answer="Here."), UnavailableError("HTTP 503"))
    drawn = [await made.draw(CASE, index) for index in range(2)]
    assert ["service: HTTP 503"] * 2 == [one.draw.error for one in drawn]
    assert 1 == target.retrieved


async def test_the_level_says_how_much_is_proved() -> None:
    """Without a tap: reported with a prompt that holds the block, claimed with a context, else none."""
    from evalrun.digest import context_block

    block = context_block(CONTEXT.chunks, CONTEXT.digest)
    prompt = (Message(role="user", content=f"{block}\nWhere?"),)
    reported = (await sampler(Reply(answer="x", prompt=prompt))[0].draw(CASE, 0)).draw
    claimed = (await sampler(Reply(answer="x", context=CONTEXT), None)[0].draw(CASE, 0)).draw
    nothing = (await sampler(Reply(answer="x"), None)[0].draw(CASE, 0)).draw
    assert ["reported", "claimed", "none"] == [reported.level, claimed.level, nothing.level]
    assert prompt == reported.prompt
    assert (None, None) == (claimed.prompt, nothing.context)
    lying = (Message(role="user", content="Where?"),)
    assert (await sampler(Reply(answer="x", prompt=lying))[0].draw(CASE, 0)).broken


async def test_a_lone_surrogate_in_an_answer_is_replaced_once_for_all() -> None:
    """What is digested is what is written down."""
    draw = (await sampler(Reply(answer="a\ud800b"))[0].draw(CASE, 0)).draw
    assert "a\ufffdb" == draw.answer
    assert draw_digest("Where?", (), CONTEXT.digest, "a\ufffdb") == draw.digest
