"""The HTTP service: a chat for people, and under ``--trace`` the two calls a grader makes.

Owns routes, what a stranger may send, and which status an error gets; ``answer`` does the answering.
Without ``--trace`` no prompt leaves this process and there is no retrieval endpoint.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from ragbot import answer
from ragbot.answer import Twin
from ragbot.contract import AnswerRequest, Context, Reply, RetrieveRequest
from ragbot.errors import ModelError, QuestionError, RagbotError


def create_app(twin: Twin, *, trace: bool = False) -> FastAPI:
    """The service of ``twin``; ``trace`` opens ``/retrieve`` and ``/answer``."""

    @asynccontextmanager
    async def closing(app: FastAPI) -> AsyncIterator[None]:
        yield
        await twin.model.close()

    app = FastAPI(lifespan=closing, openapi_url=None)
    app.add_exception_handler(RagbotError, _error)
    app.add_exception_handler(RequestValidationError, _invalid)
    _add_info(app, twin, trace)
    if trace:
        _add_trace(app, twin)
    return app


def _add_info(app: FastAPI, twin: Twin, trace: bool) -> None:
    @app.get("/healthz")
    async def healthz() -> dict[str, bool]:
        return {"ready": True}

    @app.get("/about")
    async def about() -> dict[str, Any]:
        return {
            "version": _version(),
            "corpus": twin.index.profile,
            "chunks": len(twin.index.chunks),
            "embedder": {"name": twin.index.embedder, "dims": twin.index.dims},
            "prompt": answer.template_digest(),
            "model": twin.model.name,
            "k": twin.k,
            "trace": trace,
        }


def _add_trace(app: FastAPI, twin: Twin) -> None:
    @app.post("/retrieve")
    async def retrieve(request: RetrieveRequest) -> Context:
        return await answer.retrieve(twin, request)

    @app.post("/answer")
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


def _version() -> str:
    try:
        return version("evalrun")
    except PackageNotFoundError:
        return "unknown"
