"""Plain values against a pydantic model, every fault told where it stands.

Owns the words of a schema error: the key as people write it, the nearest known name, what stood there
instead. Leaves places to whoever read the file, and rules between fields to the models.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from evalrun.errors import Problem
from evalrun.registry import nearest
from evalrun.yamlfile import Loc, dotted

M = TypeVar("M", bound=BaseModel)
_QUOTE_IT = "if it is meant as text, quote it"


class Place(Protocol):
    """What knows where the parts of a value stand; a :class:`evalrun.yamlfile.Document` does."""

    def where(self, loc: Loc) -> str: ...
    def where_key(self, loc: Loc) -> str: ...
    def written(self, loc: Loc) -> str | None: ...


class Line:
    """A place without columns: every part of the value stands on one line of a file."""

    def __init__(self, where: str) -> None:
        self._where = where

    def where(self, loc: Loc) -> str:
        """``file:line``, whatever ``loc`` is."""
        return self._where

    where_key = where

    def written(self, loc: Loc) -> str | None:
        """None: what stands there is what was read."""
        return None


def check(
    model: type[M],
    value: Any,
    place: Place,
    *,
    at: Loc = (),
    context: Mapping[str, Any] | None = None,
    also_known: Iterable[str] = (),
) -> tuple[M | None, list[Problem]]:
    """``value`` as ``model``, or None and everything wrong with it. ``"3"`` is no number.

    ``at`` is where the value stands in its file; ``also_known`` are keys beside it that a hint may name.
    """
    try:
        # JSON is the only mode of pydantic that is strict and still takes a list for a tuple.
        return model.model_validate_json(json.dumps(value), strict=True, context=dict(context or {})), []
    except ValidationError as fault:
        return None, explain(fault, model, place, at=at, also_known=also_known)


def explain(
    fault: ValidationError,
    model: type[BaseModel],
    place: Place,
    *,
    at: Loc = (),
    also_known: Iterable[str] = (),
) -> list[Problem]:
    """The problems in ``fault``, in the words of a user."""
    errors = fault.errors(include_url=False)
    inside = {error["loc"][:depth] for error in errors for depth in range(len(error["loc"]))}
    # A list whose items are wrong is counted without them: too short only follows from that.
    true = [error for error in errors if not (error["type"] == "too_short" and error["loc"] in inside)]
    return [_problem(error, model, place, at, also_known) for error in true]


def at_most(problems: Sequence[Problem], count: int = 100) -> list[Problem]:
    """The first ``count`` problems, and how many more there are."""
    more = len(problems) - count
    return [*problems[:count], *([Problem("", f"and {more:,} more like these")] if more > 0 else [])]


def _problem(
    error: ErrorDetails, model: type[BaseModel], place: Place, at: Loc, also_known: Iterable[str]
) -> Problem:
    *outer, last = error["loc"] or ("",)
    # What is missing or unknown is a key, whatever it looks like.
    keyed = error["type"] in ("extra_forbidden", "missing")
    inner = (
        *(part for part in outer if not _is_branch(part)),
        *([last] if error["loc"] and (keyed or not _is_branch(last)) else []),
    )
    loc = (*at, *inner)
    name = f"'{dotted(loc)}'" if loc else "the whole"
    if error["type"] == "json_invalid":
        loc = (*at, *_half_character(error["input"]))
        message = f"'{dotted(loc)}' holds half a character (\\ud800 to \\udfff stand for one only in pairs)"
        return Problem(place.where(loc), message, "write the whole character, in UTF-8")
    if error["type"] == "extra_forbidden":
        known = [*_known_keys(model, inner[:-1]), *(also_known if len(inner) == 1 else ())]
        hint = nearest(str(loc[-1]), known) or f"known: {', '.join(sorted(known))}"
        return Problem(place.where_key(loc), f"unknown key {name}", hint)
    if error["type"] == "missing":
        return Problem(place.where(loc[:-1]), f"{name} is missing")
    hint = str(error.get("ctx", {}).get("hint", ""))
    if error["type"] == "string_type" and isinstance(error["input"], int | float):
        hint = _QUOTE_IT
    written = place.written(loc)
    return Problem(
        place.where(loc), f"{name} {_words(error, error['input'] if written is None else written)}", hint
    )


def _half_character(text: str) -> Loc:
    """Where a lone surrogate stands: all that Python writes as JSON and pydantic does not read."""
    todo: list[tuple[Loc, Any]] = [((), json.loads(text))]
    while todo:
        loc, value = todo.pop()
        items = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for key, item in items:
            if not _is_whole(key):
                return loc
            todo.append(((*loc, key), item))
        if not _is_whole(value):
            return loc
    return ()


def _is_whole(value: Any) -> bool:
    return not isinstance(value, str) or not any("\ud800" <= mark <= "\udfff" for mark in value)


def _is_branch(part: str | int) -> bool:
    """Whether pydantic put it there to name the branch of a union, as ``tuple[str, ...]``."""
    return isinstance(part, str) and ("[" in part or "(" in part)


def _words(error: ErrorDetails, written: Any) -> str:
    if error["type"] in ("value_error", "config"):
        return error["msg"].removeprefix("Value error, ")
    if error["type"] == "string_pattern_mismatch":
        return f"is not of the form {error['ctx']['pattern']} ({_shown(written)})"
    text = _SUBJECT.sub("should", error["msg"]).replace(" valid ", " ")
    for theirs, ours in _PLAIN.items():
        text = text.replace(theirs, ours)
    return f"{text} ({_shown(written)})"


_SUBJECT = re.compile(r"^(Input|String|List|Tuple|Dictionary) should")
_PLAIN = {
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    " after validation": "",
    "a dictionary": "a mapping",
    "an object": "a mapping",
    "a array": "a list",
    "an array": "a list",
    "a tuple": "a list",
    "a string": "text",
    "a integer": "a whole number",
    "an integer": "a whole number",
    "a boolean": "true or false",
}


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "it is a mapping"
    if isinstance(value, list):
        return "it is a list"
    text = json.dumps(value, ensure_ascii=False)
    return f"it is {text if len(text) <= 60 else text[:59] + '…'}"


def _known_keys(model: type[BaseModel], loc: Loc) -> list[str]:
    """The keys of the mapping at ``loc``, read off the model's JSON Schema."""
    schema = model.model_json_schema()
    nodes = [schema]
    for part in loc:
        nodes = [child for node in _resolved(nodes, schema) for child in _children(node, part)]
    return [key for node in _resolved(nodes, schema) for key in node.get("properties", {})]


def _resolved(nodes: list[dict[str, Any]], schema: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for node in nodes:
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].removeprefix("#/$defs/")]
        branches = node.get("anyOf", []) + node.get("oneOf", [])
        found += [node, *_resolved(branches, schema)]
    return found


def _children(node: dict[str, Any], part: str | int) -> list[dict[str, Any]]:
    if isinstance(part, int):
        return [node["items"]] if isinstance(node.get("items"), dict) else []
    return [node["properties"][part]] if part in node.get("properties", {}) else []
