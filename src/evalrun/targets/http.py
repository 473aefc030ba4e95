"""Any bot that answers a JSON request with JSON, NDJSON or server-sent events.

Owns the request over HTTP, its headers, and that no secret comes back in a text. What is put into a
body and found in a reply belongs to ``wire``.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import httpx
from pydantic import AfterValidator, Field, field_serializer, field_validator

from evalrun.addresses import BotUrl, UrlPath
from evalrun.http import Service, Watch, refusal
from evalrun.network import network
from evalrun.provenance import Rule
from evalrun.records import Case, Context, Reply
from evalrun.redaction import secrets_of, shown_values, without
from evalrun.targets import TARGETS, Setting, Target
from evalrun.targets.wire import BotOptions, Reading, body_values, filled, slot_faults, values_of
from evalrun.wires import charset_of, text_of

_FRAMING = ("content-length", "transfer-encoding")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def _header_name(name: str) -> str:
    if not _TOKEN.fullmatch(name):
        raise ValueError("is not the name of a header: letters, digits and - are")
    if name.lower() in _FRAMING:
        raise ValueError("is said by evalrun itself, which writes the body: leave it out")
    return name


def _header_value(text: str) -> str:
    """Without space around it, which a server leaves out too; a key read from a file may end with a line."""
    text = text.strip()
    if not text.isascii() or not text.replace("\t", " ").isprintable():
        raise ValueError("holds what no header can hold, a line break or a letter beyond ASCII")
    return text


HeaderName = Annotated[str, AfterValidator(_header_name)]
HeaderValue = Annotated[str, AfterValidator(_header_value)]


class HttpOptions(BotOptions):
    """``target`` of a config for an HTTP bot.

    ``body`` is JSON in which the strings ``"{question}"``, ``"{history}"`` and ``"{seed}"`` are replaced by
    the values, never by text in text. ``answer`` and ``contexts`` are JMESPath expressions on the reply;
    contexts give strings, or objects with ``id`` and ``text``. Of a reply in NDJSON or server-sent events
    the texts at ``answer`` are joined, and the last list at ``contexts`` counts. ``headers`` take keys from
    the environment, as in ``Authorization: "Bearer ${BOT_KEY}"``.
    """

    kind: Literal["http"]
    url: BotUrl | None = Field(default=None, repr=False)
    path: UrlPath = Field(default="", repr=False)
    method: Literal["POST", "GET", "PUT"] = "POST"
    headers: dict[HeaderName, HeaderValue] = Field(default_factory=dict, repr=False)
    body: Any = Field(default_factory=lambda: {"question": "{question}"}, repr=False)

    @field_validator("body")
    @classmethod
    def _asks(cls, body: Any) -> Any:
        if faults := slot_faults(body):
            raise ValueError("; ".join(faults))
        return body

    @property
    def template(self) -> Any:
        """The body."""
        return self.body

    @field_serializer("headers")
    def _without_secrets(self, headers: dict[str, str]) -> dict[str, str]:
        return shown_values(headers)


@TARGETS("http")
class Http(Target):
    """A bot behind one URL."""

    Options = HttpOptions

    def __init__(self, options: HttpOptions, setting: Setting) -> None:
        self.offers = options.offers
        self._options = options
        self._reading = Reading.of(options)
        self._secrets = (*secrets_of(options.headers), *setting.secrets)
        self._service = Service(
            "the bot",
            setting.url,
            setting.limits,
            headers=options.headers,
            transport=setting.carried(lambda: network(setting.url, setting.limits.concurrency)),
            launched=setting.launched,
        )

    @property
    def rule(self) -> Rule:
        """What proves a draw."""
        return self._options.rule

    @property
    def retries(self) -> int:
        """How many calls were made again."""
        return self._service.retries

    async def close(self) -> None:
        """Close the connections."""
        await self._service.close()

    async def answer(self, case: Case, context: Context | None, seed: int, watch: Watch) -> Reply:
        """One request, one answer."""
        body = filled(self._options.body, values_of(case, seed))
        response = await self._service.call(self._options.method, self._options.path, body, watch=watch)
        kind = response.headers.get("content-type", "")
        media_type = kind.partition(";")[0].strip().lower()
        said = text_of(response.content, "", charset_of(kind))
        text = without(said, self._secrets)
        check_status(response, text, self._service.shown(self._options.path))
        return self._reading.reply(*body_values(text, media_type))


def check_status(response: httpx.Response, text: str, where: str) -> None:
    """Nothing but a 2xx is an answer.

    Raises:
        UnavailableError: it is another; shows the beginning of ``text``.
        UnreachableError: one that says nobody is there.
    """
    if not 200 <= response.status_code < 300:
        raise refusal(response)(f"{where}: HTTP {response.status_code}: {text[:200]}")
