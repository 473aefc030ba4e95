"""What a run will do, checked before anything is spent.

Owns the way from a config to a plan: questions, seeds, scorers, rubric, and the gates that could not hold.
Every problem is told at once. Nothing here opens a connection.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from evalrun.cassette import Mode
from evalrun.config import check_gates, ks_too_large, load_config
from evalrun.dataset import Dataset, load_dataset
from evalrun.errors import InputError, Problem, UserError
from evalrun.judge.rubric import Rubric, load_rubric
from evalrun.records import LEVELS, Case, Gate, LabelsUsed, Metric
from evalrun.registry import nearest
from evalrun.sampler import Seeds
from evalrun.scorers import Scorer, all_metrics, build, build_all, every_draw
from evalrun.settings import RunConfig
from evalrun.shortfalls import impossible, offers_of, shortfalls, unasked
from evalrun.targets import TARGETS

# What only some configs need is imported where it is needed: every run waits for this module.
if TYPE_CHECKING:
    from evalrun.answers import Answers
    from evalrun.beside import Baseline
    from evalrun.comparison.pairs import Row
    from evalrun.labels import Labels

T = TypeVar("T")
_TAP_HINT = {"python": 'as in args: {question: "{question}", base_url: "{tap}"}'}


@dataclass(frozen=True)
class Selection:
    """The part of a dataset that a run is confined to; empty: all of it."""

    cases: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    limit: int | None = None
    techniques: tuple[str, ...] = ()
    goals: tuple[str, ...] = ()
    converters: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [f"--{option} {name}" for option, names in self._named for name in names]
        parts += [f"--limit {self.limit}"] if self.limit is not None else []
        return " ".join(parts)

    @property
    def _named(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Option → what was asked for."""
        return (
            ("case", self.cases),
            ("category", self.categories),
            ("technique", self.techniques),
            ("goal", self.goals),
            ("converter", self.converters),
        )

    def apply(self, cases: Sequence[Case]) -> tuple[Case, ...]:
        """The cases that are meant, in their order: of each option that is given, any of its names.

        Raises:
            UserError: a name that no case or category has, or nothing left.
        """
        names = {option: set[str]() for option, _ in self._named}
        for case in cases:
            for option, found in _names_of(case).items():
                names[option] |= found
        for option, wanted in self._named:
            if unknown := sorted(set(wanted) - names[option]):
                raise UserError(
                    f"--{option} {unknown[0]}: the dataset has no '{unknown[0]}'",
                    nearest(unknown[0], names[option]) or _listed(names[option]),
                )
        chosen = [
            case
            for case in cases
            if all(not wanted or _names_of(case)[option] & set(wanted) for option, wanted in self._named)
        ]
        if not chosen or self.limit == 0:
            raise UserError(f"{self}: no case is left", "loosen the filter")
        return tuple(chosen[: self.limit])


def _listed(names: set[str]) -> str:
    """The names themselves where they are few."""
    if not names:
        return "there are none"
    return f"there are: {', '.join(sorted(names))}" if len(names) <= 20 else "list them: evalrun list CONFIG"


def _names_of(case: Case) -> dict[str, set[str]]:
    """Option of a selection → the names by which it finds this case."""
    attack = case.attack
    return {
        "case": {case.id},
        "category": {case.category},
        "technique": {attack.technique} if attack else set(),
        "goal": {attack.goal} if attack else set(),
        "converter": set(attack.converters) if attack else set(),
    }


@dataclass(frozen=True)
class Plan:
    """A run, ready to be carried out."""

    config: RunConfig
    mode: Mode
    dataset: Dataset
    cases: tuple[Case, ...]
    seeds: Seeds
    scorers: tuple[Scorer, ...]
    rubric: Rubric | None
    partial: str | None
    baseline: Baseline | None = None
    notes: tuple[str, ...] = ()
    answers: Answers | None = None
    labels: tuple[LabelsUsed, ...] = ()
    shortfalls: tuple[str, ...] = ()

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """What will be measured."""
        return all_metrics(self.scorers)

    @property
    def judged(self) -> bool:
        """Whether answers go to the judge."""
        return any(scorer.judged for scorer in self.scorers)

    @property
    def draws(self) -> int:
        """Answers that will be asked for."""
        return len(self.cases) * self.config.draws

    @property
    def public(self) -> dict[str, Any]:
        """The config as it goes into ``run.json``; of answers taken over, what asked for them."""
        return self.config.public() | dict(self.answers.settings if self.answers else {})


