"""A config file → :class:`RunConfig`, with every problem in it told at once.

Owns ``--set``, the order in which a config is checked, and the rules between its sections. Leaves the fields
to ``settings``, YAML to ``yamlfile``, the words of schema errors to ``validation``, and whether metrics
and groups exist to whoever knows them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from evalrun.dataset import GROUPS
from evalrun.errors import InputError, Problem
from evalrun.plugins import import_plugins
from evalrun.records import Gate, Metric
from evalrun.reducers import split
from evalrun.registry import UnknownName, nearest, parse_spec
from evalrun.settings import MODULE, RunConfig, TargetConfig
from evalrun.validation import check
from evalrun.yamlfile import Document, Loc, parse_yaml, read_yaml

__all__ = ["RunConfig", "check_gates", "ks_too_large", "load_config"]

OptionsOf = Callable[[str], type[BaseModel]]


_OF_QUESTIONS = (".jsonl", ".csv", ".tsv", ".jsonl.gz", ".csv.gz", ".tsv.gz")


def load_config(
    path: Path,
    overrides: Sequence[str] = (),
    *,
    env: Mapping[str, str] | None = None,
    options_of: Callable[[str], type[BaseModel]] | None = None,
    check_scorer: Callable[[str], object] | None = None,
) -> RunConfig:
    """The config in ``path``, with ``key=value`` overrides as ``--set`` takes them: dotted keys, YAML values.

    ``options_of`` gives the options model of a target kind (default: the registered targets).
    ``check_scorer`` raises a UserError for a spec that nothing measures (default: only its form is checked).

    Raises:
        InputError: every problem found, each with ``file:line:col`` or the ``--set`` it comes from.
    """
    if path.name.endswith(_OF_QUESTIONS):
        hint = "name its config; one without any begins with: evalrun init"
        raise InputError([Problem(str(path), "a file of questions or answers, and no config", hint)])
    env = os.environ if env is None else env
    document = read_yaml(path, env)
    for override in overrides:
        _override(document, override, env)
    if not isinstance(document.value, dict):
        raise InputError([*document.problems, Problem(document.where(()), "a config is a mapping of keys")])
    _import_plugins(document)
    config = _checked(document, env, options_of or _registered_options, check_scorer)
    deepest = getattr(config.target.options, "k", None)
    found = [*_cut_from_nothing(config), *ks_too_large(config, deepest), *_gates_twice(config)]
    found += [*_two_baselines(config), *_never_observed(config), *_open_secret(config)]
    if found:
        raise InputError(found)
    return config


def _import_plugins(document: Document) -> None:
    """Import what the config names, so that names it registers are known from here on.

    Raises:
        InputError: what cannot be imported; what else is wrong may follow from it, and is not told.
    """
    names = document.value.get("plugins")
    if not isinstance(names, list) or not all(isinstance(n, str) and re.search(MODULE, n) for n in names):
        return  # told with everything else that is not of its type
    faults = import_plugins(names, document.path.parent)
    problems = [Problem(document.where(("plugins", index)), *said) for index, *said in faults]
    if problems:
        raise InputError(problems)


def _checked(
    document: Document,
    env: Mapping[str, str],
    options_of: OptionsOf,
    check_scorer: Callable[[str], object] | None,
) -> RunConfig:
    """The config, each section right in itself."""
    context = {"folder": document.path.parent, "check_scorer": check_scorer}
    value, options, problems = _split(document, options_of, context)
    problems += _locate_judge(document, value, env)
    config, more = check(RunConfig, value, document, context=context)
    more += _one_source(value, document)
    # A text with an unset variable in it is no address, path or number either: the cause is enough.
    told = {problem.where for problem in document.problems}
    problems = document.problems + [problem for problem in problems + more if problem.where not in told]
    if config is None or problems:
        raise InputError(_in_order(problems))
    config = config.model_copy(update={"target": config.target.model_copy(update={"options": options})})
    config._document = document
    return config


def _one_source(value: Mapping[str, Any], document: Document) -> list[Problem]:
    """Questions come from a dataset or from an attack suite, never from both; attacks have a scorer."""
    named = {key for key in ("redteam", "dataset") if value.get(key) is not None}
    if len(named) == 2:
        return [Problem(document.where_key(("redteam",)), "'redteam' beside 'dataset'", "keep one of them")]
    if not named:
        hint = "name a file of questions; for attacks: redteam: {}"
        return [Problem(document.where(()), "'dataset' is missing", hint)]
    scorers = value.get("scorers")
    if (
        "redteam" in named
        and isinstance(scorers, list)
        and not any("attack_success" in str(s) for s in scorers)
    ):
        hint = "add attack_success, and over_refusal for the benign twins"
        return [Problem(document.where_key(("scorers",)), "no scorer says whether an attack succeeded", hint)]
    return []


def _registered_options(kind: str) -> type[BaseModel]:
    from evalrun.targets import TARGETS

    options: type[BaseModel] = TARGETS.get(kind).Options
    return options


def _split(
    document: Document, options_of: OptionsOf, context: Mapping[str, Any]
) -> tuple[dict[str, Any], BaseModel | None, list[Problem]]:
    """The config without short forms and without the target's own options; those options; their problems."""
    value = dict(document.value)
    if isinstance(value.get("dataset"), str):
        value["dataset"] = {"path": value["dataset"]}
    target = value.get("target")
    if not isinstance(target, dict):
        return value, None, []
    own = set(TargetConfig.model_fields) - {"options"}
    value["target"] = {key: item for key, item in target.items() if key in own}
    if not isinstance(target.get("kind"), str):
        return value, None, []  # which other keys it has, the kind alone could tell
    try:
        model = options_of(target["kind"])
    except UnknownName as fault:
        return value, None, [Problem(document.where(("target", "kind")), fault.message, fault.hint)]
    rest = {key: item for key, item in target.items() if key not in own or key in model.model_fields}
    return value, *check(model, rest, document, at=("target",), context=context, also_known=own)


