"""What a plan says before anything is spent: calls, tokens, gates, and what a comparison would show."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import pytest

from evalrun import stats
from evalrun.errors import ExitCode, InputError
from evalrun.forecast import Forecast, difference_sd, forecast
from evalrun.forecast.screen import advice, print_forecast
from evalrun.jsonl import to_line
from evalrun.planning import load
from evalrun.records import Exchange

RUBRIC = Path(__file__).parents[1] / "configs" / "rubrics" / "claims.yaml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """35 answerable questions, 27 with something relevant, and 8 to be refused."""
    lines: list[dict[str, Any]] = []
    for place in range(35):
        line: dict[str, Any] = {"id": f"a{place}", "question": f"Q{place}?", "category": "single"}
        lines.append(line | ({"relevant_ids": ["talks"]} if place < 27 else {}))
    lines += [
        {"id": f"u{place}", "question": f"U{place}?", "category": "guardrail", "expect": "refuse"}
        for place in range(8)
    ]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    (tmp_path / "rubric.yaml").write_bytes(RUBRIC.read_bytes())
    return tmp_path


def planned(folder: Path, *, gates: str = "[]", rate: float | None = None, more: str = "") -> Forecast:
    """The forecast of a config with these gates."""
    path = folder / "c.yaml"
    path.write_text(
        "name: q\ndataset: d.jsonl\ntarget: {kind: ragbot, k: 5, url: http://127.0.0.1:9}\ndraws: 3\n"
        "scorers: [recall@5, outcome]\njudge: {model: ollama/m, rubric: rubric.yaml}\n"
        f"cassette: {{path: tape}}\ngates: {gates}\n{more}",
        "utf-8",
    )
    return forecast(load(path), rate)


def recorded(folder: Path, book: str, addresses: list[tuple[str, int]], **fields: Any) -> None:
    """A recording of one call for each address."""
    reply = {"message": {"content": "x"}, "done": True, "prompt_eval_count": 600, "eval_count": 40} | fields
    lines = [
        Exchange(
            source=book, key=f"{book}{case}{draw}", case=case, draw=draw, turn=0, method="POST",
            path="/api/chat", media_type="application/json", request={}, status=200,
            reply=json.dumps(reply), seconds=2.5,
        )
        for case, draw in addresses
    ]  # fmt: skip
    (folder / "tape").mkdir(exist_ok=True)
    (folder / "tape" / f"{book}.jsonl").write_bytes(b"".join(to_line(line) for line in lines))


def screen(found: Forecast, width: int = 80) -> str:
    """The forecast as it is printed."""
    stream = io.StringIO()
    print_forecast(found, stream, width)
    return stream.getvalue()


# ---------------------------------------------------------------- calls


def test_calls_without_a_recording(folder: Path) -> None:
    """Each draw is a call to the bot and at most one to the judge; tokens and time are said to be unknown."""
    found = planned(folder)
    assert (43, 3, 129, 129, 258) == (
        found.cases, found.draws, found.bot.planned, found.judge and found.judge.planned, found.calls,
    )  # fmt: skip
    assert (0, None, None, None) == (
        found.bot.recorded, found.bot.prompt_tokens, found.bot.completion_tokens, found.bot.seconds,
    )  # fmt: skip
    text = screen(found)
    assert "the bot: unknown, no recording counts them" in text
    assert "time     unknown" in text
    assert "cost     unknown: it takes prices in the config" in text


def test_calls_with_a_recording(folder: Path) -> None:
    """Tokens and seconds are the recording's means times the calls; what is not planned is not recorded."""
    recorded(folder, "bot", [("a0", 0), ("a0", 1), ("a1", 2), ("a1", 3), ("gone", 0)])
    recorded(folder, "judge", [("a0", 0)], prompt_eval_count=1000, eval_count=100)
    found = planned(folder)
    assert (129, 3, 600, 40, 2.5) == (
        found.bot.planned, found.bot.recorded, found.bot.prompt_tokens, found.bot.completion_tokens,
        found.bot.seconds,
    )  # fmt: skip
    assert found.judge is not None
    assert (1, 1000, 100) == (found.judge.recorded, found.judge.prompt_tokens, found.judge.completion_tokens)
    text = screen(found)
    assert "the bot: about 77,000 read, 5,200 written" in text
    assert "about 11 min live" in text


