"""Answers that are there already, to be scored without asking a bot: those of a finished run, or of a log.

Owns what is taken over from an earlier run and what is not: its draws, contexts and model calls, never its
verdicts or scores. A file of logged answers is read by ``logged``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from evalrun.dataset import Dataset
from evalrun.digest import sha256_bytes
from evalrun.errors import UserError
from evalrun.journal import HEADER, RunFolder
from evalrun.jsonl import content
from evalrun.records import Case, Context, Draw, Exchange, Origin
from evalrun.sampler import Drawn
from evalrun.wires import system_of

Contexts = Mapping[tuple[str, str], Context]
"""(case id, digest) → context."""
ByKey = Mapping[tuple[str | None, int | None, str], Exchange]
"""(case, draw, key) → exchange."""
_OF_THE_BOT = ("target", "draws", "temperature", "max_tokens")


@dataclass(frozen=True)
class Answers:
    """Every draw of some cases, with what it was answered from.

    ``about`` is what was known of the bot; ``settings`` the part of the config by which it was asked. Either
    ``dataset`` holds the questions (a file), or ``dataset_digest`` names it (a run).
    """

    origin: Origin
    cases: tuple[Case, ...]
    draws: Mapping[tuple[str, int], Draw]
    contexts: Contexts
    about: Mapping[str, Any]
    per_case: int
    exchanges: tuple[Exchange, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    dataset: Dataset | None = None
    dataset_digest: str = ""
    partial: str | None = None
    recorded: tuple[str, str] | None = None
    not_exercised: int = 0

    async def draw(self, case: Case, index: int) -> Drawn:
        """One draw, as it was answered."""
        draw = self.draws[case.id, index]
        return Drawn(
            draw,
            context_of(draw, self.contexts),
            broken=(draw.error or "").startswith("provenance:"),
            earlier=earlier_of(draw, self.contexts),
            system=system_text(draw, self._by_key),
        )

    @cached_property
    def _by_key(self) -> ByKey:
        return {(line.case, line.draw, line.key): line for line in self.exchanges}


def context_of(draw: Draw, contexts: Contexts) -> Context | None:
    """The context a draw was answered from; of a draw without an answer, the one it was to be."""
    return contexts.get((draw.case, draw.context)) if draw.context is not None else None


def earlier_of(draw: Draw, contexts: Contexts) -> tuple[Context, ...]:
    """The contexts of a draw's earlier turns."""
    found = (contexts.get((draw.case, turn.context or "")) for turn in draw.before)
    return tuple(context for context in found if context is not None)


def system_text(draw: Draw, exchanges: ByKey) -> str | None:
    """The system text of the prompt that the last turn was answered from, where that is known."""
    if draw.exchange is not None:
        found = exchanges.get((draw.case, draw.index, draw.exchange))
        return system_of(found.request) if found else None
    said = [message.content for message in draw.prompt or () if message.role == "system"]
    return "\n".join(said) or None


def answers_of(folder: RunFolder) -> Answers:
    """The answers of a finished run.

    Raises:
        UserError: the run did not come to its end, or its files are not those it wrote.
    """
    header = folder.header
    if not header.complete:
        why = "; ".join(header.errors) or "run it again"
        raise UserError(f"{folder.path}: this run stopped before its end", why)
    _unchanged(folder, header.journals)
    cases = tuple(folder.cases())
    draws = {draw.key: draw for draw in folder.draws()}
    _all_there(folder, cases, draws, header.draws)
    return Answers(
        origin=Origin(
            kind="run",
            name=header.name,
            digest=sha256_bytes((folder.path / HEADER).read_bytes()),
            draws=header.journals["draws.jsonl"],
            ignore=header.origin.ignore if header.origin else _ignore(header.config),
        ),
        cases=cases,
        draws=draws,
        contexts={(case, context.digest): context for case, context in folder.contexts()},
        about=header.bot,
        per_case=header.draws,
        exchanges=tuple(line for line in folder.exchanges() if line.source != "judge"),
        settings={key: header.config[key] for key in _OF_THE_BOT if key in header.config},
        dataset_digest=header.dataset.digest,
        partial=header.partial,
        recorded=header.recorded,
        not_exercised=header.not_exercised,
    )


def _ignore(config: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple((config.get("cassette") or {}).get("ignore", ()))


def _unchanged(folder: RunFolder, journals: Mapping[str, str]) -> None:
    for kind in ("cases", "contexts", "draws", "exchanges"):
        file = folder.file(kind)
        data = content(file)
        if data is None or sha256_bytes(data) != journals.get(file.name):
            raise UserError(f"{file}: not the file that the run wrote", f"see: evalrun verify {folder.path}")


def _all_there(
    folder: RunFolder, cases: Iterable[Case], draws: Mapping[tuple[str, int], Draw], planned: int
) -> None:
    for case in cases:
        for index in range(planned):
            if (case.id, index) not in draws:
                raise UserError(
                    f"{folder.path}: draw {index + 1} of '{case.id}' was never made",
                    "see how the run ended: evalrun report " + str(folder.path),
                )
