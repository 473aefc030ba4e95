"""What ``evalrun init`` writes: a config, ten questions, a label file and CI jobs for one kind of bot.

Owns the files and that none is overwritten. What the answers are is asked by the command, what a bot's reply
looks like by ``probing``; what may stand in the files is decided by those who read them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, get_args

from jinja2 import Environment, StrictUndefined
from pydantic import Field

from evalrun.errors import InputError, Problem, UserError
from evalrun.jsonl import to_line
from evalrun.records import Case, LabelHeader, Rater, Record
from evalrun.schemas import packaged
from evalrun.yamlfile import parse_yaml

Kind = Literal["http", "openai", "command", "python", "ragbot"]
KINDS: tuple[Kind, ...] = get_args(Kind)
CONFIG = "evalrun.yaml"
QUESTIONS = "questions.jsonl"
LABELS = "labels/faithful.jsonl"
Ci = Literal["github", "gitlab", "none"]
CIS: tuple[Ci, ...] = get_args(Ci)
JOBS: dict[Ci, str] = {"github": ".github/workflows/evalrun.yaml", "gitlab": ".gitlab-ci.yml"}
"""Service that runs checks → where it looks for its jobs."""
RUBRIC = "rubrics/claims.yaml"
SCHEMA = ".evalrun/config.schema.json"


_JUDGE_AT = {"ollama": ("OLLAMA_HOST",), "openai": ("OPENAI_BASE_URL",), "bedrock": ("AWS_REGION",)}
"""Provider of a judge → the variables that say where it is."""
_JUDGE_KEYS = {"openai": ("OPENAI_API_KEY",), "bedrock": ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}


class Answers(Record):
    """What a user said of the bot. ``body``, ``answer`` and ``contexts`` are as in the config."""

    name: str
    kind: Kind
    url: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    body: Any = None
    answer: str | None = None
    contexts: str | None = None
    model: str | None = None
    key_env: str | None = None
    command: tuple[str, ...] = ()
    function: str | None = None
    judge: str | None = None
    ci: Ci = "github"

    @property
    def has_contexts(self) -> bool:
        """Whether the bot returns what it retrieved."""
        return self.kind == "ragbot" or self.contexts is not None


def files_of(answers: Answers, cases: Sequence[Case] | None = None) -> dict[str, str]:
    """Path below the project's folder → text; ``cases`` in place of the ten questions to begin with.

    Raises:
        UserError: a judge is wanted for a bot that shows no contexts.
    """
    if answers.judge is not None and not answers.has_contexts:
        raise UserError(
            "a judge reads an answer against its contexts, and this bot returns none",
            "say where they are in its reply with --contexts, or leave out --judge",
        )
    secrets = sorted({*_variables(answers.headers), *filter(None, [answers.key_env])})
    provider = (answers.judge or "").partition("/")[0]
    addresses = ["BOT_URL"] if answers.kind in ("http", "openai", "ragbot") else []
    known = {
        "a": answers,
        "own": cases,
        "has": _held(cases or ()),
        "secrets": secrets,
        "addresses": [*addresses, *_JUDGE_AT.get(provider, ())],
        "judge_keys": [name for name in _JUDGE_KEYS.get(provider, ()) if name not in secrets],
        "version": version("evalrun"),
    }
    files = {
        CONFIG: _rendered("evalrun.yaml.j2", known),
        QUESTIONS: _text("questions.jsonl") if cases is None else lines_of(cases),
        SCHEMA: packaged("config"),
    }
    if answers.ci in JOBS:
        files[JOBS[answers.ci]] = _rendered(f"{answers.ci}.yaml.j2", known)
    if answers.judge is not None:
        files |= {RUBRIC: _text("claims.yaml"), LABELS: _label_header()}
    return files


def _label_header() -> str:
    """A label file without a label: these come from reading answers. ``evalrun label`` goes on with it."""
    header = LabelHeader(
        dimension="faithful",
        design="random",
        date=date.today(),
        raters={"r1": Rater(kind="human", how="no answer was read yet: evalrun label fills this in")},
    )
    return to_line(header).decode()


def lines_of(cases: Sequence[Case]) -> str:
    """Cases as the lines of a dataset, without what is at its default."""
    shown = (case.model_dump(mode="json", exclude_defaults=True) for case in cases)
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in shown)


def write_files(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write new files; the paths, in order.

    Raises:
        InputError: some are there already; nothing is written then.
        UserError: the folder cannot be written to.
    """
    refuse_existing(folder, files)
    paths = {folder / name: text for name, text in files.items()}
    try:
        for path, text in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise UserError(f"{where}cannot be written: {error.strerror}", "name another folder") from None
    return list(paths)


def names_of(ci: Ci, judged: bool) -> list[str]:
    """The files that will be written, whatever the bot is."""
    jobs = [JOBS[ci]] if ci in JOBS else []
    return [CONFIG, QUESTIONS, SCHEMA, *jobs, *([RUBRIC, LABELS] if judged else [])]


def refuse_existing(folder: Path, names: Iterable[str]) -> None:
    """Nothing may be overwritten.

    Raises:
        InputError: every file that is there already.
    """
    hint = "nothing is overwritten: move it away, or name another place"
    there = [path for name in names if (path := folder / name).exists() or path.is_symlink()]
    if there:
        raise InputError([Problem(str(path), "is there already", hint) for path in there])


def _held(cases: Sequence[Case]) -> dict[str, bool]:
    """Which fields some case has, for the scorers that read them."""
    return {
        "must_contain": any(case.must_contain for case in cases),
        "relevant_ids": any(case.relevant_ids for case in cases),
        "reference": any(case.reference for case in cases),
    }


def from_environment(text: str) -> str:
    """``text`` as a config would read it: ``${NAME}`` filled in.

    Raises:
        InputError: a variable is not set.
    """
    document = parse_yaml(_yaml(text), Path("--header"), os.environ)
    if document.problems:
        raise InputError(document.problems)
    return str(document.value)


def _variables(headers: Mapping[str, str]) -> list[str]:
    return [name for text in headers.values() for name in re.findall(r"\$\{(\w+)", text)]


def _text(name: str) -> str:
    return (resources.files("evalrun.starter") / "templates" / name).read_text(encoding="utf-8")


def _rendered(name: str, known: Mapping[str, Any]) -> str:
    made = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
        variable_start_string="<<", variable_end_string=">>", autoescape=False,
    )  # fmt: skip
    made.filters |= {"yaml": _yaml, "literal": _literal, "address": _address}
    return made.from_string(_text(name)).render(known)


def _yaml(value: Any) -> str:
    """A value in the form that YAML shares with JSON; ``${NAME}`` in it keeps its meaning."""
    return json.dumps(value, ensure_ascii=False)


def _literal(value: Any) -> str:
    """As :func:`_yaml`, where a ``$`` is only a ``$``."""
    return _yaml(value).replace("$", "$$")


def _address(url: str) -> str:
    """An address that ``BOT_URL`` replaces; one that could not stand in a default stands by itself."""
    return _literal(url) if re.search(r"[$}]", url) else _yaml("${BOT_URL:-" + url + "}")
