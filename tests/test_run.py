"""Whole runs through the command line: record, replay, refuse, refresh, stop, and the exit code of each."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evalrun.cli import main
from evalrun.errors import PRECEDENCE, ExitCode, worst
from evalrun.journal import RunFolder
from fakes.project import GREEN, REFUSAL, TOPICS, Project, honest, question_of
from known import data_of, json_of, known, lines_of


def small(project: Project) -> Project:
    """The project with four questions, one draw and no gates: enough where no estimate is looked at."""
    project.cases = project.cases[:4]
    project.config |= {"draws": 1, "gates": []}
    return project


# ---------------------------------------------------------------- same inputs, same bytes


def test_a_replay_gives_the_same_bytes_however_many_are_in_flight(project: Project) -> None:
    """Recorded once, replayed with 1 and with 16 in flight and no model there: every file but meta.json is
    the same, everything is proved, every gate holds, and nothing is asked.
    """
    recorded = project.run("--record")
    assert ExitCode.OK == recorded.code, recorded.text
    assert 32 == len(project.model.bodies)
    # The same answer to the same question is read once: two wordings of eight topics, eight refusals.
    assert len(project.judge.bodies) <= 24
    before = {book: project.raw(book) for book in ("bot", "judge")}
    project.stop()
    runs = []
    for flight in (1, 16, 16):
        for part in (project.config["target"], project.config["judge"]):
            part["limits"]["concurrency"] = flight
        runs.append(project.run())
    first = runs[0]
    assert ExitCode.OK == first.code, first.text
    assert GREEN == first.decisions
    assert {"observed"} == {draw.level for draw in first.draws}
    assert {} == first.errors
    assert (0, 32) == (first.folder.meta.calls, first.folder.header.levels["observed"])
    for other in runs[1:]:
        assert first.files().keys() == other.files().keys()
        journals = [name for name in first.files() if name.endswith(("json", "jsonl"))]
        assert [first.files()[name] for name in journals] == [other.files()[name] for name in journals]
        # The reports tell name and times of their run, which they take from meta.json.
        (other.folder.path / "meta.json").write_bytes((first.folder.path / "meta.json").read_bytes())
        assert 0 == CliRunner().invoke(main, ["report", str(other.folder.path)]).exit_code
        for name, data in first.files().items():
            assert data == other.files()[name], name
    assert before == {book: project.raw(book) for book in ("bot", "judge")}
    wanted = {
        "run.json",
        "junit.xml",
        "summary.md",
        "report.html",
        "cases.jsonl",
        "draws.jsonl",
        "scores.jsonl",
    }
    assert wanted <= first.files().keys()


def test_only_meta_holds_what_differs_between_two_places(project: Project) -> None:
    """No port, no path and no limit of this run in any other file."""
    small(project).recorded()
    done = project.run()
    text = b"\n".join(data for name, data in done.files().items() if name != "report.html")
    ports = [url.rpartition(":")[2] for url in (project.model.url, project.judge.url)]
    for part in (*ports, str(project.folder), "127.0.0.1"):
        assert part.encode() not in text, part
    header = json.loads((done.folder.path / "run.json").read_text("utf-8"))
    assert "limits" not in header["config"]["target"]
    assert {"tap", "port"} <= {
        part.strip("{}")
        for part in [*header["config"]["target"]["launch"]["command"], "{tap}"]
        if part.startswith("{")
    }


GUARD = """
import os, sys
note = open(os.environ["CONNECTIONS"] + "." + str(os.getpid()), "a", buffering=1)
LOCAL = ("127.0.0.1", "::1", "localhost")
def hook(event, args):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = args[1]
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        address = (args[0] or "127.0.0.1", "a name")
    else:
        return
    if not isinstance(address, tuple) or address[0] not in LOCAL:
        note.write(f"{address} elsewhere\\n")
        raise PermissionError(f"{event} of {address} was tried")
    if event == "socket.connect":
        note.write(f"{address[0]} {address[1]}\\n")
sys.addaudithook(hook)
"""


def test_a_replay_connects_to_nothing_but_the_bot_it_started(project: Project, tmp_path: Path) -> None:
    """Every connection of evalrun and of the bot is written down: one port each, and neither is a model's."""
    small(project)
    # With -S the bot would not load the guard.
    command = project.config["target"]["launch"]["command"]
    command.remove("-S")
    project.recorded()
    project.stop()
    (tmp_path / "guard").mkdir()
    (tmp_path / "guard" / "sitecustomize.py").write_text(GUARD)
    env = {
        "PYTHONPATH": str(tmp_path / "guard"),
        "CONNECTIONS": str(tmp_path / "connections"),
        "HTTP_PROXY": "http://127.0.0.1:9",
        "OLLAMA_HOST": project.model.url,
    }
    process, folder = project.start(env=env)
    text, _ = process.communicate(timeout=120)
    assert 0 == process.returncode, text
    seen = {
        int(path.suffix[1:]): {tuple(line.split()) for line in path.read_text().splitlines()}
        for path in tmp_path.glob("connections.*")
    }
    own = seen.pop(process.pid)
    (bots,) = [found for found in seen.values() if found]
    assert (1, 1) == (len(own), len(bots)), (own, bots)
    assert {"127.0.0.1"} == {host for host, _ in own | bots}
    models = {url.rpartition(":")[2] for url in (project.model.url, project.judge.url)} | {"9"}
    assert not models & {port for _, port in own | bots}
    assert 4 == len(list(RunFolder(folder).draws()))


