"""What is taken out of replies: texts only, across the pieces of a stream, never so that JSON breaks."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalrun.cassette import BOOKS, key_of
from evalrun.jsonl import read_lines
from evalrun.records import Exchange
from evalrun.redaction import (
    BLANKED,
    HIDDEN,
    Redaction,
    Unredactable,
    key_in,
    open_query,
    secrets_of,
    without,
)

NAME = Redaction((re.compile(r"Jane\s+Doe"),))
TEXTS = st.text(max_size=12)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=12,
)


def test_a_match_is_blanked_wherever_a_text_stands() -> None:
    """In lists and objects, also where it is escaped; numbers and the rest stay."""
    reply = '{"answer": "Ask Jane\\u0020Doe.", "more": ["Jane Doe", 5], "n": 1.0}'
    new, places = NAME.of_reply(reply)
    assert {"answer": f"Ask {BLANKED}.", "more": [BLANKED, 5], "n": 1.0} == json.loads(new)
    assert 2 == places


def test_what_matches_nothing_stays_byte_for_byte() -> None:
    """Spaces, escapes and order of a reply that holds nothing."""
    reply = '{ "b":"\\u00e9",  "a": 1e5 }\n'
    assert (reply, 0) == NAME.of_reply(reply)
    assert ("no JSON {", 0) == NAME.of_reply("no JSON {")


def event(text: str) -> str:
    """One piece of a stream."""
    return "data: " + json.dumps({"id": "x", "delta": {"text": text}})


@pytest.mark.parametrize("lines", [("data: ", "\n\n"), ("", "\n")])
def test_a_match_across_the_pieces_of_a_stream_is_found(lines: tuple[str, str]) -> None:
    """Server-sent events and NDJSON: the first piece then holds the whole; other fields stay."""
    prefix, between = lines
    stream = between.join(
        prefix + json.dumps({"id": "x", "t": text}) for text in ("Ask Ja", "ne D", "oe now")
    )
    new, places = NAME.of_reply(stream + "\n")
    found = [json.loads(line.removeprefix(prefix)) for line in new.split("\n") if line]
    assert [f"Ask {BLANKED} now", "", ""] == [one["t"] for one in found]
    assert ["x", "x", "x"] == [one["id"] for one in found]
    assert 1 == places
    assert new.count("\n") == stream.count("\n") + 1


def test_a_match_within_a_piece_leaves_the_other_pieces_alone() -> None:
    """A stream keeps its pieces where it can; lines that are no events stay."""
    stream = "\n\n".join([": ping", event("Jane Doe"), event(" rows"), "data: [DONE]"])
    new, _ = NAME.of_reply(stream)
    assert new == stream.replace("Jane Doe", BLANKED)


def test_plain_text_and_events_of_plain_text_are_read() -> None:
    """A reply that is no JSON at all."""
    assert (f"{BLANKED} rows.", 1) == NAME.of_reply("Jane Doe rows.")
    new, places = NAME.of_reply("data: Jane\n\ndata:  Doe rows\n\n")
    assert (f"data: {BLANKED} rows\n\ndata: \n\n", 1) == (new, places)


@pytest.mark.parametrize(
    ("pattern", "reply", "why"),
    [
        ("Jane", '{"Jane": "rows"}', "name of a field, 'Jane'"),
        (
            '"Jane",?',
            json.dumps({"text": '{"who": "Jane", "n": 1}'}),
            "break the JSON that a text",
        ),
    ],
)
def test_a_redaction_that_would_break_a_reply_is_refused(pattern: str, reply: str, why: str) -> None:
    """Nothing broken is stored."""
    with pytest.raises(Unredactable, match=re.escape(why)):
        Redaction((re.compile(pattern),)).of_reply(reply)


def test_a_binary_stream_is_refused_where_it_holds_a_match() -> None:
    """It has sums of its own; one without a match passes."""
    held, other = (base64.b64encode(text).decode() for text in (b"\x00\x01Jane Doe", b"\x00\x01nobody"))
    with pytest.raises(Unredactable, match="binary stream"):
        NAME.of_reply(held, binary=True)
    assert (other, 0) == NAME.of_reply(other, binary=True)


def test_a_pattern_that_takes_for_ever_is_stopped() -> None:
    """Twice as many letters square the time; the reply is refused instead."""
    with pytest.raises(Unredactable, match="take longer than 2 s"):
        Redaction((re.compile(r"(a+)+$"),)).of_reply(json.dumps({"answer": "a" * 60 + "b"}))


def test_keys_are_hidden_whether_a_pattern_is_given_or_not() -> None:
    """In replies and requests, also as JSON escapes them."""
    secret = 'FAKE"KEY-1111'
    rules = Redaction(secrets=(secret,))
    reply, places = rules.of_reply(json.dumps({"error": f"bad key {secret}"}))
    assert {"error": f"bad key {HIDDEN}"} == json.loads(reply)
    assert 1 == places
    assert {"a": [HIDDEN, 1]} == rules.of_request({"a": [secret, 1]})
    assert f'"{HIDDEN}"' == without(json.dumps(secret), [secret])
    odd = 'kö"y-7123-\\'
    assert f'"{HIDDEN}"' == without(json.dumps(odd, ensure_ascii=False), [odd])


def test_a_name_says_what_is_a_key() -> None:
    """The words of the value, the longest first; short ones are too common."""
    found = secrets_of({"Authorization": "Bearer abcdef123", "Accept": "text/plain", "X-Api-Key": "abc"})
    assert ("Bearer abcdef123", "abcdef123") == found
    assert "mode=a&x=1" == open_query("mode=a&api_key=s&x=1")


@given(VALUES)
def test_a_redacted_value_holds_no_match_and_keeps_its_shape(value: Any) -> None:
    """Once is enough: what was redacted is not changed by it again."""
    rules = Redaction((re.compile("[a-m]"),))
    new, places = rules.of_reply(json.dumps(value))
    assert (places > 0) == rules.matches(value)
    left = json.loads(new)
    assert _shape(left) == _shape(value)


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shape(item) for item in value]
    return str if isinstance(value, str) else value


# ---------------------------------------------------------------- what looks like a key

TAIL = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
LOOKS = {
    f"sk-{TAIL}": "a key of OpenAI",
    f"sk-proj-{TAIL}": "a key of OpenAI",
    f"sk-ant-api03-{TAIL}": "a key of OpenAI",
    "AKIA" + "Q7Z2" * 4: "a key of AWS",
    f"ghp_{TAIL}": "a key of GitHub",
    f"github_pat_{TAIL}{TAIL}": "a key of GitHub",
    f"glpat-{TAIL}": "a key of GitLab",
    f"AIza{TAIL[:35]}": "a key of Google",
    f"xoxb-123456789012-{TAIL}": "a key of Slack",
    f"Authorization: Bearer {TAIL}": "a bearer token",
    f"eyJ{TAIL}.eyJ{TAIL}.{TAIL}": "a token (JWT)",
    "-----BEGIN RSA PRIVATE KEY-----": "a private key",
}


@pytest.mark.parametrize("text", LOOKS)
@pytest.mark.parametrize("around", ["{}", "The key is {}.", "two\n{} lines", '"{}"', "({})"])
def test_what_looks_like_a_key_is_found(text: str, around: str) -> None:
    """In prose, on a line of its own, and in JSON as it is written."""
    said = around.format(text)
    assert LOOKS[text] == key_in(said)
    assert LOOKS[text] == key_in(json.dumps({"answer": said}))


@pytest.mark.parametrize(
    "text",
    [
        "Set OPENAI_API_KEY to sk-... and run it.",
        "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "AKIAIOSFODNN7EXAMPLE",
        "a task-management-and-risk-assessment-2026-framework",
        "Locales: sk-SK, cs-CZ. The ship Akia sailed.",
        "Bearer tokens are explained elsewhere, in documentation12345.",
        "Authorization: Bearer $TOKEN, Bearer <your-token-goes-right-here>",
        "-----BEGIN CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "eyJhbGciOiJIUzI1NiJ9 alone",
    ],
)
def test_what_only_speaks_of_keys_is_none(text: str) -> None:
    """Examples without figures, words with hyphens, digests, pictures."""
    assert "" == key_in(text)


@pytest.mark.parametrize("name", sorted(path.name for path in Path("data/cassettes").iterdir()))
def test_no_shipped_recording_holds_what_looks_like_a_key(name: str) -> None:
    """In none of its replies, of bot and judge."""
    lines = [
        line for book in BOOKS for line in read_lines(Path(f"data/cassettes/{name}/{book}.jsonl"), Exchange)
    ]
    assert lines
    assert [] == [line.key for line in lines if key_of(line)]
