"""A judge behind Amazon Bedrock's Converse API.

Owns the request and its simpler forms for models without structured output. Region, credentials and signature
belong to :mod:`evalrun.aws`, below the recording: a replay needs neither an account nor boto3.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import httpx

from evalrun.addresses import join_url
from evalrun.aws import SigningTransport, runtime_url
from evalrun.errors import UserError
from evalrun.fallback import Body, FallbackTransport, Remedy
from evalrun.models import Completion, OverHttp, model, strict
from evalrun.network import network
from evalrun.records import Message

_LIMITS = ("maxItems", "minItems", "minLength", "maxLength", "minimum", "maximum", "pattern")


@model("bedrock")
class BedrockModel(OverHttp):
    """`MODEL` is the id of a model or an inference profile. Needs `boto3`, region, credentials."""

    takes_key = False

    @staticmethod
    def url_of(base_url: str, name: str) -> str:
        """The Converse API of the model."""
        return join_url(base_url, f"model/{quote(name, safe=':')}/converse")

    @staticmethod
    def default_url(env: Mapping[str, str]) -> str | None:
        """Where the region's runtime is; None where no region is named."""
        return runtime_url(env)

    @staticmethod
    def upstream(base_url: str, concurrency: int, key_env: str | None) -> httpx.AsyncBaseTransport:
        """What connects: signed, and with simpler forms of a request that the model refuses.

        Raises:
            UserError: boto3 is missing, or it is not known where to send a request.
        """
        if not base_url:
            raise UserError("there is no address of Bedrock", "set AWS_REGION, or judge.base_url")
        signing = SigningTransport(network(base_url, concurrency), base_url, os.environ)
        return FallbackTransport(signing, REMEDIES)

    async def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any],
        temperature: float,
        seed: int,
        max_tokens: int,
        num_ctx: int,
    ) -> Completion:
        """One call of Converse, which knows neither a seed nor a window.

        Raises:
            UnavailableError: no connection, a timeout, a status other than 2xx, or no reply of a model.
        """
        shape = {"name": "verdict", "schema": json.dumps(strict(schema, without=_LIMITS))}
        body = {
            "system": [_part(turn) for turn in messages if turn.role == "system"],
            "messages": [
                {"role": turn.role, "content": [_part(turn)]} for turn in messages if turn.role != "system"
            ],
            "inferenceConfig": {"maxTokens": max_tokens, "temperature": temperature},
            "outputConfig": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": shape}}},
        }
        return await self.asked(body, "output")


def _part(turn: Message) -> dict[str, str]:
    return {"text": turn.content or "(nothing)"}  # Converse refuses an empty text


# ---------------------------------------------------------------- simpler forms


def _without(body: Body, name: str) -> Body:
    return {key: value for key, value in body.items() if key != name}


def _as_tool(body: Body) -> Body:
    """The schema as that of a tool which the model has to call."""
    schema = json.loads(body["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"])
    tool = {"name": "verdict", "description": "Takes the verdict.", "inputSchema": {"json": schema}}
    config = {"tools": [{"toolSpec": tool}], "toolChoice": {"tool": {"name": "verdict"}}}
    return _without(body, "outputConfig") | {"toolConfig": config}


def _told(body: Body) -> Body:
    """The schema as words, where the model takes no tool either."""
    schema = body["toolConfig"]["tools"][0]["toolSpec"]["inputSchema"]["json"]
    words = f"Reply with one JSON object of this JSON Schema, and nothing else:\n{json.dumps(schema)}"
    return _without(body, "toolConfig") | {"system": [*body["system"], {"text": words}]}


_FORMAT = re.compile(
    r"output_?config|text_?format|output_?format|json_?schema|structured.output", re.IGNORECASE
)
REMEDIES = (
    Remedy("toolConfig", _FORMAT, _as_tool),
    Remedy("no format", re.compile(r"tool", re.IGNORECASE), _told, after="toolConfig"),
)
