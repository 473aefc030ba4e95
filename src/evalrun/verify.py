"""Every link of a run derived anew, offline: block → exchange → answer → verdict → score → estimate → gate.

Owns the comparison of what a run folder says with what follows from what stands below it. Each break names
the link and the case; a changed byte that breaks no link is still a changed file.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path

from evalrun.answers import context_of, earlier_of, system_text
from evalrun.beside import FILE, Baseline, Beside
from evalrun.cassette import Address, Cassette, CassetteTransport, addressed, has_own_key
from evalrun.conclusion import verdicts_of
from evalrun.correction import correct
from evalrun.digest import context_digest, draw_digest, sha256_bytes, tagged
from evalrun.errors import UserError
from evalrun.journal import RunFolder
from evalrun.jsonl import content
from evalrun.judge import Judge
from evalrun.judge.rubric import load_rubric
from evalrun.models import model, split_spec
from evalrun.provenance import (
    ChainBroken,
    NoContext,
    PromptCut,
    Rule,
    context_on_wire,
    prove_on_wire,
    prove_reported,
)
from evalrun.records import Case, Context, Draw, Exchange, Judgement, RunHeader, Sample, Score, Turn
from evalrun.registry import UnknownName
from evalrun.reports.words import count
from evalrun.scorers import Scorer, build_all, score
from evalrun.summary import summarise
from evalrun.targets import TARGETS
from evalrun.wires import output_of

Seen = defaultdict[tuple[str, int, int], list[Exchange]]
"""(case, draw, turn) → the bot's model calls."""


@dataclass(frozen=True)
class Stored:
    """A run folder, read."""

    header: RunHeader
    cases: dict[str, Case]
    contexts: dict[tuple[str, str], Context]
    draws: dict[tuple[str, int], Draw]
    judgements: dict[tuple[str, int], Judgement]
    scores: list[Score]
    exchanges: list[Exchange]

    @classmethod
    def read(cls, folder: RunFolder) -> Stored:
        """All journals and the header.

        Raises:
            UserError: a line or file that is not of this format.
        """
        return cls(
            header=folder.header,
            cases={case.id: case for case in folder.cases()},
            contexts={(case, context.digest): context for case, context in folder.contexts()},
            draws={draw.key: draw for draw in folder.draws()},
            judgements={(one.case, one.index): one for one in folder.judgements()},
            scores=list(folder.scores()),
            exchanges=list(folder.exchanges()),
        )

    @cached_property
    def by_key(self) -> dict[tuple[str | None, int | None, str], Exchange]:
        """(case, draw, key) → exchange."""
        return {(line.case, line.draw, line.key): line for line in self.exchanges}

    @cached_property
    def rule(self) -> Rule:
        """What proves a draw of this run's bot."""
        kind = str(self.header.bot.get("kind"))
        fenced = kind in TARGETS.names() and TARGETS.get(kind).fenced
        return Rule.of(self.header.config.get("target") or {}, fenced=fenced)

    def earlier_of(self, draw: Draw) -> tuple[Context, ...]:
        """The contexts of a draw's earlier turns."""
        return earlier_of(draw, self.contexts)

    def ignore(self, book: str) -> list[re.Pattern[str]]:
        """What the cassette blanks before it takes a key; of answers taken over, what theirs blanked."""
        cassette, origin = self.header.config.get("cassette") or {}, self.header.origin
        patterns = origin.ignore if origin and book != "judge" else cassette.get("ignore", ())
        return [re.compile(pattern) for pattern in patterns]

    def context_of(self, draw: Draw) -> Context | None:
        """The context a draw was answered from; of a draw without an answer, that of its case."""
        return context_of(draw, self.contexts)


def verify_run(path: Path) -> tuple[list[str], str]:
    """(what does not hold, in words; what was checked, counted).

    Raises:
        UserError: the folder holds no finished run, or a file of it cannot be read, or a plugin that scored
            it is not loaded: no module is imported because a run folder names it.
    """
    folder = RunFolder(path)
    if gone := folder.gone:  # what stands on it would be told as broken, too
        return [f"{name}: the file is gone" for name in gone], ""
    stored = Stored.read(folder)
    scorers = _scorers(path, stored.header)
    broken = [
        *_origin(stored),
        *_contexts(stored),
        *_exchanges(stored),
        *_draws(stored),
        *_judgements(stored),
        *_scores(stored, scorers),
        *_conclusions(folder, stored),
        *_files(folder, stored.header),
    ]
    found = {
        "draw": stored.draws,
        "exchange": stored.exchanges,
        "verdict": stored.judgements,
        "score": stored.scores,
        "gate": stored.header.verdicts,
    }
    return broken, ", ".join(count(len(items), noun) for noun, items in found.items())


def _scorers(path: Path, header: RunHeader) -> Sequence[Scorer]:
    try:
        return build_all(header.config.get("scorers", ()), header.draws)
    except UnknownName as error:
        if not (plugins := header.config.get("plugins")):
            raise
        raise UserError(
            f"{path}: {error.message}; scored with plugins: {', '.join(plugins)}",
            "name the config that has them: evalrun verify --config FILE RUN",
        ) from None