def test_prices_make_a_cost(folder: Path) -> None:
    """A million tokens have a price; what has none, or no recording, is said to be unknown."""
    recorded(folder, "bot", [("a0", 0), ("a0", 1), ("a1", 2)])
    bot = "prices: {bot: {prompt: 100, completion: 1000}}\n"
    found = planned(folder, more=bot)
    assert pytest.approx(0.1) == found.bot.cost
    assert found.judge is not None
    assert found.judge.cost is None
    text = screen(found)
    assert "cost     about 13 for all calls, 13 for those without a recording" in text
    assert "without the judge: unknown" in " ".join(text.split())
    recorded(folder, "judge", [("a0", 0)], prompt_eval_count=1000, eval_count=0)
    both = planned(folder, more=bot.replace("}}", "}, judge: {prompt: 1}}"))
    assert both.judge is not None
    assert pytest.approx(0.001) == both.judge.cost
    assert "unknown" not in screen(both)


def test_questions_that_share_documents_need_more(folder: Path) -> None:
    """What a gate needs is what it would need of the documents."""
    lines = [json.loads(line) for line in (folder / "d.jsonl").read_text("utf-8").splitlines()]
    for place, line in enumerate(lines[:35]):
        line["cluster"] = f"d{place // 2}"
    (folder / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    [gate] = planned(folder, gates="[{metric: grounded, group: answerable, min: 0.5}]").gates
    alone = stats.min_passes(18, 0.5)
    assert alone is not None
    assert math.ceil(alone * 35 / 18) == gate.passes
    assert "as if each of 18 documents were one question" == gate.note


def test_a_bot_that_calls_its_model_twice(folder: Path) -> None:
    """A recording with two calls an answer plans two calls for each."""
    recorded(folder, "bot", [("a0", 0), ("a0", 0), ("a1", 0), ("a1", 0)])
    assert 258 == planned(folder).bot.planned


def test_whole_recording(folder: Path) -> None:
    """Where every answer is recorded, none needs --record."""
    names = [f"a{place}" for place in range(35)] + [f"u{place}" for place in range(8)]
    recorded(folder, "bot", [(name, draw) for name in names for draw in range(3)])
    text = screen(planned(folder))
    assert "129 of 129 to the bot; 0 to the judge" in text
    assert "--record" not in text


def test_replies_that_count_no_tokens(folder: Path) -> None:
    """A server that does not count tokens leaves them unknown."""
    recorded(folder, "bot", [("a0", 0)], prompt_eval_count=None, eval_count=None)
    assert planned(folder).bot.prompt_tokens is None


def test_budget(folder: Path) -> None:
    """A budget below the planned calls is said to be too small."""
    assert "100 calls: NOT ENOUGH for 258 calls" in screen(planned(folder, more="budget: {calls: 100}"))
    assert "258 calls: enough" in screen(planned(folder, more="budget: {calls: 258}"))


def test_every_budget_is_held_against_what_the_recording_tells(folder: Path) -> None:
    """Tokens, seconds and cost of all calls live, and of those without a recording."""
    names = [f"a{place}" for place in range(35)] + [f"u{place}" for place in range(7)]
    for book in ("bot", "judge"):
        recorded(folder, book, [(name, draw) for name in names for draw in range(3)])
    more = (
        "budget: {tokens: 4000, seconds: 1000, cost: 0.02}\n"
        "prices: {bot: {prompt: 1, completion: 10}, judge: {prompt: 1, completion: 10}}\n"
    )
    found = planned(folder, more=more)
    assert {"tokens": 258 * 640, "seconds": 258 * 2.5, "cost": pytest.approx(258 * 0.001)} == {
        fit.key: fit.live for fit in found.budget
    }
    assert [6 * 640, 6 * 2.5, pytest.approx(6 * 0.001)] == [fit.fresh for fit in found.budget]
    text = " ".join(screen(found, 200).split())
    assert "4,000 tokens: NOT ENOUGH for 165,120 tokens live, enough for 3,840 tokens without a" in text
    assert "1,000 seconds: enough for 645 seconds, one call after the other" in text
    assert "cost 0.02: NOT ENOUGH for cost 0.258 live, enough for cost 0.006 without a recording" in text
    less = planned(folder, more=more.replace("0.02", "0.001"))
    assert "nor for cost 0.006 without" in " ".join(screen(less, 200).split())


def test_a_budget_that_nothing_can_be_held_against(folder: Path) -> None:
    """Without a recording it is not known what a call takes."""
    found = planned(folder, more="budget: {tokens: 4000}\n")
    assert "4,000 tokens: unknown, no recording tells what a call takes" in screen(found)


def test_large_costs_are_written_out(folder: Path) -> None:
    """Hundreds are no powers of ten."""
    recorded(folder, "bot", [("a0", 0)])
    recorded(folder, "judge", [("a0", 0)])
    prices = "prices: {bot: {prompt: 10000}, judge: {prompt: 10000}}\n"
    assert "cost     about 1,500 for all calls" in screen(planned(folder, more=prices))


# ---------------------------------------------------------------- gates


@pytest.mark.parametrize(
    ("n", "threshold", "passes", "rate"),
    [(8, 0.5, 7, 0.90), (27, 0.7, 24, 0.91), (35, 0.7, 30, 0.89), (35, 0.9, 35, 0.99), (100, 0.8, 88, 0.90),
     (200, 0.95, None, None), (200, 0.9, 189, 0.96), (27, 0.9, None, None)],
)  # fmt: skip
def test_published_needs(n: int, threshold: float, passes: int | None, rate: float | None) -> None:
    """Passes needed and the true rate that holds 4 times in 5, as the statistics' own table has them."""
    found = stats.rate_to_hold(n, threshold)
    if (n, threshold) == (200, 0.95):  # not in the table: only that both agree
        assert (stats.min_passes(n, threshold) is None) == (found is None)
        return
    assert passes == stats.min_passes(n, threshold)
    assert (rate is None) == (found is None)
    if rate is not None and found is not None:
        assert rate == pytest.approx(found, abs=0.006)
        assert 0.8 == pytest.approx(stats.chance_to_hold(n, threshold, found), abs=1e-6)


def test_chance_is_a_sum_of_binomial_terms() -> None:
    """The chance to hold is the probability of at least the passes needed."""
    from scipy.stats import binom

    assert binom.sf(29, 35, 0.85) == pytest.approx(stats.chance_to_hold(35, 0.7, 0.85))
    assert (0.0, 1.0) == (stats.chance_to_hold(8, 0.9, 1.0), stats.chance_to_hold(35, 0.7, 1.0))
    with pytest.raises(ValueError, match="power"):
        stats.rate_to_hold(8, 0.5, 1.0)
    with pytest.raises(ValueError, match="not in"):
        stats.chance_to_hold(8, 0.5, 1.5)


def test_gates(folder: Path) -> None:
    """A gate's questions, passes, true rate and chance; "at most" mirrors "at least"."""
    gates = (
        "[{metric: grounded, group: answerable, min: 0.7}, {metric: unsupported, group: answerable, max: 0.3}"
        ", {metric: recall@5, min: 0.7, infer: this_set}, {metric: recall@5, min: 0.7}]"
    )
    at_least, at_most, this_list, score = planned(folder, gates=gates, rate=0.85).gates
    assert (35, 30, "rate") == (at_least.n, at_least.passes, at_least.kind)
    assert 0.887 == pytest.approx(at_least.rate, abs=5e-4)
    assert stats.chance_to_hold(35, 0.7, 0.85) == at_least.chance
    assert (35, 5) == (at_most.n, at_most.passes)
    assert 1 - (at_least.rate or 0) == pytest.approx(at_most.rate, abs=1e-6)
    assert stats.chance_to_hold(35, 0.7, 0.15) == pytest.approx(at_most.chance)
    assert (27, None, None) == (this_list.n, this_list.passes, this_list.chance)
    assert (27, 24, "score") == (score.n, score.passes, score.kind)
    text = screen(planned(folder, gates=gates, rate=0.85))
    for shown in ("30 of 35", "max 5 of 35", "mean .89", "27 questions, measured exactly", "at .85"):
        assert shown in text, shown
    assert "every gate can hold    exit 0" in text


def test_gates_that_cannot_hold(folder: Path) -> None:
    """A gate that cannot hold is shown with the number it needs, and the plan exits as the run would: 2."""
    gates = "[{metric: correctly_refused, group: guardrail, min: 0.75}, {metric: right, min: 0.5}]"
    found = planned(folder, gates=gates)
    assert ExitCode.USAGE == found.exit_code
    bad, good = found.gates
    assert "even a perfect score on 8 questions" in bad.problem
    assert (None, "") == (bad.passes, good.problem)
    text = screen(found)
    assert "CANNOT HOLD" in text
    assert "add 4 questions to 'guardrail'" in text
    assert "1 of 2 gates cannot hold: a run would be refused    exit 2" in text


def test_without_gates(folder: Path) -> None:
    """A config without gates is told so."""
    found = planned(folder)
    assert ExitCode.OK == found.exit_code
    assert "no gates: nothing will be asked of the numbers" in screen(found)


def test_unknown_metrics_are_refused(folder: Path) -> None:
    """A gate on what no scorer measures is an error with its place, as in a run."""
    with pytest.raises(InputError, match=r"c\.yaml:\d+:\d+: a gate on 'recall@3'"):
        planned(folder, gates="[{metric: recall@3, min: 0.5}]")


# ---------------------------------------------------------------- comparisons


def test_smallest_change(folder: Path) -> None:
    """For each group the paired MDE as planned, with twice the questions and with twice the draws."""
    every, answerable, unanswerable = planned(folder, rate=0.9).detectable
    assert [43, 35, 8] == [every.n, answerable.n, unanswerable.n]
    assert stats.paired_mde(35, difference_sd(0.9, 3)) == answerable.planned
    assert stats.paired_mde(70, difference_sd(0.9, 3)) == answerable.twice_questions
    assert stats.paired_mde(35, difference_sd(0.9, 6)) == answerable.twice_draws
    assert answerable.planned / 2**0.5 == pytest.approx(answerable.twice_questions)


def test_assumed_spread() -> None:
    """One draw at .8 spreads a question's change by about .44; more draws help by √ICC at most."""
    assert 0.438 == pytest.approx(difference_sd(0.8, 1), abs=1e-3)
    assert difference_sd(0.8, 10_000) == pytest.approx((2 * 0.16 * 0.4) ** 0.5, abs=1e-3)
    assert difference_sd(0.5, 1) > difference_sd(0.9, 1)
    assert 0.0 == difference_sd(1.0, 3)


def test_advice(folder: Path) -> None:
    """Questions first: twice the questions shows a smaller change than twice the draws."""
    assert advice(planned(folder)).startswith("For twice the calls: add questions (")


def test_screen_fits(folder: Path) -> None:
    """Nothing is wider than the terminal, from 80 columns on."""
    gates = (
        "[{metric: correctly_refused, group: guardrail, min: 0.75},"
        " {metric: unsupported, group: answerable, max: 0.5}]"
    )
    for width in (80, 100):
        text = screen(planned(folder, gates=gates, rate=0.85), width)
        assert all(len(line) <= width for line in text.splitlines()), text
