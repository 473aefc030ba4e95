"""What an address is, how a path is joined to it, and which are this machine."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from evalrun.addresses import BotUrl, bot_url, is_loopback, join_url, shown_url, url_path
from evalrun.wires import with_version
from fakes.servers import Json
from known import json_of, known


def urls(path: str, **bases: str) -> Json:
    """Bases and what each becomes, as the file has them."""
    return {"chat_path": path, "cases": [{"base": base, "url": url} for base, url in bases.items()]}


PATH = "/chat/completions"


@known(
    "NW-04",
    json_of("nw-04-base-urls.json"),
    urls(PATH, **{"http://h/v1///": f"http://h/v1{PATH}", "http://[::1]:8/": f"http://[::1]:8/v1{PATH}"}),
    urls(
        PATH,
        **{"https://h/v1beta/openai/": f"https://h/v1beta/openai{PATH}", "http://h": f"http://h/v1{PATH}"},
    ),
    urls(PATH, **{"http://v1:8": f"http://v1:8/v1{PATH}", "http://h/v10x": f"http://h/v10x{PATH}"}),
)
def test_a_path_is_joined_to_a_base_with_one_slash(given: Json) -> None:
    """A slash at the end changes nothing, a path of the base is kept, and the version is added once."""
    for one in given["cases"]:
        assert one["url"] == join_url(with_version(one["base"]), given["chat_path"])
        assert one["url"] == join_url(with_version(one["base"]) + "/", given["chat_path"].lstrip("/"))


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


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("foo:8000", "it does not begin with http or https"),
        ("ftp://x", "'ftp' is neither http nor https"),
        ("http://a b", "it holds a space"),
        ("http://", "it names no server"),
        ("http://h:99999", "its port is no number from 1 to 65535"),
        ("http://256.1.1.1", "its host is none that can be called"),
        ("http://☃.example", "its host is none that can be called"),
        ("http://a/\0", "it holds a character that cannot be shown"),
        ("http://a/\ud800", "it holds a character that cannot be shown"),
        ("http://a\\b", r"it holds a \\"),
    ],
)
def test_what_is_no_address_is_told_with_the_reason(url: str, why: str) -> None:
    """Beside what one looks like."""
    with pytest.raises(ValueError, match=f"bot, {why}: write it like http://"):
        bot_url(url)


@pytest.mark.parametrize("path", ["", "/ask", "ask", "/a?b=c", "/ü"])
def test_a_path_is_taken_as_it_is(path: str) -> None:
    """With a slash or without."""
    assert path == url_path(path)


@pytest.mark.parametrize("path", ["\0", "/a b", "/a\n", "/\ud800", "/a#b"])
def test_what_no_request_can_hold_is_no_path(path: str) -> None:
    """It would end the run at its first question."""
    with pytest.raises(ValueError, match="is not a path: write it like /ask"):
        url_path(path)
