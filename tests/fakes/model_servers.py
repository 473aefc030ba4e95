"""Model servers that speak the documented wire and nothing else: OpenAI's API and Bedrock's runtime.

Owns what such a server refuses: unknown fields and paths, a wrong key, a signature that does not fit the
request. Written from the vendors' references, not from our clients.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
import zlib
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, unquote

from aiohttp import web

from fakes.servers import Json, there

Say = Callable[[Json], str]
CHAT_FIELDS = {
    "model", "messages", "temperature", "seed", "max_tokens", "max_completion_tokens", "stream",
    "stream_options", "response_format", "top_p", "stop",
}  # fmt: skip
FORMATS = ("json_schema", "json_object", "none")


class Refused(Exception):
    """What the server does not take: a status and the words of its error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class ModelServer:
    """Any of them, in a background thread. ``bodies`` keeps what was accepted, ``refused`` the rest."""

    def __init__(self) -> None:
        self.url = ""
        self.bodies: list[Json] = []
        self.refused: list[str] = []
        self._runner: web.AppRunner | None = None

    def start(self) -> str:
        """Listen on a free port; the URL without a path."""
        self.url = there(self._start())
        return self.url

    def stop(self) -> None:
        """Stop listening; the port refuses from now on."""
        if self._runner is not None:
            there(self._runner.cleanup())
            self._runner = None

    async def _start(self) -> str:
        app = web.Application(client_max_size=8 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        try:
            if request.method != "POST" or request.content_type != "application/json":
                raise Refused(405, f"{request.method} {request.content_type}")
            return await self.answer(request, json.loads(raw), raw)
        except Refused as refused:
            self.refused.append(refused.message)
            return web.json_response(self.error(refused), status=refused.status)

    async def answer(self, request: web.Request, body: Json, raw: bytes) -> web.StreamResponse:
        """The reply, or Refused."""
        raise NotImplementedError

    def error(self, refused: Refused) -> Json:
        """The body of a refusal."""
        return {"error": {"message": refused.message, "type": "invalid_request_error"}}


class OpenAIServer(ModelServer):
    """OpenAI's API: chat completions, whole and streamed, and embeddings.

    ``formats`` are the response formats it takes; ``newer``: the limit has its newer name only; ``shuffle``
    reorders the rows of embeddings, ``drop`` leaves one out.
    """

    def __init__(
        self, say: Say, *, key: str = "", formats: tuple[str, ...] = FORMATS, newer: bool = False
    ) -> None:
        super().__init__()
        self.say = say
        self.key = key
        self.formats = formats
        self.newer = newer
        self.vectors: Callable[[str], list[float]] = lambda text: [float(len(text)), 1.0, 0.0]
        self.shuffle = self.drop = self.cut = False

    async def answer(self, request: web.Request, body: Json, raw: bytes) -> web.StreamResponse:
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            raise Refused(401, "Incorrect API key provided")
        if not self.key and "authorization" in request.headers:
            raise Refused(401, "no key is wanted here")
        if request.path == "/v1/embeddings":
            return self._embeddings(body)
        if request.path != "/v1/chat/completions":
            raise Refused(404, f"unknown path {request.path}")
        self._check(body)
        self.bodies.append(body)
        text = self.say(body)
        return await self._stream(request, body, text) if body.get("stream") else self._whole(body, text)

    def _check(self, body: Json) -> None:
        if unknown := set(body) - CHAT_FIELDS:
            raise Refused(400, f"Unrecognized request argument supplied: {', '.join(sorted(unknown))}")
        if self.newer and "max_tokens" in body:
            raise Refused(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        for message in body["messages"]:
            if set(message) != {"role", "content"} or message["role"] not in ("system", "user", "assistant"):
                raise Refused(400, "Invalid value for messages")
        wanted = body.get("response_format", {"type": "none"})
        if wanted["type"] not in self.formats:
            raise Refused(400, f"'response_format.type' must be one of {self.formats}")
        if wanted["type"] == "json_schema":
            check_strict(wanted["json_schema"]["schema"], "Invalid schema for response_format")
        if wanted["type"] == "json_object" and "json" not in json.dumps(body["messages"]).lower():
            raise Refused(
                400, "'messages' must contain the word 'json' to use 'response_format' of json_object"
            )

    def _whole(self, body: Json, text: str) -> web.Response:
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": self._reason(),
        }
        return web.json_response(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 1,
                "model": body["model"],
                "choices": [choice],
                "usage": _usage(body, text),
            }
        )

    def _reason(self) -> str:
        return "length" if self.cut else "stop"

    async def _stream(self, request: web.Request, body: Json, text: str) -> web.StreamResponse:
        """Server-sent events in pieces that do not end where lines end."""
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
        deltas: list[tuple[Json, str | None]] = [({"role": "assistant", "content": ""}, None)]
        deltas += [({"content": word}, None) for word in re.findall(r"\S+\s*", text)]
        deltas += [({}, self._reason())]
        events = [
            head | {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
            for delta, reason in deltas
        ]
        if (body.get("stream_options") or {}).get("include_usage"):
            events.append(head | {"choices": [], "usage": _usage(body, text)})
        lines = [": keep-alive\r\n\r\n", *(f"data: {json.dumps(event)}\r\n\r\n" for event in events)]
        data = "".join([*lines, "data: [DONE]\r\n\r\n"]).encode()
        reply = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
        await reply.prepare(request)
        for at in range(0, len(data), 50):
            await reply.write(data[at : at + 50])
            await asyncio.sleep(0)
        return reply

    def _embeddings(self, body: Json) -> web.Response:
        if unknown := set(body) - {"model", "input", "dimensions", "encoding_format"}:
            raise Refused(400, f"Unrecognized request argument supplied: {', '.join(sorted(unknown))}")
        self.bodies.append(body)
        rows = [
            {"object": "embedding", "index": at, "embedding": self.vectors(text)[: body.get("dimensions")]}
            for at, text in enumerate(body["input"])
        ]
        rows = rows[::-1] if self.shuffle else rows
        return web.json_response({"object": "list", "data": rows[1:] if self.drop else rows, "model": "m"})


def check_strict(schema: Json, words: str) -> None:
    """What a server asks of a schema that it enforces: every object closed and whole, every value typed."""
    if "type" not in schema:
        raise Refused(400, f"{words}: schema must have a 'type' key")
    if schema["type"] == "object":
        if schema.get("additionalProperties") is not False:
            raise Refused(400, f"{words}: 'additionalProperties' is required to be false")
        if set(schema["properties"]) != set(schema["required"]):
            raise Refused(400, f"{words}: 'required' must include every key")
        for part in schema["properties"].values():
            check_strict(part, words)
    if schema["type"] == "array":
        check_strict(schema["items"], words)


def _usage(body: Json, text: str) -> Json:
    sent = sum(len(message["content"]) for message in body["messages"]) // 4 + 1
    return {"prompt_tokens": sent, "completion_tokens": len(text.split()), "total_tokens": sent}


# ---------------------------------------------------------------- Bedrock

CONVERSE_FIELDS = {
    "messages", "system", "inferenceConfig", "toolConfig", "outputConfig", "requestMetadata",
    "additionalModelRequestFields", "guardrailConfig",
}  # fmt: skip
ACCESS, SECRET, REGION = "AKIDEXAMPLE", "a secret of the test", "eu-central-1"


class BedrockServer(ModelServer):
    """Bedrock's runtime: Converse, ConverseStream, and Titan's embeddings by InvokeModel.

    ``takes`` are the ways to structured output its models have: ``outputConfig``, ``toolConfig``.
    """

    def __init__(
        self, say: Say, *, takes: tuple[str, ...] = ("outputConfig", "toolConfig"), token: str = ""
    ) -> None:
        super().__init__()
        self.say = say
        self.takes = takes
        self.token = token
        self.models: list[str] = []
        self.cut = False

    def error(self, refused: Refused) -> Json:
        return {"message": refused.message}

    async def answer(self, request: web.Request, body: Json, raw: bytes) -> web.StreamResponse:
        if self.token:
            if request.headers.get("authorization") != f"Bearer {self.token}":
                raise Refused(403, "Invalid API Key format")
        else:
            check_signature(request, raw)
        found = re.fullmatch(r"/model/([^/]+)/(converse|converse-stream|invoke)", request.rel_url.raw_path)
        if found is None:
            raise Refused(404, f"unknown operation {request.path}")
        self.models.append(unquote(found[1]))
        if found[2] == "invoke":
            return self._titan(body)
        self._check(body)
        self.bodies.append(body)
        text = self.say(body)
        if found[2] == "converse":
            return self._whole(body, text)
        return self._streamed(text)

    def _check(self, body: Json) -> None:
        if unknown := set(body) - CONVERSE_FIELDS:
            raise Refused(400, f"extraneous key [{sorted(unknown)[0]}] is not permitted")
        if set(body.get("inferenceConfig", {})) - {"maxTokens", "temperature", "topP", "stopSequences"}:
            raise Refused(400, "extraneous key in inferenceConfig is not permitted")
        for message in [*body["messages"], {"content": body.get("system", [])}]:
            for part in message["content"]:
                if set(part) != {"text"} or not part["text"].strip():
                    raise Refused(400, "The text field in the ContentBlock object is blank")
        for way in ("outputConfig", "toolConfig"):
            if way in body and way not in self.takes:
                name = {"outputConfig": "outputConfig.textFormat", "toolConfig": "tool use"}[way]
                raise Refused(400, f"This model doesn't support {name}.")
        if "outputConfig" in body:
            shape = body["outputConfig"]["textFormat"]
            if set(shape) != {"type", "structure"} or shape["type"] != "json_schema":
                raise Refused(400, "outputConfig.textFormat is malformed")
            check_strict(
                json.loads(shape["structure"]["jsonSchema"]["schema"]), "outputConfig: invalid schema"
            )
        if not all(isinstance(value, str) for value in body.get("requestMetadata", {}).values()):
            raise Refused(400, "requestMetadata holds text only")

    def _reason(self, used: bool) -> str:
        return "max_tokens" if self.cut else "tool_use" if used else "end_turn"

    def _whole(self, body: Json, text: str) -> web.Response:
        used = "toolConfig" in body
        tool: Json = (
            {"toolUse": {"toolUseId": "t", "name": "verdict", "input": json.loads(text)}} if used else {}
        )
        return web.json_response(
            {
                "output": {"message": {"role": "assistant", "content": [tool or {"text": text}]}},
                "stopReason": self._reason(used),
                "usage": {"inputTokens": 400, "outputTokens": 5, "totalTokens": 405},
                "metrics": {"latencyMs": 1},
            }
        )

    def _streamed(self, text: str) -> web.Response:
        events: list[tuple[str, Json]] = [("messageStart", {"role": "assistant"})]
        events += [
            ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": word}})
            for word in re.findall(r"\S+\s*", text)
        ]
        events += [
            ("contentBlockStop", {"contentBlockIndex": 0}),
            ("messageStop", {"stopReason": self._reason(False)}),
        ]
        usage = {"inputTokens": 400, "outputTokens": 5, "totalTokens": 405}
        events += [("metadata", {"usage": usage, "metrics": {"latencyMs": 1}})]
        return web.Response(
            body=b"".join(frame(kind, payload) for kind, payload in events),
            content_type="application/vnd.amazon.eventstream",
        )

    def _titan(self, body: Json) -> web.Response:
        if unknown := set(body) - {"inputText", "dimensions", "normalize", "embeddingTypes"}:
            raise Refused(400, f"extraneous key [{sorted(unknown)[0]}] is not permitted")
        if body.get("dimensions", 1024) not in (256, 512, 1024):
            raise Refused(400, "dimensions is not a valid enum value")
        self.bodies.append(body)
        seeds = hashlib.sha256(body["inputText"].encode()).digest()
        row = [seeds[at % 32] / 255 + 0.001 for at in range(body.get("dimensions", 1024))]
        length = sum(number * number for number in row) ** 0.5
        row = [number / length for number in row]
        return web.json_response(
            {"embedding": row, "inputTextTokenCount": 3, "embeddingsByType": {"float": row}}
        )


def frame(kind: str, payload: Any) -> bytes:
    """One frame of an event stream: lengths, checksum, headers, payload, checksum."""
    names = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + len(value).to_bytes(2, "big") + value.encode()
        for name, value in names.items()
    )
    body = json.dumps(payload).encode()
    start = (16 + len(headers) + len(body)).to_bytes(4, "big") + len(headers).to_bytes(4, "big")
    start += zlib.crc32(start).to_bytes(4, "big")
    whole = start + headers + body
    return whole + zlib.crc32(whole).to_bytes(4, "big")


def check_signature(request: web.Request, raw: bytes) -> None:
    """The request is signed with the test's key for this host, path and body, as AWS describes version 4."""
    found = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/bedrock/aws4_request, "
        r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})",
        request.headers.get("authorization", ""),
    )
    if found is None:
        raise Refused(403, "Missing Authentication Token")
    access, day, region, names, signature = found.groups()
    if (access, region) != (ACCESS, REGION):
        raise Refused(403, "The security token included in the request is invalid")
    headers = "".join(f"{name}:{request.headers[name].strip()}\n" for name in names.split(";"))
    canonical = "\n".join(
        [
            request.method,
            quote(request.rel_url.raw_path, safe="/-_.~"),
            request.rel_url.raw_query_string,
            headers,
            names,
            hashlib.sha256(raw).hexdigest(),
        ]
    )
    scope = f"{day}/{region}/bedrock/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", request.headers["x-amz-date"], scope, digest])
    key = f"AWS4{SECRET}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    if not hmac.compare_digest(signature, hmac.new(key, text.encode(), hashlib.sha256).hexdigest()):
        raise Refused(403, "The request signature we calculated does not match the signature you provided")
    if "host" not in names.split(";"):
        raise Refused(403, "'Host' must be a signed header")
