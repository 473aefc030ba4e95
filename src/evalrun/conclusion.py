"""What a finished run says: estimates, verdicts, errors in words, and the exit code.

Owns the header of a run folder. It reads the sealed journals; it asks nobody.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from evalrun import gates
from evalrun.cassette import Address, Cassette, Miss
from evalrun.correction import correct
from evalrun.digest import tagged
from evalrun.errors import ExitCode, worst
from evalrun.journal import RunFolder
from evalrun.jsonl import write_atomically
from evalrun.judge import Judge
from evalrun.pipeline import Tally
from evalrun.planning import Plan
from evalrun.records import DatasetInfo, Estimate, Gate, JudgeInfo, RunHeader, Verdict
from evalrun.reports import words
from evalrun.shortfalls import offers_of
from evalrun.summary import summarise

if TYPE_CHECKING:
    from evalrun.beside import Beside

_NAMED = 12


def conclude(
    plan: Plan,
    folder: RunFolder,
    cassette: Cassette,
    tally: Tally,
    about: dict[str, Any],
    judge: Judge | None,
    spent: str = "",
) -> RunHeader:
    """Seal the journals and draw the conclusions from them. ``spent``: on what, where it was too much."""
    journals = folder.seal()
    config = plan.config
    info = _judge_info(plan, judge, tally, about)
    estimates, certificates = correct(
        summarise(plan.metrics, plan.cases, folder.scores(), config.draws, gated=not plan.partial),
        plan.labels,
        info.fingerprint if info else None,
        plan.cases,
        folder.draws(),
        folder.judgements(),
    )
    beside = _beside(plan, folder)
    verdicts = () if plan.partial else verdicts_of(plan.config.gates, estimates, beside)
    unavailable = _unavailable(plan, folder, tally)
    stood_in = _not_exercised(plan, cassette, tally)
    return RunHeader(
        evalrun=version("evalrun"),
        name=config.name,
        config=plan.public,
        config_digest=tagged("config", plan.public),
        dataset=_dataset_info(plan),
        bot={"kind": config.target.kind, **about},
        not_exercised=stood_in,
        origin=plan.answers.origin if plan.answers else None,
        judge=info,
        rubric_text=_rubric_text(plan) if judge else None,
        draws=config.draws,
        temperature=config.temperature,
        partial=plan.partial,
        complete=not (tally.out_of_budget or tally.down),
        exit_code=worst(
            _codes(tally, verdicts, unavailable=bool(cassette.misses or cassette.refused or unavailable))
        ),
        levels=dict(sorted(tally.levels.items())),
        demanded_level=config.provenance,
        recorded=plan.answers.recorded if plan.answers else cassette.recorded,
        metrics=plan.metrics,
        labels=plan.labels,
        certificates=certificates,
        estimates=estimates,
        verdicts=verdicts,
        baseline=beside.info(estimates) if beside else None,
        notes=(
            *_told_of(stood_in, tally.draws.total()),
            *_unknown(plan, cassette),
            *_keys(cassette),
            *plan.dataset.notes,
            *plan.notes,
            *plan.shortfalls,
            *_agreeing(plan, folder),
            *_failed(folder, tally),
        ),
        errors=tuple(_errors(plan, folder, cassette, tally, unavailable, spent)),
        journals=journals,
    )


def _dataset_info(plan: Plan) -> DatasetInfo:
    return DatasetInfo(
        name=plan.dataset.name,
        digest=plan.dataset.digest,
        cases=len(plan.cases),
        categories=dict(Counter(case.category for case in plan.cases)),
    )


def _errors(
    plan: Plan, folder: RunFolder, cassette: Cassette, tally: Tally, unavailable: list[str], spent: str
) -> Iterator[str]:
    """Why the run is not what was planned, in words."""
    yield from missed(cassette, "--record" if plan.answers else "--record-missing")
    yield from _refused(cassette)
    yield from sorted(tally.broken)[:_NAMED]
    yield from unavailable
    if tally.out_of_budget:
        yield f"{tally.out_of_budget}; reached: {spent}"
    if tally.out_of_budget or tally.down or tally.ended:
        yield from _not_asked(plan, folder, tally)


def _not_asked(plan: Plan, folder: RunFolder, tally: Tally) -> list[str]:
    """What a run that ended early left out, and of which questions: it is no smaller run."""
    asked = {draw.key for draw in folder.draws()}
    planned = ((case.id, index) for case in plan.cases for index in range(plan.config.draws))
    left = [case for case, index in planned if (case, index) not in asked]
    cases = list(dict.fromkeys(left))
    verdicts = tally.judgements["budget"] + (tally.judgements["service"] if tally.down else 0)
    parts = []
    if left:
        more = f" and {len(cases) - _NAMED} more" if len(cases) > _NAMED else ""
        of = f"of {words.count(len(cases), 'question')}: {', '.join(cases[:_NAMED])}{more}"
        parts.append(f"not asked for: {len(left)} of {words.count(plan.draws, 'answer')}, {of}")
    parts += [f"not judged: {words.count(verdicts, 'answer')}"] if verdicts else []
    return [f"  {'; '.join(parts)}; what was paid for is kept"] if parts else []


def _refused(cassette: Cassette) -> list[str]:
    """Replies that must not be written down, each reason once."""
    counted = Counter(cassette.refused)
    return [reason + (f" ({count} times)" if count > 1 else "") for reason, count in sorted(counted.items())]


def _not_exercised(plan: Plan, cassette: Cassette, tally: Tally) -> int:
    """For how many draws a recording of the bot's own replies stood in for it."""
    if plan.answers is not None:
        return plan.answers.not_exercised
    if not plan.config.at_bot or plan.mode == "live":
        return 0
    if plan.mode == "replay":
        return tally.draws.total()
    return len({(address.case, address.draw) for address in cassette.stood_in})