@known(
    "CC-04",
    (json_of("cc-04-two-runs.json")["expect"], ["run", "run"]),
    ("a command that fails between two runs", ["run", "gone.yaml", "run"]),
    ("three, of which the second asks for one case", ["run", "run --case books", "run"]),
)
def test_two_runs_in_one_process_both_work(given: tuple[str, list[str]], project: Project) -> None:
    """Nothing of the first is in the way of the second, and nothing is said at the end."""
    project.config |= {"draws": 1, "gates": []}
    project.cases = [one for one in project.cases if one["id"] in ("books", "city")]
    config = str(project.recorded().write())
    code = f"""
        from click.testing import CliRunner
        from evalrun.cli import main
        for number, line in enumerate({given[1]!r}):
            name, *more = line.split()
            args = ["run", {config!r} if name == "run" else name, *more, "--quiet"]
            done = CliRunner().invoke(main, [*args, "--output", {str(project.folder)!r} + str(number)])
            print(done.exit_code)
    """
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    codes = ["0" if name.startswith("run") else "2" for name in given[1]]
    assert (codes, "") == (done.stdout.split(), done.stderr)


def twins(question: str, *relevant: list[str] | None) -> list[Any]:
    """Cases with one question and different expectations."""
    return [
        {"id": f"q{number}", "question": question, "relevant_ids": ids}
        for number, ids in enumerate(relevant, start=1)
    ]


@known(
    "CA-04",
    (lines_of("ca-04-same-question.jsonl"), {"q1": 0.0, "q2": 1.0}),
    (twins("Find ladders", ["work"], ["work"], ["tools"]), {"q1": 0.0, "q2": 0.0, "q3": 1.0}),
    (twins("Wo?", [], ["other", "tools"], None, ["work"]), {"q1": None, "q2": 0.0, "q3": None, "q4": 1.0}),
)
def test_cases_with_one_question_are_scored_apart(
    given: tuple[list[Any], dict[str, float | None]], project: Project
) -> None:
    """The reply may be shared, the score is that of each case's own expectation."""
    project.cases = [line | {"category": "known"} for line in given[0]]
    project.docs = {"tools": "A ladder.", "work": "Work.", "other": "Other."}
    project.config |= {"draws": 1, "gates": [], "scorers": ["recall@1", "mrr"]}
    project.config["target"]["k"] = 1
    del project.config["judge"]
    done = project.run("--record")
    # The fake finds what the last case with this question names.
    assert given[1] == {score.case: score.value for score in done.scores("recall@1")}


# ---------------------------------------------------------------- stale recordings


def test_a_changed_word_makes_exactly_its_cases_stale(project: Project) -> None:
    """One word of a document that some contexts hold: those draws are refused and named, with what differs
    and what a refresh costs, and have no scores; the rest is scored as before. Then each way to record.
    """
    project.recorded()
    known = project.run()
    project.docs["city"] = project.docs["city"].replace("Graz", "Linz")
    affected = {
        draw.case for draw in known.draws for context in [dict(known.folder.contexts())[draw.case]]
        if "city" in context.ids
    }  # fmt: skip
    assert {"city"} <= affected < {case["id"] for case in project.cases}
    bot, judge = project.raw(), project.raw("judge")

    replayed = project.run()
    assert ExitCode.UNAVAILABLE == replayed.code
    assert affected == replayed.errors.keys()
    for reasons in replayed.errors.values():
        assert 2 == len(reasons)
        assert all(
            reason.startswith("recording: a stale recording of /api/chat: prompt message 2: ")
            for reason in reasons
        )
    for name in ("faithful", "right"):
        lost = {score.case for score in replayed.scores(name) if score.status == "error"}
        assert affected == lost
        assert {score.case for score in replayed.scores(name)} - lost == {
            d.case for d in known.draws
        } - affected
    kept = [score for score in known.folder.scores() if score.case not in affected]
    assert kept == [score for score in replayed.folder.scores() if score.case not in affected]
    errors = "\n".join(replayed.folder.header.errors)
    for case_id in affected:
        assert case_id in errors
    count = 2 * len(affected)
    assert f"{count} answers of {len(affected)} case" in errors
    assert "Graz" in errors
    assert "Linz" in errors
    assert f"a refresh costs {count} answers and up to {count} verdicts" in errors
    assert errors.splitlines()[0].strip() in " ".join(replayed.text.split())
    assert 0 == len(project.model.bodies) == len(project.judge.bodies)

    refused = project.run("--record")
    assert ExitCode.UNAVAILABLE == refused.code
    assert affected == refused.errors.keys()
    assert (bot, judge) == (project.raw(), project.raw("judge"))
    assert 0 == len(project.model.bodies)

    renewed = project.run("--record-missing")
    assert ExitCode.OK == renewed.code, renewed.text
    assert count == len(project.model.bodies)
    assert ({}, GREEN) == (renewed.errors, renewed.decisions)
    old = {(json.loads(line).get("case"), line) for line in bot.splitlines()}
    new = {(json.loads(line).get("case"), line) for line in project.raw().splitlines()}
    assert affected == {case_id for case_id, _ in old ^ new}
    assert len(old) == len(new) == 32
    assert ExitCode.OK == project.run().code


