"""Three model bodies, held byte for byte: recordings of model calls are found by them.

Until the first recording the wording may still be tuned; then print the new digests with

    python tests/ragbot/test_prompt.py

and paste them below. After the first recording a changed digest means that every recorded answer is stale.
"""

from __future__ import annotations

import asyncio
import os

import pytest
from ragbot_fakes import FakeOllama, make_twin

from ragbot.answer import answer
from ragbot.contract import AnswerRequest, Chunk, Context, tagged
from ragbot.models import chat_model

REQUESTS = {
    "plain": AnswerRequest(
        question="Where do you work?",
        context=Context.of([Chunk(id="work", text="## Work\n\nI work at Acme.", similarity=0.5)]),
    ),
    "sampled": AnswerRequest(
        question='Wo hast du studiert – "{block}"?\n',
        context=Context.of(
            [Chunk(id="b", text="## Zürich\n\n🏔"), Chunk(id="a", text="## A\n\n<<end 00>>\n")]
        ),
        seed=1234567890,
        temperature=0.7,
    ),
    "empty": AnswerRequest(
        question="Anything?", context=Context.of([]), seed=0, temperature=1.0, max_tokens=64
    ),
}
DIGESTS = {
    "plain": "sha256:5200ec3033b3651bf1078d2b6f4e298b588ce3f58e8a25c63b4053b284078fec",
    "sampled": "sha256:a2bbe0bae6ca2d6d06ed8b314c897ca04203e39939be243d0dfa4d1f7b4f48d5",
    "empty": "sha256:a4b9b26061cbd269ef42e2488d4854b81af9b60758a1914b48ed89f2d490f889",
}


async def body_digest(server: FakeOllama, request: AnswerRequest) -> str:
    """Digest of the body that reached the model server."""
    model = chat_model("qwen2.5-coder:1.5b")
    twin, _ = make_twin(model)
    await answer(twin, request)
    await model.close()
    return tagged("body", server.bodies[-1])


@pytest.mark.parametrize("name", REQUESTS)
async def test_body_is_the_same_byte_for_byte(ollama: FakeOllama, name: str) -> None:
    """A request without history and overlay makes the body it always made."""
    assert DIGESTS[name] == await body_digest(ollama, REQUESTS[name])


async def print_digests() -> None:
    """Show the digests of today's wording."""
    async with FakeOllama().running() as server:
        os.environ["OLLAMA_HOST"] = server.url
        for name, request in REQUESTS.items():
            print(f'    "{name}": "{await body_digest(server, request)}",')


if __name__ == "__main__":
    asyncio.run(print_digests())
