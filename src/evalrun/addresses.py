"""Addresses of bots and servers: what is one, how a path is joined to it, and which of them are this machine.

Owns the text of a URL alone; nothing here connects.
"""

from __future__ import annotations

import ipaddress
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator


def bot_url(url: str) -> str:
    """The address of a bot, without a slash at its end.

    Raises:
        ValueError: it is none; says why, and what one looks like.
    """
    if not is_address(url):
        raise ValueError(f"is not the address of a bot, {_lacking(url)}: write it like http://127.0.0.1:8000")
    if "@" in urlsplit(url).netloc:
        raise ValueError('holds a name and a password: give them as headers: {Authorization: "${BOT_KEY}"}')
    return url.rstrip("/")


BotUrl = Annotated[str, AfterValidator(bot_url)]
"""Where a bot listens: with its scheme, and without a slash at the end."""


def url_path(path: str) -> str:
    """A path below an address, as it is.

    Raises:
        ValueError: no request can hold it.
    """
    if not is_address(join_url("http://127.0.0.1", path)):
        raise ValueError("is not a path: write it like /ask")
    return path


UrlPath = Annotated[str, AfterValidator(url_path)]
"""What is asked of a server, below its address."""


def is_address(url: str) -> bool:
    """Whether ``url`` names a server and a path or query there, and no more."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return usable and not any(mark.isspace() or mark in "#\\" for mark in url) and _connectable(url)


def _connectable(url: str) -> bool:
    """Whether the client of every call can read it: 256.1.1.1 is no host, NUL stands in no path."""
    from httpx import URL, InvalidURL

    try:
        return bool(URL(url).raw_host)
    except (InvalidURL, UnicodeError):
        return False


def _lacking(url: str) -> str:
    """Why a text is no address, in words without a colon."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        return "it does not begin with http or https"
    if scheme not in ("http", "https"):
        return f"'{scheme}' is neither http nor https"
    if any(mark.isspace() for mark in url):
        return "it holds a space"
    for mark in "#\\":
        if mark in url:
            return f"it holds a {mark}"
    if not url.isprintable():
        return "it holds a character that cannot be shown"
    if not rest.strip("/"):
        return "it names no server"
    try:
        port = urlsplit(url).port
    except ValueError:
        port = 0
    return "its port is no number from 1 to 65535" if port == 0 else "its host is none that can be called"


def is_loopback(url: str) -> bool:
    """Whether ``url`` names this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def join_url(base: str, path: str) -> str:
    """``base`` and ``path`` with exactly one slash between; a path and a query of the base are kept."""
    root, _, always = base.partition("?")
    rest, _, query = path.partition("?")
    url = f"{root.rstrip('/')}/{rest.lstrip('/')}" if rest else root.rstrip("/")
    asked = "&".join(filter(None, (always, query)))
    return f"{url}?{asked}" if asked else url


def shown_url(url: str) -> str:
    """``url`` as messages show it: a query may hold a key."""
    return url.partition("?")[0]
