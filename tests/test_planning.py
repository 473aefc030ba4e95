"""What a run will do, checked before anything is spent: every problem at once, and nobody is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalrun.cassette import Address, Mode
from evalrun.errors import InputError, UserError
from evalrun.planning import Plan, Selection, load, make_plan
from evalrun.records import Case
from fakes.project import Project

CASES = Path(__file__).parent / "cases"


def plan(project: Project, mode: Mode = "replay", selection: Selection | None = None) -> Plan:
    """The plan of a project."""
    return make_plan(load(project.write()), mode, selection)


def problems(project: Project, mode: Mode = "replay") -> list[str]:
    """What is wrong with it, in words."""
    with pytest.raises(InputError) as caught:
        plan(project, mode)
    return [problem.message for problem in caught.value.problems]


def test_a_plan_knows_questions_draws_metrics_and_seeds(project: Project) -> None:
    """Without asking anybody."""
    made = plan(project)
    assert (16, 32, True, None) == (len(made.cases), made.draws, made.judged, made.partial)
    assert ["recall@2", "mrr", "right", "grounded"] == [metric.id for metric in made.metrics][:4]
    assert 32 == len(made.seeds.of)
    assert [] == project.model.bodies


def test_a_filter_leaves_seeds_alone_and_says_that_the_run_is_partial(project: Project) -> None:
    """A draw keeps its seed, so its recording is found, whatever else is asked."""
    everything = plan(project)
    one = plan(project, selection=Selection(cases=("books",)))
    assert ["books"] == [case.id for case in one.cases]
    # Collisions are settled in the order of the whole dataset, before any filter.
    assert list(everything.seeds.of.items()) == list(one.seeds.of.items())
    assert Address("books", 1) in one.seeds.of
    assert "--case books" == one.partial
    assert None is plan(project, selection=Selection()).partial


def cases(*names: str) -> list[Case]:
    """Cases, the category of each its first letter."""
    return [Case(id=name, question="?", category=name[0]) for name in names]


def test_a_selection_keeps_the_order_of_the_dataset() -> None:
    """By case, by category, the first so many of what is left; all of them at once."""
    known = cases("a1", "b1", "a2", "b2", "a3")

    def chosen(**fields: Any) -> list[str]:
        return [case.id for case in Selection(**fields).apply(known)]

    assert ["a1", "b2"] == chosen(cases=("b2", "a1"))
    assert ["a1", "a2", "a3"] == chosen(categories=("a",))
    assert ["a1", "a2"] == chosen(categories=("a",), limit=2)
    assert ["a2"] == chosen(categories=("a",), cases=("a2", "b1"))
    assert ["a1"] == chosen(limit=1)


def test_a_selection_of_nothing_is_refused_and_named() -> None:
    """TH-02: a filter that no question passes is a slip, not a success."""
    known = json.loads((CASES / "th-02-filter.json").read_text("utf-8"))
    asked = [Case(id=name, question="?", category=name) for name in known["dataset_categories"]]
    with pytest.raises(UserError, match="--category wrok: the dataset has no 'wrok'"):
        Selection(categories=(known["filter"],)).apply(asked)
    with pytest.raises(UserError, match="--case x: the dataset has no 'x'"):
        Selection(cases=("x",)).apply(asked)
    with pytest.raises(UserError, match="--limit 0: no case is left"):
        Selection(limit=0).apply(asked)
    with pytest.raises(UserError, match="--case work --category study: no case is left"):
        Selection(cases=("work",), categories=("study",)).apply(asked)


def test_gates_that_cannot_hold_are_refused_with_the_number_they_need(project: Project) -> None:
    """Each of them, once, at its place in the file."""
    project.config["gates"][1]["min"] = 0.7
    project.config["gates"][3]["min"] = 0.9
    with pytest.raises(InputError) as caught:
        plan(project)
    found = caught.value.problems
    assert [
        "gate 'grounded, answerable': even a perfect score on 8 questions cannot show >= .70: that takes 9",
        "gate 'faithful, all': even a perfect score on 16 questions cannot show >= .90: that takes 35",
    ] == [problem.message for problem in found]
    assert all("config.yaml:" in problem.where for problem in found)
    assert "add 1 question to 'answerable', or lower the threshold" == found[0].hint


def test_gates_on_what_is_not_there_are_told_once_each(project: Project) -> None:
    """A metric that nobody measures, a group that nobody is in."""
    project.config["gates"] = [
        {"metric": "gounded", "group": "answerable", "min": 0.5},
        {"metric": "faithful", "group": "privat", "min": 0.5},
    ]
    assert 2 == len(problems(project))


def test_everything_that_is_missing_is_told_at_once(project: Project) -> None:
    """No judge for a judged scorer, no cassette to replay, no bot, a broken rubric and a broken dataset."""
    del project.config["judge"], project.config["cassette"], project.config["target"]["launch"]
    project.cases[3]["expect"] = "perhaps"
    found = problems(project)
    for part in ("'expect'", "scorer 'outcome' needs a judge", "no cassette to replay", "no bot to ask"):
        assert any(part in message for message in found), (part, found)


def test_a_replay_starts_its_bot_itself(project: Project) -> None:
    """A bot that already runs asks its model by itself: nothing of that would be replayed."""
    del project.config["target"]["launch"]
    project.config["target"]["url"] = "http://127.0.0.1:9"
    project.config["provenance"] = "reported"
    assert ["replay launches the bot itself"] == problems(project)
    assert "live" == plan(project, "live").mode


def test_a_bot_that_is_not_led_through_the_recording_is_refused(project: Project) -> None:
    """Without ``{tap}`` a bot would ask its model by itself: nothing would be replayed or recorded."""
    project.config["target"]["launch"]["env"] = {"OLLAMA_HOST": project.model.url}
    for mode in ("replay", "record"):
        assert ["the bot's model calls do not pass the recording"] == problems(project, mode)
    project.config["provenance"] = "reported"
    assert "live" == plan(project, "live").mode


def test_an_empty_dataset_is_refused(project: Project) -> None:
    """TH-02: no question is no success; the file is named."""
    project.cases = []
    with pytest.raises(InputError) as caught:
        plan(project)
    assert "cases.jsonl" in str(caught.value)