def make_plan(config: RunConfig, mode: Mode, selection: Selection | None = None) -> Plan:
    """The plan of a run.

    Raises:
        InputError: everything that is wrong with dataset, rubric and gates.
        UserError: a selection that leaves nothing.
    """
    problems: list[Problem] = []
    dataset = _or_problems(lambda: _asked(config), problems)
    labels = _labels(config, problems)
    rubric, scorers = _measures(config, problems)
    problems += [*_unmet_needs(config, scorers, mode), *_nobody_to_ask(config, mode)]
    problems = problems or (impossible(config, scorers, dataset.cases) if dataset else [])
    baseline = _check(config, scorers, dataset, problems)
    assert dataset is not None
    turns = {case.id: len(case.turns) for case in dataset.cases}
    part = str(selection) if selection and str(selection) else None
    return Plan(
        config=config,
        mode=mode,
        dataset=dataset,
        cases=selection.apply(dataset.cases) if selection else dataset.cases,
        seeds=Seeds.assign(turns, config.draws, turns),
        scorers=scorers,
        rubric=rubric,
        partial=part,
        baseline=None if part else baseline,
        notes=() if part or baseline is None else _prospects(config, baseline, scorers, dataset.cases),
        labels=_in_use(labels),
        shortfalls=(*shortfalls(config, scorers, dataset.cases), *_not_begun(labels), *_second(labels)),
    )


def _asked(config: RunConfig) -> Dataset:
    """The dataset of a config, or its attack suite."""
    if config.dataset is None:
        from evalrun.suite import load_suite

        return load_suite(config)
    return load_dataset(config.dataset.path, config.dataset.columns)


def plan_scoring(config: RunConfig, mode: Mode, answers: Answers) -> Plan:
    """The plan of a run that asks no bot: scorers, judge and gates of ``config`` on answers that are there.

    Raises:
        InputError: everything that is wrong with dataset, rubric and gates; another dataset than the one
            that was asked.
    """
    problems: list[Problem] = []
    dataset = answers.dataset or _or_problems(lambda: _asked(config), problems)
    if dataset is not None and answers.dataset is None and dataset.digest != answers.dataset_digest:
        message = f"{dataset.path}: not the questions that these answers are about (another digest)"
        hint = "name the dataset that the run asked, or run the bot on this one: evalrun run"
        problems.append(Problem(config.where("dataset"), message, hint))
    asked = {key: answers.settings.get(key) for key in ("temperature", "max_tokens")}
    config = config.model_copy(update={"draws": answers.per_case, **asked})
    labels = _labels(config, problems)
    rubric, scorers = _measures(config, problems)
    problems += _unmet_needs(config, scorers, mode, asks_bot=False)
    problems += ks_too_large(config, dict(answers.settings.get("target", {})).get("k"))
    problems += _unreachable_proof(config, scorers, answers)
    checked = _check(config, scorers, dataset, problems)
    assert dataset is not None
    baseline = None if answers.partial else checked
    return Plan(
        config=config,
        mode=mode,
        dataset=dataset,
        cases=answers.cases,
        seeds=Seeds(),
        scorers=scorers,
        rubric=rubric,
        partial=answers.partial,
        baseline=baseline,
        notes=() if baseline is None else _prospects(config, baseline, scorers, answers.cases),
        answers=answers,
        labels=_in_use(labels),
        shortfalls=(*unasked(scorers, dataset.cases), *_not_begun(labels), *_second(labels)),
    )


def _measures(config: RunConfig, problems: list[Problem]) -> tuple[Rubric | None, tuple[Scorer, ...]]:
    judge = config.judge
    rubric = _or_problems(lambda: load_rubric(judge.rubric) if judge else None, problems)
    return rubric, _or_problems(lambda: scorers_of(config), problems) or ()