def test_a_torn_last_line_is_recorded_again(project: Project) -> None:
    """A run killed while it wrote: the replay misses one draw, the recording asks for that one only."""
    small(project).recorded()
    path = project.folder / "cassette" / "bot.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    last = project.lines()[-1].case
    torn = project.run()
    assert (ExitCode.UNAVAILABLE, 1) == (torn.code, len(torn.errors))
    assert last not in torn.errors
    assert "have no recording" in "\n".join(torn.folder.header.errors)
    assert ExitCode.OK == project.run("--record").code
    assert 1 == len(project.model.bodies)
    assert [line.case for line in project.lines()] == sorted(case["id"] for case in project.cases)
    assert ExitCode.OK == project.run().code


def test_a_swallowed_miss_is_a_stale_recording_and_no_broken_chain(project: Project) -> None:
    """A bot that turns its model's failure into an answer: the cause is told, and nothing is scored."""
    small(project).break_bot("swallows")
    project.recorded()
    project.docs["city"] = "Moved."
    done = project.run()
    assert ExitCode.UNAVAILABLE == done.code
    assert {"recording"} == {error.partition(":")[0] for errors in done.errors.values() for error in errors}
    assert all(score.status == "error" for score in done.scores("faithful") if score.case in done.errors)


def test_a_verdict_without_a_recording_is_missed_alone(project: Project) -> None:
    """Another rubric asks the judge something else: answers stand, verdicts are missing, exit 4."""
    small(project).recorded()
    project.rubric["prompt"]["system"] = "Read the answer with care."
    done = project.run()
    assert ExitCode.UNAVAILABLE == done.code
    assert {} == done.errors
    assert {"error"} == {score.status for score in done.scores("faithful")}
    assert "4 verdicts of 4 cases have a stale recording" in "\n".join(done.folder.header.errors)
    assert ExitCode.OK == project.run("--record").code
    assert (0, 4) == (len(project.model.bodies), len(project.judge.bodies))


def test_without_a_recording_nothing_is_started_and_no_folder_stays(project: Project) -> None:
    """VC-04 and the first thing a newcomer may do: exit 4, what to do, and nothing left behind."""
    done = project.run()
    assert ExitCode.UNAVAILABLE == done.code
    assert "no recording here" in done.text
    assert "--record" in done.text
    assert not done.folder.path.exists()
    assert not (project.folder / "cassette").exists()


def test_a_bot_that_cannot_start_without_a_recording_says_so(project: Project) -> None:
    """It embeds its documents at start; a changed one has no recording, and the bot dies of that: the cause
    is told before its last words. A recording asks for the new one only.
    """
    small(project).break_bot("embeds")
    project.recorded()
    assert ExitCode.OK == project.run().code
    project.docs["city"] = "Moved."
    done = project.run()
    assert ExitCode.UNAVAILABLE == done.code
    assert "no recording: a call to /api/embed" in done.text
    assert done.text.index("no recording") < done.text.index("the bot ended with code 1; its last output:")
    assert ExitCode.UNAVAILABLE == project.run("--record").code
    assert 1 == len([body for body in project.model.bodies if "input" in body])


def test_a_fourth_draw_costs_one_call_a_case(project: Project) -> None:
    """CA-01, whole: more draws later keep those there are, in their places."""
    small(project).recorded()
    first = [draw.answer for draw in project.run().draws]
    more = project.run("--record", "--draws", "2")
    assert 4 == len(project.model.bodies)
    assert first == [draw.answer for draw in more.draws if draw.index == 0]


# ---------------------------------------------------------------- exit codes


@pytest.mark.parametrize("stronger", range(len(PRECEDENCE) - 1))
def test_the_graver_code_wins(stronger: int) -> None:
    """70, 130, 2, 5, 4, 1, 3, 0."""
    assert [70, 130, 2, 5, 4, 1, 3, 0] == [int(code) for code in PRECEDENCE]
    assert PRECEDENCE[stronger] == worst([*PRECEDENCE[stronger:], PRECEDENCE[stronger]])
    assert ExitCode.OK == worst([])