def _origin(stored: Stored) -> Iterator[str]:
    """The answers of an earlier run are that run's, all of them."""
    origin = stored.header.origin
    if origin and origin.kind == "run" and origin.draws != stored.header.journals.get("draws.jsonl"):
        yield f"draws.jsonl: not the answers of the run '{origin.name}' that run.json names"


def _contexts(stored: Stored) -> Iterator[str]:
    for (case, digest), context in stored.contexts.items():
        if digest != context_digest(context.chunks):
            yield f"{case}: context: its chunks do not have the digest {digest[:23]}…"


def _exchanges(stored: Stored) -> Iterator[str]:
    """Each exchange has the key of its own request."""
    ignore = {book: stored.ignore(book) for book in ("bot", "judge")}
    for line in stored.exchanges:
        blanked = ignore["judge" if line.source == "judge" else "bot"]
        if not has_own_key(line, blanked):
            what = "the judge's prompt" if line.source == "judge" else "the prompt"
            yield f"{line.case}, draw {_number(line.draw)}: {what} is not the one its key was taken from"


def _number(draw: int | None) -> str:
    return "?" if draw is None else str(draw + 1)


def _draws(stored: Stored) -> Iterator[str]:
    """Each answer is what the model said, from the context that stands in its prompt."""
    seen: Seen = defaultdict(list)
    for line in stored.exchanges:
        if line.source != "judge" and line.case is not None and line.draw is not None:
            seen[line.case, line.draw, line.turn or 0].append(line)
    for draw in stored.draws.values():
        case = stored.cases.get(draw.case)
        where = f"{draw.case}, draw {draw.index + 1}"
        if case is None:
            yield f"{where}: its case is not in cases.jsonl"
            continue
        for number, turn in enumerate(draw.before):
            asked = case.after(draw.before[:number])
            found = _turn(stored, asked, turn, draw.case, seen[draw.case, draw.index, number])
            yield from (f"{where}, turn {number + 1}: {what}" for what in found)
        if draw.error is None:
            at = (draw.case, draw.index, len(draw.before))
            yield from (f"{where}: {what}" for what in _draw(stored, draw.asked(case), draw, seen[at]))


def _turn(stored: Stored, asked: Case, turn: Turn, case: str, seen: list[Exchange]) -> Iterator[str]:
    """An earlier turn is proved as a draw is."""
    if turn.question != asked.question:
        yield "question: it is not the one of this attack"
    context = stored.contexts.get((case, turn.context)) if turn.context else None
    yield from _proof(stored, turn, asked, context, turn.answer, seen)


def _draw(stored: Stored, case: Case, draw: Draw, seen: list[Exchange]) -> Iterator[str]:
    answer = draw.answer or ""
    if draw.digest != draw_digest(case.question, case.history, draw.context, answer):
        yield "answer: question, context and answer do not have the draw's digest"
    yield from _proof(stored, draw, case, stored.context_of(draw), answer, seen)


def _proof(
    stored: Stored,
    said: Draw | Turn,
    case: Case,
    context: Context | None,
    answer: str,
    seen: list[Exchange],
) -> Iterator[str]:
    if said.level == "none":
        return
    if context is None:
        yield "context: the one it was answered from is not in contexts.jsonl"
        return
    try:
        if stored.rule.cut and context_on_wire(seen, case, answer, stored.rule).digest != context.digest:
            yield "context: it is not the one that stands in the prompt"
        if said.level == "observed":
            proof = prove_on_wire(seen, case, context, answer, stored.rule, whole=case.attack is None)
            if proof is None:
                yield "proof: no model call on the wire proves this draw"
            elif proof.key != said.exchange:
                yield "exchange: another model call proves this draw than the one named"
            elif output_of(proof.path, proof.reply).finish != proof.finish:
                yield "exchange: the finish reason is not that of the reply"
        elif said.level == "reported":
            prove_reported(said.prompt or (), case, context)
    except (ChainBroken, NoContext, PromptCut) as error:
        yield f"proof: {error}"


def _judgements(stored: Stored) -> list[str]:
    """Each verdict follows from the judge's recorded replies, read again by rubric and checks."""
    if stored.header.judge is None:
        return [f"{case}: verdict without a judge" for case, _ in stored.judgements]
    with tempfile.TemporaryDirectory() as folder:
        rubric_file = Path(folder) / "rubric.yaml"
        rubric_file.write_text(stored.header.rubric_text or "", encoding="utf-8")
        rubric = load_rubric(rubric_file)
    if rubric.digest != stored.header.judge.rubric_digest:
        return ["rubric: its text does not have the digest in the header"]
    asked = stored.header.config.get("judge")
    if not isinstance(asked, dict) or not isinstance(asked.get("model"), str):
        return ["run.json: its config names no model for the judge"]
    provider, name = split_spec(asked["model"])
    transport = CassetteTransport(Cassette.holding(stored.exchanges, stored.ignore("judge")), "judge", None)
    made = model.get(provider)(name, "http://127.0.0.1", transport, digest=stored.header.judge.model_digest)
    judge = Judge(rubric, made, stored.header.judge.temperature)
    broken = [] if judge.fingerprint == stored.header.judge.fingerprint else ["judge: another fingerprint"]
    return broken + asyncio.run(_judged_again(stored, judge))