def _locate_judge(document: Document, value: dict[str, Any], env: Mapping[str, str]) -> list[Problem]:
    """Fill in where the judge's server is, if only the environment says; a provider that nobody knows."""
    judge = value.get("judge")
    if not isinstance(judge, dict) or not isinstance(judge.get("model"), str) or "/" not in judge["model"]:
        return []
    from evalrun.models import model

    try:
        provider = model.get(judge["model"].partition("/")[0])
    except UnknownName as fault:
        message = f"'judge.model' names an {fault.message.replace('model', 'provider', 1)}"
        return [Problem(document.where(("judge", "model")), message, fault.hint)]
    if url := provider.default_url(env):
        value["judge"] = {"base_url": url, **judge}
    if judge.get("key_env") is None or provider.takes_key:
        return []
    return [
        Problem(
            document.where(("judge", "key_env")),
            "'judge.key_env' is for providers that take a key",
            "leave it out",
        )
    ]


def _in_order(problems: Iterable[Problem]) -> list[Problem]:
    """By line and column; those of ``--set`` last."""
    return sorted(problems, key=_position)


def _position(problem: Problem) -> tuple[bool, list[int]]:
    if problem.where.startswith("--set"):
        return True, []
    return False, [int(part) for part in problem.where.rsplit(":", 2)[1:] if part.isdecimal()]


# ---------------------------------------------------------------- --set


def _override(document: Document, override: str, env: Mapping[str, str]) -> None:
    """Put one ``--set key=value`` into ``document``; problems are noted there."""
    where = f"--set {override}"
    key, equals, text = override.partition("=")
    parts = key.strip().split(".")
    if not equals or "" in parts:
        document.problems.append(Problem(where, "is not key=value", "write it like --set draws=1"))
        return
    try:
        new = parse_yaml(text, Path(where), env)
        loc = _put(document, parts, new.value)
    except InputError as fault:
        document.problems += [Problem(where, problem.message, problem.hint) for problem in fault.problems]
        return
    _move_in(document, loc, new, where)


def _put(document: Document, parts: Sequence[str], value: Any) -> Loc:
    """Set a value; mappings that are not there yet are made, lists are not. Returns its location."""
    if document.value is None:
        document.value = {}
    parent: Any = document.value
    loc: Loc = ()
    for depth, part in enumerate(parts, start=1):
        step: str | int = int(part) if isinstance(parent, list) and part.isdecimal() else part
        loc = (*loc, step)
        if not isinstance(parent, dict) and not (isinstance(step, int) and step < len(parent)):
            raise InputError([Problem("", f"there is no '{'.'.join(parts[:depth])}' to set")])
        if depth == len(parts):
            parent[step] = value
        elif isinstance(parent, dict):
            parent = parent.setdefault(step, {})
        else:
            parent = parent[step]
    return loc


def _move_in(document: Document, loc: Loc, new: Document, where: str) -> None:
    """Let what stands at ``loc`` now come from ``--set``: places, problems, and what the environment did."""
    gone = {place for at, place in document.values.items() if at[: len(loc)] == loc}
    document.problems = [problem for problem in document.problems if problem.where not in gone]
    document.problems += [Problem(where, problem.message, problem.hint) for problem in new.problems]
    for places in (document.values, document.keys, document.from_env, document.variables):
        for at in [at for at in places if at[: len(loc)] == loc]:
            del places[at]
    document.values |= {(*loc, *at): where for at in new.values or [()]}
    document.keys |= {(*loc, *at): where for at in [(), *new.keys]}
    document.from_env |= {(*loc, *at): written for at, written in new.from_env.items()}
    document.variables |= {(*loc, *at): given for at, given in new.variables.items()}


# ---------------------------------------------------------------- rules between fields


