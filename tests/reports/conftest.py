"""Run folders that several tests of the reports read; none of them writes into one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from make_run import make_run

from evalrun.journal import RunFolder
from evalrun.records import Case

CASES = Path(__file__).parents[1] / "cases"


@pytest.fixture(scope="session")
def quality(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run of 64 questions × 3 draws: gates of every kind, a lost draw, a reading that failed."""
    return make_run(tmp_path_factory.mktemp("runs") / "1209-quality")


def hostile_texts() -> list[str]:
    """Everything from the case files that tries to be more than text."""
    script = json.loads((CASES / "hr-01-script-close.json").read_text())["answer"]
    markup = json.loads((CASES / "hr-02-markup.json").read_text())
    placeholders = json.loads((CASES / "hr-03-placeholder.json").read_text())["answers"]
    controls = json.loads((CASES / "jx-01-control-chars.json").read_text())["answers"]
    surrogate = json.loads((CASES / "rs-03-lone-surrogate.json").read_text())["answer"]
    nan = json.loads((CASES / "rs-04-strict-json.json").read_text())["answer_text"]
    own = [
        "[bold red]markup[/bold red] [link=file:///etc/passwd]x[/link]",
        "\u202egnp.exe\u202c",
        "``` | `x`",
    ]
    return [script, *markup.values(), *placeholders, *controls, surrogate, nan, *own]


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run in which every text that can come from outside is hostile."""
    texts = hostile_texts()
    replaced = [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in texts]
    extra = [
        (Case(id=f"h{place} {text}", question=text, category=text, reference=text, tags=(text,)), text)
        for place, text in enumerate(replaced)
    ]
    return make_run(
        tmp_path_factory.mktemp("runs") / "hostile",
        sizes={"single_chunk": 8},
        extra=extra,
        name=replaced[0],
        notes=tuple(replaced),
        errors=tuple(replaced),
    )