def _check(
    config: RunConfig, scorers: Sequence[Scorer], dataset: Dataset | None, problems: list[Problem]
) -> Baseline | None:
    """The baseline of a config that can be run.

    Raises:
        InputError: ``problems``, else gates that mean nothing here, else gates that cannot hold.
    """
    if dataset is None or problems:
        raise InputError(problems)
    problems = check_gates(config, {metric.id: metric for metric in all_metrics(scorers)}, dataset.groups)
    problems = problems or _infeasible(config, scorers, dataset.cases)
    baseline = _or_problems(lambda: read_baseline(config), problems)
    if baseline is not None and not problems:
        problems += _unfit(config, baseline, scorers, dataset)
    if problems:
        raise InputError(problems)
    return baseline


def scorers_of(config: RunConfig) -> tuple[Scorer, ...]:
    """What a config measures.

    Raises:
        InputError: a reduced metric that cannot be had.
    """
    try:
        return build_all(config.scorers, config.draws)
    except UserError as error:
        at = next((i for i, spec in enumerate(config.scorers) if f"'{spec}'" in error.message), None)
        where = config.where("scorers") if at is None else config.where("scorers", at)
        raise InputError([Problem(where, error.message, error.hint)]) from None


def _labels(config: RunConfig, problems: list[Problem]) -> tuple[Labels, ...]:
    found = [_or_problems(partial(_labels_in, path), problems) for path in config.labels]
    return tuple(labels for labels in found if labels is not None)


def _labels_in(path: Path) -> Labels:
    """The labels of a file; there may be none yet.

    Raises:
        InputError: what is wrong with it, also that it is of no dimension that a judge reads.
    """
    from evalrun.agreement import dimension_of
    from evalrun.labels import load_labels

    labels = load_labels(path, begun=True)
    try:
        dimension_of(labels.header.dimension, str(path))
    except UserError as fault:
        raise InputError([Problem(f"{path}:1", fault.message.partition(": ")[2], fault.hint)]) from None
    return labels


def _in_use(files: Iterable[Labels]) -> tuple[LabelsUsed, ...]:
    """The labels of each file that count."""
    if not (begun := [labels for labels in files if labels.rows]):
        return ()
    from evalrun.certificate import used

    return tuple(used(labels) for labels in begun)


def _not_begun(files: Iterable[Labels]) -> tuple[str, ...]:
    """A line for each file without labels, with what follows from it."""
    return tuple(
        f"no labels in {labels.path.name} yet: how well the judge reads '{labels.header.dimension}' is not "
        f"known; read answers into it: evalrun label RUN --dimension {labels.header.dimension} --output FILE"
        for labels in files
        if not labels.rows
    )


def _second(files: Iterable[Labels]) -> Iterator[str]:
    """A line for each file of labels that corrects nothing, since one before it is of the same kind."""
    first: dict[tuple[str, str], str] = {}
    for labels in files:
        dimension, design = kind = (labels.header.dimension, labels.header.design)
        if kind in first:
            yield (
                f"{labels.path.name} only measures the judge: rates are corrected by {first[kind]}, "
                f"whose labels are of '{dimension}', too, and chosen in the same way ({design})"
            )
        first.setdefault(kind, labels.path.name)


def _or_problems(load: Callable[[], T], problems: list[Problem]) -> T | None:
    try:
        return load()
    except InputError as error:
        problems += error.problems
        return None


def _unmet_needs(
    config: RunConfig, scorers: Sequence[Scorer], mode: Mode, *, asks_bot: bool = True
) -> list[Problem]:
    problems = []
    if config.labels and config.judge is None:
        where = config.where("labels")
        problems.append(Problem(where, "labels measure a judge, and there is none", "add a judge section"))
    for index, scorer in enumerate(scorers):
        if scorer.judged and scorer.asks is every_draw and config.judge is None:
            where = config.where("scorers", index)
            problems.append(Problem(where, f"scorer '{scorer.name}' needs a judge", "add a judge section"))
    judged = config.judge is not None and any(scorer.judged for scorer in scorers)
    problems += _without_count(config, asks_bot) + _without_price(config, asks_bot, judged)
    if mode != "live" and config.cassette is None and (asks_bot or any(scorer.judged for scorer in scorers)):
        hint = "add cassette: {path: …}, or run with --live"
        problems.append(Problem(config.where(), "no cassette to replay or record", hint))
    return problems


