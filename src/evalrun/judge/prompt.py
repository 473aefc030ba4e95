"""The conversation a judge model is shown: constant parts first, then one exchange in fences.

Owns where each text goes. Context, question and answer stand literally, between fences whose tags are derived
from what they enclose, so that no text can close its own; nothing is rendered as a template.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from evalrun.digest import context_block, exchange_tag, fenced
from evalrun.judge.rubric import Example, Rubric
from evalrun.records import Context, Message

_SLOT = re.compile(r"\{([a-z]+)\}")


def judge_messages(
    rubric: Rubric,
    question: str,
    answer: str,
    context: Context,
    reference: str | None = None,
    history: Sequence[Message] = (),
) -> tuple[Message, ...]:
    """System text, the rubric's examples as finished turns, and the exchange to be judged."""
    content = _user(rubric, question, answer, context, reference, history)
    return (*_opening(rubric), Message(role="user", content=content))


_OPENINGS: dict[str, tuple[Message, ...]] = {}


def _opening(rubric: Rubric) -> tuple[Message, ...]:
    """What stands before every exchange; made once a rubric, since a run asks for it with each answer."""
    if rubric.digest not in _OPENINGS:
        turns = [Message(role="system", content=rubric.prompt.system)]
        for example in rubric.prompt.examples:
            turns += _example(rubric, example)
        _OPENINGS[rubric.digest] = tuple(turns)
    return _OPENINGS[rubric.digest]


def correction_messages(
    rubric: Rubric, messages: Sequence[Message], reply: str, reason: str
) -> tuple[Message, ...]:
    """``messages``, the reply that was no verdict, and the turn that asks again."""
    again = fill(rubric.prompt.correction, {"reason": reason})
    return (*messages, Message(role="assistant", content=reply), Message(role="user", content=again))


def fill(template: str, values: Mapping[str, str]) -> str:
    """``template`` with each ``{slot}`` of ``values`` replaced once; what is put in is not read again."""
    return _SLOT.sub(lambda found: values.get(found[1], found[0]), template)


def _example(rubric: Rubric, example: Example) -> list[Message]:
    context = Context.of(example.context)
    content = _user(rubric, example.question, example.answer, context, example.reference, ())
    verdict = json.dumps(example.verdict, ensure_ascii=False)
    return [Message(role="user", content=content), Message(role="assistant", content=verdict)]


def _user(
    rubric: Rubric,
    question: str,
    answer: str,
    context: Context,
    reference: str | None,
    history: Sequence[Message],
) -> str:
    tag = exchange_tag(question, context.digest, answer)
    before = "\n".join(f"{turn.role}: {turn.content}" for turn in history)
    values = {
        "context": context_block(context.chunks, context.digest),
        "question": (fenced("history", before, tag) + "\n\n" if before else "")
        + fenced("question", question, tag),
        "answer": fenced("answer", answer, tag),
        "reference": "" if reference is None else fenced("reference", reference, tag) + "\n\n",
    }
    return fill(rubric.prompt.user, values)
