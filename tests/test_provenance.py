"""What proves that a graded context is the one the model was given, and each way in which it may not be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evalrun.digest import context_block
from evalrun.provenance import (
    ChainBroken,
    PromptCut,
    check_block,
    check_whole,
    is_generation,
    output_of,
    prompt_messages,
    prove_observed,
    prove_reported,
    seed_of,
    window_of,
)
from evalrun.records import Case, Chunk, Context, Exchange, Message

CASES = Path(__file__).parent / "cases"
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


def test_a_full_window_is_a_cut_prompt() -> None:
    """Tokens read and tokens to come reach the window: the oldest part may be gone, without an error."""
    right = call(prompt(block(ONE, TWO)))
    check_whole(right.request, output_of(json.dumps({"prompt_eval_count": 4096 - 65})))
    with pytest.raises(PromptCut, match="4032 prompt tokens and 64 for the answer fill the window of 4096"):
        check_whole(right.request, output_of(json.dumps({"prompt_eval_count": 4096 - 64})))


def test_far_fewer_tokens_read_than_sent_is_a_cut_prompt() -> None:
    """NW-06: 1026 tokens of a prompt of 24,000 characters: the model did not see the context."""
    known = json.loads((CASES / "nw-06-context-cut.json").read_text("utf-8"))
    sent = call("x" * known["prompt_chars"]).request
    with pytest.raises(PromptCut, match="the model read 1026 tokens of a prompt of 24009 characters"):
        check_whole(sent, output_of(json.dumps(known["reply"])))
    check_whole(sent, output_of(json.dumps(known["reply"] | {"prompt_eval_count": 2401})))
    check_whole(sent, output_of(json.dumps({"message": {"content": "a server that counts nothing"}})))


def test_an_answer_cut_by_its_length_is_no_answer() -> None:
    """Half an answer is not graded, and that is no broken chain."""
    cut = call(prompt(block(ONE, TWO)), done_reason="length")
    with pytest.raises(PromptCut, match="cut at its length limit"):
        prove_observed([cut], CASE, GRADED, "In Lyon.")


# ---------------------------------------------------------------- the wire of model servers


@pytest.mark.parametrize(
    ("reply", "text", "finish"),
    [
        ({"message": {"content": "hi"}, "done_reason": "stop", "eval_count": 2}, "hi", "stop"),
        ({"response": "hi", "done_reason": "length"}, "hi", "length"),
        ({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}, "hi", "stop"),
        ({"choices": [{"text": "hi", "finish_reason": None}]}, "hi", None),
        ({"message": {"content": None}}, "", None),
        ({"message": "hi"}, "", None),
        ({"choices": ["hi"]}, "", None),
        ({"choices": {}, "usage": [], "done_reason": {}}, "", None),
        ({"response": ["hi"]}, "", None),
        (["hi"], "", None),
        ("hi", "", None),
    ],
)
def test_a_reply_is_read_in_each_form_and_nonsense_is_empty(
    reply: Any, text: str, finish: str | None
) -> None:
    """Ollama's and OpenAI's forms; a reply of no known form says nothing, and breaks nothing."""
    found = output_of(json.dumps(reply))
    assert (text, finish) == (found.text, found.finish)


def test_streamed_replies_are_joined() -> None:
    """NDJSON lines and server-sent events; what is no JSON between them is left out."""
    ndjson = '{"message": {"content": "In "}}\n{"message": {"content": "Lyon"}, "done_reason": "stop"}\n'
    assert ("In Lyon", "stop") == (output_of(ndjson).text, output_of(ndjson).finish)
    parts = [json.dumps({"choices": [{"delta": {"content": text}}]}) for text in ("In ", "Lyon")]
    events = "".join(f"data: {part}\r\n\r\n" for part in parts) + ": ping\n\ndata: {half\n\ndata: [DONE]\n\n"
    assert "In Lyon" == output_of(events).text
    assert "" == output_of("<html>").text


def test_tokens_are_read_from_either_place() -> None:
    """Ollama counts beside the message, OpenAI in ``usage``; words are no counts."""
    assert (7, 2) == _tokens({"prompt_eval_count": 7, "eval_count": 2})
    assert (7, 2) == _tokens({"usage": {"prompt_tokens": 7, "completion_tokens": 2}})
    assert (None, None) == _tokens({"prompt_eval_count": "seven", "usage": {}})


def _tokens(reply: Any) -> tuple[int | None, int | None]:
    found = output_of(json.dumps(reply))
    return found.prompt_tokens, found.completion_tokens


def test_prompt_seed_and_window_are_read_from_either_form() -> None:
    """Chat messages with text or parts, a plain prompt with a system text; the seed in options or beside."""
    parts = {
        "messages": [{"content": [{"type": "text", "text": "a"}, {"text": "b"}]}, {"content": None}, "x"]
    }
    assert ("ab", "", "") == prompt_messages(parts)
    assert ("S", "P") == prompt_messages({"system": "S", "prompt": "P"})
    assert () == prompt_messages(None)
    assert (4, 5, None, None) == (
        seed_of({"options": {"seed": 4}}),
        seed_of({"seed": 5}),
        seed_of([]),
        seed_of({"seed": "5"}),
    )
    assert (4096, 64) == window_of({"options": {"num_ctx": 4096, "num_predict": 64}})
    assert (None, 0) == window_of({"options": {"num_ctx": "4096", "num_predict": None}})
    assert (None, 0) == window_of("text")


def test_generations_are_known_by_their_path() -> None:
    """What makes a model write, under any prefix; embeddings and lists of models do not."""
    writing = ("/api/chat", "/api/generate", "/v1/chat/completions", "/openai/v1/completions/")
    assert [True] * 4 == [is_generation(path) for path in writing]
    assert [False] * 3 == [is_generation(path) for path in ("/api/embed", "/api/tags", "/v1/models")]
