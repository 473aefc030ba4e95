"""Whole runs against services that fail on purpose: nothing lost or paid for twice, the same bytes last.

How a single call fares is in ``test_http`` and ``test_network``; runs that are killed are in ``test_resume``.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalrun.errors import ExitCode
from evalrun.http import RETRY_AFTER_LIMIT
from evalrun.journal import RunFolder
from fakes.killing import timeless
from fakes.project import Outcome, Project
from fakes.servers import FakeModel, Json, Say

SERIES = int(os.environ.get("FAULT_SERIES", "1"))
"""How many seeds each scenario is tried with; ``nox -s faults`` sets it."""
Note = Callable[..., None]


def faulty(say: Say, seed: int, *faults: Json) -> Say:
    """Says what ``say`` does, but about every sixth call, chosen by ``seed``, gets one of the faults; no two
    calls in a row do, so that one that is made again gets through.
    """
    rng, last, lock = random.Random(seed), [False], threading.Lock()

    def said(body: Json) -> str | Json:
        with lock:
            last[0] = not last[0] and rng.random() < 0.2
            failing = last[0]
        return rng.choice(faults) if failing else say(body)

    return said


def one_at_a_time(project: Project) -> Project:
    """The project with one call in flight, so that a seed decides which calls fail, and retries."""
    for section in (project.config["target"], project.config["judge"]):
        section["limits"] = {"concurrency": 1, "timeout": 20, "retries": 2}
    project.config["draws"] = 1
    return project


def told(done: Outcome) -> str:
    """What a run says of what went wrong."""
    return "\n".join(done.folder.header.errors)


def same(whole: Outcome, done: Outcome) -> None:
    """The run came to the same as one that met no fault."""
    assert ExitCode.OK == done.code, done.text
    assert {} == done.errors
    assert timeless(whole.folder.path) == timeless(done.folder.path)
    assert not done.folder.unfinished


# ---------------------------------------------------------------- faults that pass


@pytest.mark.parametrize("seed", range(SERIES))
@pytest.mark.parametrize(
    "faults",
    [
        [{"status": 0}],
        [{"status": 429, "headers": {"retry-after": "0"}}],
        [{"status": 500}, {"status": 502}, {"status": 503}],
    ],
    ids=["reset", "429", "5xx"],
)
def test_faults_that_pass_leave_no_trace(
    project: Project, faults: list[Json], seed: int, fault: Note
) -> None:
    """Model and judge reset connections, or answer a part of the calls with an error: all is asked again, and
    the run is the same as without.
    """
    whole = one_at_a_time(project).run("--live")
    asked = len(project.model.bodies) + len(project.judge.bodies)
    project.model.say = faulty(project.model.say, seed, *faults)
    project.judge.say = faulty(project.judge.say, seed + 1, *faults)
    done = project.run("--live")
    same(whole, done)
    again = len(project.model.bodies) + len(project.judge.bodies) - 2 * asked
    assert again == done.folder.meta.retries > 0
    assert f", {again} asked again" in done.text
    fault(f"{'/'.join(str(one['status']) for one in faults)} in between".replace("0 ", "reset "), again)


# ---------------------------------------------------------------- services that are gone


def restarted(project: Project, path: Path, *services: FakeModel) -> Outcome:
    """The same run gone on with, with the services there again."""
    for service in services:
        service.start()
        service.bodies.clear()
    return project.run("--live", resume=path)


def gone_after(service: FakeModel, calls: int) -> None:
    """Have a service stop listening for good after so many calls."""
    say = service.say

    def said(body: Json) -> str | Json:
        if len(service.bodies) > calls:
            if len(service.bodies) == calls + 1:
                threading.Thread(target=service.stop).start()
            return {"status": 0}
        return say(body)

    service.say = said


def test_a_model_that_is_gone_is_not_asked_for_ever(project: Project, fault: Note) -> None:
    """The run stops, says what it has not asked and how to go on; resumed, it asks that alone."""
    whole = one_at_a_time(project).run("--live")
    project.config["target"]["limits"]["retries"] = 0
    say = project.model.say
    project.model.bodies.clear()
    gone_after(project.model, 6)
    stopped = project.run("--live")
    assert ExitCode.UNAVAILABLE == stopped.code, stopped.text
    assert "the bot, or the model behind it, is down, nobody was there 5 times in a row" in told(stopped)
    answered = {draw.key for draw in stopped.draws if draw.error is None}
    assert (6, 11) == (len(answered), len(stopped.draws))
    left = [case["id"] for case in project.cases[11:]]
    assert f"not asked for: 5 of 16 answers, of 5 questions: {', '.join(left)};" in told(stopped)
    assert f"--live --resume {stopped.folder.path}" in stopped.text
    assert not stopped.folder.header.complete
    project.model.say = say
    done = restarted(project, stopped.folder.path, project.model)
    assert 10 == len(project.model.bodies)
    assert answered <= {draw.key for draw in done.draws}
    same(whole, done)
    fault("model gone", 0)


def test_a_judge_that_is_gone_is_not_asked_for_ever(project: Project, fault: Note) -> None:
    """Answers that are there are kept; the bot is not asked for more of them that nobody would read."""
    whole = one_at_a_time(project).run("--live")
    for section in (project.config["target"], project.config["judge"]):
        section["limits"]["retries"] = 0
    project.model.delay = 0.05
    project.model.bodies.clear()
    say = project.judge.say
    project.judge.bodies.clear()
    gone_after(project.judge, 0)  # it was there when the run looked for it
    stopped = project.run("--live")
    project.judge.say = say
    assert ExitCode.UNAVAILABLE == stopped.code, stopped.text
    assert "the judge is down, nobody was there 5 times in a row: judge model 'judge-model'" in told(stopped)
    assert "not asked for: " in told(stopped)
    assert "not judged: " in told(stopped)
    assert f"--live --resume {stopped.folder.path}" in stopped.text
    done = restarted(project, stopped.folder.path, project.judge)
    assert 16 == len(project.model.bodies)
    same(whole, done)
    fault("judge gone", 0)


def answered_for(service: FakeModel, calls: int, **reply: Any) -> None:
    """Have a gateway answer for a service after so many calls."""
    say = service.say
    service.say = lambda body: reply if len(service.bodies) > calls else say(body)


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_model_for_which_a_gateway_answers_is_gone(project: Project, status: int, fault: Note) -> None:
    """Each call is made with its retries, and five such in a row end the run; resumed, it does the rest."""
    whole = one_at_a_time(project).run("--live")
    project.config["target"]["limits"]["retries"] = 1
    say = project.model.say
    project.model.bodies.clear()
    answered_for(project.model, 6, status=status)
    stopped = project.run("--live")
    assert ExitCode.UNAVAILABLE == stopped.code, stopped.text
    assert "the bot, or the model behind it, is down, nobody was there 5 times in a row" in told(stopped)
    assert (11, 6 + 5 * 2) == (len(stopped.draws), len(project.model.bodies))
    assert "not asked for: 5 of 16 answers" in told(stopped)
    assert f"--live --resume {stopped.folder.path}" in stopped.text
    project.model.say = say
    project.model.bodies.clear()
    done = project.run("--live", resume=stopped.folder.path)
    assert 10 == len(project.model.bodies)
    same(whole, done)
    fault(f"gateway, model gone: {status}", 10)


@pytest.mark.parametrize("who", ["model", "judge"])
def test_a_service_that_asks_for_an_hour_is_gone_at_once(project: Project, who: str, fault: Note) -> None:
    """No call waits a minute to be turned away again; resumed, the rest is asked."""
    whole = one_at_a_time(project).run("--live")
    service = getattr(project, who)
    say = service.say
    service.bodies.clear()
    answered_for(service, 6, status=429, headers={"retry-after": "3600"})
    begun = time.monotonic()
    stopped = project.run("--live")
    assert time.monotonic() - begun < RETRY_AFTER_LIMIT
    assert ExitCode.UNAVAILABLE == stopped.code, stopped.text
    assert "is down, nobody was there 5 times in a row" in told(stopped)
    if who == "judge":  # this bot keeps to itself what its model's server said
        assert "asks to be left alone for 3" in told(stopped)
    assert 7 == len(service.bodies)
    service.say = say
    done = project.run("--live", resume=stopped.folder.path)
    same(whole, done)
    fault(f"429 for an hour: {who}", 1)


def test_a_judge_for_which_a_gateway_answers_is_gone(project: Project, fault: Note) -> None:
    """The words are the gateway's; resumed, what has no verdict is judged."""
    whole = one_at_a_time(project).run("--live")
    project.config["judge"]["limits"]["retries"] = 0
    say = project.judge.say
    project.judge.bodies.clear()
    answered_for(project.judge, 3, status=503, json={"error": "no healthy upstream"})
    stopped = project.run("--live")
    assert ExitCode.UNAVAILABLE == stopped.code, stopped.text
    assert "the judge is down, nobody was there 5 times in a row: judge model 'judge-model'" in told(stopped)
    assert "answered 503: " in told(stopped)
    assert 8 == len(project.judge.bodies)
    project.judge.say = say
    same(whole, project.run("--live", resume=stopped.folder.path))
    fault("gateway, judge gone: 503", 0)


