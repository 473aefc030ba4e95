"""The schemas for editors: current, packaged, and of one mind with the models about every shipped file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evalrun.schemas import NAMES, file_of, packaged, text_of
from evalrun.starter import CONFIG, KINDS, Answers, files_of
from evalrun.yamlfile import parse_yaml, read_yaml

ROOT = Path(__file__).parent.parent
CONFIGS = sorted([*ROOT.glob("configs/*.yaml"), *ROOT.glob("docs/examples/*/config.yaml")])
DATASETS = sorted([*ROOT.glob("data/datasets/*.jsonl"), *ROOT.glob("docs/examples/*/questions.jsonl")])
LABELS = sorted(ROOT.glob("data/labels/*.jsonl"))


def faults(name: str, value: Any) -> list[str]:
    """What a schema says of a value."""
    validator = jsonschema.Draft202012Validator(json.loads(packaged(name)))
    return [error.message for error in validator.iter_errors(value)]


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_current_in_the_package_and_in_docs(name: str) -> None:
    """Else: uv run python docs/generate.py."""
    made = text_of(name)
    assert made == packaged(name)
    assert made == (ROOT / "docs" / "schema" / file_of(name)).read_text("utf-8")
    jsonschema.Draft202012Validator.check_schema(json.loads(made))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_shipped_configs_are_valid(path: Path) -> None:
    """As the loader finds them."""
    assert [] == faults("config", read_yaml(path).value)


@pytest.mark.parametrize("path", [*DATASETS, *LABELS], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_shipped_datasets_and_labels_are_valid(path: Path) -> None:
    """Line by line."""
    name = "labels" if path in LABELS else "dataset"
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert lines
    assert [] == [fault for line in lines for fault in faults(name, line)]


@pytest.mark.parametrize("kind", KINDS)
def test_what_init_writes_is_valid(kind: str) -> None:
    """For each kind of target."""
    answers = Answers.model_validate(
        {"name": "n", "kind": kind, "url": "http://h", "body": {"question": "{question}"}, "answer": "a",
         "contexts": "c", "model": "m", "command": ["x"], "function": "a:b", "judge": "ollama/m"}
    )  # fmt: skip
    written = parse_yaml(files_of(answers)[CONFIG], Path(CONFIG))
    assert [] == faults("config", written.value)


GOOD: dict[str, Any] = {
    "name": "n",
    "dataset": "d.jsonl",
    "target": {"kind": "http", "url": "http://h"},
    "scorers": ["latency"],
}


@pytest.mark.parametrize(
    ("change", "valid"),
    [
        ({}, True),
        ({"dataset": {"path": "d.csv", "columns": {"question": "Q"}}}, True),
        ({"target": {"kind": "http", "urll": "x"}}, False),
        ({"target": {"kind": "ragbot", "body": {}}}, False),
        ({"target": {"kind": "of-a-plugin", "anything": 1}}, True),
        ({"target": {}}, False),
        ({"scorers": []}, False),
        ({"draws": 0}, False),
        ({"drows": 1}, False),
        ({"provenance": "seen"}, False),
    ],
)
def test_what_the_loader_refuses_an_editor_underlines(change: dict[str, Any], valid: bool) -> None:
    """Unknown keys, those of another kind of target, values out of range."""
    assert valid is (faults("config", GOOD | change) == [])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dataset", {"id": "a"}),
        ("dataset", {"id": "a", "question": "q", "expect": "maybe"}),
        ("dataset", {"id": "a", "question": "q", "relevant_ids": [3]}),
        ("labels", {"draw": "x", "case": "c", "rater": "r", "label": True}),
        ("labels", {"dimension": "faithful"}),
    ],
)
def test_a_bad_line_is_found(name: str, value: Any) -> None:
    """Of a dataset, and of labels."""
    assert [] != faults(name, value)
