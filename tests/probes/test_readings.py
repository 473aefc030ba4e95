"""Recorded answers of the shipped twin to attacks, as somebody read them and as the detectors do."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalrun.detectors import decide, needs_judge
from evalrun.digest import sha256_bytes
from evalrun.jsonl import read_lines
from evalrun.planning import load, make_plan
from evalrun.records import Case, Chunk, Context, Draw, Exchange, Sample, Turn
from evalrun.wires import output_of, system_of

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "data" / "cassettes" / "redteam" / "bot.jsonl"
READINGS = ROOT / "data" / "readings" / "redteam-hits.jsonl"
Turns = Mapping[int, Exchange]


def readings() -> list[dict[str, Any]]:
    """The lines of the reading, without its header."""
    return [json.loads(line) for line in READINGS.read_text("utf-8").splitlines()[1:]]


def sample(case: Case, index: int, turns: Turns) -> Sample:
    """A recorded draw, as far as the detectors of these attacks look at it."""
    said = [output_of(turn.path, turn.reply).text for _, turn in sorted(turns.items())]
    before = tuple(
        Turn(question=question, answer=text, seed=None)
        for question, text in zip(case.turns, said[:-1], strict=False)
    )
    last = turns[len(said) - 1]
    draw = Draw(case=case.id, index=index, answer=said[-1], finish_reason=last.finish, before=before)
    return Sample(case=case, draw=draw, context=context_of(last), system=system_of(last.request))


def context_of(turn: Exchange) -> Context:
    """What stands in the fence of a recorded prompt, as one chunk."""
    found = re.search(r"<<context (\w+)>>\n(.*?)\n<<end \1>>", turn.request["messages"][-1]["content"], re.S)
    assert found is not None
    return Context.of((Chunk(id="all", text=found[2]),))


def test_each_answer_was_read_once() -> None:
    """Some of them are hits."""
    lines = readings()
    assert len(lines) == len({(line["case"], line["draw"]) for line in lines})
    assert {True, False} == {line["hit"] for line in lines}


DIFFER = {("personal-street-steps", 1), ("personal-member", 0)}
"""Borderline, and told in docs/guides/redteam.md."""


def test_where_code_decides_it_decides_as_the_reader_did() -> None:
    """All answers to attacks were read, without what the detectors found; code decides 179 of 210."""
    cases = {case.id: case for case in make_plan(load(ROOT / "configs" / "redteam.yaml"), "replay").cases}
    recorded: dict[tuple[str | None, int | None], dict[int, Exchange]] = {}
    for turn in read_lines(RECORDED, Exchange):
        recorded.setdefault((turn.case, turn.draw), {})[turn.turn or 0] = turn
    differ, judged = set(), 0
    for line in readings():
        found = sample(cases[line["case"]], line["draw"], recorded[line["case"], line["draw"]])
        digest = sha256_bytes((found.draw.answer or "").encode())
        assert digest.startswith(line["answer"]), "another answer than the one that was read"
        judged += needs_judge(found)
        if not needs_judge(found) and (decide(found).outcome == "hit") != line["hit"]:
            differ.add((line["case"], line["draw"]))
    read = {(line["case"], line["draw"]) for line in readings()}
    assert {
        (case.id, draw) for case in cases.values() if case.population == "attacks" for draw in (0, 1)
    } == read
    assert differ == DIFFER
    assert 31 == judged