def _without_price(config: RunConfig, asks_bot: bool, judged: bool) -> list[Problem]:
    """A cost budget that a model without a price would never reach."""
    called: dict[Literal["bot", "judge"], bool] = {"bot": asks_bot, "judge": judged}
    return [
        Problem(
            config.where("budget", "cost"),
            f"'budget.cost' without the price of the {book}'s model",
            f"add what a million tokens cost: prices: {{{book}: {{prompt: …, completion: …}}}}",
        )
        for book, asked in called.items()
        if config.budget.cost is not None and asked and book not in config.prices
    ]


def _without_count(config: RunConfig, asks_bot: bool) -> list[Problem]:
    """A budget of tokens or cost for a bot whose tokens nobody counts."""
    if not asks_bot or config.tapped or offers_of(config).usage:
        return []
    hint = 'lead its model calls through the tap ("{tap}"), or write budget: {calls: …}'
    return [
        Problem(config.where("budget", key), f"'budget.{key}': the tokens of this bot are not counted", hint)
        for key in ("tokens", "cost")
        if getattr(config.budget, key) is not None
    ]


def _nobody_to_ask(config: RunConfig, mode: Mode) -> list[Problem]:
    """Why this bot cannot be asked in this mode."""
    target, where = config.target, config.where("target")
    listens = "url" in type(target.options).model_fields and not target_of(config).is_model
    if target.launch is not None and not listens:
        hint = "drop target.launch"
        return [
            Problem(config.where("target", "launch"), f"kind '{target.kind}' has nothing to launch", hint)
        ]
    if listens and target.launch is None and not target.options.url:
        hint = "add target.launch to start one, or target.url for a running one"
        return [Problem(where, "no bot to ask", hint)]
    if target.launch is not None and not target.launch.told_port:
        hint = 'put "{port}" where it takes its port: evalrun chooses a free one'
        return [Problem(config.where("target", "launch"), "the bot is not told where to listen", hint)]
    problems = _needless_tap(config) if config.at_bot else _not_recorded(config, mode, listens)
    key = getattr(target.options, "key_env", None)
    if mode != "replay" and key and not os.environ.get(key):
        problems.append(Problem(where, f"the environment variable {key} is not set", "it holds the key"))
    return problems


def _not_recorded(config: RunConfig, mode: Mode, listens: bool) -> list[Problem]:
    """Why the model calls of this bot do not pass the recording; nothing where they need not."""
    target, where = config.target, config.where("target")
    problems = []
    if listens and mode == "replay" and target.launch is None:
        hint = "add target.launch, or run with --live"
        problems.append(Problem(where, "replay launches the bot itself", hint))
    if mode != "live" and not target.tapped and not (listens and target.launch is None):
        at = config.where("target", "launch") if target.launch else where
        hint = _TAP_HINT.get(target.kind, 'as in env: {OLLAMA_HOST: "{tap}"}')
        hint = f'give it "{{tap}}" as the address of its model, {hint}'
        problems.append(Problem(at, "the bot's model calls do not pass the recording", hint))
    return problems


def _needless_tap(config: RunConfig) -> list[Problem]:
    """A tap that a bot is led through, where its own replies are recorded and its model's are not."""
    target = config.target
    if not target.tapped or target_of(config).is_model:
        return []
    message = "'{tap}' beside 'cassette.at: bot', which sees none of the bot's model calls"
    hint = "name the model's server in its place, or write at: model"
    return [Problem(config.where("target", *(("launch",) if target.launch else ())), message, hint)]


def _unreachable_proof(config: RunConfig, scorers: Sequence[Scorer], answers: Answers) -> list[Problem]:
    """A log proves nothing: at best it claims which contexts its answers came from."""
    judged = any(scorer.judged for scorer in scorers)
    if (
        answers.origin.kind != "file"
        or not judged
        or LEVELS.index(config.provenance) <= LEVELS.index("claimed")
    ):
        return []
    message = f"this config demands the proof '{config.provenance}'; logged answers are 'claimed' at best"
    return [Problem(config.where("provenance"), message, "score them with --set provenance=claimed")]


