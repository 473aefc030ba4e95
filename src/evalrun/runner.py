"""The pipeline put together: plan → answers → judgements → scores → estimates → gates → reports.

The only composition root: everything that a run is made of is put together here and nowhere else.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from evalrun.cassette import Cassette, CassetteTransport
from evalrun.errors import ExitCode, Interrupted, RecordingError, ReportError, UnavailableError, worst
from evalrun.http import Limits, RetryTransport
from evalrun.journal import RunFolder
from evalrun.judge import Judge
from evalrun.launch import Launch
from evalrun.models import model, split_spec
from evalrun.pipeline import Answering, Pipeline, Progress, Stop
from evalrun.planning import Plan, target_of
from evalrun.preflight import allow_connections, check_servers
from evalrun.records import Begun, Context, Exchange, Meta, RunHeader
from evalrun.redaction import Redaction, told_without
from evalrun.reports import report, write_reports
from evalrun.resuming import Kept, begun_of, check_same, kept_of, settle
from evalrun.sampler import Drawn, Sampler
from evalrun.spending import Spending
from evalrun.targets import Setting, Target

if TYPE_CHECKING:
    from evalrun.tap import Tap

Observe = Callable[[Exchange], None]


@dataclass(frozen=True)
class Result:
    """A finished run: its folder, its exit code, and the reports that could not be written."""

    folder: RunFolder
    exit_code: ExitCode
    report_errors: tuple[ReportError, ...] = ()


async def execute(
    plan: Plan,
    folder: RunFolder,
    progress: Progress,
    *,
    refresh: bool = False,
    command: str = "",
    stop: Stop | None = None,
) -> Result:
    """Carry out a plan into a run folder: a new one, or one that holds an unfinished run.

    ``command`` goes on with this run where it ends early; without one it cannot be gone on with.

    Raises:
        Interrupted: ``stop`` was asked for before everything was done.
        UserError: what is in the folder is another run than this one.
        UnavailableError: the bot cannot be had at all, or there is no recording.
        RecordingError: it cannot be had because it asked for something that is not recorded.
    """
    started, clock = datetime.now().astimezone(), time.perf_counter()
    folder.secrets = plan.config.secrets
    cassette, whole = _cassette(plan, refresh), False
    try:
        async with AsyncExitStack() as stack:
            stack.enter_context(told_without(folder.secrets))
            parts = await _put_together(stack, plan, folder, cassette, command)
            loading = _loading(plan) if _waits(plan) else None
            work = await _worked(plan, folder, parts, progress, stop or Stop())
            whole = work.whole
            await _let_go(stack, plan, parts)
            cassette.close(whole=whole)
            progress.stop()
            if loading is not None:
                await loading
            from evalrun.conclusion import conclude

            spent = str(parts.spending)
            header = conclude(plan, folder, cassette, work.tally, parts.source.about, parts.judge, spent)
            seconds = round(time.perf_counter() - clock, 1)
            folder.write_header(header, _meta(plan, folder, header, parts, cassette, started, seconds))
            if work.finished:
                folder.finish()
            failed = tuple(write_reports(folder))
    except UnavailableError as error:
        if cassette.misses:
            from evalrun.conclusion import missed

            raise RecordingError("\n".join([*missed(cassette), error.message]), error.hint) from None
        raise
    finally:
        cassette.close(whole=whole)
        folder.close()
        progress.stop()
    codes = [ExitCode(header.exit_code), *(error.exit_code for error in failed)]
    return Result(folder, worst(codes), failed)


@dataclass(frozen=True)
class _Parts:
    """What a run is made of, beside its plan and its folder. ``asked_again``: calls of the judge."""

    kept: Kept
    source: _Source
    judge: Judge | None
    asked_again: Callable[[], int]
    spending: Spending


async def _put_together(
    stack: AsyncExitStack, plan: Plan, folder: RunFolder, cassette: Cassette, command: str
) -> _Parts:
    """Everything ready and checked, the folder begun. What can be refused is, before the bot is started."""
    kept = kept_of(folder, plan) if folder.unfinished else Kept()
    judge, asked_again = _judge(stack, plan, cassette, _into(folder), kept.verdicts)
    allow_connections(plan)
    await check_servers(plan, cassette)
    _check_baseline(plan, judge)
    begun = begun_of(plan, judge, command)
    _check_same(folder, begun)
    source = await _source(stack, plan, cassette, _into(folder), kept.contexts)
    _begin(folder, begun.model_copy(update={"bot": source.about}), kept)
    for exchange in plan.answers.exchanges if plan.answers else ():
        folder.append("exchanges", exchange)
    spending = Spending(plan.config.budget, plan.config.prices, cassette.spent)
    return _Parts(kept, source, judge, asked_again, spending)


async def _worked(plan: Plan, folder: RunFolder, parts: _Parts, progress: Progress, stop: Stop) -> Pipeline:
    """The pipeline after its last judgement."""
    source = parts.source
    work = Pipeline(
        plan,
        folder,
        source.answering,
        parts.judge,
        progress,
        parts.spending,
        source.at_once,
        source.ended,
        parts.kept,
        stop,
    )
    stop.working = True
    try:
        await work.run()
    finally:
        stop.working = False
    if stop.asked and not work.finished:
        raise Interrupted("interrupted")
    return work


async def _let_go(stack: AsyncExitStack, plan: Plan, parts: _Parts) -> None:
    """Nobody is asked any more."""
    if plan.mode == "record":
        await stack.aclose()  # whatever the bot asks for until its end is recorded
        return
    parts.source.dismiss()  # it ends while the run is concluded
    if parts.judge is not None:
        await parts.judge.model.close()  # with it go the replies that draws could share


def _meta(
    plan: Plan,
    folder: RunFolder,
    header: RunHeader,
    parts: _Parts,
    cassette: Cassette,
    started: datetime,
    seconds: float,
) -> Meta:
    """What is true of this run only, and would differ in a replay of it."""
    from evalrun.attempts import attempt_of

    attempt, source, spending = attempt_of(folder, header), parts.source, parts.spending
    return Meta(
        run=folder.path.name,
        mode=plan.mode,
        started=started.isoformat(timespec="seconds"),
        seconds=seconds,
        calls=spending.calls,
        replayed=cassette.replayed,
        tokens=spending.tokens,
        cost=spending.cost,
        retries=source.retries() + parts.asked_again(),
        refused=source.refused(),
        attempt=attempt.number,
        trial=attempt.trial,
        answers=attempt.answers,
        config_path=str(plan.config.path),
    )


def _check_same(folder: RunFolder, begun: Begun) -> None:
    """Refuse to go on with another run than the one in the folder, if there is one."""
    if folder.unfinished:
        check_same(folder, folder.begun, begun)


def _begin(folder: RunFolder, begun: Begun, kept: Kept) -> None:
    """Make the folder ready to be written to, and note what is begun in it, where it can be gone on with."""
    if folder.unfinished:
        _check_same(folder, begun)
        settle(folder, kept)
    elif begun.command:
        folder.begin(begun)


def _into(folder: RunFolder) -> Observe:
    return lambda exchange: folder.append("exchanges", exchange)


def _cassette(plan: Plan, refresh: bool) -> Cassette:
    wanted = plan.config.cassette
    if plan.answers and not plan.judged:
        return Cassette.holding(())  # nobody is asked
    return Cassette(
        wanted.path if wanted and plan.mode != "live" else None,
        plan.mode,
        ignore=[re.compile(pattern) for pattern in wanted.ignore] if wanted else (),
        redaction=Redaction(
            tuple(re.compile(pattern) for pattern in wanted.redact) if wanted else (), plan.config.secrets
        ),
        compress=wanted is not None and wanted.compress,
        refresh=refresh,
        about=dict(wanted.about) if wanted else {},
    )


@dataclass(frozen=True)
class _Source:
    """What draws come from, what is known of the bot, and whether several may be asked for at once."""

    answering: Answering
    about: dict[str, Any]
    at_once: bool = True
    ended: Callable[[], str] = str
    retries: Callable[[], int] = int
    refused: Callable[[], int] = int
    dismiss: Callable[[], object] = int


async def _source(
    stack: AsyncExitStack, plan: Plan, cassette: Cassette, observe: Observe, known: Mapping[str, Context]
) -> _Source:
    if plan.answers is not None:
        return _Source(plan.answers, dict(plan.answers.about))
    bot = await _bot(stack, plan, cassette, observe)
    sampler = Sampler(
        bot.target,
        bot.tap,
        plan.seeds,
        known,
        cassette.spent["bot"],
        bot.replies,
        plan.config.secrets,
    )
    at_once = bot.target.offers.seed or bot.tap is None
    return _Source(
        sampler,
        cassette.redaction.of_request(await bot.target.about()),
        at_once,
        bot.ended,
        lambda: bot.target.retries,
        lambda: bot.tap.refused if bot.tap else 0,
        bot.dismiss,
    )


@dataclass(frozen=True)
class _Bot:
    tap: Tap | None
    replies: CassetteTransport | None
    target: Target
    ended: Callable[[], str]
    dismiss: Callable[[], object] = int


async def _bot(stack: AsyncExitStack, plan: Plan, cassette: Cassette, observe: Observe) -> _Bot:
    """Tap, launched bot and client; all of them stop with ``stack``.

    In a replay of the bot's own replies there is nothing of it: none is launched, none connected to.
    """
    config = plan.config
    kind, url = target_of(config), getattr(config.target.options, "url", None) or ""
    tap = await _tap(stack, plan, cassette, observe, url) if config.tapped else None
    process = None if config.at_bot and plan.mode == "replay" else await _launched(stack, plan, tap)
    if process is not None:
        url = process.url
    replies = (
        CassetteTransport(cassette, "bot", None, observe, base_path=urlsplit(url).path, own=True)
        if config.at_bot
        else None
    )
    setting = Setting(
        url=url or "http://127.0.0.1",
        limits=Limits(**config.target.limits.model_dump()),
        folder=config.folder,
        launched=config.target.launch is not None,
        tap=tap.url if tap else "",
        temperature=config.temperature,
        max_tokens=config.max_tokens,
        replies=replies,
        secrets=config.secrets,
    )
    made: Target = kind(config.target.options, setting)
    stack.push_async_callback(made.close)
    if process is None:
        return _Bot(tap, replies, made, made.ended)
    return _Bot(tap, replies, made, lambda: process.ended() or made.ended(), process.dismiss)


async def _tap(stack: AsyncExitStack, plan: Plan, cassette: Cassette, observe: Observe, url: str) -> Tap:
    """The tap, listening. A bot that is a model itself, at ``url``, is what it forwards to."""
    from evalrun.tap import Tap

    config, limits = plan.config, plan.config.target.limits
    tap = Tap(
        url if target_of(config).is_model else config.upstream,
        cassette,
        plan.seeds.at,
        observe,
        timeout=limits.timeout,
        concurrency=limits.concurrency,
        bind=config.tap.bind,
        host=config.tap.host,
        token=config.tap.token or "",
    )
    return await stack.enter_async_context(tap)


async def _launched(stack: AsyncExitStack, plan: Plan, tap: Tap | None) -> Launch | None:
    """The bot's process, ready, where the config starts one. What is needed later loads meanwhile."""
    launch = plan.config.target.launch
    if launch is None:
        return None
    process = Launch(
        launch.command,
        launch.env,
        plan.config.folder,
        ready=launch.ready,
        timeout=launch.timeout,
        tap=tap.url if tap else "",
        fresh_cache=plan.mode == "record" and tap is not None,
    )
    loading = _loading(plan)
    try:
        return await stack.enter_async_context(process)
    finally:
        await loading


