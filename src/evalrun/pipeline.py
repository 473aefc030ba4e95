"""Answers, judgements and scores of one run, each written down as soon as it exists.

Owns what goes on at once and in which order: draws under the target's limit, judging beside them (when
recording: after the last answer), the budget. What a draw or a judgement is belongs to sampler and judge.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from evalrun.cassette import Address, addressed
from evalrun.circuit import Circuit
from evalrun.errors import RecordingError, UnavailableError, UnreachableError
from evalrun.journal import RunFolder
from evalrun.judge import Judge
from evalrun.planning import Plan
from evalrun.records import LEVELS, Case, CaseContext, Judgement, Sample
from evalrun.resuming import Kept
from evalrun.sampler import Drawn
from evalrun.scorers import score
from evalrun.spending import Spending

if TYPE_CHECKING:
    from evalrun.outlook import Outlook

_WAITING = 256
"""Answers that wait for the judge at most, before no further one is asked for."""


class Progress(Protocol):
    """What wants to know how far a run is."""

    @property
    def live(self) -> bool: ...
    def start(self, total_draws: int, to_judge: int, outlook: Callable[[], str]) -> None: ...
    def answered(self, ok: bool) -> None: ...
    def judged(self, ok: bool) -> None: ...
    def stop(self) -> None: ...


class Answering(Protocol):
    """What draws come from: a sampler that asks a bot, or answers that are there already."""

    async def draw(self, case: Case, index: int) -> Drawn: ...


@dataclass
class Stop:
    """The wish to end a run early. ``asked``: begin nothing new; ``working``: something may be in flight."""

    asked: bool = False
    working: bool = False


@dataclass
class Tally:
    """What is known of a run beside its journals: how its draws ended, and what the judge needed.

    ``ended`` holds the last words of a bot that ended by itself, ``down`` says which services were gone;
    ``decided`` counts the answers that code read alone.
    """

    draws: Counter[str] = field(default_factory=Counter)
    levels: Counter[str] = field(default_factory=Counter)
    judgements: Counter[str] = field(default_factory=Counter)
    corrections: Counter[str] = field(default_factory=Counter)
    reasks: int = 0
    decided: int = 0
    broken: list[str] = field(default_factory=list)
    out_of_budget: str = ""
    ended: str = ""
    down: tuple[str, ...] = ()


@dataclass
class Pipeline:
    """One run going on."""

    plan: Plan
    folder: RunFolder
    answering: Answering
    judge: Judge | None
    progress: Progress
    spending: Spending
    concurrent: bool
    ended: Callable[[], str] = str
    kept: Kept = field(default_factory=Kept)
    stop: Stop = field(default_factory=Stop)
    tally: Tally = field(default_factory=Tally)
    _contexts: dict[str, set[str]] = field(default_factory=dict)
    _written: Counter[str] = field(default_factory=Counter)
    _outlook: Outlook | None = None
    _bot: Circuit = field(default_factory=lambda: Circuit("the bot, or the model behind it,"))
    _judges: Circuit = field(default_factory=lambda: Circuit("the judge"))

    async def run(self) -> None:
        """Every draw of the plan, judged as soon as it exists (when recording: after the last answer)."""
        plan = self.plan
        self.folder.rewrite("cases", plan.cases)
        for case, digest in self.kept.lines:
            self._contexts.setdefault(case, set()).add(digest)
        self._written = Counter(case for case, _ in self.kept.draws)
        if self.progress.live:
            from evalrun.outlook import Outlook

            gates = () if plan.partial else plan.config.gates
            labelled = bool(plan.labels)
            self._outlook = Outlook(gates, plan.metrics, plan.cases, plan.config.draws, labelled=labelled)
        seen = self._outlook.text if self._outlook else str
        absent = sum(draw.absent for draw in plan.answers.draws.values()) if plan.answers else 0
        there = plan.draws - absent
        self.progress.start(there, there if self.judge else 0, seen)
        # A judge slower than the bot must not let answers pile up; when recording it begins after the last.
        answered: asyncio.Queue[Sample | None] = asyncio.Queue(0 if plan.mode == "record" else _WAITING)
        limits = plan.config.judge.limits if plan.config.judge else None
        judges = limits.concurrency if limits and self.judge else 1
        asking = self._ask_all(answered)
        if plan.mode == "record":
            await asking
            asking = asyncio.sleep(0)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._then_end(asking, answered, judges))
            for _ in range(judges):
                tasks.create_task(self._judge_all(answered))
        bot = "" if self.tally.ended else self._bot.down
        self.tally.down = tuple(filter(None, (bot, self._judges.down)))

    @property
    def whole(self) -> bool:
        """Whether every draw of an unfiltered plan was answered and judged."""
        tally = self.tally
        judged = self.plan.draws - tally.decided if self.judge else 0
        return (
            not self.plan.partial
            and tally.draws["ok"] == self.plan.draws
            and tally.judgements.total() - tally.judgements["service"] - tally.judgements["budget"] >= judged
        )

    @property
    def finished(self) -> bool:
        """Whether asking again would get nothing more: of every draw an answer or the reason why not."""
        tally = self.tally
        # An answer that is there already, or was none, stays what it is.
        asked = (tally.judgements,) if self.plan.answers else (tally.draws, tally.judgements)
        lost = sum(counts[kind] for counts in asked for kind in ("service", "budget"))
        judged = tally.judgements.total() + tally.decided if self.judge else tally.draws["ok"]
        return not lost and tally.draws.total() == self.plan.draws and judged == tally.draws["ok"]

    async def _then_end(
        self, asking: Coroutine[Any, Any, None], answered: asyncio.Queue[Sample | None], judges: int
    ) -> None:
        await asking
        for _ in range(judges):
            await answered.put(None)

    async def _ask_all(self, answered: asyncio.Queue[Sample | None]) -> None:
        work = ((case, index) for case, index in self._planned() if (case.id, index) not in self.kept.draws)
        # A bot that passes no seed on can only be matched to its model calls one at a time, in order.
        workers = self.plan.config.target.limits.concurrency if self.concurrent else 1

        async def worker() -> None:
            for case, index in work:
                if self.stop.asked or self._gone() or self._spent():
                    return
                begun = time.perf_counter()
                drawn = await self.answering.draw(case, index)
                self._bot.tried(begun, (drawn.draw.error or "") if drawn.unreachable else "")
                self._write(case, drawn)
                await self._settle(case, drawn, answered)

        for case, index in self._planned() if self.kept.draws else ():
            if (drawn := self.kept.draws.get((case.id, index))) is not None:
                await self._settle(case, drawn, answered)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(workers):
                tasks.create_task(worker())
        self.tally.ended = self.ended()

    def _planned(self) -> Iterator[tuple[Case, int]]:
        return ((case, index) for case in self.plan.cases for index in range(self.plan.config.draws))

    def _gone(self) -> str:
        """Why asking on is of no use, or of none yet: without a judge, answers would wait for one."""
        return self.ended() or self._bot.down or self._judges.down

    def _spent(self) -> bool:
        self.tally.out_of_budget = self.tally.out_of_budget or self.spending.reached
        return bool(self.tally.out_of_budget)

    async def _settle(self, case: Case, drawn: Drawn, answered: asyncio.Queue[Sample | None]) -> None:
        """Count a draw, and score it or hand it to the judge."""
        self._note(case, drawn)
        if not drawn.draw.absent:
            self.progress.answered(drawn.draw.error is None)
        sample = Sample(
            case=case, draw=drawn.draw, context=drawn.context, system=drawn.system, earlier=drawn.earlier
        )
        if drawn.draw.index == 0:
            self._score(sample, per="case")
        if drawn.draw.error is not None or self.judge is None:
            self._score(sample, per="draw")
        elif not any(scorer.judged and scorer.asks(sample) for scorer in self.plan.scorers):
            self.tally.decided += 1
            self.progress.judged(True)
            self._score(sample, per="draw")
        else:
            await answered.put(sample)

    def _write(self, case: Case, drawn: Drawn) -> None:
        """Write a new draw down, last of all: where it stands, all stands that it was made of."""
        known, context = self._contexts.setdefault(case.id, set()), drawn.context
        for used in (*drawn.earlier, *([context] if context is not None else [])):
            if used.digest not in known:
                known.add(used.digest)
                self.folder.append("contexts", CaseContext(case=case.id, context=used))
        self.folder.append("draws", drawn.draw)
        self._written[case.id] += 1
        if self._written[case.id] == self.plan.config.draws:
            del self._contexts[case.id], self._written[case.id]

    def _note(self, case: Case, drawn: Drawn) -> None:
        draw = drawn.draw
        if drawn.broken:
            self.tally.broken.append(f"{case.id}, draw {draw.index + 1}: {draw.error}")
        self.tally.draws[draw.error.partition(":")[0] if draw.error else "ok"] += 1
        if not draw.error:
            self.tally.levels[draw.level] += 1

    async def _judge_all(self, answered: asyncio.Queue[Sample | None]) -> None:
        while (sample := await answered.get()) is not None:
            judgement = self.kept.judgements.get(sample.draw.key)
            if judgement is None:
                if self.stop.asked:
                    continue
                judgement = await self._judgement(sample)
                self.folder.append("judgements", judgement)
            self._count(judgement)
            self.progress.judged(judgement.error is None)
            self._score(sample.model_copy(update={"judgement": judgement}), per="draw")

    def _count(self, judgement: Judgement) -> None:
        error = judgement.error
        self.tally.judgements[error.partition(":")[0] if error else "ok"] += 1
        self.tally.reasks += judgement.attempts > 1
        self.tally.corrections.update(text.partition(":")[0] for text in judgement.corrections)

    async def _judgement(self, sample: Sample) -> Judgement:
        assert self.judge is not None
        draw, demanded = sample.draw, self.plan.config.provenance
        context = self.judge.reads(sample.context)
        missing = Judgement(case=draw.case, index=draw.index, digest=draw.digest or "", attempts=0)
        if context is None:
            return missing.model_copy(update={"error": "context: the bot returns none"})
        if LEVELS.index(draw.level) < LEVELS.index(demanded):
            reason = f"provenance: the proof is '{draw.level}', this config demands '{demanded}'"
            return missing.model_copy(update={"error": reason})
        if self._spent():
            return missing.model_copy(update={"error": f"budget: {self.tally.out_of_budget}"})
        if self._judges.down:
            return missing.model_copy(update={"error": f"service: not asked: {self._judges.down}"})
        begun, gone = time.perf_counter(), ""
        try:
            with addressed(Address(draw.case, draw.index, 0)):
                return await self.judge.judge(draw.asked(sample.case), draw, context)
        except UnavailableError as error:
            kind = "recording" if isinstance(error, RecordingError) else "service"
            gone = error.message if isinstance(error, UnreachableError) else ""
            return missing.model_copy(update={"error": f"{kind}: {error.message}"})
        finally:
            self._judges.tried(begun, gone)

    def _score(self, sample: Sample, *, per: str) -> None:
        lines = [line for scorer in self.plan.scorers for line in score(scorer, sample, per=per)]
        if lines:
            self.folder.append("scores", *lines)
        if self._outlook:
            for line in lines:
                self._outlook.add(line)
