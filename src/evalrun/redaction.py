"""What must not be written down: the words of keys, and what a config takes out of replies.

Owns which names say that a value is a key, and how a text, a request and a reply read without what must not
stay. Only texts are changed, never the shape of a reply. Who is asked with which key belongs to targets and
models, when a reply is stored to :mod:`evalrun.cassette`.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from evalrun.bounded import SECONDS, within
from evalrun.digest import utf8
from evalrun.errors import UserError

HIDDEN = "[hidden]"
BLANKED = "[redacted]"
SECRET_NAME = re.compile(r"auth|key|token|secret|cookie|passw|session|credential", re.IGNORECASE)
_SECRET_LENGTH = 6
_KEYS = re.compile(
    r"""
    (?: (?<![A-Za-z0-9_]) | (?<=\\[nrt]) )  # nor behind a line break as JSON writes it
    (?: (?P<OpenAI> sk-(?=[\w-]{0,80}[0-9])(?:[a-z0-9]{1,12}-){0,3}[A-Za-z0-9_]{20,})
    |   (?P<AWS> (?:AKIA|ASIA)(?!\w{0,9}EXAMPLE)[A-Z0-9]{16}\b)
    |   (?P<GitHub> gh[oprsu]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})
    |   (?P<GitLab> glpat-[A-Za-z0-9_-]{20,})
    |   (?P<Google> AIza[A-Za-z0-9_-]{35})
    |   (?P<Slack> xox[abprs]-[0-9]{5,20}-[A-Za-z0-9-]{10,})
    |   (?P<Bearer> [Bb]earer\ +(?=[^\s"]{0,80}[0-9])[A-Za-z0-9._~+/-]{20,})
    |   (?P<JWT> eyJ[A-Za-z0-9_-]{10,500}\.eyJ[A-Za-z0-9_-]{10,2000}\.[A-Za-z0-9_-]{20,})
    |   (?P<private> -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----)
    )""",
    re.VERBOSE,
)
"""What keys look like, and hardly anything else. Invented ones seldom have figures."""
_KINDS = {"JWT": "a token (JWT)", "Bearer": "a bearer token", "private": "a private key"}
Place = tuple[str | int, ...]
"""Keys and indices that lead to a text in a JSON value."""


class Unredactable(Exception):
    """A reply that cannot be read without what must not stay in it; the text says why."""


def secrets_of(values: Mapping[str, str]) -> tuple[str, ...]:
    """The words of those values whose names say that they are keys, the longest first."""
    texts = [text for name, text in values.items() if SECRET_NAME.search(name)]
    words = {word for text in texts for word in (text, *text.split()) if len(word) >= _SECRET_LENGTH}
    return tuple(sorted(words - {"Bearer", "Digest"}, key=lambda word: (-len(word), word)))


def shown_values(values: Mapping[str, str]) -> dict[str, str]:
    """``values``, but none whose name says that it is a key."""
    return {name: HIDDEN if SECRET_NAME.search(name) else text for name, text in values.items()}


def without(text: str, secrets: Iterable[str]) -> str:
    """``text`` with every secret in it hidden, also where it is escaped as JSON or a URL escapes it."""
    for secret in sorted(secrets, key=len, reverse=True):  # one may hold another
        written = {json.dumps(secret, ensure_ascii=ascii)[1:-1] for ascii in (True, False)}
        for form in {secret, quote(secret, safe=""), *written}:
            text = text.replace(form, HIDDEN)
    return text


def key_in(text: str) -> str:
    """What kind of key stands in ``text``, by its looks; empty where none does. The key is not shown."""
    found = _KEYS.search(text)
    kind = (found.lastgroup or "") if found else ""
    return _KINDS.get(kind, f"a key of {kind}") if kind else ""


@contextlib.contextmanager
def told_without(secrets: Iterable[str]) -> Iterator[None]:
    """An error for the user that is raised inside tells no secret, whoever worded it."""
    try:
        yield
    except UserError as error:
        error.message, error.hint = (without(text, secrets) for text in (error.message, error.hint))
        error.args = (error.message,)
        raise


def open_query(query: str) -> str:
    """The query of a URL without the parameters whose names say that they are keys."""
    parts = (part for part in query.split("&") if not SECRET_NAME.search(part.partition("=")[0]))
    return "&".join(parts)


@dataclass(frozen=True)
class Redaction:
    """What is taken out before an exchange is stored: keys, and what the patterns of a config match."""

    patterns: tuple[re.Pattern[str], ...] = ()
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def of_request(self, body: Any) -> Any:
        """A request, or any JSON value, without keys; its key is taken from what is left."""
        if not self.secrets:
            return body
        if isinstance(body, dict):
            return {key: self.of_request(item) for key, item in body.items()}
        if isinstance(body, list):
            return [self.of_request(item) for item in body]
        return without(body, self.secrets) if isinstance(body, str) else body

    def of_reply(self, reply: str, *, binary: bool = False) -> tuple[str, int]:
        """(a reply without keys and without what the patterns match, how many places that were).

        Numbers and names of fields stay. A text that comes in pieces, as in a stream, is read as a whole:
        where a match lies across pieces, the first of them then holds all of it. ``binary``: it is base64.

        Raises:
            Unredactable: a name of a field would go, JSON inside a text would break, a binary stream would
                have to be taken apart, or a pattern takes too long.
        """
        if not self.patterns and without(reply, self.secrets) == reply:
            return reply, 0
        slow = Unredactable(f"its patterns take longer than {SECONDS:g} s on it: make them simpler")
        with within(slow):
            return _Reply(self).of(reply, binary=binary)

    def matches(self, value: Any) -> bool:
        """Whether a pattern matches a text anywhere in a JSON value."""
        return any(_Reply(self).blanked(text) != text for _, text in _texts(value))


@dataclass
class _Reply:
    """One reply on its way; ``places`` counts what was blanked."""

    rules: Redaction
    places: int = 0

    def of(self, reply: str, *, binary: bool) -> tuple[str, int]:
        if binary:
            if self.blanked(_printed(reply)) != _printed(reply):
                raise Unredactable(
                    "it is a binary stream, which can only be kept whole: ask without streaming"
                )
            return reply, 0
        try:
            values = [json.loads(reply)]
        except (ValueError, RecursionError):
            return self._stream(reply)
        new, found = self._values(values)
        return (_dumped(new[0]), found) if found else (reply, 0)

    def blanked(self, text: str) -> str:
        """A text without keys and matches; one that is JSON stays JSON."""

        def blank(match: re.Match[str]) -> str:
            if not match[0] or match[0] == BLANKED:
                return match[0]
            self.places += 1
            return BLANKED

        new = without(text, self.rules.secrets)
        self.places += new != text
        for pattern in self.rules.patterns:
            new = pattern.sub(blank, new)
        if new != text and text.lstrip()[:1] in ("{", "[") and _is_json(text) and not _is_json(new):
            raise Unredactable("it would break the JSON that a text of it holds: match less")
        return new

    def _values(self, values: list[Any]) -> tuple[list[Any], int]:
        """The values of a reply, whose texts at one place belong together; how many places were blanked."""
        pieces: dict[Place, list[tuple[int, str]]] = defaultdict(list)
        for number, value in enumerate(values):
            if lost := next((name for name in _names(value) if self.blanked(name) != name), None):
                raise Unredactable(f"it would blank the name of a field, {lost!r}: match less")
            for place, text in _texts(value):
                pieces[place].append((number, text))
        found = 0
        for place, parts in pieces.items():
            self.places = 0
            whole = self.blanked("".join(text for _, text in parts))
            found += (count := self.places)
            if not count:
                continue
            each = [self.blanked(text) for _, text in parts]
            if "".join(each) != whole:
                each = [whole, *[""] * (len(parts) - 1)]
            for (number, _), text in zip(parts, each, strict=True):
                values[number] = _put(values[number], place, text)
        return values, found

    def _stream(self, reply: str) -> tuple[str, int]:
        """A reply of lines: JSON, server-sent events, or plain text."""
        rows = [_Row.of(line) for line in reply.split("\n")]
        if not any(row.event for row in rows):
            text = self.blanked(reply)
            return text, self.places
        events = [row.value for row in rows if row.event]
        new, found = self._values(list(events))
        if not found:
            return reply, 0
        left = iter(new)
        return "\n".join(row.written(next(left)) if row.event else row.text for row in rows), found


@dataclass(frozen=True)
class _Row:
    """A line of a stream: its text, and as an event its value."""

    text: str
    event: bool = False
    prefix: str = ""
    value: Any = field(default=None)
    json: bool = True

    @classmethod
    def of(cls, line: str) -> _Row:
        prefix = next((mark for mark in ("data: ", "data:") if line.startswith(mark)), "")
        rest = line.removeprefix(prefix)
        try:
            return cls(line, True, prefix, json.loads(rest))
        except (ValueError, RecursionError):
            return cls(line, bool(prefix), prefix, rest, json=False)

    def written(self, value: Any) -> str:
        return self.prefix + (_dumped(value) if self.json else value) if value != self.value else self.text


def _texts(value: Any, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """Every text of a JSON value and where it stands."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, (*place, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*place, index))
    elif isinstance(value, str):
        yield place, value


def _names(value: Any) -> Iterator[str]:
    """Every name of a field in a JSON value."""
    if isinstance(value, dict):
        yield from value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _names(item)


def _put(value: Any, place: Place, text: str) -> Any:
    """``value`` with ``text`` at ``place``."""
    if not place:
        return text
    first, rest = place[0], place[1:]
    if isinstance(value, dict):
        return value | {first: _put(value[first], rest, text)}
    return [_put(item, rest, text) if index == first else item for index, item in enumerate(value)]


def _dumped(value: Any) -> str:
    return utf8(json.dumps(value, ensure_ascii=False)).decode()


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _printed(reply: str) -> str:
    """What can be read of a binary reply in base64."""
    try:
        return base64.b64decode(reply).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return reply
