"""One question to a bot of unknown shape: what it takes, and where its reply holds answer and contexts.

Owns the guesses, which a user sees before they count. Asking in earnest belongs to ``targets``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from evalrun.digest import read_json
from evalrun.errors import UnavailableError
from evalrun.http import Limits, Service
from evalrun.redaction import secrets_of, without

ASKED = "What can you help me with?"
SLOT = "{question}"
BODIES: tuple[Any, ...] = (
    *({name: SLOT} for name in ("question", "query", "message", "input", "prompt", "text")),
    {"messages": [{"role": "user", "content": SLOT}]},
)
ANSWERS = ("answer", "response", "reply", "completion", "output", "result", "message", "content", "text")
LISTS = (
    "contexts",
    "context",
    "sources",
    "documents",
    "docs",
    "chunks",
    "passages",
    "retrieved",
    "sourcedocuments",
    "sourcenodes",
    "retrieveddocuments",
    "retrievedchunks",
    "citations",
    "references",
    "snippets",
    "hits",
    "results",
)
TEXTS = (
    "text", "content", "pagecontent", "chunk", "chunktext", "passage", "body", "snippet", "document", "quote",
)  # fmt: skip
IDS = (
    "id", "chunkid", "docid", "documentid", "passageid", "nodeid", "ref", "key", "source", "file", "name",
    "title", "url",
)  # fmt: skip
"""Names as :func:`_folded` has them, the surest first."""
Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Found:
    """What a bot takes and gives; ``answer`` and ``contexts`` are JMESPath, None where nothing looks so."""

    body: Any
    answer: str | None
    contexts: str | None
    reply: str


async def probe(url: str, headers: Mapping[str, str], bodies: Sequence[Any] = BODIES) -> Found:
    """Ask with each body until one is taken. A FastAPI bot says itself which field it misses.

    Raises:
        UnavailableError: nothing listens there, or no body is taken.
    """
    tried, refused, secrets = [], "", secrets_of(headers)
    async with Service("the bot", url, Limits(timeout=120, retries=0), headers=headers) as service:
        queue = list(bodies)
        while queue:
            tried.append(body := queue.pop(0))
            response = await service.call("POST", "", _with(body, ASKED))
            text = without(response.text, secrets)
            if 200 <= response.status_code < 300:
                return read(body, _json(url, text))
            refused = f"HTTP {response.status_code}: {text[:200]}"
            wanted = missing_field(response) if len(bodies) > 1 else None
            queue = ([wanted] if wanted and wanted not in tried else []) + queue
    shown = ", ".join(json.dumps(body) for body in tried)
    raise UnavailableError(
        f"{url}: takes none of {shown}; the last reply was {refused}",
        'say what it takes: --request \'{"my_field": "{question}"}\'',
    )


def read(body: Any, reply: Any) -> Found:
    """What ``reply`` looks like."""
    contexts = contexts_in(reply)
    answer = answer_in(reply)
    return Found(body, answer, contexts, json.dumps(reply, ensure_ascii=False)[:400])


def _json(url: str, text: str) -> Any:
    try:
        return read_json(text)
    except ValueError:
        raise UnavailableError(
            f"{url}: the reply is not JSON: {text[:80]!r}",
            "say where the answer is with --request, --answer and --contexts",
        ) from None


def _with(template: Any, question: str) -> Any:
    return json.loads(json.dumps(template).replace(json.dumps(SLOT), json.dumps(question)))


def missing_field(response: httpx.Response) -> Any:
    """The body that a FastAPI bot asks for with a 422: its one missing field, or None."""
    try:
        detail = read_json(response.content)["detail"]
        [path] = [item["loc"] for item in detail if item["type"] == "missing"]
        first, *keys = path
    except (ValueError, KeyError, TypeError):
        return None
    if first != "body" or not keys or not all(isinstance(key, str) for key in keys):
        return None
    body: Any = SLOT
    for key in reversed(keys):
        body = {key: body}
    return body


# ---------------------------------------------------------------- guesses


def answer_in(reply: Any) -> str | None:
    """JMESPath of what looks most like the answer: by name, else the longest text outside of lists."""
    if isinstance(reply, str):
        return "@"
    found = [
        (path, text)
        for path, text in _leaves(reply)
        if isinstance(text, str) and text.strip() and text != ASKED
    ]
    plain = [pair for pair in found if not any(isinstance(part, int) for part in pair[0])]
    first = [pair for pair in found if all(part == 0 for part in pair[0] if isinstance(part, int))]
    named = [pair for pair in plain if _rank(pair[0]) < len(ANSWERS)]
    choices = [pair for pair in first if pair[0][0] == "choices" and _rank(pair[0]) < len(ANSWERS)]
    for candidates in (named, choices, plain, first):
        if candidates:
            return expression(min(candidates, key=_place)[0])
    return None


def _place(found: tuple[Path, str]) -> tuple[int, int, int]:
    path, text = found
    return _rank(path), _rank(path[-1:]), -len(text)


def _rank(path: Path) -> int:
    """The best name on the way to a text; what is named for an answer beats where it lies."""
    names = [_folded(part) for part in path]
    return min((ANSWERS.index(name) for name in names if name in ANSWERS), default=len(ANSWERS))


def contexts_in(reply: Any) -> str | None:
    """JMESPath of what looks like retrieved passages: texts, or objects made to have a ``text``."""
    lists = [
        (path, items) for path, items in _lists(reply) if items and not any(isinstance(p, int) for p in path)
    ]
    for path, items in sorted(lists, key=lambda pair: _list_rank(pair[0])):
        known = _list_rank(path) < len(LISTS)
        if known and all(isinstance(item, str) for item in items):
            return expression(path)
        if all(isinstance(item, dict) for item in items) and (made := _objects(path, items)):
            return made
    return None


def _list_rank(path: Path) -> int:
    name = _folded(path[-1]) if path else ""
    return LISTS.index(name) if name in LISTS else len(LISTS)


def _objects(path: Path, items: Sequence[Mapping[str, Any]]) -> str | None:
    text = _named(items, TEXTS, str)
    if text is None or (_folded(text) != "text" and _list_rank(path) == len(LISTS)):
        return None
    name = _named(items, IDS, str | int)
    within = [item.get("metadata") for item in items]  # where LangChain and others keep it
    if name is None and all(isinstance(item, dict) for item in within):
        inner = _named([item for item in within if isinstance(item, dict)], IDS, str | int)
        name = f"metadata.{_key(inner)}" if inner else None
    elif name is not None:
        name = _key(name)
    if text == "text" and name in ("id", None):
        return expression(path) or None
    pairs = [*([f"id: {name}"] if name else []), f"text: {_key(text)}"]
    return f"{expression(path)}[].{{{', '.join(pairs)}}}"


def _named(items: Sequence[Mapping[str, Any]], names: Sequence[str], kind: Any) -> str | None:
    """The key that has one of the names, the surest first, and holds a value of that kind in every item."""
    keys = {_folded(key): key for key in reversed(list(items[0]))}
    found = (keys[name] for name in names if name in keys)
    return next((key for key in found if all(_is(item.get(key), kind) for item in items)), None)


def _is(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _folded(name: str | int) -> str:
    """A name whichever way its words are written: ``docId``, ``doc_id`` and ``DOC-ID`` are one."""
    return re.sub(r"[\s_-]", "", str(name)).lower()


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _leaves(item, (*path, number))
    elif path:
        yield path, value


def _lists(value: Any, path: Path = ()) -> Iterator[tuple[Path, list[Any]]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _lists(item, (*path, key))
    elif isinstance(value, list) and path:
        yield path, value


def expression(path: Path) -> str:
    """A path as JMESPath: ``choices[0].message.content``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{_key(part)}"
    return text


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else json.dumps(name)
