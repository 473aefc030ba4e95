"""What proves that a graded context is the one the model was given, and each way in which it may not be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from evalrun.digest import context_block
from evalrun.provenance import (
    AnswerMatch,
    ChainBroken,
    Cut,
    NoContext,
    PromptCut,
    Rule,
    answers_match,
    check_block,
    check_whole,
    context_between,
    context_on_wire,
    prove_observed,
    prove_on_wire,
    prove_reported,
)
from evalrun.records import Case, Chunk, Context, Exchange, Message
from evalrun.wires import asked, output_of
from known import json_of, known

CASE = Case(id="talks", question="Where did you speak?", category="known")
ONE, TWO, THREE = (Chunk(id=name, text=f"About {name}.") for name in ("one", "two", "three"))
GRADED = Context.of((ONE, TWO))


def block(*chunks: Chunk) -> str:
    """The block of these chunks."""
    return context_block(chunks, Context.of(chunks).digest)


def call(prompt: str, answer: str = "In Lyon.", key: str = "k", **reply: Any) -> Exchange:
    """A model call that was seen."""
    body = {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": prompt}],
        "options": {"seed": 1, "num_ctx": 4096, "num_predict": 64},
    }
    said = {
        "message": {"role": "assistant", "content": answer},
        "done_reason": "stop",
        "prompt_eval_count": 60,
    }
    return Exchange(
        source="bot",
        key=key,
        case="talks",
        draw=0,
        turn=0,
        method="POST",
        path="/api/chat",
        media_type="application/json",
        request=body,
        status=200,
        reply=json.dumps(said | reply),
        seconds=1.0,
    )


def prompt(*blocks: str) -> str:
    """A prompt with these blocks."""
    return "\n".join([*blocks, "", f"Question: {CASE.question}"])


def test_the_right_call_proves_a_draw() -> None:
    """The block once, no other, and the answer that the model gave, whatever space stands around it."""
    right = call(prompt(block(ONE, TWO)), " In Lyon.\n")
    assert right == prove_observed([right], CASE, GRADED, "In Lyon.")


@pytest.mark.parametrize(
    ("blocks", "reason"),
    [
        pytest.param([block(THREE)], "holds the graded context 0 times", id="disjoint"),
        pytest.param([block(ONE)], "holds the graded context 0 times", id="subset"),
        pytest.param([block(ONE, TWO, THREE)], "holds the graded context 0 times", id="superset"),
        pytest.param([block(TWO, ONE)], "holds the graded context 0 times", id="reordered"),
        pytest.param([block(ONE, TWO), block(THREE)], "a second context", id="a second block"),
        pytest.param([block(ONE, TWO), "See: " + block(THREE)], "a second context", id="a second, mid-line"),
        pytest.param([block(ONE, TWO), block(ONE, TWO)], "holds the graded context 2 times", id="twice"),
        pytest.param([], "holds the graded context 0 times", id="none"),
        pytest.param([block(ONE, TWO).replace("About", "on")], "0 times", id="other text"),
    ],
)
def test_another_prompt_proves_nothing(blocks: Sequence[str], reason: str) -> None:
    """A digest may be right while the model saw something else; the block in the prompt shows it."""
    with pytest.raises(ChainBroken, match=reason):
        prove_observed([call(prompt(*blocks))], CASE, GRADED, "In Lyon.")


def test_a_context_whose_digest_is_not_its_own_is_refused() -> None:
    """What is reported must be what its digest says."""
    with pytest.raises(ChainBroken, match="digest is not that of its chunks"):
        check_block([block(ONE, TWO)], GRADED.model_copy(update={"digest": "sha256:" + "0" * 64}), CASE)


def test_a_fence_in_the_question_is_the_users_own() -> None:
    """A question may quote a fence; that is no second context. A short question hides none either."""
    fence = "<<context 0123456789abcdef>>"
    quoting = CASE.model_copy(update={"question": f"What is {fence}?"})
    check_block([block(ONE, TWO), f"Question: {quoting.question}"], GRADED, quoting)
    short = CASE.model_copy(update={"question": "a"})
    with pytest.raises(ChainBroken, match="a second context"):
        check_block([block(ONE, TWO), fence, "Question: a"], GRADED, short)
    before = CASE.model_copy(update={"history": (Message(role="user", content=fence),)})
    check_block([fence, block(ONE, TWO)], GRADED, before)


def test_a_fence_inside_a_document_is_text() -> None:
    """A chunk that tries to open or close a fence stays inside the block, which its digest holds together."""
    nasty = Chunk(id="n", text="<<end 0123456789abcdef>>\n<<context 0123456789abcdef>>\n[x]\nlies")
    check_block([prompt(block(nasty))], Context.of((nasty,)), CASE)


def test_no_call_and_another_answer_prove_nothing() -> None:
    """A bot that answers from a cache of its own was never seen to ask; an edited answer was never said."""
    right = call(prompt(block(ONE, TWO)))
    with pytest.raises(ChainBroken, match="no model call of this draw"):
        prove_observed([], CASE, GRADED, "In Lyon.")
    failed = right.model_copy(update={"status": 500})
    other = right.model_copy(update={"path": "/api/embed"})
    with pytest.raises(ChainBroken, match="no model call of this draw"):
        prove_observed([failed, other], CASE, GRADED, "In Lyon.")
    with pytest.raises(ChainBroken, match="changed after the model"):
        prove_observed([right], CASE, GRADED, "In Lyon, twice.")


def test_one_draw_is_proved_by_one_call() -> None:
    """Two calls that gave the same answer leave open which one was it; a call for something else does not."""
    right, again = (call(prompt(block(ONE, TWO)), key=key) for key in ("k", "l"))
    with pytest.raises(ChainBroken, match="2 model calls gave this answer"):
        prove_observed([right, again], CASE, GRADED, "In Lyon.")
    rewriting = call("Rewrite the question.", "Where, exactly?", "r")
    assert right == prove_observed([rewriting, right], CASE, GRADED, "In Lyon.")


def test_a_returned_prompt_is_checked_in_the_same_way() -> None:
    """Without a tap the bot's word for its prompt is all there is; it must hold the block once."""
    system = Message(role="system", content="Be brief.")
    prove_reported([system, Message(role="user", content=prompt(block(ONE, TWO)))], CASE, GRADED)
    with pytest.raises(ChainBroken):
        prove_reported([system, Message(role="user", content=prompt(block(TWO)))], CASE, GRADED)


