"""A chat model, or a bot that speaks as one, behind OpenAI's ``/chat/completions``.

Owns the request in that form and where its key comes from. The calls go through the tap, so that they are
recorded and replayed like those of any bot.
"""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from evalrun.addresses import BotUrl
from evalrun.errors import UserError
from evalrun.http import Service, Watch
from evalrun.network import network
from evalrun.records import Case, Context, Reply, Usage
from evalrun.redaction import secrets_of, without
from evalrun.targets import TARGETS, Offers, Setting, Target
from evalrun.targets.http import check_status
from evalrun.targets.wire import Reading, WireOptions, body_values
from evalrun.wires import output_of, with_version

_PATH = "/chat/completions"


class OpenAIOptions(WireOptions):
    """``target`` of a config for an OpenAI-compatible endpoint, such as vLLM, llama.cpp or Ollama's ``/v1``.

    The question is sent after ``system``, if there is one, and the case's history. ``key_env`` names the
    variable of the environment that holds the key; a recording replays without it. Where the endpoint
    returns what it retrieved, ``contexts`` finds it in the reply (JMESPath).
    """

    kind: Literal["openai"]
    url: Annotated[BotUrl, AfterValidator(with_version)] = "https://api.openai.com/v1"
    model: str = Field(min_length=1)
    system: str | None = None
    key_env: str | None = None
    answer: str = "choices[0].message.content"

    @property
    def offers(self) -> Offers:
        """History, a seed and sampling are part of this wire."""
        return super().offers.model_copy(update={"history": True, "seed": True, "sampling": True})

    @property
    def tapped(self) -> bool:
        """Always: evalrun makes the model call itself."""
        return True


@TARGETS("openai")
class OpenAI(Target):
    """Any OpenAI-compatible chat endpoint."""

    Options = OpenAIOptions
    is_model = True

    def __init__(self, options: OpenAIOptions, setting: Setting) -> None:
        self.offers = options.offers
        self._options = options
        self._reading = Reading.of(options)
        self._sampling = {"temperature": setting.temperature, "max_tokens": setting.max_tokens}
        headers = _headers(options.key_env)
        self._secrets = (*secrets_of(headers), *setting.secrets)
        self._service = Service(
            "the bot",
            setting.tap or setting.url,
            setting.limits,
            headers=headers,
            transport=setting.carried(lambda: network(setting.url, setting.limits.concurrency)),
            launched=bool(setting.tap),
        )

    @property
    def retries(self) -> int:
        """How many calls were made again."""
        return self._service.retries

    async def about(self) -> dict[str, Any]:
        """The model that is asked."""
        return {"model": self._options.model}

    async def close(self) -> None:
        """Close the connections."""
        await self._service.close()

    async def answer(self, case: Case, context: Context | None, seed: int, watch: Watch) -> Reply:
        """One call, not streamed."""
        system = self._options.system
        body = {
            "model": self._options.model,
            "messages": [
                *([{"role": "system", "content": system}] if system is not None else []),
                *(turn.model_dump() for turn in case.history),
                {"role": "user", "content": case.question},
            ],
            "seed": seed,
            "stream": False,
            **{name: value for name, value in self._sampling.items() if value is not None},
        }
        response = await self._service.call("POST", _PATH, body, watch=watch)
        text = without(response.text, self._secrets)
        check_status(response, text, _PATH)
        output = output_of(_PATH, text)
        return self._reading.reply(*body_values(text, "application/json")).model_copy(
            update={
                "model": self._options.model,
                "finish_reason": output.finish,
                "usage": Usage(
                    prompt_tokens=output.prompt_tokens, completion_tokens=output.completion_tokens
                ),
            }
        )


def _headers(key_env: str | None) -> dict[str, str]:
    key = os.environ.get(key_env, "").strip() if key_env else ""
    if not (key.isascii() and key.isprintable()):
        raise UserError(f"target.key_env: {key_env} holds what no key holds", "set it to the key alone")
    return {"Authorization": f"Bearer {key}"} if key else {}
