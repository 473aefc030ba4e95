"""YAML text → plain values, each with the place it stands at.

Owns what may stand in a YAML file of this project: YAML 1.2 without tags, no duplicate keys, merge keys, a
budget of nodes counted as if every alias were written out, and, where asked for, ``${NAME}`` from the
environment. Leaves the meaning of keys to ``config`` and to whoever loads a rubric.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    MappingStartEvent,
    ScalarEvent,
)
from ruamel.yaml.reader import ReaderError

from evalrun.errors import InputError, Problem
from evalrun.textfile import read_text

Loc = tuple[str | int, ...]

MAX_BYTES = 500_000
MAX_NODES = 20_000
MAX_DEPTH = 50
MAX_DIGITS = 30

# The core schema of YAML 1.2 (https://yaml.org/spec/1.2.2/#103-core-schema): `no` and `on` are text.
_NULL = {"", "~", "null", "Null", "NULL"}
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]+\Z")
_BASED = re.compile(r"0o[0-7]+\Z|0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(r"([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))\Z")
_VARIABLE = re.compile(r"\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{")


@dataclass
class Document:
    """One YAML file: its value, the place of each part, and what is wrong with it.

    ``value`` is built of dict (keys are always text), list, str, int, float, bool and None. ``from_env``
    holds, by location, the text as written of every value that the environment had a part in, ``variables``
    what each variable in it is.
    """

    path: Path
    value: Any = field(default=None, repr=False)
    problems: list[Problem] = field(default_factory=list)
    from_env: dict[Loc, str] = field(default_factory=dict)
    variables: dict[Loc, dict[str, str]] = field(default_factory=dict, repr=False)
    values: dict[Loc, str] = field(default_factory=dict)
    keys: dict[Loc, str] = field(default_factory=dict)

    def where(self, loc: Loc) -> str:
        """``file:line:col`` of the value at ``loc``, or of the nearest part that encloses it."""
        while loc and loc not in self.values:
            loc = loc[:-1]
        return self.values.get(loc, f"{self.path}:1:1")

    def at(self, loc: Loc) -> Any:
        """The value at ``loc``; None where there is no such place."""
        value = self.value
        for part in loc:
            inside = isinstance(value, dict) or (isinstance(value, list) and isinstance(part, int))
            try:
                value = value[part] if inside else None
            except (KeyError, IndexError):
                return None
        return value

    def where_key(self, loc: Loc) -> str:
        """``file:line:col`` of the key that ends ``loc``; of the value where there is no such key."""
        return self.keys.get(loc) or self.where(loc)

    def written(self, loc: Loc) -> str | None:
        """The text in the file where the environment changed it: what a message may show of a secret."""
        return self.from_env.get(loc)


def load_yaml(path: Path, env: Mapping[str, str] | None = None) -> Document:
    """The document in ``path``, free of problems; ``${NAME}`` is replaced only where ``env`` is given.

    Raises:
        InputError: every problem found, each with ``file:line:col``.
    """
    document = read_yaml(path, env)
    if document.problems:
        raise InputError(document.problems)
    return document


def read_yaml(path: Path, env: Mapping[str, str] | None = None) -> Document:
    """As :func:`load_yaml`, but what need not stop a reader is left in ``problems``: duplicate keys, tags,
    unset variables.

    Raises:
        InputError: the file cannot be read or is no YAML, or it is larger or deeper than allowed.
    """
    return parse_yaml(read_text(path, MAX_BYTES), path, env)


def parse_yaml(text: str, path: Path, env: Mapping[str, str] | None = None) -> Document:
    """As :func:`read_yaml`, for a text at hand; ``path`` is for messages."""
    document = Document(path)
    root = _Composer(path).compose(text)
    if root is not None:
        document.value = _Builder(document, env).build(root, ())
    return document


def dotted(loc: Loc) -> str:
    """A location as people write it: ``gates.0.min``."""
    return ".".join(str(part) for part in loc)


# ---------------------------------------------------------------- text → nodes


@dataclass
class _Node:
    """A scalar (``text``), a list (``items``) or a mapping (``items``: key, value, key, value …)."""

    kind: str
    where: str
    text: str = ""
    plain: bool = False
    tag: str | None = None
    items: list[_Node] = field(default_factory=list)
    size: int = 1
    height: int = 1
    open: bool = False


class _Composer:
    """Events → nodes without recursion. An alias is its anchor's node, counted at full size each time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.anchors: dict[str, _Node] = {}
        self.stack: list[_Node] = []
        self.root: _Node | None = None
        self.nodes = 0
        self.documents = 0

    def compose(self, text: str) -> _Node | None:
        for event in self._events(text):
            if isinstance(event, DocumentStartEvent):
                self._count_document(event)
            elif isinstance(event, AliasEvent):
                self._add(self._target(event), event)
            elif isinstance(event, ScalarEvent):
                self._add(self._scalar(event), event)
            elif isinstance(event, CollectionStartEvent):
                self._open(event)
            elif isinstance(event, CollectionEndEvent):
                self._close()
        return self.root

    def _events(self, text: str) -> Iterator[Any]:
        try:
            yield from YAML(typ="safe", pure=True).parse(text)
        except ReaderError as fault:
            before = text[: fault.position]
            line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
            message = f"character U+{fault.character:04X} is not allowed in YAML"
            raise InputError([Problem(f"{self.path}:{line}:{column}", message)]) from None
        except MarkedYAMLError as fault:
            mark = fault.problem_mark or fault.context_mark
            message = f"not valid YAML: {fault.problem or fault.context}"
            raise InputError([Problem(self._at(mark), message)]) from None
        except YAMLError as fault:
            raise InputError([Problem(str(self.path), f"not valid YAML: {fault}")]) from None

    def _at(self, mark: Any) -> str:
        return f"{self.path}:{mark.line + 1}:{mark.column + 1}" if mark else str(self.path)

    def _refuse(self, event: Any, message: str, hint: str = "") -> InputError:
        return InputError([Problem(self._at(event.start_mark), message, hint)])

    def _count_document(self, event: Any) -> None:
        self.documents += 1
        if self.documents > 1:
            raise self._refuse(event, "a second document (---)", "one file holds one document")

    def _target(self, event: Any) -> _Node:
        node = self.anchors.get(event.anchor)
        if node is None:
            raise self._refuse(event, f"alias *{event.anchor} has no anchor before it")
        if node.open:
            raise self._refuse(event, f"alias *{event.anchor} stands inside its own anchor")
        return node

    def _scalar(self, event: Any) -> _Node:
        plain = not event.style
        return _Node("scalar", self._at(event.start_mark), event.value, plain, _tag(event))

    def _open(self, event: Any) -> None:
        kind = "map" if isinstance(event, MappingStartEvent) else "list"
        node = _Node(kind, self._at(event.start_mark), tag=_tag(event), open=True)
        self._add(node, event)
        self.stack.append(node)

    def _add(self, node: _Node, event: Any) -> None:
        if event.anchor and not isinstance(event, AliasEvent):
            self.anchors[event.anchor] = node
        self.nodes += node.size
        if self.nodes > MAX_NODES:
            raise self._refuse(
                event, f"more than {MAX_NODES:,} values, aliases written out", "make it smaller"
            )
        if len(self.stack) + node.height > MAX_DEPTH:
            raise self._refuse(event, f"nested deeper than {MAX_DEPTH} levels")
        if self.stack:
            self.stack[-1].items.append(node)
        else:
            self.root = node

    def _close(self) -> None:
        node = self.stack.pop()
        node.open = False
        node.size += sum(item.size for item in node.items)
        node.height += max((item.height for item in node.items), default=0)


