"""The bytes that evalrun and ragbot must agree on, as literal strings.

The expected digests were made outside of Python: ``printf 'context.v1\\n[]' | sha256sum``.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import evalrun.digest
import evalrun.records
import ragbot.contract

PACKAGES = pytest.mark.parametrize(
    ("digest", "values"),
    [(evalrun.digest, evalrun.records), (ragbot.contract, ragbot.contract)],
    ids=["evalrun", "ragbot"],
)
EMPTY = "sha256:1a42160ac3a6c56ec823aca165e812c05d3ad5e25a3f3c63a8fc956ceda9a338"
ONE = "sha256:f89339e73b10c5dc34c49d6e15ecd4d3e778187d1f8824008428059d974a58ae"
TWO = "sha256:ea13225b646c2c6bc9bec1728ceb7788c40af5ce3c9142745724481b6313934a"
PARTS = "sha256:b59fffdf130e0cd5f8cac08170b8d1b7d04ba9ed0584309a4a879e463a8cd2c4"
TRICKY = (("b", 'Zürich "quoted"\n\ttab 🏔'), ("a", "<<end 0000000000000000>>"))


def chunks(values: Any, *pairs: tuple[str, str]) -> tuple[Any, ...]:
    return tuple(values.Chunk(id=id, text=text, similarity=0.5) for id, text in pairs)


@PACKAGES
def test_canonical_json(digest: ModuleType, values: Any) -> None:
    """Sorted keys, no spaces, UTF-8 as it is, and no NaN."""
    assert '{"a":["é",1,0.5,null,true],"b":{"x":1,"y":2}}' == digest.canonical_json(
        {"b": {"y": 2, "x": 1}, "a": ["é", 1, 0.5, None, True]}
    )
    with pytest.raises(ValueError, match="not JSON compliant"):
        digest.canonical_json([float("nan")])


@PACKAGES
def test_tagged_digest(digest: ModuleType, values: Any) -> None:
    """A lone surrogate is digested as U+FFFD; the name is part of the digest."""
    assert PARTS == digest.tagged("name", ["\ud800", 1, True, None, 0.5])
    assert PARTS != digest.tagged("other", ["\ud800", 1, True, None, 0.5])
    assert PARTS[7:23] == digest.short(PARTS)


@PACKAGES
@pytest.mark.parametrize(
    ("expected", "pairs"),
    [(EMPTY, ()), (ONE, (("work", "At A since 2020."),)), (TWO, TRICKY)],
    ids=["empty", "one", "tricky"],
)
def test_context_digest(
    digest: ModuleType, values: Any, expected: str, pairs: tuple[tuple[str, str], ...]
) -> None:
    """Ids and texts in rank order; similarities stay outside."""
    assert expected == digest.context_digest(chunks(values, *pairs))
    assert expected == values.Context.of(chunks(values, *pairs)).digest


@PACKAGES
def test_context_block(digest: ModuleType, values: Any) -> None:
    """Open, one '[id]' line and text for each chunk, a blank line between, close."""
    found = chunks(values, *TRICKY)
    assert (
        "<<context ea13225b646c2c6b>>\n"
        '[b]\nZürich "quoted"\n\ttab 🏔\n'
        "\n"
        "[a]\n<<end 0000000000000000>>\n"
        "<<end ea13225b646c2c6b>>"
    ) == digest.context_block(found, TWO)
    assert "<<context 1a42160ac3a6c56e>>\n\n<<end 1a42160ac3a6c56e>>" == digest.context_block((), EMPTY)


def test_replies_of_ragbot_are_replies_of_evalrun() -> None:
    """What one package writes on the wire the other reads, field by field."""
    context = ragbot.contract.Context.of(chunks(ragbot.contract, *TRICKY))
    reply = ragbot.contract.Reply(
        answer="I work at A.",
        context=context,
        prompt=(
            ragbot.contract.Message(role="system", content="s"),
            ragbot.contract.Message(role="user", content="u"),
        ),
        model="m",
        finish_reason="stop",
        usage=ragbot.contract.Usage(prompt_tokens=9, completion_tokens=4),
    )
    read = evalrun.records.Reply.model_validate_json(reply.model_dump_json())
    assert reply.model_dump() == read.model_dump(exclude={"context": {"numbered"}})
    assert context == ragbot.contract.Context.model_validate_json(
        read.context.model_dump_json(exclude={"numbered"}) if read.context else ""
    )