@pytest.mark.parametrize(
    "reply",
    [{"status": 500}, {"status": 503, "headers": {"retry-after": "0"}}],
    ids=["500", "Retry-After"],
)
def test_a_service_that_answers_for_itself_is_there(project: Project, reply: Json, fault: Note) -> None:
    """A model and a judge that fail, or say when to come back, are asked to the end."""
    one_at_a_time(project)
    for section in (project.config["target"], project.config["judge"]):
        section["limits"]["retries"] = 0
    answered_for(project.judge, 2, **reply)
    done = project.run("--live")
    assert 16 == len(project.judge.bodies)
    answered_for(project.model, 0, **reply)
    project.model.bodies.clear()
    failed = project.run("--live")
    assert 16 == len(project.model.bodies)
    assert "down" not in told(done) + told(failed)
    fault(f"answers {reply['status']} for itself", 0)


@pytest.mark.parametrize(("status", "asked"), [(502, 5), (500, 16)])
def test_a_bot_elsewhere_for_which_a_gateway_answers(
    project: Project, status: int, asked: int, fault: Note
) -> None:
    """It is asked five times where nobody is there, and to the end where it fails itself."""
    answered_for(project.model, 0, status=status)
    bot = {"kind": "http", "url": f"{project.model.url}/api/chat"}
    limits = {"concurrency": 1, "timeout": 5, "retries": 0}
    project.config |= {"target": bot | {"limits": limits}, "scorers": ["refusal_rule"], "gates": []}
    project.config |= {"provenance": "none", "draws": 1}
    del project.config["judge"], project.config["cassette"]
    stopped = project.run("--live")
    assert ExitCode.UNAVAILABLE == stopped.code, stopped.text
    assert asked == len(project.model.bodies)
    assert ("nobody was there 5 times in a row" in told(stopped)) == (asked == 5)
    fault(f"gateway, bot: {status}", 0)