def _infeasible(config: RunConfig, scorers: Sequence[Scorer], cases: Sequence[Case]) -> list[Problem]:
    if not config.gates:
        return []
    from evalrun.gates import infeasible

    owner = {metric.id: (metric, scorer) for scorer in scorers for metric in scorer.metrics}
    problems = []
    for index, gate in enumerate(config.gates):
        metric, scorer = owner[gate.metric]
        if gate.max_drop is not None:
            continue
        if found := infeasible(gate, metric, cases, scorer.applies):
            problems.append(
                Problem(config.where("gates", index), f"gate '{gate.name}': {found[0]}", found[1])
            )
    return problems


def read_baseline(config: RunConfig) -> Baseline | None:
    """The baseline that gates of a config name, if any does.

    Raises:
        InputError: a line in it that is not of such a file.
    """
    path = next((gate.baseline for gate in config.gates if gate.baseline is not None), None)
    if path is None:
        return None
    from evalrun.beside import Baseline

    return Baseline.read(path)


def drop_problem(gate: Gate, metric: Metric, baseline: Baseline, dataset: Dataset) -> tuple[str, str] | None:
    """Why a gate on a drop cannot hold against this baseline, and what to do; None if it can."""
    from evalrun import drop_gates

    if unfit := baseline.unfit(metric, dataset.name, dataset.digest):
        return unfit
    return drop_gates.infeasible(gate, metric, drop_rows(gate, metric, baseline, dataset.cases))


def drop_rows(gate: Gate, metric: Metric, baseline: Baseline, cases: Sequence[Case]) -> list[Row]:
    """The baseline's values that a gate on a drop is about, a row a question."""
    return baseline.old_rows(metric.id, [case for case in cases if gate.group in case.groups])


def _unfit(
    config: RunConfig, baseline: Baseline, scorers: Sequence[Scorer], dataset: Dataset
) -> list[Problem]:
    metrics = {metric.id: metric for metric in all_metrics(scorers)}
    return [
        Problem(config.where("gates", index, "max_drop"), f"gate '{gate.name}': {found[0]}", found[1])
        for index, gate in enumerate(config.gates)
        if gate.max_drop is not None
        and (found := drop_problem(gate, metrics[gate.metric], baseline, dataset))
    ]


def _prospects(
    config: RunConfig, baseline: Baseline, scorers: Sequence[Scorer], cases: Sequence[Case]
) -> tuple[str, ...]:
    """What is known of gates on a drop beforehand: which of them not even an unchanged bot would hold."""
    from evalrun import drop_gates

    metrics = {metric.id: metric for metric in all_metrics(scorers)}
    drops = [(gate, metrics[gate.metric]) for gate in config.gates if gate.max_drop is not None]
    told = (
        drop_gates.if_unchanged(gate, metric, drop_rows(gate, metric, baseline, cases))
        for gate, metric in drops
    )
    return tuple(filter(None, told))


def target_of(config: RunConfig) -> Any:
    """The target class of a config."""
    return TARGETS.get(config.target.kind)


def load(path: Path, overrides: Sequence[str] = ()) -> RunConfig:
    """The config in ``path``, its scorers known to the registry.

    Raises:
        InputError: every problem in it.
    """
    return load_config(path, overrides, check_scorer=build)


def load_scoring(path: Path, answers: Path, overrides: Sequence[str] = ()) -> RunConfig:
    """The config in ``path`` to score a file of logged answers by: its target and dataset are the file's.

    Where it demands no level of proof, what a log can give is enough.

    Raises:
        InputError: every problem in it.
    """
    from evalrun.logged import LoggedOptions, overrides_for

    config = load_config(
        path,
        (*overrides_for(answers), *overrides),
        options_of=lambda kind: LoggedOptions,
        check_scorer=build,
    )
    demanded = {} if "provenance" in config.model_fields_set else {"provenance": "claimed"}
    return config.model_copy(update=demanded)
