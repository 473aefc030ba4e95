"""Rubric files: the judge's prompt, its schema and its code checks, as data.

Owns how a rubric is read and what may stand in one. A rubric's text is never run through a template engine:
its user turn names slots in braces that ``prompt`` fills literally, once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import jsonschema
from pydantic import Field, ValidationError, model_validator

from evalrun.digest import tagged
from evalrun.errors import InputError, Problem
from evalrun.records import Chunk, Record
from evalrun.registry import nearest
from evalrun.yamlfile import Document, Loc, dotted, load_yaml

Check = Literal["refusal_rule", "quotes", "novel_terms"]
Shape = Literal["claims", "direct", "attack"]
SLOTS = ("context", "question", "answer", "reference")
_NEEDED = {
    "claims": ("claims", "answer_is_refusal"),
    "direct": ("faithful", "hallucinated_claims", "correctly_refused"),
    "attack": ("passage", "complied"),
}
_BOOLEANS = {
    "claims": ("answer_is_refusal",),
    "direct": ("faithful", "correctly_refused"),
    "attack": ("complied",),
}
_YES_NO = ["yes", "no"]


class Example(Record):
    """One worked example: another person's context, a question, an answer and the verdict it deserves."""

    context: tuple[Chunk, ...]
    question: str
    answer: str
    reference: str | None = None
    verdict: dict[str, Any]


class Prompt(Record):
    """What the model reads: constant parts first. ``{reference}`` in ``user`` is empty without one."""

    system: str
    examples: tuple[Example, ...] = ()
    user: str
    correction: str


class Rubric(Record):
    """A rubric file. ``digest`` covers everything else in it.

    Shape ``attack`` asks whether an answer does what an attack wants, which stands where other shapes have
    the reference; nothing is asked about correctness, and no check reads claims.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    version: int = Field(ge=1)
    shape: Shape
    checks: tuple[Check, ...] = ()
    max_tokens: int = Field(gt=0)
    num_ctx: int = Field(default=8192, gt=0)
    json_schema: dict[str, Any] = Field(alias="schema")
    correct: dict[str, Any] = Field(default_factory=dict)
    prompt: Prompt
    digest: str = ""

    @property
    def id(self) -> str:
        """``claims@1``."""
        return f"{self.name}@{self.version}"

    def schema_for(self, with_reference: bool) -> dict[str, Any]:
        """The JSON Schema of a verdict; with a reference it also requires ``correct``, asked for last."""
        if not with_reference or self.shape == "attack":
            return self.json_schema
        properties = self.json_schema["properties"] | {"correct": self.correct}
        return self.json_schema | {
            "properties": properties,
            "required": [*self.json_schema["required"], "correct"],
        }

    @model_validator(mode="after")
    def _digested(self) -> Rubric:
        parts = self.model_dump(mode="json", by_alias=True, exclude={"digest"})
        object.__setattr__(self, "digest", tagged("rubric", parts))
        return self


def load_rubric(path: Path) -> Rubric:
    """The rubric in ``path``.

    Raises:
        InputError: every problem found, each with ``file:line:col``.
    """
    document = load_yaml(path)
    if not isinstance(document.value, dict):
        raise InputError(
            [Problem(document.where(()), "a rubric is a mapping of keys", "see configs/rubrics/")]
        )
    try:
        rubric = Rubric.model_validate(document.value)
    except ValidationError as fault:
        raise InputError(_problem(document, error) for error in fault.errors()) from None
    problems = [Problem(document.where(loc), message) for loc, message in _faults(rubric)]
    if problems:
        raise InputError(problems)
    return rubric


def _problem(document: Document, error: Any) -> Problem:
    loc: Loc = tuple(error["loc"])
    if error["type"] == "extra_forbidden":
        known = (
            [*Rubric.model_fields, "schema"]
            if len(loc) == 1
            else [*Prompt.model_fields, *Example.model_fields]
        )
        return Problem(document.where_key(loc), f"unknown key '{dotted(loc)}'", nearest(str(loc[-1]), known))
    return Problem(document.where(loc), f"'{dotted(loc)}': {error['msg'][0].lower()}{error['msg'][1:]}")


# ---------------------------------------------------------------- what the types cannot say


def _faults(rubric: Rubric) -> Iterator[tuple[Loc, str]]:
    schema_faults = [*_schema_faults(rubric)]
    yield from schema_faults
    yield from _slot_faults(rubric.prompt)
    if rubric.shape == "direct" and "quotes" in rubric.checks:
        yield ("checks",), "'quotes' needs claims with quotes, which shape 'direct' does not have"
    if rubric.shape == "attack" and rubric.checks:
        yield ("checks",), "shape 'attack' has no claims that a check could correct"
    if not schema_faults:
        yield from _example_faults(rubric)


def _schema_faults(rubric: Rubric) -> Iterator[tuple[Loc, str]]:
    schema = rubric.json_schema
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as fault:
        yield ("schema", *fault.absolute_path), f"not a JSON Schema: {fault.message}"
        return
    properties, required = schema.get("properties") or {}, schema.get("required") or []
    for key in _NEEDED[rubric.shape]:
        if key not in properties or key not in required:
            yield ("schema",), f"shape '{rubric.shape}' needs '{key}' among properties and required"
            return
    for key in _BOOLEANS[rubric.shape]:
        if not _is_boolean(properties[key]):
            yield ("schema", "properties", key), f"'{key}' must be a boolean or enum: {_YES_NO}"
    if rubric.shape != "attack" and not _is_boolean(rubric.correct):
        yield ("correct",), f"must be a boolean or enum: {_YES_NO}"
    if rubric.shape == "claims" and not _is_claim_list(properties["claims"]):
        yield (
            ("schema", "properties", "claims"),
            "must be a list of objects with claim, quote and supported (yes/no)",
        )


def _is_boolean(schema: Any) -> bool:
    return isinstance(schema, dict) and (schema.get("type") == "boolean" or schema.get("enum") == _YES_NO)


def _is_claim_list(schema: Any) -> bool:
    properties = schema.get("items", {}).get("properties", {}) if isinstance(schema, dict) else {}
    return {"claim", "quote", "supported"} <= properties.keys() and _is_boolean(properties["supported"])


def _slot_faults(prompt: Prompt) -> Iterator[tuple[Loc, str]]:
    for slot in SLOTS:
        if prompt.user.count("{" + slot + "}") != 1:
            yield ("prompt", "user"), f"must hold {{{slot}}} exactly once"
    if prompt.correction.count("{reason}") != 1:
        yield ("prompt", "correction"), "must hold {reason} exactly once"


def _example_faults(rubric: Rubric) -> Iterator[tuple[Loc, str]]:
    """An example that breaks the rubric's own schema would teach the model to break it."""
    for index, example in enumerate(rubric.prompt.examples):
        validator = jsonschema.Draft202012Validator(rubric.schema_for(example.reference is not None))
        for fault in validator.iter_errors(example.verdict):
            loc = ("prompt", "examples", index, "verdict", *fault.absolute_path)
            yield loc, f"the example's verdict does not fit the schema: {fault.message}"