def test_a_bot_elsewhere_that_is_gone_is_not_asked_for_ever(project: Project, fault: Note) -> None:
    """A bot that nobody launched: the address that was tried is named."""
    project.config |= {
        "target": {
            "kind": "http",
            "url": "http://127.0.0.1:9",
            "limits": {"concurrency": 2, "timeout": 5, "retries": 0},
        },
        "scorers": ["refusal_rule"],
        "gates": [],
        "provenance": "none",
    }
    del project.config["judge"], project.config["cassette"]
    stopped = project.run("--live")
    assert ExitCode.UNAVAILABLE == stopped.code, stopped.text
    assert "nobody was there 5 times in a row: service: the bot: http://127.0.0.1:9: " in told(stopped)
    assert len(stopped.draws) <= 10
    assert "not asked for: " in told(stopped)
    fault("bot gone", 0)


def test_calls_that_time_out_are_no_sign_of_that(project: Project, fault: Note) -> None:
    """A judge that is silent: each call is given up at its deadline and none repeated, for it may have been
    paid for; resumed, those are asked that have no verdict.
    """
    one_at_a_time(project)
    project.cases = project.cases[:8]
    project.config["gates"] = []
    whole = project.run("--live")
    project.config["judge"]["limits"]["timeout"] = 0.3
    project.judge.bodies.clear()
    project.judge.delay = 2.0
    slow = project.run("--live")
    assert ExitCode.UNAVAILABLE == slow.code, slow.text
    assert "the judge gave no verdict at all" in told(slow)
    assert "no whole reply within 0.3 s" in told(slow)
    asked = len(project.judge.bodies)
    assert 0 == slow.folder.meta.retries
    project.judge.delay = 0.0
    project.config["judge"]["limits"]["timeout"] = 20
    project.model.bodies.clear()
    done = restarted(project, slow.folder.path)
    assert 0 == len(project.model.bodies)
    assert 2 * asked == len(project.judge.bodies)
    same(whole, done)
    fault("judge silent", asked)


# ---------------------------------------------------------------- stopped


@pytest.mark.skipif(SERIES == 1, reason="in nox -s faults; test_resume stops runs, too")
def test_a_run_that_was_stopped_comes_to_the_same(project: Project, fault: Note) -> None:
    """Ctrl-C, and gone on with: every call is made once."""
    whole = project.run("--live")
    project.model.bodies.clear()
    project.model.delay = project.judge.delay = 0.05
    process, path = project.start("--live")
    while process.poll() is None and not (path / "draws.jsonl").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=60)
    assert ExitCode.INTERRUPTED == process.returncode, text
    assert f"--live --resume {path}" in text
    kept = len(list(RunFolder(path).draws()))
    assert 0 < kept < 32
    done = project.run("--live", resume=path)
    assert 32 == len(project.model.bodies)
    same(whole, done)
    fault("Ctrl-C", 0)