def ks_too_large(config: RunConfig, limit: Any) -> list[Problem]:
    """Scorers and gates that look deeper than ``limit`` chunks; none where it is not known."""
    if not isinstance(limit, int):
        return []
    named: list[tuple[Loc, str]] = [(("scorers", index), spec) for index, spec in enumerate(config.scorers)]
    named += [(metric_at(gate, index), gate.metric) for index, gate in enumerate(config.gates)]
    return [
        Problem(config.where(*loc), f"'{spec}' looks deeper than the target retrieves (k: {limit})",
                f"raise target.k, or write {parse_spec(split(spec)[0])[0]}@{limit}")
        for loc, spec in named
        if (parse_spec(split(spec)[0])[1] or 0) > limit
    ]  # fmt: skip


def _cut_from_nothing(config: RunConfig) -> list[Problem]:
    """A context that is to be cut out of prompts which nobody sees."""
    if getattr(config.target.options, "context", None) is None or config.tapped:
        return []
    if config.at_bot:
        message = "'target.context' is cut out of the bot's model calls, and 'cassette.at: bot' sees none"
        hint = "let the bot return what it retrieved (target.contexts), or write at: model"
        return [Problem(config.where("target", "context"), message, hint)]
    where, key = config.where("target", "context"), "env" if config.target.kind == "command" else "launch.env"
    message = "'target.context' is cut out of the bot's model calls, and none of them passes the tap"
    return [Problem(where, message, f'give it "{{tap}}" as its model\'s base URL, as in target.{key}')]


def _never_observed(config: RunConfig) -> list[Problem]:
    """A proof that no recording of the bot's own replies can give."""
    if not config.at_bot or config.provenance != "observed":
        return []
    offers = getattr(config.target.options, "offers", None)
    best = "reported" if offers and offers.prompt else "claimed" if offers and offers.contexts else "none"
    message = f"'cassette.at: bot' sees no model call: the proof is '{best}' at best, 'observed' is demanded"
    return [Problem(config.where("cassette", "at"), message, f"set provenance: {best}, or write at: model")]


def _open_secret(config: RunConfig) -> list[Problem]:
    """A token that stands in a file, where anybody reads it."""
    if config.tap.token is None or config.written_in_env("tap", "token"):
        return []
    where, hint = config.where("tap", "token"), 'write token: "${TAP_TOKEN}" and set that variable'
    return [Problem(where, "'tap.token' stands in the open", hint)]


def _gates_twice(config: RunConfig) -> list[Problem]:
    problems: list[Problem] = []
    first: dict[str, int] = {}
    for index, gate in enumerate(config.gates):
        before = first.setdefault(gate.name, index)
        if before != index:
            message = f"a second gate on '{gate.name}', the first is at {config.where('gates', before)}"
            problems.append(Problem(config.where("gates", index), message, "keep one of them"))
    return problems


def _two_baselines(config: RunConfig) -> list[Problem]:
    named = [
        (config.where("gates", index, "max_drop", "baseline"), gate.baseline)
        for index, gate in enumerate(config.gates)
        if gate.baseline is not None
    ]
    return [
        Problem(where, f"a second baseline, the first is at {named[0][0]}", "a run is held against one")
        for where, path in named
        if path != named[0][1]
    ]


def metric_at(gate: Gate, index: int) -> Loc:
    """Where the metric of a gate stands in its config."""
    return ("gates", index, *(("max_drop",) if gate.max_drop is not None else ()), "metric")


def check_gates(config: RunConfig, metrics: Mapping[str, Metric], groups: Collection[str]) -> list[Problem]:
    """What is wrong with the gates, given the metrics a run yields and the groups of its dataset.

    A gate needs a metric that is measured and lies in [0, 1], and a group with cases that the metric counts.
    """
    problems: list[Problem] = []
    for index, gate in enumerate(config.gates):
        metric = metrics.get(gate.metric)
        if metric is None:
            hint = nearest(gate.metric, metrics) or f"measured here: {', '.join(sorted(metrics))}"
            message = f"a gate on '{gate.metric}', which no scorer of this config measures"
            problems.append(Problem(config.where(*metric_at(gate, index)), message, hint))
        elif reason := _unusable(gate, metric):
            problems.append(Problem(config.where("gates", index), reason))
        if gate.group not in groups:
            hint = nearest(gate.group, groups) or f"groups of this dataset: {', '.join(sorted(groups))}"
            problems.append(
                Problem(config.where("gates", index, "group"), f"no cases in group '{gate.group}'", hint)
            )
    return problems


def _unusable(gate: Gate, metric: Metric) -> str:
    """Why this gate cannot stand on this metric, or an empty string."""
    if metric.kind == "quantity":
        return f"'{gate.metric}' is a quantity; a gate needs a rate or a score"
    if gate.infer == "this_set" and not metric.deterministic:
        return f"'infer: this_set' is for deterministic metrics; '{gate.metric}' is not one"
    if metric.population != "all" and gate.group in GROUPS and gate.group != metric.population:
        return f"'{gate.metric}' counts {metric.population} cases only: write group: {metric.population}"
    return ""