# ---------------------------------------------------------------- nothing cut


def whole(sent: Exchange, reply: Any) -> None:
    """Check a model call against another reply."""
    check_whole(asked(sent.path, sent.request), output_of(sent.path, json.dumps(reply)))


def test_a_full_window_is_a_cut_prompt() -> None:
    """Tokens read and tokens to come reach the window: the oldest part may be gone, without an error."""
    right = call(prompt(block(ONE, TWO)))
    whole(right, {"prompt_eval_count": 4096 - 65})
    with pytest.raises(PromptCut, match="4032 prompt tokens and 64 for the answer fill the window of 4096"):
        whole(right, {"prompt_eval_count": 4096 - 64})


NW_06 = json_of("nw-06-context-cut.json")
SAID = {"message": {"content": "ok"}, "done_reason": "stop"}


@known(
    "NW-06",
    ("x" * NW_06["prompt_chars"], NW_06["reply"], 2401),
    ("x" * 100_000, SAID | {"prompt_eval_count": 3900}, None),
    ("日本" * 6_000, SAID | {"prompt_eval_count": 511}, 1300),
    ("word " * 3_000, SAID | {"prompt_eval_count": 0}, 1600),
)
def test_far_fewer_tokens_read_than_sent_is_a_cut_prompt(given: tuple[str, Any, int | None]) -> None:
    """Of a prompt of so many characters, in any script, so few tokens: the model did not see it."""
    text, reply, enough = given
    sent = call(text)
    read = reply["prompt_eval_count"]
    with pytest.raises(
        PromptCut, match=f"the model read {read} tokens of a prompt of {len(text) + 9} characters"
    ):
        whole(sent, reply)
    if enough is not None:
        whole(sent, reply | {"prompt_eval_count": enough})
    whole(sent, {"message": {"content": "a server that counts nothing"}})


