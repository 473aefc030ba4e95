"""The viewer's HTTP server: an index at ``/``, reports at ``/RUN/report.html``, comparisons at ``/diff``.

Owns who is answered and with which headers. It listens on loopback, answers GET only and its own names only,
so that no other web page can read runs through a reader's browser.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import traceback
from collections.abc import Callable

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from evalrun.comparison import compare
from evalrun.comparison.measured import read_run
from evalrun.errors import UserError
from evalrun.journal import RunFolder
from evalrun.reports import html
from evalrun.reports.comparison import page as comparison
from evalrun.view import page
from evalrun.view.listing import Runs, Unreadable

LOOPBACK = "127.0.0.1"
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def listen(port: int) -> socket.socket:
    """A listening socket on loopback; port 0 takes a free one.

    Raises:
        UserError: the port cannot be had.
    """
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise UserError(
            f"cannot listen on {LOOPBACK}:{port}: {error.strerror}",
            "name another --port, or 0 for a free one",
        ) from None


def create_app(runs: Runs, port: int) -> web.Application:
    """The viewer of ``runs``, which answers to the names that loopback has at ``port``."""

    async def index(request: web.Request) -> web.Response:
        return _page(await asyncio.to_thread(page.index_page, runs), page.policy())

    async def report(request: web.Request) -> web.Response:
        found = await asyncio.to_thread(runs.find, request.match_info["run"])
        if found is None:
            return _message(404, "No such run", "It is not in this folder, or not any more.")
        if isinstance(found, Unreadable):
            return _message(404, "This run has no report", found.wrong)
        return _page(await asyncio.to_thread(html.render, found.folder), html.policy())

    async def diff(request: web.Request) -> web.Response:
        sides = []
        for side in ("old", "new"):
            name = request.query.get(side, "")
            found = await asyncio.to_thread(runs.find, name)
            if found is None:
                told = (
                    f"'{name}' is not in this folder, or not any more." if name else f"Name the {side} run."
                )
                return _message(404, "No such run", told)
            if isinstance(found, Unreadable):
                return _message(404, "This run cannot be compared", f"{found.name}: {found.wrong}")
            sides.append(found.folder)
        try:
            return _page(await asyncio.to_thread(_compared, *sides), comparison.policy())
        except UserError as error:
            return _message(409, "These two runs cannot be compared", str(error))

    app = web.Application(middlewares=[_guarded(port)])
    app.router.add_get("/", index, allow_head=False)
    app.router.add_get(f"/{{run}}/{page.REPORT}", report, allow_head=False)
    app.router.add_get(page.DIFF, diff, allow_head=False)
    return app


def _compared(old: RunFolder, new: RunFolder) -> bytes:
    return comparison.render(compare(read_run(old), read_run(new)))


async def serve(app: web.Application, listener: socket.socket, ready: Callable[[], None]) -> None:
    """Serve until the process is told to stop; ``ready`` is called once it can be reached."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        ready()
        await stop.wait()
    finally:
        await runner.cleanup()


def _guarded(port: int) -> Middleware:
    names = {f"{name}:{port}" for name in (LOOPBACK, "localhost")}
    if port == 80:
        names |= {LOOPBACK, "localhost"}

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if [host.lower() for host in request.headers.getall("Host", [])] not in [[name] for name in names]:
            return _message(400, "This server does not answer to that name", "Open the address it printed.")
        try:
            return await handler(request)
        except web.HTTPException as error:
            return _message(error.status, error.reason, "There is an index of runs, and their reports.")
        except UserError as error:
            return _message(500, "This cannot be shown", str(error))
        except Exception:
            traceback.print_exc()
            return _message(500, "This cannot be shown", "A fault of evalrun; the console says more.")

    return guard


def _page(body: bytes, policy: str, status: int = 200) -> web.Response:
    headers = {**HEADERS, "Content-Security-Policy": f"{policy}; frame-ancestors 'none'"}
    return web.Response(body=body, status=status, content_type="text/html", charset="utf-8", headers=headers)


def _message(status: int, title: str, text: str) -> web.Response:
    return _page(page.message_page(title, text), page.policy(), status)