def _waits(plan: Plan) -> bool:
    """Whether a run waits for a bot with nothing else to do: where it asks for all its answers at once.

    In a larger run loading would only compete with the asking.
    """
    config = plan.config
    return (
        plan.answers is None
        and config.target.launch is None
        and plan.draws <= config.target.limits.concurrency
    )


def _loading(plan: Plan) -> asyncio.Task[None]:
    """Load in a thread what a run needs after its last answer, and would then have to wait for."""
    names = ["conclusion", "attempts", "reports.console"]
    names += ["stats.special"] if plan.draws > 1 else []  # of one answer nothing is estimated that needs it
    names += ["evidence"] if plan.labels else []
    return asyncio.create_task(asyncio.to_thread(_load_rest, names))


def _load_rest(names: Iterable[str]) -> None:
    from evalrun.reports.html import template

    for name in names:
        import_module(f"evalrun.{name}")
    report.load()
    template()


def _judge(
    stack: AsyncExitStack, plan: Plan, cassette: Cassette, observe: Observe, known: Iterable[Exchange]
) -> tuple[Judge | None, Callable[[], int]]:
    """The judge, and how many of its calls were made again."""
    config = plan.config.judge
    if config is None or plan.rubric is None or not plan.judged:
        return None, int
    provider, name = split_spec(config.model)
    kind, url, limits = model.get(provider), config.base_url or "", Limits(**config.limits.model_dump())
    upstream = None
    if plan.mode != "replay":
        upstream = RetryTransport(limits, kind.upstream(url, limits.concurrency, config.key_env))
    transport = CassetteTransport(cassette, "judge", upstream, observe, base_path=urlsplit(url).path)
    transport.know(known)
    digest = cassette.fact("judge", "sha256")
    # A replay asks nobody, and may not know where the server would be.
    made = kind(name, url or "http://127.0.0.1", transport, timeout=limits.timeout, digest=digest)
    stack.push_async_callback(made.close)
    return Judge(plan.rubric, made, config.temperature), lambda: upstream.retries if upstream else 0


def _check_baseline(plan: Plan, judge: Judge | None) -> None:
    """Refuse a baseline of another judge before anything is asked; only judged gates depend on it."""
    judged = {metric.id for metric in plan.metrics if metric.judged}
    drops = [gate for gate in plan.config.gates if gate.max_drop is not None and gate.metric in judged]
    if plan.baseline is not None and judge is not None and drops:
        plan.baseline.check_judge(f"{judge.model.name}, rubric {judge.rubric.id}", judge.fingerprint)


async def probe(plan: Plan) -> tuple[Drawn, dict[str, Any]]:
    """Ask the bot the first question once, unjudged and unrecorded; what it says of itself beside it."""
    cassette = Cassette(None, "live", redaction=Redaction(secrets=plan.config.secrets))
    async with AsyncExitStack() as stack:
        stack.enter_context(told_without(plan.config.secrets))
        await check_servers(plan, cassette)
        bot = await _bot(stack, plan, cassette, lambda exchange: None)
        about = await bot.target.about()
        sampler = Sampler(bot.target, bot.tap, plan.seeds, replies=bot.replies, secrets=plan.config.secrets)
        return await sampler.draw(plan.cases[0], 0), about