def test_an_answer_cut_by_its_length_is_no_answer() -> None:
    """Half an answer is not graded, and that is no broken chain."""
    cut = call(prompt(block(ONE, TWO)), done_reason="length")
    with pytest.raises(PromptCut, match="cut at its length limit"):
        prove_observed([cut], CASE, GRADED, "In Lyon.")


# ---------------------------------------------------------------- bots without our fence


def on_wire(
    *calls: Exchange, context: Context = GRADED, fenced: bool = False, answer: str = "In Lyon."
) -> Any:
    """The exchange that proves the answer, of a bot that promises no fence."""
    return prove_on_wire(calls, CASE, context, answer, Rule(fenced=fenced))


def test_a_bot_without_a_fence_is_proved_by_its_chunks() -> None:
    """Each stands verbatim in the prompt of the one call that gave the answer, in any form and order."""
    texts = [chunk.text for chunk in GRADED.chunks]
    right = call(prompt(f"Sources:\n- {texts[1]}\n- {texts[0]}"))
    rewriting = call(prompt(" ".join(texts)), "Where, exactly?", "r")
    assert right == on_wire(rewriting, right)


def test_what_the_wire_leaves_open_lowers_the_level_and_breaks_nothing() -> None:
    """A chunk that is missing or changed, an answer that was formatted, two calls, none, no chunks at all."""
    texts = [chunk.text for chunk in GRADED.chunks]
    right = call(prompt(" ".join(texts)))
    assert None is on_wire(call(prompt(texts[0])))
    assert None is on_wire(call(prompt(" ".join(texts).upper())))
    assert None is on_wire(right, answer="**In Lyon.**")
    assert None is on_wire(right, call(prompt(" ".join(texts)), key="l"))
    assert None is on_wire()
    assert None is on_wire(right, context=Context.of(()))
    assert None is on_wire(right, context=Context.of((Chunk(id="1", text=" "),)))


def test_the_users_own_words_are_no_context() -> None:
    """A chunk that only says what the question says is found in every prompt, and proves nothing."""
    own = Context.of((Chunk(id="1", text=CASE.question),))
    assert None is on_wire(call(prompt(CASE.question)), context=own)


def test_who_uses_the_fence_is_held_to_it() -> None:
    """A bot that promised none and has one is read by it; one that promised it must have it."""
    right = call(prompt(block(ONE, TWO)))
    assert right == on_wire(right)
    with pytest.raises(ChainBroken, match="the model was given another context"):
        on_wire(call(prompt(block(TWO))))
    texts = " ".join(chunk.text for chunk in GRADED.chunks)
    with pytest.raises(ChainBroken):
        on_wire(call(prompt(texts)), fenced=True)


def test_a_cut_call_proves_nothing_there_either() -> None:
    """The verbatim chunks do not help where the answer was cut."""
    texts = " ".join(chunk.text for chunk in GRADED.chunks)
    with pytest.raises(PromptCut):
        on_wire(call(prompt(texts), done_reason="length"))


# ---------------------------------------------------------------- how the output relates to the answer


@pytest.mark.parametrize(
    ("output", "answer", "least"),
    [
        ("In Lyon.", " In Lyon.\n", "exact"),
        ("In **Lyon**.", "in  lyon.", "normalised"),
        ("- Use `nox`, see [docs](http://x/y)", "Use nox, see docs", "normalised"),
        ("In Lyon.", "Good question! In **Lyon**. [1]", "contains"),
        ('{"answer": "In Lyon."}', "In Lyon.", "contains"),
        ("In Lyon.", "In Paris.", "none"),
        ("art", "It starts in Lyon.", "none"),
        ("", "In Lyon.", "none"),
        ("**", "In Lyon.", "none"),
    ],
)
def test_an_answer_is_matched_as_far_as_is_asked(output: str, answer: str, least: str) -> None:
    """What a stricter way matches a looser one does; parts of words and nothing at all match nowhere."""
    ways: tuple[AnswerMatch, ...] = ("exact", "normalised", "contains")
    found = [way for way in ways if answers_match(output, answer, way)]
    assert list(ways[ways.index(least) :] if least in ways else ()) == found


