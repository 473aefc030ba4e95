"""JSON Schemas of the files that people write, made from the models that check them.

Owns what the models do not say of the files: short forms, the options of each kind of target, which of the
two lines a label file may hold. ``docs/generate.py`` writes them down; the wheel carries them for editors.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from evalrun.records import Case, Label, LabelHeader
from evalrun.scorers import SCORERS
from evalrun.settings import RunConfig, TargetConfig
from evalrun.targets import TARGETS

NAMES = ("config", "dataset", "labels")
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]


def file_of(name: str) -> str:
    """``config.schema.json``."""
    return f"{name}.schema.json"


def packaged(name: str) -> str:
    """The schema that the installed package carries, as text."""
    return (resources.files("evalrun") / "schema" / file_of(name)).read_text(encoding="utf-8")


def text_of(name: str) -> str:
    """The schema as it follows from the models now, as text."""
    made = {"config": config_schema, "dataset": dataset_schema, "labels": labels_schema}[name]()
    return json.dumps({"$schema": _DIALECT, **made}, indent=1, ensure_ascii=False) + "\n"


def config_schema() -> Schema:
    """A config file. Kinds of targets and scorers that a plugin brings are let through."""
    schema = RunConfig.model_json_schema() | {"title": "A config of evalrun"}
    own = schema["$defs"]["TargetConfig"]
    own["properties"].pop("options")
    own.pop("additionalProperties")
    own["properties"]["kind"] = {"anyOf": [{"enum": TARGETS.names()}, {"type": "string"}]}
    own["allOf"] = [_kind(kind, target.Options.model_json_schema(), schema) for kind, target in TARGETS]
    path = {"description": "The file alone.", "format": "path", "type": "string"}
    schema["properties"]["dataset"] = {"anyOf": [path, schema["properties"]["dataset"]]}
    item = schema["properties"]["scorers"]["items"]
    schema["properties"]["scorers"]["items"] = {"anyOf": [{"enum": _specs()}, item]}
    return schema


def _kind(kind: str, options: Schema, schema: Schema) -> Schema:
    """What a target of one kind may hold: its own options beside what every target has."""
    schema["$defs"] |= options.pop("$defs", {})
    every = {name: True for name in TargetConfig.model_fields if name != "options"}
    return {
        "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
        "then": {
            "description": options.get("description", ""),
            "properties": every | options["properties"],
            "required": options.get("required", []),
            "additionalProperties": False,
        },
    }


def _specs() -> list[str]:
    """Every scorer as a config may name it, at depth 5 where it has one."""
    return [spec for name in SCORERS.names() for spec in (name, f"{name}@5")]


def dataset_schema() -> Schema:
    """A line of a dataset."""
    schema = Case.model_json_schema() | {"title": "A line of a dataset of evalrun"}
    schema["required"].remove("category")
    return schema


def labels_schema() -> Schema:
    """A line of a label file: the header, which comes first, or a label."""
    header, label = LabelHeader.model_json_schema(), Label.model_json_schema()
    defs = header.pop("$defs", {}) | label.pop("$defs", {})
    return {"title": "A line of a label file of evalrun", "anyOf": [header, label], "$defs": defs}