def test_a_broken_chain_outweighs_a_stale_recording_and_a_failed_gate(project: Project) -> None:
    """5 before 4 before 1 before 3: with all of them at once the run says 5, and names each."""
    project.break_bot("edited", TOPICS["books"][0])
    project.model.say = lambda body: "I have two." if honest(body) == REFUSAL else honest(body)
    assert ExitCode.PROVENANCE == project.run("--record").code
    project.docs["tools"] = "About my tools: I use a saw."
    done = project.run()
    assert ExitCode.PROVENANCE == done.code
    assert "fails" == done.decisions["correctly_refused"]
    text = "\n".join(done.folder.header.errors)
    assert "stale recording" in text
    assert "books, draw 1: provenance: the answer is not what the model said" in text
    project.break_bot("")
    assert ExitCode.UNAVAILABLE == project.run().code


def test_a_failed_gate_is_one_and_an_undecided_one_three(project: Project) -> None:
    """TH-01: whatever is printed and however; a waved-through undecided gate is 0."""
    project.model.say = lambda body: REFUSAL if honest(body) == REFUSAL else "I invented this."
    project.config["gates"] = [{"metric": "grounded", "group": "answerable", "min": 0.5}]
    assert ExitCode.GATE_FAILED == project.run("--record").code
    for options in ([], ["--json"], ["--quiet"], ["--full"]):
        done = project.run(*options)
        assert (ExitCode.GATE_FAILED, {"grounded": "fails"}) == (done.code, done.decisions)
    assert done.folder.header.exit_code == 1
    # A report that cannot be written is 2, and the others are written.
    folder = done.folder.path
    (folder / "junit.xml").unlink()
    (folder / "junit.xml").mkdir()
    (folder / "summary.md").unlink()
    again = CliRunner().invoke(main, ["report", str(folder)])
    assert ExitCode.USAGE == again.exit_code
    assert "junit.xml: cannot be written" in again.output
    assert (folder / "summary.md").is_file()
    (folder / "junit.xml").rmdir()
    assert ExitCode.GATE_FAILED == CliRunner().invoke(main, ["report", str(folder), "--json"]).exit_code

    project.config["gates"] = [{"metric": "faithful", "group": "all", "min": 0.6}]
    assert ExitCode.NOT_ENOUGH_EVIDENCE == project.run().code
    project.config["gates"][0]["on_undecided"] = "warn"
    warned = project.run()
    assert (ExitCode.OK, {"faithful": "undecided"}) == (warned.code, warned.decisions)


def test_gates_that_cannot_hold_are_refused_before_anything_is_spent(project: Project) -> None:
    """Exit 2 with the number it takes; no bot, no call, no folder."""
    project.config["gates"][1]["min"] = 0.9
    done = project.run("--record")
    assert ExitCode.USAGE == done.code
    assert "even a perfect score on 8 questions cannot show >= .90: that takes 35" in done.text
    assert [] == project.model.bodies
    assert not (project.folder / "runs").exists()


@known(
    "TH-02",
    (data_of("th-02-empty.jsonl"), ["--category", json_of("th-02-filter.json")["filter"]]),
    (b"\xef\xbb\xbf", ["--category", ""]),
    (b"\r\n \t\r\n", ["--case", "books", "--category", "private"]),
    (b"\n\n", ["--limit", "0"]),
    (b"", ["--case", "Books"]),
)
def test_an_empty_dataset_and_a_filter_of_nothing_are_no_success(
    given: tuple[bytes, list[str]], project: Project
) -> None:
    """Exit 2, the file or the filter is named, and nothing is asked."""
    data, filtering = given
    filtered = project.run("--live", *filtering)
    assert ExitCode.USAGE == filtered.code
    assert filtering[0] in filtered.text
    project.write()
    (project.folder / "cases.jsonl").write_bytes(data)
    done = CliRunner().invoke(main, ["run", str(project.folder / "config.yaml"), "--live"])
    assert ExitCode.USAGE == done.exit_code
    assert "cases.jsonl" in done.output
    assert [] == project.model.bodies


@known(
    "RS-03",
    json_of("rs-03-lone-surrogate.json")["answer"],
    "\udfff",
    "\ud83d \ude00 \ud83d\ude00 \udc00\ud835 \u2028\x00\ufeff",
)
def test_half_a_character_costs_no_row(given: str, project: Project) -> None:
    """Where a reply holds one, U+FFFD stands in its place; every report is written, a replay is the same."""
    small(project)
    project.model.say = lambda body: given
    done = project.run("--record")
    assert ExitCode.OK == done.code, done.text
    text = given.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert {text} == {draw.answer for draw in done.draws}
    assert {"junit.xml", "report.html", "summary.md"} <= done.files().keys()
    replayed = project.run()
    assert (ExitCode.OK, {text}) == (replayed.code, {draw.answer for draw in replayed.draws})


