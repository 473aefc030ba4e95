"""The screen of ``evalrun plan``. Owns the wording and the layout of a forecast."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from evalrun.forecast import ICC, RELATED, Calls, Fit, Forecast, GateForecast
from evalrun.reports import words
from evalrun.reports.console import STYLE
from evalrun.reports.screen import columns_of, cut, print_lines, wrapped


def print_forecast(forecast: Forecast, stream: TextIO, width: int | None = None) -> None:
    """Print what a run will take and what it can show."""
    columns = columns_of(stream, width)
    parts = [_head(forecast, columns), _gates(forecast, columns), _changes(forecast, columns)]
    lines = [line for part in parts if part for line in [*part, Text()]]
    print_lines([*lines, _end(forecast)], stream, columns)


def _head(forecast: Forecast, columns: int) -> list[Text]:
    asked = f"{words.count(forecast.cases, 'question')} × {words.count(forecast.draws, 'draw')}"
    lines = [Text(words.one_line(f"evalrun plan {forecast.name} · {forecast.dataset} · {asked}"), "bold")]
    for name, text in _facts(forecast):
        rest = wrapped(text, columns - 9)
        lines += [
            Text.assemble((f"{'' if n else name:<9}", "dim"), line.plain) for n, line in enumerate(rest)
        ]
    return lines


def _facts(forecast: Forecast) -> Iterator[tuple[str, str]]:
    books = [("the bot", forecast.bot)] + ([("the judge", forecast.judge)] if forecast.judge else [])
    planned = [
        f"{'up to ' if name == 'the judge' else ''}{calls.planned:,} to {name}" for name, calls in books
    ]
    yield "calls", "; ".join(planned)
    yield "recorded", _recorded(forecast)
    yield "tokens", "; ".join(_tokens(name, calls) for name, calls in books)
    seconds = [calls.planned * calls.seconds for _, calls in books if calls.seconds is not None]
    if len(seconds) == len(books):
        yield "time", f"{_duration(sum(seconds))} live, one call after the other as recorded"
    else:
        yield "time", "unknown: no recording to estimate from"
    yield "cost", _cost(books)
    for place, fit in enumerate(forecast.budget):
        yield "" if place else "budget", _fit(fit)


def _fit(fit: Fit) -> str:
    """Whether a limit is enough for a live run; else also for what has no recording."""
    head, slow = f"{_sum(fit, fit.limit)}: ", ", one call after the other" if fit.key == "seconds" else ""
    if fit.live is None:
        return f"{head}unknown, no recording tells what a call takes"
    if fit.live <= fit.limit:
        return f"{head}enough for {_sum(fit, fit.live)}{slow}"
    text = f"{head}NOT ENOUGH for {_sum(fit, fit.live)}"
    if fit.fresh is None or fit.fresh == fit.live:
        return text + slow
    enough = "enough" if fit.fresh <= fit.limit else "nor"
    return f"{text} live, {enough} for {_sum(fit, fit.fresh)} without a recording{slow}"


def _sum(fit: Fit, value: float) -> str:
    if fit.key == "cost":
        return f"cost {words.amount(value)}"
    return f"{value:,.0f} {fit.key}"


def _cost(books: Sequence[tuple[str, Calls]]) -> str:
    """Of all calls live, and of those that have no recording, as far as prices and tokens are known."""
    unknown = [name for name, calls in books if calls.cost is None]
    known = [calls for _, calls in books if calls.cost is not None]
    if not known:
        return "unknown: it takes prices in the config, and a recording that counts tokens"
    every = sum(calls.planned * (calls.cost or 0) for calls in known)
    fresh = sum(max(calls.planned - calls.recorded, 0) * (calls.cost or 0) for calls in known)
    text = f"about {words.amount(every, 2)} for all calls, {words.amount(fresh, 2)} for those without"
    text += " a recording"
    return f"{text}; without {' and '.join(unknown)}: unknown" if unknown else text


def _recorded(forecast: Forecast) -> str:
    """Answers and verdicts in the recording; whether these verdicts are enough only a replay can tell."""
    bot = forecast.bot
    text = f"{bot.recorded:,} of {bot.planned:,} to the bot"
    if forecast.judge:
        text += f"; {forecast.judge.recorded:,} to the judge (equal answers share a verdict)"
    return text if bot.recorded == bot.planned else f"{text}; the rest needs --record or --live"


def _tokens(name: str, calls: Calls) -> str:
    if calls.prompt_tokens is None or calls.completion_tokens is None:
        return f"{name}: unknown, no recording counts them"
    read, written = (calls.planned * each for each in (calls.prompt_tokens, calls.completion_tokens))
    return f"{name}: about {_about(read)} read, {_about(written)} written"


def _about(number: float) -> str:
    return f"{float(f'{number:.2g}'):,.0f}"


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "less than 1 s"
    return f"about {_about(seconds)} s" if seconds < 120 else f"about {_about(seconds / 60)} min"


# ---------------------------------------------------------------- gates


def _gates(forecast: Forecast, columns: int) -> list[Text]:
    if not forecast.gates:
        return [Text("no gates: nothing will be asked of the numbers")]
    names = [words.one_line(found.gate.name) for found in forecast.gates]
    width = min(max(map(cell_len, names)) + 4, columns - 42)
    stated = forecast.stated_rate
    last = f"at {words.rate(stated)}" if stated is not None else ""
    needs = max(7, *(len(found.gate.needs) for found in forecast.gates)) + 2
    head = f"{'GATES':<{width}}{'needs':<{needs}}{'holds with':<15}{'80% at':<8}{last}"
    lines = [Text(head.rstrip(), "bold")]
    for name, found in zip(names, forecast.gates, strict=True):
        lines += _gate(name, found, width, needs, columns)
    told = "80% at: the true rate that holds the gate in 80% of runs of one draw a question"
    told += f"; {last}: how often that rate holds it" if last else ""
    return [*lines, *wrapped(told, columns, 2, "dim")] if any(g.rate for g in forecast.gates) else lines


def _gate(name: str, found: GateForecast, width: int, needs: int, columns: int) -> Iterator[Text]:
    line = Text(set_cell_size("  " + cut(name, width - 4), width))
    line.append(f"{found.gate.needs:<{needs}}")
    if found.problem:
        yield line.append("CANNOT HOLD", STYLE["fails"])
        yield from wrapped(found.problem, columns, 6, "dim")
        yield from wrapped(found.hint, columns, 6, "dim")
        return
    if found.gate.infer == "this_set":
        yield line.append(f"{words.count(found.n, 'question')}, measured exactly", "dim")
        return
    if found.gate.max_drop is not None:
        yield line.append(f"{words.count(found.n, 'question')}, as in the baseline", "dim")
        yield from wrapped(found.note, columns, 6, "dim")
        return
    line.append(f"{_passes(found):<15}{words.rate(found.rate):<8}")
    if found.chance is not None:
        line.append(words.rate(found.chance))
    line.rstrip()
    yield line
    if found.note:
        yield from wrapped(found.note, columns, 6, "dim")


def _passes(found: GateForecast) -> str:
    """``30 of 35``; for a score the mean that is as much, which is a little more than it needs."""
    assert found.passes is not None
    if found.kind == "score":
        return f"mean {words.rate(found.passes / found.n)}"
    most = "" if found.gate.min is not None else "max "
    return f"{most}{found.passes} of {found.n}"


# ---------------------------------------------------------------- changes


def _changes(forecast: Forecast, columns: int) -> list[Text]:
    if not forecast.detectable:
        return []
    lines = [
        Text("SMALLEST CHANGE that evalrun diff shows with 80% power", "bold"),
        Text(f"{'':<30}{'as planned':>11}{'twice the questions':>21}{'twice the draws':>17}", "dim"),
    ]
    for found in forecast.detectable:
        name = f"  {found.group}, {words.count(found.n, 'question')}"
        figures = (
            words.rate(found.planned),
            words.rate(found.twice_questions),
            words.rate(found.twice_draws),
        )
        lines.append(Text(f"{name:<30}{figures[0]:>11}{figures[1]:>21}{figures[2]:>17}"))
    assumed = (
        f"assumed: a rate of {words.rate(forecast.assumed_rate)}, draws of a question alike by "
        f"{words.rate(ICC)}, questions equally hard for both runs by {words.rate(RELATED)}"
    )
    return [*lines, *wrapped(advice(forecast), columns, 2), *wrapped(assumed, columns, 2, "dim")]


def advice(forecast: Forecast) -> str:
    """More questions or more draws: whichever shows the smaller change for twice the calls."""
    first = forecast.detectable[0]
    questions = f"questions ({words.rate(first.planned)} becomes {words.rate(first.twice_questions)})"
    draws = f"draws ({words.rate(first.planned)} becomes {words.rate(first.twice_draws)})"
    more, not_ = (questions, draws) if first.twice_questions < first.twice_draws else (draws, questions)
    return f"For twice the calls: add {more}, not {not_}."


def _end(forecast: Forecast) -> Text:
    bad = sum(bool(gate.problem) for gate in forecast.gates)
    code = f"    exit {int(forecast.exit_code)}"
    if bad:
        text = f"{bad} of {words.count(len(forecast.gates), 'gate')} cannot hold: a run would be refused"
        return Text.assemble((text, STYLE["fails"]), (code, "bold"))
    return Text.assemble(
        ("every gate can hold" if forecast.gates else "nothing to hold", "green"), (code, "bold")
    )