def _told_of(stood_in: int, draws: int) -> list[str]:
    if not stood_in:
        return []
    part = "" if stood_in >= draws else f" in {stood_in} of {draws} draws"
    return [
        f"the bot was not exercised{part}: its recorded replies stood in for it (cassette.at: bot); "
        "a change in the bot shows only when it is recorded again"
    ]


def _unknown(plan: Plan, cassette: Cassette) -> list[str]:
    """Where draws may be copies of one: calls that are told apart by nothing but what they ask."""
    if plan.mode == "live" or plan.config.draws == 1:
        return []
    return [
        f"calls of {path} are of no known wire: draws that ask the same share one recorded reply"
        for path in cassette.unknown
    ]


def _keys(cassette: Cassette) -> list[str]:
    """What was written down that looks like a key; a recording is kept, and shown to others."""
    if not (found := sorted(set(cassette.keys))):
        return []
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return [
        f"what looks like a key stands in {len(found)} of the recorded replies "
        f"({'; '.join(found[:_NAMED])}{more}): have 'cassette.redact' take it out, "
        "run again with --record-missing, and make the key void"
    ]


def _rubric_text(plan: Plan) -> str | None:
    judge = plan.config.judge
    return judge.rubric.read_text(encoding="utf-8") if judge else None


def _beside(plan: Plan, folder: RunFolder) -> Beside | None:
    """The run beside its baseline, of which it keeps a copy; None where it was held against none."""
    baseline = plan.baseline
    if baseline is None:
        return None
    from evalrun.beside import FILE, Beside

    write_atomically(folder.path / FILE, baseline.data)
    return Beside.of(baseline, plan.metrics, plan.cases, folder.scores(), plan.config.draws)


def verdicts_of(
    asked: Iterable[Gate], estimates: Iterable[Estimate], beside: Beside | None
) -> tuple[Verdict, ...]:
    """The verdict of every gate; ``beside`` is needed for those on a drop."""
    by_name = {(estimate.metric, estimate.group): estimate for estimate in estimates}
    return tuple(_verdict(gate, by_name, beside) for gate in asked)


def _verdict(gate: Gate, estimates: Mapping[tuple[str, str], Estimate], beside: Beside | None) -> Verdict:
    if gate.max_drop is None:
        return gates.decide(gate, estimates)
    if beside is None:
        return Verdict(gate=gate, decision="undecided", why="there is no baseline")
    from evalrun import drop_gates

    found = estimates.get((gate.metric, gate.group))
    measured = found is not None and found.measured is not None
    return drop_gates.decide(gate, beside.pairs(gate.metric, gate.group), judge_measured=measured)


def _judge_info(plan: Plan, judge: Judge | None, tally: Tally, about: dict[str, Any]) -> JudgeInfo | None:
    if judge is None:
        return None
    return JudgeInfo(
        model=judge.model.name,
        model_digest=judge.model.digest,
        rubric=judge.rubric.id,
        rubric_digest=judge.rubric.digest,
        checks=judge.checks,
        temperature=judge.temperature,
        fingerprint=judge.fingerprint,
        same_model_as_bot=about.get("model") == judge.model.name,
        corrections=dict(sorted(tally.corrections.items())),
        errors=tally.judgements.total() - tally.judgements["ok"],
        reasks=tally.reasks,
    )


def _codes(tally: Tally, verdicts: tuple[Verdict, ...], *, unavailable: bool) -> list[ExitCode]:
    codes = []
    if tally.broken:
        codes.append(ExitCode.PROVENANCE)
    if unavailable:
        codes.append(ExitCode.UNAVAILABLE)
    if any(verdict.decision == "fails" for verdict in verdicts):
        codes.append(ExitCode.GATE_FAILED)
    if tally.out_of_budget or any(verdict.red for verdict in verdicts):
        codes.append(ExitCode.NOT_ENOUGH_EVIDENCE)
    return codes


