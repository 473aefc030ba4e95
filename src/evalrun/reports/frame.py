"""What every HTML page of this package shares: how text is escaped, and what a browser may do with the page.

Owns the jinja environment, the package's own style and script files, and the content policy that names them
by their digests. What stands on a page belongs to the page.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from evalrun.reports import words


def environment(
    filters: Mapping[str, Callable[..., Any]] | None = None, names: Mapping[str, Any] | None = None
) -> Environment:
    """Templates that escape all text and show its control characters; ``line`` and ``words`` are in each."""
    made = Environment(
        loader=PackageLoader("evalrun.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: words.visible(value) if type(value) is str else value,
    )
    made.filters |= {"line": words.one_line, **(filters or {})}
    made.globals |= {"words": words, **(names or {})}
    return made


@cache
def own(name: str) -> Markup:
    """A style sheet or script of this package: the only text that goes into a page as it is."""
    return Markup(files("evalrun.reports").joinpath("templates", name).read_text("utf-8"))


def policy(styles: Sequence[str], scripts: Sequence[str] = (), *, forms: bool = False) -> str:
    """A browser may use these own files, named by their digests, and ask for nothing.

    ``forms``: it may send the page's forms to the server that the page came from.
    """
    allowed = f"default-src 'none'; style-src {_digests(styles)}; "
    if scripts:
        allowed += f"script-src {_digests(scripts)}; "
    return f"{allowed}img-src data:; base-uri 'none'; form-action '{'self' if forms else 'none'}'"


def _digests(names: Sequence[str]) -> str:
    found = (base64.b64encode(hashlib.sha256(own(name).encode()).digest()).decode() for name in names)
    return " ".join(f"'sha256-{digest}'" for digest in found)
