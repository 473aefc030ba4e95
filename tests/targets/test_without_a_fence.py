"""A program behind the tap that has no fence: observed by its chunks, or at a lower level, never broken."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from evalrun.errors import ExitCode
from fakes.project import Outcome, Project

PROGRAM = """
import json, os, sys, urllib.request
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
DOCS = json.load(open("docs.json"))
for line in sys.stdin:
    asked = json.loads(line)
    question = asked["question"]
    ids = (DOCS["finds"][question] or list(DOCS["docs"]))[:1]
    sources = [{"id": name, "text": DOCS["docs"][name]} for name in ids]
    prompt = "Sources:\\n" + "\\n".join(one["text"] for one in sources) + "\\n\\nQuestion: " + question
    options = {"seed": asked["seed"]} if "seed" in asked else {}
    messages = [{"role": "user", "content": prompt}]
    call = {"model": "m", "messages": messages, "stream": False, "options": options}
    request = urllib.request.Request(os.environ["MODEL"] + "/api/chat", json.dumps(call).encode())
    said = json.load(DIRECT.open(request))["message"]["content"]
    if "formats" in sys.argv:
        said = "**" + said + "**"
    if "shortens" in sys.argv:
        sources[0]["text"] = sources[0]["text"][:-4] + "…"
    print(json.dumps({"id": asked["id"], "answer": said, "sources": sources}), flush=True)
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """The small project, its bot a program."""
    made = Project(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM, "utf-8")
    made.config["target"] = {
        "kind": "command",
        "command": [sys.executable, "-S", "program.py"],
        "env": {"MODEL": "{tap}"},
        "body": {"question": "{question}", "seed": "{seed}"},
        "contexts": "sources",
        "limits": {"retries": 0},
    }
    made.config |= {"provenance": "claimed", "scorers": ["recall@1", "outcome"], "gates": []}
    return made


def levels(done: Outcome) -> dict[str, int]:
    """The levels of a run that ended well and holds."""
    assert ExitCode.OK == done.code, done.text
    assert {} == done.errors
    return done.folder.header.levels


def test_chunks_verbatim_in_the_tapped_prompt_are_proof(project: Project) -> None:
    """Recorded and replayed, with or without a seed; the replay asks no model."""
    assert {"observed": 32} == levels(project.run("--record"))
    project.stop()
    replayed = project.run()
    assert {"observed": 32} == levels(replayed)
    assert 32 == len({draw.exchange for draw in replayed.draws})


def test_without_a_seed_the_draws_go_one_after_the_other(project: Project) -> None:
    """And are proved all the same."""
    del project.config["target"]["body"]["seed"]
    done = project.run("--live")
    assert {"observed": 32} == levels(done)
    assert "no seed: one call in flight through the tap" in done.text


@pytest.mark.parametrize("habit", ["formats", "shortens"])
def test_what_cannot_be_shown_is_claimed_and_breaks_nothing(project: Project, habit: str) -> None:
    """An answer that is formatted after the model, a chunk that is cut for display."""
    project.config["target"]["command"].append(habit)
    assert {"claimed": 32} == levels(project.run("--live"))