def _unavailable(plan: Plan, folder: RunFolder, tally: Tally) -> list[str]:
    """A bot that ended, or a service that never once answered: those are no scattered errors."""
    found = [tally.ended] if tally.ended else []
    found += tally.down
    if not tally.down and tally.draws["service"] and tally.draws["service"] == tally.draws.total():
        reason = next(draw.error for draw in folder.draws())
        tried = words.count(tally.draws["service"], "draw")
        found.append(f"the bot gave no answer at all ({tried} tried): {reason}")
    if lost := tally.draws["recording"] if plan.answers else 0:
        answers = words.count(lost, "answer")
        found.append(f"{answers} had no recording when the bot was asked: nothing is concluded")
    judged = tally.judgements
    if not tally.down and judged["service"] and judged["service"] == judged.total():
        reason = next(judgement.error for judgement in folder.judgements())
        tried = words.count(judged["service"], "answer")
        found.append(f"the judge gave no verdict at all ({tried} tried): {reason}")
    return found


def _agreeing(plan: Plan, folder: RunFolder) -> list[str]:
    """In how many questions the draws had one context, where the bot retrieves for each of them."""
    if plan.answers is not None or offers_of(plan.config).retrieval or plan.config.draws == 1:
        return []
    found: dict[str, list[str]] = defaultdict(list)
    for draw in folder.draws():
        if draw.context is not None and draw.error is None:
            found[draw.case].append(draw.context)
    several = [digests for digests in found.values() if len(digests) > 1]
    if not several:
        return []
    same = sum(len(set(digests)) == 1 for digests in several)
    asked = words.count(len(several), "question")
    return [f"the bot retrieves for each draw: the contexts of all draws agree in {same} of {asked}"]


def _failed(folder: RunFolder, tally: Tally) -> Iterator[str]:
    """Why some answers and verdicts were not had, the commonest reason first; of all an error tells."""
    draws, judged = tally.draws, tally.judgements
    if not tally.down and 0 < draws["service"] < draws.total():
        yield from _reasons(
            "the bot", "answer", (draw.error for draw in folder.draws(holding=b'"error"')), draws
        )
    if not tally.down and judged["ok"] and judged["ok"] < judged.total():
        errors = (judgement.error for judgement in folder.judgements(holding=b'"error"'))
        yield from _reasons("the judge", "verdict", errors, judged)


def _reasons(who: str, what: str, errors: Iterable[str | None], tally: Counter[str]) -> Iterator[str]:
    """``the bot gave no answer for 3 of 80 draws: 2 × HTTP 500, 1 × the answer is empty``."""
    listed = ("recording:", "budget:", "provenance:")  # each stands among the errors of the run
    found = Counter(error for error in errors if error and not error.startswith(listed))
    if not found:
        return
    told = [f"{n} × {words.one_line(why.removeprefix('service: '), 160)}" for why, n in found.most_common(3)]
    more = f"; {words.count(len(found) - 3, 'other reason')}" if len(found) > 3 else ""
    of = f"{found.total()} of {words.count(tally.total(), 'draw')}"
    yield f"{who} gave no {what} for {of}: {'; '.join(told)}{more}"


def missed(cassette: Cassette, refresh: str = "--record-missing") -> list[str]:
    """What the recording does not hold, which cases that is, what differs, and what ``refresh`` costs."""
    bot = _by_case([miss for miss in cassette.misses if miss.book == "bot"])
    judge = _by_case([miss for miss in cassette.misses if miss.book == "judge"])
    lines = [*_told("answers", bot), *_told("verdicts", judge)]
    if not lines:
        return []
    answers = sum(len(addresses) for addresses, _ in bot.values())
    verdicts = answers + sum(len(addresses) for addresses, _ in judge.values())
    seconds = answers * (cassette.seconds_of("bot") or 0) + verdicts * (cassette.seconds_of("judge") or 0)
    read = f"up to {words.count(verdicts, 'verdict')}"
    cost = f"{words.count(answers, 'answer')} and {read}" if answers else read
    time = f", about {seconds:.0f} s at the recorded speed" if seconds else ""
    return [*lines, f"a refresh costs {cost}{time}: run again with {refresh}"]


def _by_case(misses: list[Miss]) -> dict[str, tuple[set[Address | None], Miss]]:
    found: dict[str, tuple[set[Address | None], Miss]] = {}
    ordered = sorted(misses, key=lambda miss: (miss.address is not None, miss.address or ()))
    for miss in ordered:
        case = miss.address.case if miss.address else f"a call to {miss.path}"
        found.setdefault(case, (set(), miss))[0].add(miss.address)
    return found


def _told(what: str, cases: dict[str, tuple[set[Address | None], Miss]]) -> list[str]:
    if not cases:
        return []
    count, of = sum(len(addresses) for addresses, _ in cases.values()), len(cases)
    stale = any(miss.stale for _, miss in cases.values())
    word = "a stale recording" if stale else "no recording"
    names = ", ".join(list(cases)[:_NAMED]) + (
        f" and {len(cases) - _NAMED} more" if len(cases) > _NAMED else ""
    )
    lines = [f"{count} {what} of {of} case{'s' if of > 1 else ''} have {word}: {names}"]
    differences = list(dict.fromkeys(f"{case}: {miss.difference}" for case, (_, miss) in cases.items()))
    return lines + [f"  {line}" for line in differences[:3]]
