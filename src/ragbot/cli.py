"""The commands ``ragbot index``, ``ragbot serve`` and ``ragbot ask``.

Owns options and what is printed; each command imports what it needs inside its body, so that ``--help``
imports click alone.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import socket

    from ragbot.answer import Twin
    from ragbot.contract import ChatRequest
    from ragbot.errors import RagbotError
    from ragbot.models import Embedder
    from ragbot.profile import Profile

PROFILE = "data/corpus/profile.md"


class _Group(click.Group):
    """Shows an error of ours without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        # httpx's own command line, which imports rich and pygments, goes unused here; httpx can do without.
        sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
        try:
            return super().invoke(ctx)
        except Exception as error:
            if type(error).__module__ != "ragbot.errors":
                raise
            _fail(error)  # type: ignore[arg-type]


def _fail(error: RagbotError) -> None:
    click.echo(f"error: {_printable(str(error))}", err=True)
    if detail := getattr(error, "detail", ""):
        click.echo(f"    detail: {detail!r}", err=True)
    raise SystemExit(4 if type(error).__name__ == "ModelError" else 2)


def _common(command: Callable[..., None]) -> Callable[..., None]:
    """The options every command has."""
    for option in (
        click.option("--profile", type=click.Path(path_type=Path), default=PROFILE, show_default=True),
        click.option(
            "--embedder",
            envvar="RAGBOT_EMBEDDER",
            default="wordllama",
            show_default=True,
            help="wordllama, or ollama/MODEL, openai/MODEL[@DIMENSIONS], bedrock/MODEL[@DIMENSIONS].",
        ),
    ):
        command = option(command)
    return command


def _answering(command: Callable[..., None]) -> Callable[..., None]:
    """The options of commands that answer."""
    for option in (
        click.option("--build", is_flag=True, help="Build the index, or rebuild it where it is stale."),
        click.option(
            "--k", type=click.IntRange(1, 100), default=5, show_default=True, help="Sections an answer."
        ),
        click.option(
            "--model",
            envvar="RAGBOT_MODEL",
            default="qwen2.5-coder:1.5b",
            show_default=True,
            help="At Ollama, or openai/MODEL, or bedrock/MODEL.",
        ),
    ):
        command = option(command)
    return command


@click.group(cls=_Group)
@click.version_option(package_name="evalrun", prog_name="ragbot")
def main() -> None:
    """A digital twin that answers from one Markdown profile."""


@main.command()
@_common
def index(profile: Path, embedder: str) -> None:
    """Build the index of a profile and list its sections."""
    from ragbot.index import build, index_path, save
    from ragbot.models import embedder as open_embedder

    found = _read(profile)
    save(build(found, open_embedder(embedder)), index_path(profile))
    for section in found.sections:
        click.echo(f"{section.id}\t{_printable(section.title)}")
    click.echo(f"{len(found.sections)} sections -> {index_path(profile)}", err=True)


@main.command()
@_common
@_answering
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0: a free one.")
@click.option("--trace", is_flag=True, help="Open /retrieve and /answer, which show contexts and prompts.")
def serve(
    profile: Path, embedder: str, build: bool, k: int, model: str, host: str, port: int, trace: bool
) -> None:
    """Serve the chat page and its API."""
    _single_thread()
    listener = _listen(host, port)
    if host not in ("127.0.0.1", "::1", "localhost"):
        shown = " and read its prompts" if trace else ""
        click.echo(f"warning: whoever reaches {host} can ask this twin{shown}", err=True)
    gc.disable()  # what is loaded stays: nothing of it is garbage
    try:
        from ragbot.connection import server
        from ragbot.service import create_app

        app = create_app(_twin(profile, embedder, build, k, model), host=host, trace=trace)
    finally:
        gc.freeze()
        gc.enable()
    click.echo(f"ragbot answers on {_url(host, listener.getsockname()[1])}", err=True)
    server(app).run(sockets=[listener])


@main.command()
@_common
@_answering
@click.argument("question")
def ask(question: str, profile: Path, embedder: str, build: bool, k: int, model: str) -> None:
    """Ask one question; the answer comes as it is made, then its sources."""
    import asyncio

    _single_thread()
    asyncio.run(_ask(_twin(profile, embedder, build, k, model), question))


async def _ask(twin: Twin, question: str) -> None:
    from contextlib import aclosing

    from ragbot.answer import chat
    from ragbot.contract import Context, Reply

    try:
        async with aclosing(chat(twin, _request(question))) as parts:
            async for part in parts:
                if isinstance(part, Context):
                    context = part
                elif isinstance(part, Reply):
                    click.echo(" [cut at its length limit]" if part.finish_reason == "length" else "")
                else:
                    click.echo(_printable(part), nl=False)
    finally:
        await twin.model.close()
    click.echo(f"\nsources: {', '.join(_printable(id) for id in context.ids)}", err=True)


def _request(question: str) -> ChatRequest:
    from pydantic import ValidationError

    from ragbot.contract import ChatRequest
    from ragbot.errors import QuestionError

    try:
        return ChatRequest(question=question)
    except ValidationError as error:
        problem = error.errors()[0]["msg"]
        raise QuestionError(f"the question cannot be asked: {problem}") from error


def _printable(text: str) -> str:
    """``text`` without the control characters that could drive a terminal."""
    return "".join(char for char in text if char.isprintable() or char in "\n\t")


def _url(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _listen(host: str, port: int) -> socket.socket:
    """Taken first: a port in use is told at once, and early callers wait instead of being refused."""
    import socket

    from ragbot.errors import RagbotError

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        where = _url(host, port)
        raise RagbotError(f"cannot listen on {where}: {error.strerror}", "choose another --port") from error


def _twin(profile: Path, embedder: str, build: bool, k: int, model: str) -> Twin:
    from ragbot.answer import WINDOW, Twin, crowded
    from ragbot.models import chat_model
    from ragbot.models import embedder as open_embedder

    found, embedding = _read(profile), open_embedder(embedder)
    twin = Twin(_index(found, profile, embedding, build), embedding, chat_model(model), k, found.name)
    if crowded(twin):
        click.echo(
            f"warning: the {k} longest sections may not fit the model's window of {WINDOW} tokens;"
            " split them, or lower --k",
            err=True,
        )
    return twin


def _index(found: Profile, profile: Path, embedder: Embedder, may_build: bool) -> Any:
    """The stored index where it is fresh; a new one where ``may_build``.

    Raises:
        RagbotError: it is stale or missing, and may not be built.
    """
    from ragbot.errors import RagbotError
    from ragbot.index import REBUILD, build, index_path, load, save, stale

    try:
        stored = load(index_path(profile))
        if changed := stale(stored, found, embedder):
            raise RagbotError(f"the index of {profile} is stale: {changed}", REBUILD)
        return stored
    except RagbotError:
        if not may_build:
            raise
    fresh = build(found, embedder)
    save(fresh, index_path(profile))
    return fresh


def _read(path: Path) -> Profile:
    from ragbot.profile import read_profile

    profile = read_profile(path)
    for warning in profile.warnings:
        click.echo(f"warning: {_printable(warning)}", err=True)
    return profile


def _single_thread() -> None:
    """Before numpy is imported: one thread for BLAS, the vectors are small. What embeds gives way soon."""
    sys.setswitchinterval(0.001)  # seconds; of 5 ms for each thread that embeds, streams would stutter
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


if __name__ == "__main__":
    main()