@known(
    "RS-04",
    json_of("rs-04-strict-json.json")["answer_text"],
    "Infinity",
    '{"score": NaN, "most": -Infinity}',
)
def test_every_file_of_a_run_is_strict_json(given: str, project: Project) -> None:
    """Where nothing can be computed there is null and a reason; a text that says NaN is left alone."""
    small(project)
    lost = project.cases[0]["question"]
    project.cases = [one | {"category": f"c{number}"} for number, one in enumerate(project.cases)]
    project.model.say = lambda body: {"status": 500} if question_of(body) == lost else given
    done = project.run("--live", "--json")
    assert {given, None} == {draw.answer for draw in done.draws}
    for path in done.folder.path.glob("*.json*"):
        for line in path.read_bytes().split(b"\n") if path.suffix == ".jsonl" else [path.read_bytes()]:
            if line:
                json.loads(line, parse_constant=lambda name: pytest.fail(name))
    empty = [one for one in done.folder.header.estimates if one.group == "c0" and one.judged]
    assert {(0, None)} == {(one.n, one.value) for one in empty}
    assert {"no_data"} == {one.reason for one in empty}


TH_01 = json_of("th-01-exit.json")
WRITTEN = {"junit": "junit.xml", "html": "report.html", "jsonl": "summary.md"}
"""What the file calls an output → ours; all of them are always written."""


@known("TH-01", TH_01["outputs"], [["html", "jsonl"]], [["junit"], ["jsonl"]])
def test_a_failed_gate_is_one_whatever_is_written(given: list[list[str]], project: Project) -> None:
    """Exit 1 where every output is written; where one cannot be it is 2 and named, never 0."""
    assert ["fail", "pass"] == TH_01["outcomes"]
    relevant = (["talks", "degree"], ["degree"])  # of which the bot retrieves one
    project.cases = [one | {"relevant_ids": ids} for one, ids in zip(project.cases, relevant, strict=False)]
    project.config["target"]["k"] = 1
    project.config |= {"draws": 1, "scorers": ["recall@1"]}
    project.config["gates"] = [{"metric": "recall@1", "min": TH_01["gate"]["pass_rate"], "infer": "this_set"}]
    del project.config["judge"]
    done = project.run("--live")
    assert (ExitCode.GATE_FAILED, {"recall@1": "fails"}) == (done.code, done.decisions), done.text
    for outputs in given:
        blocked = [done.folder.path / name for kind, name in WRITTEN.items() if kind not in outputs]
        for path in blocked:
            path.unlink()
            path.mkdir()
        again = CliRunner().invoke(main, ["report", str(done.folder.path)])
        assert (ExitCode.USAGE if blocked else ExitCode.GATE_FAILED) == again.exit_code
        assert all(f"{path.name}: cannot be written" in again.output for path in blocked)
        for path in blocked:
            path.rmdir()
        assert ExitCode.GATE_FAILED == CliRunner().invoke(main, ["report", str(done.folder.path)]).exit_code


def test_a_partial_run_says_so_and_evaluates_no_gate(project: Project) -> None:
    """One case cannot clear a run; its numbers are shown, and no more than its calls are made."""
    done = project.run("--live", "--case", "books", "--draws", "1")
    assert ExitCode.OK == done.code
    assert (1, 1) == (len(project.model.bodies), len(project.judge.bodies))
    assert ("--case books", ()) == (done.folder.header.partial, done.folder.header.verdicts)
    assert "partial" in done.text
    assert not (project.folder / "cassette").exists()


def test_a_service_that_never_answers_is_four_and_says_why(project: Project) -> None:
    """The bot, or the judge, without one reply: that is no scattered error."""
    small(project).break_bot("no-trace")
    done = project.run("--live")
    assert ExitCode.UNAVAILABLE == done.code
    assert "the bot gave no answer at all (4 draws tried): service: /retrieve: HTTP 404" in done.text
    project.break_bot("")
    project.judge.say = lambda body: {"status": 500, "json": {"error": "out of memory"}}
    done = project.run("--live")
    assert ExitCode.UNAVAILABLE == done.code
    assert "the judge gave no verdict at all (4 answers tried)" in done.text
    assert "out of memory" in done.text
    assert {} == done.errors