async def _judged_again(stored: Stored, judge: Judge) -> list[str]:
    broken = []
    for (case_id, index), judgement in stored.judgements.items():
        where = f"{case_id}, draw {index + 1}"
        draw, case = stored.draws.get((case_id, index)), stored.cases.get(case_id)
        context = judge.reads(stored.context_of(draw) if draw else None)
        if judgement.attempts == 0:
            continue
        if draw is None or case is None or context is None:
            broken.append(f"{where}: verdict on a draw that is not there")
            continue
        try:
            with addressed(Address(case_id, index, 0)):
                again = await judge.judge(draw.asked(case), draw, context)
        except UserError:
            broken.append(f"{where}: verdict: no recorded reply to the prompt that this draw makes")
            continue
        if again != judgement:
            fields = [
                name for name in Judgement.model_fields if getattr(again, name) != getattr(judgement, name)
            ]
            broken.append(f"{where}: verdict: {', '.join(fields)} do not follow from the judge's reply")
    await judge.model.close()
    return broken


def _scores(stored: Stored, scorers: Iterable[Scorer]) -> Iterator[str]:
    """Each score follows from its draw and verdict."""
    written = {(one.case, one.index, one.metric): one for one in stored.scores}
    derived: dict[tuple[str, int | None, str], Score] = {}
    for sample in _samples(stored):
        for scorer in scorers:
            found = score(scorer, sample, per="draw")
            if sample.draw.index == 0:
                found += score(scorer, sample, per="case")
            derived |= {(one.case, one.index, one.metric): one for one in found}
    for key in sorted({*written, *derived}, key=str):
        if written.get(key) != derived.get(key):
            case, index, metric = key
            where = case if index is None else f"{case}, draw {index + 1}"
            yield f"{where}: score: {metric} does not follow from the draw"


def _samples(stored: Stored) -> Iterator[Sample]:
    for draw in stored.draws.values():
        if draw.case in stored.cases:
            yield Sample(
                case=stored.cases[draw.case],
                draw=draw,
                context=stored.context_of(draw),
                judgement=stored.judgements.get(draw.key),
                system=system_text(draw, stored.by_key),
                earlier=stored.earlier_of(draw),
            )


def _conclusions(folder: RunFolder, stored: Stored) -> Iterator[str]:
    """Estimates follow from the scores, gates from the estimates."""
    header = stored.header
    if header.config_digest != tagged("config", header.config):
        yield "run.json: the config does not have its digest"
    cases = list(stored.cases.values())
    estimates, certificates = correct(
        summarise(header.metrics, cases, stored.scores, header.draws, gated=not header.partial),
        header.labels,
        header.judge.fingerprint if header.judge else None,
        cases,
        stored.draws.values(),
        stored.judgements.values(),
    )
    for stands, derived in zip_longest(header.certificates, certificates):
        if stands != derived:
            file = (stands or derived).file
            yield f"run.json: certificate: that of {file} does not follow from labels and verdicts"
    again = {(one.metric, one.group): one for one in estimates}
    for one in header.estimates:
        if again.pop((one.metric, one.group), None) != one:
            yield f"run.json: estimate: {one.metric}, {one.group} does not follow from the scores"
    yield from (f"run.json: estimate: {metric}, {group} is missing" for metric, group in again)
    try:
        beside = _beside(folder, stored)
    except UserError as error:
        yield f"{FILE}: {error.message}"
        return
    if header.baseline != (beside.info(header.estimates) if beside else None):
        yield f"run.json: baseline: its values do not follow from {FILE} and the scores"
    asked = [verdict.gate for verdict in header.verdicts]
    for verdict, found in zip(header.verdicts, verdicts_of(asked, header.estimates, beside), strict=True):
        if found != verdict:
            yield f"run.json: gate: {verdict.gate.name} does not follow from its estimate"


def _beside(folder: RunFolder, stored: Stored) -> Beside | None:
    """The run beside the baseline that it kept a copy of.

    Raises:
        UserError: there is no copy, or it is another file.
    """
    header, path = stored.header, folder.path / FILE
    if header.baseline is None:
        return None
    if not path.is_file() or sha256_bytes(path.read_bytes()) != header.baseline.sha256:
        raise UserError("the file is not the one the run wrote")
    baseline = replace(Baseline.read(path), path=Path(header.baseline.name))
    return Beside.of(baseline, header.metrics, list(stored.cases.values()), stored.scores, header.draws)


def _files(folder: RunFolder, header: RunHeader) -> Iterator[str]:
    for name, digest in header.journals.items():
        data = content(folder.path / name)
        if data is None or sha256_bytes(data) != digest:
            yield f"{name}: the file is not the one the run wrote"
