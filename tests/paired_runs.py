"""Makes run folders for the tests of comparisons, scored by the real scorers from outcomes that a test names.

Owns made-up cases, one context for all of them, and answers that say which outcome they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalrun.digest import draw_digest, tagged
from evalrun.journal import RunFolder
from evalrun.records import (
    Case,
    CaseContext,
    Chunk,
    Claim,
    Context,
    DatasetInfo,
    Draw,
    JudgeInfo,
    Judgement,
    Meta,
    RunHeader,
    Sample,
)
from evalrun.scorers import all_metrics, build_all, score
from evalrun.summary import summarise

SCORERS = ("recall@5", "outcome", "faithful")
CONTEXT = Context.of((Chunk(id="talks", text="She spoke in Berlin."), Chunk(id="work", text="She builds.")))
READING = {
    "grounded": (False, True),
    "unsupported": (False, False),
    "over_refused": (True, True),
    "correctly_refused": (True, True),
    "answered": (False, False),
}
"""Outcome → (is a refusal, is faithful), as a judge would read it."""
GOOD = {"answer": ("grounded", "unsupported"), "refuse": ("correctly_refused", "answered")}
"""What is expected → the outcome of a pass and of a fail."""

Outcomes = Mapping[str, Sequence[str | None]]


def case(name: str, **fields: Any) -> Case:
    """A case; ids that begin with ``una`` are to be refused."""
    expect = "refuse" if name.startswith("una") else "answer"
    made: dict[str, Any] = {
        "id": name,
        "question": f"Question {name}?",
        "category": "guardrail" if expect == "refuse" else "single_chunk",
        "expect": expect,
        "relevant_ids": () if expect == "refuse" else ("talks",),
    }
    return Case(**(made | fields))


def passes(prefix: str, rows: Sequence[Sequence[int | None]]) -> dict[str, list[str | None]]:
    """Outcomes of cases ``prefix-000``, …: 1 passes, 0 fails, None has no verdict."""
    good, bad = GOOD["refuse" if prefix.startswith("una") else "answer"]
    names = {1: good, 0: bad, None: None}
    return {f"{prefix}-{place:03d}": [names[value] for value in row] for place, row in enumerate(rows)}


def write_run(
    path: Path,
    outcomes: Outcomes,
    *,
    cases: Mapping[str, Case] | None = None,
    scorers: Sequence[str] = SCORERS,
    judge: str | None = "one",
    context: Context = CONTEXT,
    answers: Mapping[str, str] | None = None,
    config_path: str = "configs/quality.yaml",
    **header: Any,
) -> RunFolder:
    """A sealed run folder. An outcome None is a draw whose reading failed; ``header`` replaces its fields."""
    folder = RunFolder(path)
    path.mkdir(parents=True)
    asked = {name: (cases or {}).get(name) or case(name) for name in outcomes}
    made = build_all(scorers, max(len(row) for row in outcomes.values()))
    scores = []
    for name, row in outcomes.items():
        folder.append("cases", asked[name])
        folder.append("contexts", CaseContext(case=name, context=context))
        for index, outcome in enumerate(row):
            text = (answers or {}).get(name, f"{outcome} answer to {name}, draw {index + 1}")
            sample = _sample(asked[name], index, outcome, text, context)
            folder.append("draws", sample.draw)
            if judge is not None and sample.judgement is not None:
                folder.append("judgements", sample.judgement)
            for scorer in made:
                scores += score(scorer, sample, per="draw")
                scores += score(scorer, sample, per="case") if index == 0 else []
    for one in scores:
        folder.append("scores", one)
    _write_header(folder, outcomes, asked, made, scores, judge, config_path, header)
    return folder


def _sample(asked: Case, index: int, outcome: str | None, text: str, context: Context) -> Sample:
    digest = draw_digest(asked.question, asked.history, context.digest, text)
    draw = Draw(
        case=asked.id, index=index, seed=index, digest=digest, answer=text, context=context.digest,
        level="observed",
    )  # fmt: skip
    read: dict[str, Any] = {"error": "no verdict in the reply"}
    if outcome is not None:
        refusal, faithful = READING[outcome]
        read = {"refusal": refusal, "faithful": faithful, "claims": (Claim(claim="c", supported=faithful),)}
    judgement = Judgement(case=asked.id, index=index, digest=digest, **read)
    return Sample(case=asked, draw=draw, context=context, judgement=judgement)


def _write_header(
    folder: RunFolder,
    outcomes: Outcomes,
    asked: Mapping[str, Case],
    made: Sequence[Any],
    scores: Sequence[Any],
    judge: str | None,
    config_path: str,
    replaced: Mapping[str, Any],
) -> None:
    metrics = all_metrics(made)
    draws = max(len(row) for row in outcomes.values())
    config = {"name": "quality", "temperature": 0.7}
    fields: dict[str, Any] = {
        "evalrun": "0.1.0",
        "name": "quality",
        "config": config,
        "config_digest": tagged("config", config),
        "dataset": DatasetInfo(
            name="twin.v1",
            digest=tagged("dataset", sorted(asked)),
            cases=len(asked),
            categories={},
        ),
        "bot": {"kind": "ragbot", "model": "small"},
        "judge": _judge(judge) if judge else None,
        "draws": draws,
        "exit_code": 0,
        "levels": {"observed": sum(map(len, outcomes.values()))},
        "demanded_level": "observed",
        "metrics": metrics,
        "estimates": summarise(metrics, list(asked.values()), scores, draws),
        "verdicts": (),
    }
    journals = folder.seal()
    meta = Meta(
        run=folder.path.name, mode="replay", started="2026-12-09T12:09:00Z", seconds=1.0, calls=0, replayed=0,
        config_path=config_path,
    )  # fmt: skip
    folder.write_header(RunHeader(**(fields | dict(replaced)), journals=journals), meta)


def _judge(name: str) -> JudgeInfo:
    return JudgeInfo(
        model=f"judge-{name}",
        rubric="claims@1",
        rubric_digest=tagged("rubric", [1]),
        checks=("refusal_rule",),
        temperature=0,
        fingerprint=tagged("judge", [name]),
    )
