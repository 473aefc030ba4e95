"""Draws: which seed each one has, one retrieval a case, an answer, and the proof of what was graded.

Owns the order case → context → answer → proof. How many go on at once is the runner's; how a call is made
and repeated belongs to :mod:`evalrun.http`; what counts as proof to :mod:`evalrun.provenance`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from evalrun.cassette import Address, CassetteTransport, Spent, addressed
from evalrun.digest import context_digest, draw_digest, tagged, utf8
from evalrun.errors import RecordingError, UnavailableError, UnreachableError
from evalrun.http import Watch
from evalrun.provenance import (
    ChainBroken,
    NoContext,
    PromptCut,
    context_on_wire,
    prove_on_wire,
    prove_reported,
)
from evalrun.records import LEVELS, Case, Context, Draw, Exchange, Level, Reply, Turn
from evalrun.redaction import without
from evalrun.targets import Target
from evalrun.wires import system_of

if TYPE_CHECKING:
    from evalrun.tap import Tap

_SEED_BITS = 31
_DIGEST_BITS = 256
_REMEMBERED = 256
"""Cases whose context is held ready: draws are asked for case by case, so no earlier one is needed again."""


@dataclass
class Seeds:
    """The seed of every draw of a dataset, and the draw of every seed."""

    of: dict[Address, int] = field(default_factory=dict)
    at: dict[int, Address] = field(default_factory=dict)

    @classmethod
    def assign(cls, case_ids: Iterable[str], draws: int, turns: int | Mapping[str, int] = 1) -> Seeds:
        """A seed each, the first 31 bits of the digest of (case id, draw, turn); a taken one: the next 31.

        To be called with the whole dataset, in its order, before any filter: so a draw keeps its seed.
        ``turns``: of every case, or of each by its id.
        """
        seeds = cls()
        for case in case_ids:
            for draw in range(draws):
                for turn in range(turns if isinstance(turns, int) else turns[case]):
                    seeds._add(Address(case, draw, turn))
        return seeds

    def _add(self, address: Address) -> None:
        digest = int(tagged("seed", list(address)).removeprefix("sha256:"), 16)
        for shift in range(_DIGEST_BITS - _SEED_BITS, -1, -_SEED_BITS):
            seed = digest >> shift & (1 << _SEED_BITS) - 1
            if seed not in self.at:
                self.of[address], self.at[seed] = seed, address
                return
        raise OverflowError(f"no free seed for {address}")


@dataclass(frozen=True)
class Drawn:
    """A draw, the context it was answered from, those of its earlier turns, and its system text, if seen.

    ``unreachable``: it has no answer because nobody was there to give one, the bot or the model behind it.
    """

    draw: Draw
    context: Context | None = None
    broken: bool = False
    earlier: tuple[Context, ...] = ()
    system: str | None = None
    unreachable: bool = False


class Sampler:
    """Asks one target. ``draw`` may be called from many tasks at once; a case is retrieved once."""

    def __init__(
        self,
        target: Target,
        tap: Tap | None,
        seeds: Seeds,
        known: Mapping[str, Context] | None = None,
        spent: Spent | None = None,
        replies: CassetteTransport | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        """``known``: case → its context, retrieved before. ``spent`` counts a bot without a tap: an answer is
        one call, with the tokens that its reply tells. ``replies``: what records and counts its own replies.
        ``secrets``: words that no answer and no message may hold.
        """
        self._spent = (spent or Spent()) if tap is None else Spent()
        self._target = target
        self._known = known or {}
        self._tap = tap
        self._seeds = seeds
        self._replies = replies
        self._secrets = secrets
        self._contexts: dict[str, asyncio.Task[Context | None]] = {}

    async def context(self, case: Case) -> Context | None:
        """The context of a case, retrieved at the first call and not again while its draws are asked for.

        Raises:
            UnavailableError: retrieval failed.
            ChainBroken: the bot's digest is not that of its chunks.
        """
        if not self._target.offers.retrieval:
            return None
        if case.id not in self._contexts:
            task = asyncio.create_task(self._retrieve(case, self._known.get(case.id)))
            # Who asked may be gone when it fails (Ctrl-C): its failure is then nobody's, and no news.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._contexts[case.id] = task
            if len(self._contexts) > _REMEMBERED:
                del self._contexts[next(iter(self._contexts))]
        return await asyncio.shield(self._contexts[case.id])

    async def _retrieve(self, case: Case, known: Context | None = None) -> Context | None:
        if not self._target.offers.retrieval:
            return None
        found = known or await self._target.retrieve(case)
        if found is not None and found.digest != context_digest(found.chunks):
            raise ChainBroken("the retrieved context's digest is not that of its chunks")
        return found

    async def draw(self, case: Case, index: int) -> Drawn:
        """One draw. What went wrong with it stands in ``Draw.error`` as ``kind: what``.

        Where a case has several turns, each is asked after the bot's own answers to those before; the first
        that fails ends the conversation.

        Raises:
            OSError: what the bot's model replied could not be written down, as on a full disk.
        """
        before: list[Turn] = []
        earlier: list[Context] = []
        while True:
            asked = case.after(before) if len(case.turns) > 1 else case
            drawn = await self._turn(asked, Address(case.id, index, len(before)))
            if drawn.draw.error is not None and self._tap is not None and self._tap.unwritten is not None:
                raise self._tap.unwritten
            if drawn.draw.error is not None or len(before) + 1 == len(case.turns):
                return _after(drawn, before, earlier)
            before.append(_turn_of(asked, drawn.draw))
            if drawn.context is not None:
                earlier.append(drawn.context)

    async def _turn(self, case: Case, address: Address) -> Drawn:
        """One turn: what is retrieved for it, what the bot says, what proves it."""
        empty = Draw(case=case.id, index=address.draw, seed=self._seeds.of[address])
        context: Context | None = None
        calls = self._tap.heard if self._tap else 0

        def failed(reason: str, *, broken: bool = False, unreachable: bool = False) -> Drawn:
            # Turns, and the draws of some bots, have contexts of their own: the draw must say which this was.
            digest = context.digest if context is not None else None
            told = without(reason, self._secrets)
            draw = empty.model_copy(update={"error": told, "context": digest})
            return Drawn(draw, context, broken, unreachable=unreachable)

        try:
            # Only the first turn is the same for every draw; what comes later follows the bot's own answers.
            context = await (self._retrieve(case) if address.turn else self.context(case))
            return await self._answered(case, empty, context, address)
        except UnavailableError as error:
            miss = self._tap.missed(address) if self._tap else None
            if miss or isinstance(error, RecordingError):
                return failed(f"recording: {(miss or error).message}")
            return failed(f"service: {error.message}", unreachable=self._gone(error, calls))
        except PromptCut as error:
            return failed(f"cut: {error}")
        except NoContext as error:
            return failed(f"context: {error}")
        except ChainBroken as error:
            return failed(f"provenance: {error}", broken=True)

    def _gone(self, error: UnavailableError, calls: int) -> bool:
        """Whether nobody was there, neither a model nor a bot; one that has called its model is there."""
        if self._tap is not None and self._tap.upstream_gone:
            return True
        heard = self._tap is not None and self._tap.heard > calls
        return isinstance(error, UnreachableError) and not heard

    async def _answered(self, case: Case, empty: Draw, sent: Context | None, address: Address) -> Drawn:
        started = time.perf_counter()
        self._spent.calls += self._replies is None
        with addressed(address):
            reply = await self._target.answer(case, sent, self._seeds.of[address], self._watch(address))
        if self._replies is None or address not in self._replies.cassette.stood_in:
            self._spent.add(reply.usage.prompt_tokens, reply.usage.completion_tokens)
        seconds = time.perf_counter() - started
        miss = self._tap.missed(address) if self._tap else None
        if miss is not None and self._tap is not None and self._tap.missed_itself(address):
            raise miss  # whatever the bot made of it
        answer = without(utf8(reply.answer).decode(), self._secrets)
        if not answer.strip():
            raise UnavailableError("the answer is empty")
        if sent is not None and reply.context is not None and reply.context.digest != sent.digest:
            raise ChainBroken("the bot answered from another context than the one it retrieved")
        context = sent if sent is not None else reply.context
        seen = self._tap.seen(address) if self._tap else ()
        if self._target.rule.cut is not None:
            context = context_on_wire(seen, case, answer, self._target.rule)
        level, proof = self._proved(case, context, reply, answer, seen)
        timed = seen or (self._replies.seen(address) if self._replies else ())
        digest = context.digest if context else None
        draw = empty.model_copy(
            update={
                "digest": draw_digest(
                    case.question, case.history, context.digest if context else None, answer
                ),
                "answer": answer,
                "context": digest,
                "prompt": reply.prompt if level == "reported" else None,
                "model": reply.model,
                "finish_reason": reply.finish_reason,
                "usage": reply.usage,
                "seconds": round(sum(call.seconds for call in timed) if timed else seconds, 3),
                "level": level,
                "exchange": proof.key if proof else None,
            }
        )
        return Drawn(draw, context, system=_system(proof, reply))

    def _watch(self, address: Address) -> Watch:
        tap, replies = self._tap, self._replies
        if tap is None:
            begin: Callable[[], None] = partial(replies.begin, address) if replies else lambda: None
            return Watch(begin=begin, final=lambda: False)
        if not self._target.offers.seed:
            tap.current = address
        return Watch(
            begin=lambda: tap.begin(address), final=lambda: bool(tap.missed(address) or tap.unwritten)
        )

    def _proved(
        self, case: Case, context: Context | None, reply: Reply, answer: str, seen: tuple[Exchange, ...]
    ) -> tuple[Level, Exchange | None]:
        # Of an attack even a cut answer is read: who attacks has seen it.
        whole = case.attack is None
        if reply.finish_reason == "length" and whole:
            raise PromptCut("the answer was cut at its length limit")
        if context is None:
            return "none", None
        if self._tap is not None:
            proof = prove_on_wire(seen, case, context, answer, self._target.rule, whole=whole)
            return ("observed", proof) if proof else ("claimed", None)
        if reply.prompt is not None:
            prove_reported(reply.prompt, case, context)
            return "reported", None
        return "claimed", None


def _turn_of(asked: Case, draw: Draw) -> Turn:
    return Turn(
        question=asked.question,
        answer=draw.answer or "",
        seed=draw.seed,
        context=draw.context,
        level=draw.level,
        exchange=draw.exchange,
        prompt=draw.prompt,
    )


def _after(drawn: Drawn, before: Sequence[Turn], earlier: Sequence[Context]) -> Drawn:
    """The last turn with those before it; a chain is as strong as its weakest link."""
    if not before:
        return drawn
    level = min((drawn.draw.level, *(turn.level for turn in before)), key=LEVELS.index)
    draw = drawn.draw.model_copy(update={"before": tuple(before), "level": level})
    return replace(drawn, draw=draw, earlier=tuple(earlier))


def _system(proof: Exchange | None, reply: Reply) -> str | None:
    """The system text of the prompt, as it was seen on the wire or as the bot reports it."""
    if proof is not None:
        return system_of(proof.request)
    said = [message.content for message in reply.prompt or () if message.role == "system"]
    return "\n".join(said) or None
