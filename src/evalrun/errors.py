"""The error tree and the exit codes.

Owns what a user is told when something cannot go on: one class per kind of trouble, its exit code on the
class, a message that says what and where, and a hint that says what to do. A failed gate is a result, not
an error; it never passes through here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class ExitCode(IntEnum):
    """What the process returns; where several apply, :data:`PRECEDENCE` decides."""

    OK = 0
    GATE_FAILED = 1
    USAGE = 2
    NOT_ENOUGH_EVIDENCE = 3
    UNAVAILABLE = 4
    PROVENANCE = 5
    FAULT = 70
    INTERRUPTED = 130


PRECEDENCE: tuple[ExitCode, ...] = (
    ExitCode.FAULT,
    ExitCode.INTERRUPTED,
    ExitCode.USAGE,
    ExitCode.PROVENANCE,
    ExitCode.UNAVAILABLE,
    ExitCode.GATE_FAILED,
    ExitCode.NOT_ENOUGH_EVIDENCE,
    ExitCode.OK,
)


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """The exit code that wins among ``codes``; ``OK`` when there are none."""
    found = set(codes)
    return next((code for code in PRECEDENCE if code in found), ExitCode.OK)


@dataclass(frozen=True)
class Problem:
    """One thing wrong with an input: where it stands, what is wrong, what to do."""

    where: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}\n    {self.hint}" if self.hint else text


class EvalrunError(Exception):
    """Root of the tree. Anything else that escapes is a fault of ours (exit 70)."""

    exit_code = ExitCode.FAULT


class UserError(EvalrunError):
    """Something the user can mend. Shown without a traceback."""

    exit_code = ExitCode.USAGE

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n    {self.hint}" if self.hint else self.message


class InputError(UserError):
    """A config, dataset, label or rubric file that cannot be used; carries every problem found in it."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class ReportError(UserError):
    """A report that could not be written; the others are."""


class UnavailableError(UserError):
    """A service or model that could not be had."""

    exit_code = ExitCode.UNAVAILABLE


class UnreachableError(UnavailableError):
    """Nobody was there to be asked: no connection, one that broke off, or a server that wants no calls."""


class RecordingError(UnavailableError):
    """A recording that is missing, stale or cannot be read."""


class ProvenanceError(UserError):
    """What was graded is not what the model was given."""

    exit_code = ExitCode.PROVENANCE


class Interrupted(EvalrunError):
    """The user stopped the run; draws that are finished are kept."""

    exit_code = ExitCode.INTERRUPTED
