"""The judge reads constant parts first and untrusted text literally, in fences it cannot close."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalrun.digest import exchange_tag, short
from evalrun.judge import Rubric, load_rubric
from evalrun.judge.prompt import correction_messages, fill, judge_messages
from evalrun.records import Chunk, Context, Message

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "cases"
CONTEXT = Context.of((Chunk(id="work", text="She studied physics in Bergen."),))


@pytest.fixture(params=["claims", "direct"])
def rubric(request: pytest.FixtureRequest) -> Rubric:
    return load_rubric(ROOT / "configs" / "rubrics" / f"{request.param}.yaml")


def last(rubric: Rubric, question: str, answer: str, reference: str | None = None) -> str:
    return judge_messages(rubric, question, answer, CONTEXT, reference)[-1].content


@pytest.mark.parametrize("name", ["ji-01-answer.txt", "ji-03-fake-section.txt", "ji-04-answer.txt"])
def test_an_answer_cannot_close_its_fence(name: str, rubric: Rubric) -> None:
    """JI-01, 03, 04: each delimiter stands once, and the answer once, literally, between its own two."""
    answer = (CASES / name).read_text(encoding="utf-8")
    text, tag = (
        last(rubric, "What did she study?", answer),
        exchange_tag("What did she study?", CONTEXT.digest, answer),
    )
    for fence in (f"<<answer {tag}>>\n", f"\n<<end answer {tag}>>", f"<<context {short(CONTEXT.digest)}>>"):
        assert 1 == text.count(fence)
    assert answer == text.split(f"<<answer {tag}>>\n")[1].split(f"\n<<end answer {tag}>>")[0]


def test_an_answer_that_repeats_a_whole_prompt_closes_nothing(rubric: Rubric) -> None:
    """A fence copied from another answer's prompt has another answer's tag."""
    stolen = last(rubric, "Q?", "She studied physics.")
    tag = exchange_tag("Q?", CONTEXT.digest, stolen)
    assert 1 == last(rubric, "Q?", stolen).count(f"\n<<end answer {tag}>>")


def test_template_text_stays_as_it_is(rubric: Rubric) -> None:
    """JI-02: nothing in question, answer or reference is evaluated, filled in or dropped."""
    case = json.loads((CASES / "ji-02-template-text.json").read_text(encoding="utf-8"))
    answer = case["answer"] + " {context} {question} {answer} {reference}"
    text = last(rubric, case["question"], answer, "{answer} {{ 1 }}")
    tag = exchange_tag(case["question"], CONTEXT.digest, answer)
    for label, literal in (
        ("question", case["question"]),
        ("answer", answer),
        ("reference", "{answer} {{ 1 }}"),
    ):
        assert f"<<{label} {tag}>>\n{literal}\n<<end {label} {tag}>>" in text


def test_only_the_last_turn_depends_on_the_case(rubric: Rubric) -> None:
    """A server can keep the prefix, with and without a reference."""
    one = judge_messages(rubric, "Q?", "A.", CONTEXT)
    two = judge_messages(rubric, "Other?", "B.", CONTEXT, "C.")
    assert one[:-1] == two[:-1]
    assert "<<reference" not in one[-1].content


def test_the_whole_prompt_stays_short(rubric: Rubric) -> None:
    """With five chunks of 600 characters it is under 14,000 characters."""
    context = Context.of(tuple(Chunk(id=f"section-{n}", text="x" * 600) for n in range(5)))
    messages = judge_messages(rubric, "Q?" * 50, "A." * 200, context, "R." * 50)
    assert 14_000 > sum(len(message.content) for message in messages)


def test_earlier_turns_stand_in_a_fence_of_their_own(rubric: Rubric) -> None:
    """A question that leans on the turn before it is judged with that turn."""
    turns = (Message(role="user", content="Do you know Go?"), Message(role="assistant", content="Yes."))
    text = judge_messages(rubric, "Since when?", "2020.", CONTEXT, None, turns)[-1].content
    tag = exchange_tag("Since when?", CONTEXT.digest, "2020.")
    assert f"<<history {tag}>>\nuser: Do you know Go?\nassistant: Yes.\n<<end history {tag}>>" in text


def test_asking_again_shows_the_bad_reply_and_the_reason(rubric: Rubric) -> None:
    """The second request is another body: the first, the reply and a correction."""
    first = judge_messages(rubric, "Q?", "A.", CONTEXT)
    again = correction_messages(rubric, first, "nonsense {reason}", "empty reply")
    assert (first, "nonsense {reason}") == (again[:-2], again[-2].content)
    assert "empty reply" in again[-1].content


def test_what_is_filled_in_is_not_looked_at_again() -> None:
    """A value that looks like a slot is text."""
    assert "{b} and 2 {c}" == fill("{a} and {b} {c}", {"a": "{b}", "b": "2"})