def _tag(event: Any) -> str | None:
    return str(event.tag) if event.tag else None


# ---------------------------------------------------------------- nodes → values


class _Builder:
    """Nodes → values, noting where each stands. A problem is noted once per place, however often aliased."""

    def __init__(self, document: Document, env: Mapping[str, str] | None) -> None:
        self.document = document
        self.env = env
        self.noted: set[tuple[str, str]] = set()

    def build(self, node: _Node, loc: Loc) -> Any:
        self.document.values[loc] = node.where
        if node.tag is not None:
            self._note(
                node, f"tag {_shown(node.tag)} is not read here", "write the value without it; quote a text"
            )
        if node.kind == "scalar":
            return self._scalar(node, loc)
        if node.kind == "list":
            return [self.build(item, (*loc, index)) for index, item in enumerate(node.items)]
        pairs = self._pairs(node, loc)
        self.document.keys.update({(*loc, name): key.where for name, (key, _) in pairs.items()})
        return {name: self.build(item, (*loc, name)) for name, (_, item) in pairs.items()}

    def _pairs(self, node: _Node, loc: Loc) -> dict[str, tuple[_Node, _Node]]:
        """Name → key and value of a mapping: its own pairs, then those of its merge key."""
        own: dict[str, tuple[_Node, _Node]] = {}
        for key, item in zip(node.items[::2], node.items[1::2], strict=True):
            name = _joined(key.text)
            if key.kind != "scalar":
                self._note(key, "a key must be a word, not a list or a mapping")
            elif name in own:
                numbers = " and ".join(twice.where.rsplit(":", 2)[1] for twice in (own[name][0], key))
                self._note(
                    key, f"key '{dotted((*loc, name))}' stands twice, on lines {numbers}", "keep one of them"
                )
            else:
                own[name] = (key, item)
        if "<<" in own and own["<<"][0].plain:
            return self._merged(own, own.pop("<<")[1], loc)
        return own

    def _merged(
        self, own: dict[str, tuple[_Node, _Node]], sources: _Node, loc: Loc
    ) -> dict[str, tuple[_Node, _Node]]:
        """``own`` and what it lacks of ``sources``; an earlier one wins (https://yaml.org/type/merge.html)."""
        for source in sources.items if sources.kind == "list" else [sources]:
            if source.kind == "map":
                own = self._pairs(source, loc) | own
            else:
                self._note(source, "'<<' takes a mapping or a list of mappings")
        return own

    def _scalar(self, node: _Node, loc: Loc) -> Any:
        value = self._resolve(node, loc) if node.plain else node.text
        return self._expand(node, _joined(value), loc) if isinstance(value, str) else value

    def _resolve(self, node: _Node, loc: Loc) -> Any:
        text = node.text
        if text in _NULL:
            return None
        if text in _BOOL:
            return _BOOL[text]
        if (_INT.match(text) or _BASED.match(text)) and len(text) <= MAX_DIGITS:
            return int(text, 0 if _BASED.match(text) else 10)
        if _FLOAT.match(text) and math.isfinite(float(text)):
            return float(text)
        if _FLOAT.match(text) or _NOT_FINITE.match(text):
            self._note(node, "is not a finite number", "quote it if it is a text", loc)
        return text

    def _expand(self, node: _Node, text: str, loc: Loc) -> str:
        if self.env is None or "$" not in text:
            return text
        expanded = _VARIABLE.sub(lambda found: self._variable(found, node, loc), text)
        if any(found[1] for found in _VARIABLE.finditer(text)):
            self.document.from_env[loc] = text
        return expanded

    def _variable(self, found: re.Match[str], node: _Node, loc: Loc) -> str:
        name, default = found[1], found[2]
        given = (self.env or {}).get(name or "")
        value = given or default
        if given:
            self.document.variables.setdefault(loc, {})[name] = given
        if found[0] == "$$":
            return "$"
        if name is None:
            self._note(node, "holds '${' without a variable name", "write $$ for a plain $", loc)
        elif value is None:
            state = "set, but empty" if name in (self.env or {}) else "not set"
            hint = f"export {name}=…, or write ${{{name}:-default}}"
            self._note(node, f"needs the environment variable {name}, which is {state}", hint, loc)
        return found[0] if value is None else value

    def _note(self, node: _Node, message: str, hint: str = "", loc: Loc | None = None) -> None:
        if (node.where, message) not in self.noted:
            self.noted.add((node.where, message))
            text = f"'{dotted(loc)}' {message}" if loc else message
            self.document.problems.append(Problem(node.where, text, hint))


def _shown(tag: str) -> str:
    return tag.replace("tag:yaml.org,2002:", "!!")


def _joined(text: str) -> str:
    """``text`` with the halves of ``\\ud83d\\ude00`` joined, as JSON writes them; a lone half is U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
