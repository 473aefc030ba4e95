"""Going on with a run that did not come to its end: what is kept of it, and whether it is still the same run.

Owns which lines of the journals are kept, and the comparison of what a run was begun with and is to be gone
on with. What is missing is asked for by the pipeline, like anything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from evalrun.answers import ByKey, Contexts, context_of, earlier_of, system_text
from evalrun.differences import differing
from evalrun.errors import UserError
from evalrun.journal import HEADER, META, RunFolder
from evalrun.judge import Judge
from evalrun.planning import Plan
from evalrun.records import Begun, CaseContext, Context, Draw, Exchange, Judgement
from evalrun.sampler import Drawn

PASSING = ("service", "budget", "recording")
"""Kinds of errors that asking again may mend. All others were paid for, and are what was measured."""


def passing(error: str | None) -> bool:
    """Whether asking again may mend this error of a draw or a judgement."""
    return error is not None and error.partition(":")[0] in PASSING


@dataclass(frozen=True)
class Kept:
    """What an earlier session of a run has left: (case id, index) → draw and judgement, and model calls."""

    draws: Mapping[tuple[str, int], Drawn] = field(default_factory=dict)
    judgements: Mapping[tuple[str, int], Judgement] = field(default_factory=dict)
    exchanges: tuple[Exchange, ...] = ()

    @property
    def verdicts(self) -> Iterator[Exchange]:
        """The judge's replies."""
        return (line for line in self.exchanges if line.source == "judge")

    @property
    def contexts(self) -> dict[str, Context]:
        """Case → the context of its first turn."""
        found: dict[str, Context] = {}
        for (case, _), drawn in sorted(self.draws.items(), key=lambda item: item[0]):
            first = drawn.earlier[0] if drawn.earlier else None if drawn.draw.before else drawn.context
            if first is not None:
                found.setdefault(case, first)
        return found

    @property
    def lines(self) -> dict[tuple[str, str], CaseContext]:
        """(case, digest) → its line in ``contexts.jsonl``."""
        used = [
            (drawn.draw.case, context)
            for drawn in self.draws.values()
            for context in (*drawn.earlier, *([drawn.context] if drawn.context else []))
        ]
        return {(case, context.digest): CaseContext(case=case, context=context) for case, context in used}


def begun_of(plan: Plan, judge: Judge | None, command: str) -> Begun:
    """What a run is begun with; nothing is known of its bot yet."""
    return Begun(
        command=command,
        mode=plan.mode,
        partial=plan.partial,
        dataset=plan.dataset.digest,
        config=plan.public,
        origin=plan.answers.origin if plan.answers else None,
        judge=None
        if judge is None
        else {
            "model": judge.model.name,
            "model_digest": judge.model.digest,
            "rubric": judge.rubric.digest,
            "checks": list(judge.checks),
            "temperature": judge.temperature,
        },
    )


def check_same(folder: RunFolder, old: Begun, new: Begun) -> None:
    """Refuse to go on with another run than the one that was begun.

    Raises:
        UserError: names every value that differs, and what it was.
    """
    before, after = (begun.model_dump(mode="json", exclude={"format", "command"}) for begun in (old, new))
    if new.bot is None:
        del before["bot"], after["bot"]
    if found := list(differing(before, after)):
        lines = "\n".join(f"  {where}: {was!r} -> {now!r}" for where, was, now in found)
        hint = f"it was begun so that this goes on with it: {old.command}\n    or start a new run"
        raise UserError(f"{folder.path}: not the run that was begun:\n{lines}", hint)


def kept_of(folder: RunFolder, plan: Plan) -> Kept:
    """What is kept of an unfinished run.

    Kept are draws and judgements without an error that asking again may mend, and the calls that they were
    made of. Of the judge every reply is kept, since several answers may share it.

    Raises:
        UserError: a line other than a torn last one that is not of its journal.
    """
    planned = {(case.id, index) for case in plan.cases for index in range(plan.config.draws)}
    contexts: Contexts = {(case, context.digest): context for case, context in folder.contexts()}
    calls = list(folder.exchanges())
    by_key: ByKey = {(line.case, line.draw, line.key): line for line in calls}
    drawn = {
        draw.key: _drawn(draw, contexts, by_key)
        for draw in folder.draws()
        if draw.key in planned and not passing(draw.error) and _whole(draw, contexts, by_key)
    }
    exchanges = tuple(
        line
        for line in calls
        if line.source == "judge" or line.case is None or (line.case, line.draw) in drawn
    )
    return Kept(
        drawn,
        {
            (line.case, line.index): line
            for line in folder.judgements()
            if (line.case, line.index) in drawn
            and line.digest == drawn[line.case, line.index].draw.digest
            and not passing(line.error)
        },
        exchanges,
    )


def _whole(draw: Draw, contexts: Contexts, by_key: ByKey) -> bool:
    """Whether every context and call is there that a draw names. They are written before it; but where the
    power failed, of each file another part may be lost.
    """
    named = [(draw.context, draw.exchange), *((turn.context, turn.exchange) for turn in draw.before)]
    return all(
        (context is None or (draw.case, context) in contexts)
        and (exchange is None or (draw.case, draw.index, exchange) in by_key)
        for context, exchange in named
    )


def _drawn(draw: Draw, contexts: Contexts, by_key: ByKey) -> Drawn:
    return Drawn(
        draw,
        context_of(draw, contexts),
        broken=(draw.error or "").startswith("provenance:"),
        earlier=earlier_of(draw, contexts),
        system=system_text(draw, by_key),
    )


def settle(folder: RunFolder, kept: Kept) -> None:
    """Leave in the journals what is kept, each in one step; scores and conclusions are drawn anew.

    A draw outlives everything else about it: at whatever moment this stops, nothing is lost.
    """
    for name in (HEADER, META):
        (folder.path / name).unlink(missing_ok=True)
    folder.rewrite("contexts", kept.lines.values())
    folder.rewrite("draws", (drawn.draw for drawn in kept.draws.values()))
    folder.rewrite("judgements", kept.judgements.values())
    folder.rewrite("exchanges", kept.exchanges)
    folder.rewrite("scores", ())
