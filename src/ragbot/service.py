"""The HTTP service: a chat for people, and under ``--trace`` the two calls a grader makes.

Owns routes, what a stranger may send, and which status an error gets; ``answer`` does the answering.
Without ``--trace`` no prompt leaves this process and there is no retrieval endpoint.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, StreamingResponse
from starlette.exceptions import HTTPException

from ragbot import answer
from ragbot.answer import Twin
from ragbot.contract import AnswerRequest, ChatRequest, Context, Problem, Reply, RetrieveRequest
from ragbot.errors import ModelError, QuestionError, RagbotError
from ragbot.guard import Guard
from ragbot.models import Warmable
from ragbot.page import load_page

# Not FastAPI's "model", which would give an error the media type of the answer that it stands for.
_ERROR = {"content": {"application/json": {"schema": Problem.model_json_schema()}}}
REFUSED: dict[int | str, dict[str, Any]] = {
    400: _ERROR | {"description": "Not for this server, or no JSON"},
    403: _ERROR | {"description": "From a page of another origin"},
    413: _ERROR | {"description": "The body is too long"},
    431: _ERROR | {"description": "The headers are too long"},
}
"""What any call may be answered with instead."""
FAILED: dict[int | str, dict[str, Any]] = {
    422: _ERROR | {"description": "Not a body of this call, or a question that cannot be answered"},
    500: _ERROR | {"description": "The index does not fit the embedder"},
    502: _ERROR | {"description": "The model server gave no whole answer"},
}
"""And a call with a body."""
_EVENT = {
    "type": "object",
    "properties": {"event": {"enum": ["sources", "token", "done", "error"]}, "data": {"type": "string"}},
    "required": ["event", "data"],
}
STREAMED: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {"schema": _EVENT}}}}
"""The schema is that of each event; its ``data`` is JSON."""


class Events(StreamingResponse):
    """Server-sent events."""

    media_type = "text/event-stream"


def create_app(twin: Twin, *, host: str = "127.0.0.1", trace: bool = False) -> FastAPI:
    """The service of ``twin`` on ``host``; ``trace`` opens ``/retrieve`` and ``/answer``."""

    @asynccontextmanager
    async def living(app: FastAPI) -> AsyncIterator[None]:
        _warm(twin)
        yield
        await twin.model.close()

    app = FastAPI(
        title="ragbot",
        version=_version(),
        lifespan=living,
        responses=REFUSED,
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
    )
    app.add_exception_handler(RagbotError, _error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_middleware(Guard, host=host)
    _add_info(app, twin, trace)
    _add_chat(app, twin)
    if trace:
        _add_trace(app, twin)
    return app


def _warm(twin: Twin) -> None:
    """Load what a question needs before any can be asked; done beside them it would hold up all."""
    for provider in (twin.embedder, twin.model):
        with suppress(Exception):  # the first question says what is wrong
            if isinstance(provider, Warmable):
                provider.warm()


def _add_info(app: FastAPI, twin: Twin, trace: bool) -> None:
    @app.get("/healthz")
    async def healthz() -> dict[str, bool]:
        return {"ready": True}

    @app.get("/about")
    async def about() -> dict[str, Any]:
        return {
            "name": twin.name,
            "version": _version(),
            "corpus": twin.index.profile,
            "chunks": len(twin.index.chunks),
            "embedder": {"name": twin.index.embedder, "dims": twin.index.dims},
            "prompt": answer.template_digest(),
            "model": twin.model.name,
            "k": twin.k,
            "trace": trace,
        }


def _add_chat(app: FastAPI, twin: Twin) -> None:
    html, policy = load_page()

    @app.get("/", response_class=HTMLResponse)
    async def page() -> HTMLResponse:
        return HTMLResponse(html, headers={"content-security-policy": policy})

    @app.post("/chat", response_class=Events, responses=FAILED | STREAMED)
    async def chat(request: ChatRequest) -> Events:
        parts = answer.chat(twin, request)
        # Retrieval comes before the first byte, so that its errors have a status of their own.
        context = await anext(parts)
        return Events(_events(context, parts), headers={"cache-control": "no-store"})


async def _events(
    context: Context | str | Reply, parts: AsyncGenerator[Context | str | Reply]
) -> AsyncGenerator[str]:
    """Server-sent events: ``sources``, ``token`` …, then ``done`` or ``error``."""
    async with aclosing(parts):
        yield _event(context)
        try:
            async for part in parts:
                yield _event(part)
        except RagbotError as error:
            yield _sse("error", {"error": error.message})


def _event(part: Context | str | Reply) -> str:
    if isinstance(part, str):
        return _sse("token", {"text": part})
    if isinstance(part, Context):
        return _sse("sources", part.model_dump())
    done = part.model_dump(include={"answer", "model", "finish_reason", "usage"})
    return _sse("done", done | {"no_information": answer.declines(part.answer)})


def _sse(name: str, data: Any) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


def _add_trace(app: FastAPI, twin: Twin) -> None:
    @app.post("/retrieve", responses=FAILED)
    async def retrieve(request: RetrieveRequest) -> Context:
        return await answer.retrieve(twin, request)

    @app.post("/answer", responses=FAILED)
    async def reply(request: AnswerRequest) -> Reply:
        return await answer.answer(twin, request)


async def _error(request: Request, error: Exception) -> JSONResponse:
    """422 for a question, 502 for a model server, 500 for the rest; the message alone."""
    assert isinstance(error, RagbotError)
    status = 502 if isinstance(error, ModelError) else 422 if isinstance(error, QuestionError) else 500
    return JSONResponse({"error": error.message}, status)


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    """What is wrong with a body, field by field, without repeating the body."""
    assert isinstance(error, RequestValidationError)
    problems = [f"{'.'.join(map(str, one['loc'][1:])) or 'body'}: {one['msg']}" for one in error.errors()]
    return JSONResponse({"error": "; ".join(problems)[:1000]}, 422)


async def _refused(request: Request, error: Exception) -> JSONResponse:
    """No such path or method, or a body that cannot be read."""
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


def _version() -> str:
    try:
        return version("evalrun")
    except PackageNotFoundError:
        return "unknown"