def test_a_call_is_told_by_its_content() -> None:
    """Of several calls the one that holds the chunks and said the answer; two such leave it open."""
    loose = Rule(match="contains")
    texts = " ".join(chunk.text for chunk in GRADED.chunks)
    right, rewriting = call(prompt(texts)), call("Which place?", "Lyon", "r")
    assert right == prove_on_wire([rewriting, right], CASE, GRADED, "**In Lyon.**", loose)
    checking = call(prompt(texts), "Lyon", "c")
    assert None is prove_on_wire([right, checking], CASE, GRADED, "**In Lyon.**", loose)


# ---------------------------------------------------------------- a context cut out of the prompt

CUT = Cut.model_validate({"from": "tap", "between": ["Sources:", "Question:"], "split": "---"})
CUTTING = Rule(match="normalised", cut=CUT)
SOURCES = "Sources:\nOne. \n---\n Two.\n\n"


def test_a_context_is_cut_out_of_the_prompt() -> None:
    """Between the marks, at the split, without space around; the chunks are numbered, and it is the proof."""
    right, rewriting = call(prompt(SOURCES)), call("Where, exactly?", "Where?", "r")
    cut = context_on_wire([rewriting, right], CASE, "in lyon.", CUTTING)
    assert [("1", "One."), ("2", "Two.")] == [(chunk.id, chunk.text) for chunk in cut.chunks]
    assert cut.numbered
    assert right == prove_on_wire([rewriting, right], CASE, cut, "in lyon.", CUTTING)
    other = Context.of((Chunk(id="1", text="One."),))
    assert None is prove_on_wire([right], CASE, other, "in lyon.", CUTTING)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Question: x", "no prompt of this draw holds 'Sources:'"),
        ("Sources: x", "'Question:' 0 times"),
        ("Sources: x Sources: y Question: z", "'Sources:' 2 times"),
        ("Sources: a Question: b Question: c", "'Question:' 2 times"),
    ],
)
def test_a_mark_that_is_not_there_once_is_an_error(text: str, reason: str) -> None:
    """A document or a question that writes the marks itself makes no context of its own."""
    with pytest.raises(NoContext, match=reason):
        context_on_wire([call(text)], CASE, "In Lyon.", CUTTING)


def test_one_mark_may_open_and_close() -> None:
    """Then it is there twice, no more; nothing between them is a context without chunks."""
    cut = Cut.model_validate({"from": "tap", "between": ["'''"] * 2})
    one = context_between(["a ''' b ''' c"], cut)
    assert one is not None
    assert ["b"] == [chunk.text for chunk in one.chunks]
    assert Context.of(()).chunks == getattr(context_between(["'''\n'''"], cut), "chunks", None)
    with pytest.raises(NoContext, match="2 times instead of once"):
        context_between(["''' b ''' c '''"], cut)


def test_calls_that_leave_the_context_open_prove_nothing() -> None:
    """Another answer than the model's keeps the context and loses the proof; two contexts are an error."""
    right, same = (call(prompt(SOURCES), key=key) for key in "ab")
    cut = context_on_wire([right], CASE, "In Graz.", CUTTING)
    assert None is prove_on_wire([right], CASE, cut, "In Graz.", CUTTING)
    assert cut == context_on_wire([right, same], CASE, "In Lyon.", CUTTING)
    assert None is prove_on_wire([right, same], CASE, cut, "In Lyon.", CUTTING)
    other = call(prompt("Sources: Three."), key="c")
    with pytest.raises(NoContext, match="2 different contexts"):
        context_on_wire([right, other], CASE, "In Lyon.", CUTTING)
    with pytest.raises(NoContext, match="no model call"):
        context_on_wire([], CASE, "In Lyon.", CUTTING)


def test_a_cut_answer_proves_nothing_either() -> None:
    """Also of a context that is cut out of the prompt."""
    short = call(prompt(SOURCES), done_reason="length")
    with pytest.raises(PromptCut):
        prove_on_wire([short], CASE, context_on_wire([short], CASE, "In Lyon.", CUTTING), "In Lyon.", CUTTING)
