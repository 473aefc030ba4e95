"""A Markdown profile, cut into sections at its ``##`` headings.

Owns what a section is, its id and the warnings about a profile; the cut follows markdown-it's token map, so
that a heading inside a code fence is no heading. Leaves embedding and storing to ``index``.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from ragbot.contract import tagged
from ragbot.errors import RagbotError

if TYPE_CHECKING:
    from markdown_it.token import Token

PREAMBLE = "_preamble"
"""Id of the text before the first ``##``. No slug has an underscore, so no heading can claim it."""


@dataclass(frozen=True)
class Section:
    """One chunk: ``text`` is its source with its heading once; ``line`` (from 1) is where it starts."""

    id: str
    title: str
    text: str
    line: int


@dataclass(frozen=True)
class Profile:
    """The sections of a file in order, its first ``#`` heading, and what its author should know."""

    sections: tuple[Section, ...]
    warnings: tuple[str, ...] = ()
    name: str = ""

    @property
    def digest(self) -> str:
        """Digest of ids and texts in order: the corpus as the index sees it."""
        return tagged("corpus", [{"id": section.id, "text": section.text} for section in self.sections])


def read_profile(path: Path) -> Profile:
    """The profile at ``path``.

    Raises:
        RagbotError: it cannot be read, is not UTF-8, or has nothing to index.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RagbotError(f"{path}: {error.strerror}", "name a Markdown file with --profile") from error
    try:
        return parse_profile(data.decode(), str(path))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise RagbotError(f"{path}:{line}: this is not UTF-8", "save the file as UTF-8") from error


def parse_profile(source: str, name: str = "profile") -> Profile:
    """The sections of ``source``; ``name`` stands in warnings and errors.

    Raises:
        RagbotError: there is nothing to index.
    """
    from markdown_it import MarkdownIt

    source = re.sub(r"\r\n?", "\n", source.removeprefix("\ufeff"))
    tokens = MarkdownIt("commonmark").parse(source)
    lines = source.split("\n")
    sections, warnings = [], []
    taken: Counter[str] = Counter()
    for title, own, start, end in _cuts(tokens, len(lines)):
        id = _id(title, taken)
        if _has_text(own):
            sections.append(Section(id, title or "", "\n".join(lines[start:end]).strip("\n"), start + 1))
        elif title is not None and own[0].tag == "h2":
            warnings.append(f"{name}:{start + 1}: section '{title}' is empty and is not indexed")
    if not sections:
        raise RagbotError(f"{name}: no section with text", "write sections under '## ' headings")
    return Profile(tuple(sections), tuple(warnings), _name(tokens))


def _cuts(tokens: Sequence[Token], line_count: int) -> Iterator[tuple[str | None, Sequence[Token], int, int]]:
    """(title or None, tokens, first line, line after) of the preamble and of each section."""
    starts = [at for at, token in enumerate(tokens) if token.type == "heading_open" and token.level == 0]
    first = next((at for at in starts if tokens[at].tag == "h2"), len(tokens))
    # An h1 after the first section begins a part of its own; left in, it would end the section before it.
    cuts = [at for at in starts if at >= first and tokens[at].tag in ("h1", "h2")]
    edges = [(at, (tokens[at].map or [0])[0]) for at in cuts] + [(len(tokens), line_count)]
    yield None, tokens[: edges[0][0]], 0, edges[0][1]
    for (at, start), (after, end) in pairwise(edges):
        yield _plain(tokens[at + 1]), tokens[at:after], start, end


def _name(tokens: Sequence[Token]) -> str:
    h1 = next(
        (at for at, token in enumerate(tokens) if token.type == "heading_open" and token.tag == "h1"), None
    )
    return "" if h1 is None else _plain(tokens[h1 + 1])


def _plain(inline: Token) -> str:
    """The words of a heading without its markup."""
    words = (
        child.content if child.type in ("text", "code_inline", "image") else " " * (child.type == "softbreak")
        for child in inline.children or ()
    )
    return " ".join("".join(words).split())


def _has_text(tokens: Sequence[Token]) -> bool:
    """Whether anything but headings and HTML comments stands in ``tokens``."""
    headings = [at for at, token in enumerate(tokens) if token.type == "heading_open"]
    skipped = {at + step for at in headings for step in range(3)}
    return any(
        at not in skipped and not (token.type == "html_block" and token.content.lstrip().startswith("<!--"))
        for at, token in enumerate(tokens)
    )


def _id(title: str | None, taken: Counter[str]) -> str:
    """The slug of ``title``; the second one of the same slug ends in ``.2``, which no slug does."""
    if title is None:
        return PREAMBLE
    slug = _slug(title)
    taken[slug] += 1
    return slug if taken[slug] == 1 else f"{slug}.{taken[slug]}"


def _slug(title: str) -> str:
    """Letters, marks and digits of any script in lower case, words joined by hyphens."""
    folded = unicodedata.normalize("NFKC", title).casefold()
    words = "".join(char if unicodedata.category(char)[0] in "LMN" else " " for char in folded)
    return "-".join(words.split()) or "section"
