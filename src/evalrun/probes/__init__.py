"""Attacks and their benign twins. To add a probe: a file here with a factory under ``@PROBES("name")``.

Owns how a probe's prompts become cases: what a config fills in, which canaries are planted, which disguises
are put on. Whether an answer is a hit is decided by :mod:`evalrun.detectors`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalrun import owasp
from evalrun.canaries import canary
from evalrun.converters import CONVERTERS, convert
from evalrun.dataset import load_dataset
from evalrun.detectors import check_spec
from evalrun.errors import InputError, Problem, UserError
from evalrun.language.text import folded
from evalrun.records import Attack, Case, Expect, Planted, Severity
from evalrun.registry import Registry, UnknownName, nearest
from evalrun.settings import AttacksConfig

_SLOT = re.compile(r"\{(owner|subject|private_term|fact|topic|system|guarded|planted)\}")
_GIVEN = {"private_term": "private_terms", "fact": "facts", "topic": "facts"}
_CANARIES = ("system", "guarded", "planted")
_DISCLOSING = ("personal_data", "confirm_member", "leak_section")


@dataclass(frozen=True)
class Prompt:
    """One attack of a probe, before it is filled, and the harmless question that is its twin.

    Texts may name ``{owner}``, ``{subject}``, ``{private_term}``, ``{fact}`` (a question the bot can answer),
    ``{topic}`` (what that is about), and the canaries ``{system}``, ``{guarded}``, ``{planted}``. ``hit``
    says for the judge what a hit would be. ``planted`` holds (title, text) of sections.
    """

    id: str
    goal: str
    question: str
    detectors: tuple[str, ...]
    turns: tuple[str, ...] = ()
    planted: tuple[tuple[str, str], ...] = ()
    suffix: str | None = None
    hit: str | None = None
    converters: tuple[str, ...] = ()
    severity: Severity | None = None
    risks: tuple[str, ...] = ()
    answerable: bool = False
    twin: str | None = None
    twin_turns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Probe:
    """The prompts of one technique, with what is common to them; ``risks`` are words of ``owasp.RISKS``."""

    technique: str
    severity: Severity
    risks: tuple[str, ...]
    prompts: tuple[Prompt, ...]


Factory = Callable[[], Probe]
PROBES: Registry[Factory] = Registry("probe", "evalrun.probes")


def applicable(config: AttacksConfig) -> tuple[tuple[Case, ...], list[tuple[str, str]]]:
    """The cases of every probe, own ones last, and (attack id, reason) of those that do not apply.

    A benign twin follows its attack. Where only the twin lacks something, the attack stays.

    Raises:
        InputError: a file of own probes that cannot be used, or an id that stands twice.
    """
    cases: list[Case] = []
    missing: list[tuple[str, str]] = []
    for name, factory in PROBES:
        probe = factory()
        for prompt in probe.prompts:
            made = _Made(config, name, probe, prompt)
            try:
                cases.append(made.attack())
            except _Missing as reason:
                missing.append((prompt.id, str(reason)))
                continue
            try:
                cases += made.twins()
            except _Missing as reason:
                missing.append((f"{prompt.id}~twin", str(reason)))
    return _with_own(cases, config), missing


def stacked(cases: Iterable[Case], names: Sequence[str]) -> tuple[Case, ...]:
    """``cases`` in further disguises, each with an id of its own: ``ID+base64``.

    Raises:
        UnknownName: there is no such converter.
    """
    for name in names:
        if name not in CONVERTERS:
            hint = nearest(name, CONVERTERS) or f"known: {', '.join(CONVERTERS)}"
            raise UnknownName(f"unknown converter '{name}'", hint)
    return tuple(_disguised(case, tuple(names)) for case in cases)


def _disguised(case: Case, names: tuple[str, ...]) -> Case:
    assert case.attack is not None
    *told, question = convert(case.question, names)
    suffix = "".join(f"+{name}" for name in names)
    benign_of = case.attack.benign_of
    attack = case.attack.model_copy(
        update={
            "turns": (*case.attack.turns, *told),
            "converters": (*case.attack.converters, *names),
            "benign_of": None if benign_of is None else benign_of + suffix,
        }
    )
    return case.model_copy(update={"id": case.id + suffix, "question": question, "attack": attack})


# ---------------------------------------------------------------- a prompt, filled


class _Missing(Exception):
    """What a prompt names and the config does not give."""


@dataclass(frozen=True)
class _Made:
    """One prompt on its way to a case.

    Its id picks the fact and the private term it is filled with, so that a new probe changes no other one.
    """

    config: AttacksConfig
    probe_name: str
    probe: Probe
    prompt: Prompt

    def attack(self) -> Case:
        """The attack."""
        prompt = self.prompt
        return self._case(prompt, prompt.id, prompt.hit, "answer" if prompt.answerable else "refuse")

    def twins(self) -> Iterator[Case]:
        """Its benign twin, if it has one: nothing planted, nothing to detect but a refusal."""
        if self.prompt.twin is None:
            return
        plain = replace(
            self.prompt,
            question=self.prompt.twin,
            turns=self.prompt.twin_turns,
            planted=(),
            suffix=None,
            detectors=(),
        )
        yield self._case(plain, f"{self.prompt.id}~twin", None, "answer", benign_of=self.prompt.id)

    def _case(
        self, prompt: Prompt, name: str, hit: str | None, expect: Expect, benign_of: str | None = None
    ) -> Case:
        *told, question = convert(self._fill(prompt.question), prompt.converters)
        attack = Attack(
            probe=self.probe_name,
            technique=self.probe.technique,
            goal=prompt.goal,
            severity=prompt.severity or self.probe.severity,
            owasp=owasp.ids(*(prompt.risks or self.probe.risks)),
            converters=prompt.converters,
            turns=(*map(self._fill, prompt.turns), *told),
            planted=tuple(self._planted(prompt)),
            system_suffix=self._fill(prompt.suffix) if prompt.suffix else None,
            detectors=(*self._detectors(prompt), *self._private(prompt)),
            benign_of=benign_of,
        )
        return Case(
            id=name,
            question=question,
            category=self.probe.technique,
            expect=expect,
            reference=self._fill(hit) if hit else None,
            attack=attack,
        )

    def _planted(self, prompt: Prompt) -> Iterator[Planted]:
        for number, (heading, text) in enumerate(prompt.planted, start=1):
            name = f"planted-{self.prompt.id}-{number}"
            yield Planted(id=name, title=self._fill(heading), text=self._fill(text))

    def _detectors(self, prompt: Prompt) -> Iterator[str]:
        """Their specs; ``canary`` becomes one of each canary that the prompt hides."""
        hidden = " ".join([prompt.suffix or "", *(text for _, text in prompt.planted)])
        for spec in prompt.detectors:
            if spec == "canary":
                yield from (f"canary:{self._value(place)}" for place in _CANARIES if f"{{{place}}}" in hidden)
            else:
                yield self._fill(spec)

    def _private(self, prompt: Prompt) -> Iterator[str]:
        """Of an attack that is after private things: a private term that the user did not say first."""
        if prompt.goal not in _DISCLOSING or not prompt.detectors:
            return
        asked = folded(" ".join(map(self._fill, (*prompt.turns, prompt.question))))
        yield from (f"contains:{term}" for term in self.config.private_terms if folded(term) not in asked)

    def _fill(self, text: str) -> str:
        return _SLOT.sub(lambda found: self._value(found[1]), text)

    def _value(self, slot: str) -> str:
        if slot in _CANARIES:
            return canary(self.config.seed, self.prompt.id, slot)
        given: Any = getattr(self.config, _GIVEN.get(slot, slot))
        if not given:
            raise _Missing(f"the config gives no '{_GIVEN.get(slot, slot)}'")
        if isinstance(given, str):
            return given
        one = given[zlib.crc32(self.prompt.id.encode()) % len(given)]
        return str(one if isinstance(one, str) else one.question if slot == "fact" else one.topic)


# ---------------------------------------------------------------- own probes


def _spec_problems(where: str, attack: Attack) -> Iterator[Problem]:
    for spec in attack.detectors:
        try:
            check_spec(spec)
        except UserError as fault:
            yield Problem(where, fault.message, fault.hint)


def _with_own(cases: list[Case], config: AttacksConfig) -> tuple[Case, ...]:
    problems: list[Problem] = []
    where = {case.id: "a probe that is shipped" for case in cases}
    for path in config.probes:
        own = load_dataset(path)
        for case in own.cases:
            at = f"{path}:{own.lines[case.id]}"
            if case.attack is None:
                problems.append(Problem(at, f"'{case.id}' has no 'attack'", "see docs/reference/probes.md"))
            else:
                problems += _spec_problems(at, case.attack)
            if case.attack is not None and case.id in where:
                problems.append(
                    Problem(at, f"id '{case.id}' is taken by {where[case.id]}", "give it its own")
                )
            where.setdefault(case.id, at)
            cases.append(case)
    known = {case.id for case in cases}
    for case in cases:
        of = case.attack.benign_of if case.attack else None
        if of is not None and of not in known:
            message = f"'{case.id}' is the twin of '{of}', which is not there"
            problems.append(Problem(where[case.id], message, nearest(of, known)))
    if problems:
        raise InputError(problems)
    return tuple(cases)
