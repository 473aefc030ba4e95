"""Targets made as a run makes them, before a server that a test scripts.

Owns how they are made and closed; what the server says is the test's.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from evalrun.http import Limits, Watch
from evalrun.targets import TARGETS, Setting
from evalrun.validation import Line, check
from fakes.servers import Json, serving

WATCH = Watch(begin=lambda: None, final=lambda: False)


@asynccontextmanager
async def bot(
    kind: str, reply: Any, status: int = 200, media_type: str = "application/json", **options: Any
) -> AsyncIterator[tuple[Any, list[Json]]]:
    """A target of this kind before a server that always gives this reply; and what the server was asked."""
    asked: list[Json] = []

    async def handle(request: web.Request) -> web.Response:
        body = await request.json() if request.can_read_body else None
        asked.append({"call": f"{request.method} {request.path}", "body": body, "headers": request.headers})
        text = reply if isinstance(reply, str) else json.dumps(reply)
        return web.Response(status=status, text=text, content_type=media_type)

    async with serving(handle) as url, closing(made(kind, url, **options)) as target:
        yield target, asked


def made(
    kind: str, url: str, /, folder: Path = Path(), seconds: float = 30, retries: int = 0, **options: Any
) -> Any:
    """A target of this kind, whose server, tap included, is at ``url``."""
    target = TARGETS.get(kind)
    parsed, problems = check(
        target.Options, {"kind": kind} | options, Line("config"), context={"folder": folder}
    )
    assert [] == problems
    limits = Limits(timeout=seconds, retries=retries)
    return target(parsed, Setting(url, limits, folder, tap=url, temperature=0.7))


@asynccontextmanager
async def closing(target: Any) -> AsyncIterator[Any]:
    """``target``, closed at the end."""
    try:
        yield target
    finally:
        await target.close()