def test_a_fault_of_ours_is_seventy_with_its_traceback(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never 1, which would be read as a failed gate."""

    def broken(*_: object) -> None:
        raise KeyError("a fault")

    monkeypatch.setattr("evalrun.planning.load", broken)
    done = CliRunner().invoke(main, ["run", str(project.write())])
    assert ExitCode.FAULT == done.exit_code
    assert "Traceback" in done.output
    assert "a fault of evalrun" in done.output


def test_options_that_exclude_each_other_are_refused(project: Project) -> None:
    """Live, record and record-missing are three ways, of which one is chosen."""
    done = project.run("--live", "--record")
    assert ExitCode.USAGE == done.code
    assert "exclude each other" in done.text


# ---------------------------------------------------------------- budget, coverage, interruption


def test_a_spent_budget_ends_the_run_and_keeps_what_there_is(project: Project) -> None:
    """Three, said and incomplete; what was answered is kept, judged as far as the budget goes, never more."""
    project.config["budget"] = {"calls": 10}
    for part in (project.config["target"], project.config["judge"]):
        part["limits"]["concurrency"] = 1
    done = project.run("--record")
    assert ExitCode.NOT_ENOUGH_EVIDENCE == done.code
    assert (10, 0) == (len(project.model.bodies), len(project.judge.bodies))
    assert 10 == len([draw for draw in done.draws if draw.error is None])
    assert "the budget of 10 calls is spent" in done.text
    assert not done.folder.header.complete
    assert {"budget: the budget of 10 calls is spent"} == {score.reason for score in done.scores("faithful")}
    assert {"undecided"} == {done.decisions[name] for name in ("grounded", "faithful", "correctly_refused")}
    assert 10 == len(project.lines())
    # The next run goes on where this one stopped.
    project.config["budget"] = {"calls": 30}
    assert ExitCode.NOT_ENOUGH_EVIDENCE == project.run("--record").code
    assert (32, 8) == (len(project.model.bodies), len(project.judge.bodies))
    project.config["budget"] = {}
    assert ExitCode.OK == project.run("--record").code
    assert 32 == len(project.model.bodies)


def test_time_is_a_budget_too(project: Project) -> None:
    """A run that took longer than it may asks nothing more."""
    small(project).config["budget"] = {"seconds": 0.0001}
    done = project.run("--live")
    assert (ExitCode.NOT_ENOUGH_EVIDENCE, 0) == (done.code, len(project.model.bodies))
    assert [] == done.draws


def test_tokens_are_a_budget_that_replays_do_not_touch(project: Project) -> None:
    """What bot and judge read and wrote: reached, it stops and says so; what it has paid for is free."""
    small(project)
    for part in (project.config["target"], project.config["judge"]):
        part["limits"]["concurrency"] = 1
    project.config["budget"] = {"tokens": 1}
    done = project.run("--record")
    assert (ExitCode.NOT_ENOUGH_EVIDENCE, 1, 0) == (
        done.code, len(project.model.bodies), len(project.judge.bodies),
    )  # fmt: skip
    meta = done.folder.meta
    assert (1, 0, None) == (meta.calls, meta.replayed, meta.cost)
    assert 1 < meta.tokens
    assert f"the budget of 1 token is spent; reached: 1 call, {meta.tokens} tokens" in done.text
    told = "\n".join(done.folder.header.errors)
    assert "not asked for: 3 of 4 answers, of 3 questions: " in told
    assert "; not judged: 1 answer; what was paid for is kept" in told
    assert "--resume" in done.text
    project.config["budget"] = {}
    every = project.run("--record").folder.meta
    assert (1, 4) == (every.replayed, len(project.model.bodies))
    project.config["budget"] = {"tokens": 1}
    replay = project.run()
    assert (ExitCode.OK, 0) == (replay.code, replay.folder.meta.tokens), replay.text


PRICES = {"bot": {"prompt": 1e6, "completion": 2e6}, "judge": {"prompt": 3e6, "completion": 0}}
"""A token of a prompt costs 1, of an answer 2; those of the judge 3 and nothing."""


def test_cost_is_a_budget_by_the_configs_prices(project: Project) -> None:
    """A run ends above it by no more than what was in flight: with one call at a time, by that one."""
    project.config["budget"] = {"cost": 900}
    project.config["prices"] = PRICES
    for part in (project.config["target"], project.config["judge"]):
        part["limits"]["concurrency"] = 1
    done = project.run("--live")
    assert ExitCode.NOT_ENOUGH_EVIDENCE == done.code
    usages = [draw.usage for draw in done.draws]
    answers = sum((use.prompt_tokens or 0) + 2 * (use.completion_tokens or 0) for use in usages)
    cost = done.folder.meta.cost
    assert cost is not None
    assert 900 <= cost
    assert answers < cost, "the judge is paid too"
    largest = max(3 * len(json.dumps(body)) // 4 for body in project.judge.bodies)
    assert cost < 900 + 2 * largest
    assert "the cost budget of 900 is spent; reached: " in done.text
    assert done.folder.header.complete is False


def test_a_cost_budget_needs_the_price_of_every_model_it_pays(project: Project) -> None:
    """Refused before anything is asked, with the key to add, the place told; unpaid models need none."""
    small(project).config["budget"] = {"cost": 1}
    refused = CliRunner().invoke(main, ["run", str(project.write()), "--live"])
    assert ExitCode.USAGE == refused.exit_code
    assert "'budget.cost' without the price of the bot's model" in refused.output
    assert "add what a million tokens cost: prices: {judge: {prompt: …, completion: …}}" in refused.output
    assert "config.yaml:" in refused.output
    assert [] == project.model.bodies
    project.config["prices"] = {"bot": PRICES["bot"]}
    project.config["scorers"] = ["recall@2"]
    assert ExitCode.OK == CliRunner().invoke(main, ["validate", str(project.write())]).exit_code


def test_a_budget_that_cannot_be_kept_ends_the_run(project: Project) -> None:
    """A server that does not count what it reads and writes could be paid without end."""
    small(project).config["budget"] = {"tokens": 10**6}
    project.config["target"]["limits"]["concurrency"] = 1
    project.model.say = lambda body: {"text": honest(body), "prompt_eval_count": None, "eval_count": None}
    done = project.run("--live")
    assert (ExitCode.NOT_ENOUGH_EVIDENCE, 1) == (done.code, len(project.model.bodies))
    assert "budget.tokens cannot be kept: the model of the bot does not count its tokens" in done.text


def test_a_bot_without_a_tap_counts_what_it_tells_itself(project: Project) -> None:
    """An answer is one call, with the tokens that the reply tells."""
    launch = small(project).config["target"]["launch"]
    launch["env"] = {"OLLAMA_HOST": project.model.url}
    project.config |= {"provenance": "reported", "budget": {"calls": 2}, "scorers": ["recall@2", "tokens"]}
    project.config["target"]["limits"]["concurrency"] = 1
    done = project.run("--live")
    usages = [draw.usage for draw in done.draws]
    told = sum((use.prompt_tokens or 0) + (use.completion_tokens or 0) for use in usages)
    assert (ExitCode.NOT_ENOUGH_EVIDENCE, 2, told) == (
        done.code, done.folder.meta.calls, done.folder.meta.tokens,
    )  # fmt: skip
    project.config["budget"] = {"tokens": 1}
    assert 1 == len(project.run("--live").draws)


def test_lost_draws_lower_the_coverage_of_the_gates_they_belong_to(project: Project) -> None:
    """One question of eight fails: its gates are not measured, unless the config asks for less coverage; one
    that is waved through leaves the run green.
    """
    project.break_bot("500-like-a-refusal", TOPICS["books"][0])
    done = project.run("--record")
    assert ExitCode.NOT_ENOUGH_EVIDENCE == done.code
    assert GREEN | {"grounded": "undecided", "faithful": "undecided"} == done.decisions
    assert "coverage .88, needs .95: not measured (2: no answer came)" == done.why["grounded"]
    told = next(note for note in done.folder.header.notes if note.startswith("the bot gave no answer"))
    assert told.startswith("the bot gave no answer for 2 of 32 draws: 2 × ")
    assert "500" in told
    for gate in project.config["gates"][1:]:
        gate["min_coverage"] = 0.8
    project.config["gates"][1]["min"] = 0.4
    less = project.run()
    assert GREEN | {"grounded": "undecided"} == less.decisions, less.why
    project.config["gates"][1]["on_undecided"] = "warn"
    assert ExitCode.OK == project.run().code


def interrupted(project: Project, number: signal.Signals, *args: str) -> tuple[int, str, RunFolder]:
    """A run that gets a signal as soon as three answers are written down: code, output, folder."""
    pid_file = project.folder / "pid"
    project.config["target"]["launch"]["command"] = project.command("--pid-file", str(pid_file))
    project.config["target"]["limits"]["concurrency"] = 1
    project.model.delay = 0.2
    process, path = project.start(*args)
    journal = path / "draws.jsonl"
    while process.poll() is None and not (journal.exists() and journal.read_bytes().count(b"\n") >= 3):
        time.sleep(0.02)
    process.send_signal(number)
    text, _ = process.communicate(timeout=60)
    bot = int(pid_file.read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(bot, 0)
    return process.returncode, text, RunFolder(path)


@known(
    "CC-05",
    (signal.SIGINT, json_of("cc-05-interrupt.json")["rows"]),
    (signal.SIGTERM, 10),
    (signal.SIGINT, 5),
)
def test_an_interrupted_run_keeps_its_draws_and_leaves_no_bot(
    given: tuple[signal.Signals, int], project: Project
) -> None:
    """130, whole lines, no orphan; the recording holds the answers, and the next run does the rest."""
    number, rows = given
    project.cases = project.cases[:rows]
    project.config |= {"draws": 1, "gates": []}
    code, text, folder = interrupted(project, number, "--record")
    assert ExitCode.INTERRUPTED == code, text
    assert "interrupted; finished draws are kept" in text
    assert "Traceback" not in text
    kept = list(folder.draws())
    assert 3 <= len(kept) < rows
    assert {None} == {draw.error for draw in kept}
    assert not (folder.path / "run.json").exists()
    lines = project.lines()
    assert {draw.case for draw in kept} <= {line.case for line in lines}
    project.model.delay = 0
    project.model.bodies.clear()
    assert ExitCode.OK == project.run("--record").code
    assert rows - len(lines) == len(project.model.bodies)


def test_a_background_job_that_ignores_sigint_ends_on_sigterm(project: Project) -> None:
    """A shell starts background jobs with SIGINT ignored; they must still be possible to stop."""
    project.config |= {"draws": 1, "gates": []}
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code, text, _ = interrupted(project, signal.SIGTERM, "--record")
    finally:
        signal.signal(signal.SIGINT, before)
    assert ExitCode.INTERRUPTED == code, text


def test_a_second_recording_into_one_cassette_is_refused(project: Project) -> None:
    """With exit 2 and the number of the first one's process, which goes on undisturbed."""
    project.config |= {"draws": 1, "gates": []}
    project.model.delay = 0.1
    process, path = project.start("--record")
    while process.poll() is None and not (path / "draws.jsonl").exists():
        time.sleep(0.02)
    second = project.run("--record")
    text, _ = process.communicate(timeout=60)
    assert (ExitCode.OK, ExitCode.USAGE) == (process.returncode, second.code), text
    assert f"process {process.pid} is writing there" in second.text
    assert not second.folder.path.exists()
    assert ["bot.jsonl", "judge.jsonl", "source.json"] == sorted(
        file.name for file in (project.folder / "cassette").iterdir()
    )


# ---------------------------------------------------------------- other ways to run


def test_a_bot_behind_plain_http_is_measured(project: Project) -> None:
    """A JSON body and two expressions: contexts are the bot's own word; judged metrics may accept it."""
    small(project)
    project.config["target"] = {
        "kind": "http",
        "path": "/answer",
        "body": {"question": "{question}", "seed": "{seed}", "context": {"chunks": [], "digest": "sha256:0"}},
        "answer": "answer",
        "contexts": "context.chunks",
        "launch": {"command": project.command(), "env": {"OLLAMA_HOST": project.model.url}},
        "limits": {"retries": 0},
    }
    project.config["scorers"] = ["faithful"]
    demanding = project.run("--live")
    assert {"claimed": 4} == demanding.folder.header.levels
    assert {"provenance: the proof is 'claimed', this config demands 'observed'"} == {
        score.reason for score in demanding.scores("faithful")
    }
    project.config["provenance"] = "claimed"
    assert {"pass"} == {score.status for score in project.run("--live").scores("faithful")}


def test_a_bot_without_a_tap_is_believed_its_prompt(project: Project) -> None:
    """Reported is as good as the bot's word; it is not called observed."""
    small(project).config["target"]["launch"]["env"] = {"OLLAMA_HOST": project.model.url}
    project.config["provenance"] = "reported"
    done = project.run("--live")
    assert {"reported"} == {draw.level for draw in done.draws}
    assert all(draw.prompt for draw in done.draws)
    assert {"pass"} == {score.status for score in done.scores("faithful")}


def test_validate_tells_what_is_wrong_and_can_ask_once(project: Project) -> None:
    """Without a probe nobody is asked; with one, one question, its context, answer and proof are shown."""
    path = str(project.write())
    plain = CliRunner().invoke(main, ["validate", path])
    assert (0, 0) == (plain.exit_code, len(project.model.bodies))
    assert "16 cases × 2 draws, 4 gates" in plain.output
    probed = CliRunner().invoke(main, ["validate", path, "--probe"])
    assert (0, 1) == (probed.exit_code, len(project.model.bodies))
    for part in (TOPICS["talks"][0], "context: talks", "proof: observed", "model: bot-model"):
        assert part in probed.output
    project.config["draws"] = 0
    wrong = CliRunner().invoke(main, ["validate", str(project.write())])
    assert ExitCode.USAGE == wrong.exit_code
    assert "config.yaml:" in wrong.output


def test_a_taken_output_folder_is_refused(project: Project) -> None:
    """Nothing is mixed with an older run."""
    small(project).recorded()
    done = project.run()
    again = CliRunner().invoke(main, ["run", str(project.write()), "--output", str(done.folder.path)])
    assert ExitCode.USAGE == again.exit_code
    assert "not empty" in again.output


def test_the_words_of_a_run_are_those_of_its_model(project: Project) -> None:
    """What the fakes say is what the run holds: no answer is made up between them."""
    small(project)
    done = project.run("--live")
    said = {question_of(body): honest(body) for body in project.model.bodies}
    asked = {case["id"]: case["question"] for case in project.cases}
    assert {draw.case: said[asked[draw.case]] for draw in done.draws} == {
        d.case: d.answer for d in done.draws
    }
