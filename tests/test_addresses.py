"""What an address is, how a path is joined to it, and which are this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from evalrun.addresses import BotUrl, is_loopback, join_url, shown_url
from fakes.servers import Json

CASES = Path(__file__).parent / "cases"


def case(name: str) -> Any:
    """A case file."""
    return json.loads((CASES / name).read_text("utf-8"))


@pytest.mark.parametrize("known", case("nw-04-base-urls.json")["cases"])
def test_a_path_is_joined_to_a_base_with_one_slash(known: Json) -> None:
    """NW-04: a slash at the end changes nothing, a path of the base is kept, and none is made up."""
    version = "" if known["base"].rstrip("/").endswith(("//h:1/v1", "/api/v1")) else "/v1"
    path = version + case("nw-04-base-urls.json")["chat_path"]
    assert known["url"] == join_url(known["base"], path)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:1/x", True),
        ("http://127.8.9.1", True),
        ("http://[::1]:8/", True),
        ("http://localhost", True),
        ("http://bot.localhost:1", True),
        ("http://localhost.example.org", False),
        ("http://0.0.0.0:1", True),
        ("http://[::ffff:127.0.0.1]:1", True),
        ("http://10.0.0.1", False),
        ("http://bot.example.org", False),
    ],
)
def test_loopback_is_known_by_address_and_by_name(url: str, expected: bool) -> None:
    """Only this machine counts as this machine."""
    assert expected == is_loopback(url)


@pytest.mark.parametrize(
    ("base", "path", "expected"),
    [
        ("http://h", "", "http://h"),
        ("http://h/", "/", "http://h/"),
        ("http://h/api/", "ask", "http://h/api/ask"),
        ("http://[::1]:8/api", "/ask", "http://[::1]:8/api/ask"),
        ("http://h/api?key=1", "", "http://h/api?key=1"),
        ("http://h/api/?key=1", "/ask", "http://h/api/ask?key=1"),
        ("http://h?key=1", "/ask?k=2", "http://h/ask?key=1&k=2"),
        ("http://h", "//evil/ask", "http://h/evil/ask"),
        ("http://h", "http://evil/ask", "http://h/http://evil/ask"),
    ],
)
def test_a_query_stays_behind_the_path(base: str, path: str, expected: str) -> None:
    """That of the base goes with every call, and no path leads to another server."""
    assert expected == join_url(base, path)


def test_a_query_is_not_shown() -> None:
    """It may hold a key."""
    assert "http://h/api" == shown_url("http://h/api?key=secret")


@pytest.mark.parametrize("url", ["http://[::1]:8000", "http://bot.example/a/?code=1", "https://127.0.0.1"])
def test_an_address_of_a_bot_has_a_scheme(url: str) -> None:
    """A path, a query and an IPv6 literal are fine."""
    assert url == TypeAdapter(BotUrl).validate_python(url)


@pytest.mark.parametrize(
    "url",
    [
        "h:1",
        "ftp://h",
        "http://",
        "http://:1",
        "http://h:0",
        "http://h:x",
        "http://h/#a",
        "http://h /",
    ],
)
def test_what_is_no_address_of_a_bot_is_told_how_to_write_one(url: str) -> None:
    """It is refused before anything is asked."""
    with pytest.raises(ValidationError, match="write it like http"):
        TypeAdapter(BotUrl).validate_python(url)


def test_a_password_stands_in_no_address() -> None:
    """It would be in every message; the hint says where it belongs."""
    with pytest.raises(ValidationError, match="give them as headers"):
        TypeAdapter(BotUrl).validate_python("http://me:secret@h")
