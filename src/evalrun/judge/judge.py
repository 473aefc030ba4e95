"""One draw → one judgement: ask, read, ask once more, correct by code.

Owns the order of these steps and the judge's fingerprint. Recording, retries and limits happen below, in the
model's transport; equal requests share a verdict there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evalrun.digest import tagged
from evalrun.judge.checks import VERSIONS, Reading, corrected, unread
from evalrun.judge.prompt import correction_messages, judge_messages
from evalrun.judge.rubric import Rubric
from evalrun.judge.verdict import Parsed, Unreadable, parse_verdict
from evalrun.models import Completion, JudgeModel
from evalrun.records import Case, Context, Draw, Judgement, Message

SEED = 0
CHARACTERS_PER_TOKEN = 10  # a prompt that counts fewer tokens than this has lost a part of itself


@dataclass(frozen=True)
class Judge:
    """A rubric, a model and its temperature; known by all of it together."""

    rubric: Rubric
    model: JudgeModel
    temperature: float = 0.0

    @property
    def checks(self) -> tuple[str, ...]:
        """The rubric's code checks with their versions: ``refusal_rule@1``."""
        return tuple(f"{check}@{VERSIONS[check]}" for check in self.rubric.checks)

    @property
    def fingerprint(self) -> str:
        """Digest of model, rubric, checks and parameters."""
        parameters = {"temperature": self.temperature, "seed": SEED}
        parts = [self.model.name, self.model.digest, self.rubric.digest, list(self.checks), parameters]
        return tagged("judge", parts)

    def reads(self, context: Context | None) -> Context | None:
        """What it reads an answer against; None where it cannot read one without contexts.

        Whether an answer does what an attack wants can be read without any: then the context is empty.
        """
        return Context.of(()) if context is None and self.rubric.shape == "attack" else context

    def messages(self, case: Case, draw: Draw, context: Context) -> tuple[Message, ...]:
        """The prompt of the first call for this draw."""
        return judge_messages(
            self.rubric, case.question, draw.answer or "", context, case.reference, case.history
        )

    async def judge(self, case: Case, draw: Draw, context: Context) -> Judgement:
        """The judgement of a draw that has an answer; after a second unreadable reply, one with ``error``.

        Raises:
            UnavailableError: the model could not be had.
        """
        messages = self.messages(case, draw, context)
        completion = await self._complete(messages, case)
        outcome = self._read(completion, messages, case, draw, context)
        attempts = 1
        if isinstance(outcome, Unreadable) and outcome.worth_asking_again:
            messages = correction_messages(self.rubric, messages, completion.text, outcome.reason)
            completion = await self._complete(messages, case)
            outcome = self._read(completion, messages, case, draw, context)
            attempts = 2
        return _judgement(case, draw, completion.text, attempts, outcome)

    async def _complete(self, messages: tuple[Message, ...], case: Case) -> Completion:
        return await self.model.complete(
            messages,
            schema=self.rubric.schema_for(case.reference is not None),
            temperature=self.temperature,
            seed=SEED,
            max_tokens=self.rubric.max_tokens,
            num_ctx=self.rubric.num_ctx,
        )

    def _read(
        self, completion: Completion, messages: tuple[Message, ...], case: Case, draw: Draw, context: Context
    ) -> tuple[Parsed, Reading] | Unreadable:
        cut = _prompt_cut(completion, messages, self.rubric)
        if cut:
            return Unreadable(cut, worth_asking_again=False)
        parsed = parse_verdict(
            completion.text, self.rubric, completion.finish_reason, case.reference is not None
        )
        if isinstance(parsed, Unreadable):
            return parsed
        reading = corrected(parsed, self.rubric.checks, case.question, draw.answer or "", context)
        reason = unread(reading, parsed)
        return Unreadable(reason) if reason else (parsed, reading)


def _prompt_cut(completion: Completion, messages: tuple[Message, ...], rubric: Rubric) -> str | None:
    """Ollama drops the oldest part of a prompt that exceeds its window, without an error."""
    tokens = completion.prompt_tokens
    if tokens is None:
        return None
    if completion.window is not None and tokens + rubric.max_tokens >= completion.window:
        return f"prompt of {tokens} tokens does not fit the window of {completion.window}"
    if tokens < sum(len(message.content) for message in messages) / CHARACTERS_PER_TOKEN:
        return f"prompt was cut: the model saw {tokens} tokens of it"
    return None


def _judgement(
    case: Case, draw: Draw, raw: str, attempts: int, outcome: tuple[Parsed, Reading] | Unreadable
) -> Judgement:
    found: dict[str, Any]
    if isinstance(outcome, Unreadable):
        found = {"error": outcome.reason}
    else:
        parsed, reading = outcome
        found = {
            "refusal": reading.refusal,
            "faithful": reading.faithful,
            "correct": parsed.correct,
            "claims": reading.claims,
            "rationale": parsed.rationale,
            "model_refusal": parsed.refusal,
            "model_faithful": parsed.faithful,
            "corrections": reading.corrections,
            "coerced": parsed.coerced,
        }
    return Judgement(
        case=case.id, index=draw.index, digest=draw.digest or "", attempts=attempts, raw=raw, **found
    )
