"""The Bedrock judge against a server that checks each signature and takes documented fields only."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evalrun.aws import SigningTransport, region_signed, runtime_url
from evalrun.cassette import Cassette, CassetteTransport
from evalrun.errors import UnavailableError, UserError
from evalrun.models import Completion
from evalrun.models.bedrock import BedrockModel
from evalrun.network import network
from evalrun.records import Exchange, Message
from fakes.model_servers import ACCESS, REGION, SECRET, BedrockServer

SCHEMA = {
    "type": "object",
    "required": ["b", "a"],
    "properties": {
        "b": {"type": "array", "maxItems": 4, "items": {"enum": ["yes", "no"]}},
        "a": {"type": "string"},
    },
}
PROMPT = [Message(role="system", content="Judge."), Message(role="user", content="Hi")]
SAID = '{"b": ["yes"], "a": "x"}'
NAME = "eu.some-vendor.model-v1:0"
Serve = Callable[..., BedrockServer]
SETTINGS = (
    "AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
)  # fmt: skip


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> None:
    """The account that the test's server knows, and no other setting of the machine."""
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    known = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": REGION}
    known |= {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null"}
    known |= {"AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}
    for name, value in known.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers and stops them."""
    started: list[BedrockServer] = []

    def start(**how: Any) -> BedrockServer:
        server = BedrockServer(lambda body: SAID, **how)
        server.start()
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop()


def ask(url: str, name: str = NAME, messages: list[Message] = PROMPT) -> tuple[Completion, Exchange]:
    """What the judge at ``url`` replies, and what a recording would hold."""

    async def work() -> tuple[Completion, Exchange]:
        seen: list[Exchange] = []
        upstream = BedrockModel.upstream(url, 4, None)
        judge = BedrockModel(
            name, url, CassetteTransport(Cassette(None, "live"), "judge", upstream, seen.append)
        )
        reply = await judge.complete(messages, SCHEMA, 0.0, 0, 400, 8192)
        await judge.close()
        return reply, seen[0]

    return asyncio.run(work())


def test_the_request_is_signed_and_the_documented_one(serve: Serve) -> None:
    """System apart, the schema as text, closed, without what Bedrock does not enforce."""
    pytest.importorskip("botocore")
    server = serve()
    reply, line = ask(server.url)
    assert Completion(SAID, "stop", 400, 5, None) == reply
    [body] = server.bodies
    assert ([NAME], [{"text": "Judge."}]) == (server.models, body["system"])
    assert [{"role": "user", "content": [{"text": "Hi"}]}] == body["messages"]
    assert {"maxTokens": 400, "temperature": 0.0} == body["inferenceConfig"]
    schema = json.loads(body["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"])
    assert ["b", "a"] == list(schema["properties"])
    assert "maxItems" not in schema["properties"]["b"]
    stored = line.model_dump_json()
    assert not any(secret in stored for secret in (ACCESS, SECRET, "Signature"))
    assert (f"/model/{NAME}/converse", ()) == (line.path, line.adapted)


def test_the_name_of_a_profile_is_signed_as_it_is_sent(serve: Serve) -> None:
    """An ARN holds colons and a slash; the signature is over the path as the network writes it."""
    pytest.importorskip("botocore")
    name = "arn:aws:bedrock:eu-central-1:1:inference-profile/x y"
    server = serve()
    ask(server.url, name)
    assert [name] == server.models


@pytest.mark.parametrize(
    ("takes", "adapted", "text"),
    [
        (("outputConfig",), (), SAID),
        (("toolConfig",), ("toolConfig",), SAID),
        ((), ("toolConfig", "no format"), SAID),
    ],
)
def test_a_model_without_structured_output_is_asked_by_a_tool_then_in_words(
    serve: Serve, takes: tuple[str, ...], adapted: tuple[str, ...], text: str
) -> None:
    """The input of the forced tool is the verdict; the recording holds the request as it was meant."""
    pytest.importorskip("botocore")
    server = serve(takes=takes)
    reply, line = ask(server.url)
    assert (text, "stop", adapted) == (reply.text, reply.finish_reason, line.adapted)
    assert "outputConfig" in line.request
    assert ("outputConfig" in takes) == ("outputConfig" in server.bodies[0])
    assert ("JSON Schema" in json.dumps(server.bodies[0]["system"])) == (not takes)


def test_an_empty_turn_is_sent_as_words(serve: Serve) -> None:
    """A model that said nothing is asked once more; Converse refuses an empty text."""
    pytest.importorskip("botocore")
    server = serve()
    ask(
        server.url,
        messages=[*PROMPT, Message(role="assistant", content=""), Message(role="user", content="Again.")],
    )
    assert [{"text": "(nothing)"}] == server.bodies[0]["messages"][1]["content"]


def test_another_account_is_refused(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of signatures can go red: a wrong secret gives another signature."""
    pytest.importorskip("botocore")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    with pytest.raises(UnavailableError, match=r"answered 403.*signature"):
        ask(serve().url)


def test_an_api_key_needs_neither_boto3_nor_credentials(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bedrock's API keys are bearer tokens, which nothing has to sign."""
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "bedrock-key")
    monkeypatch.setitem(sys.modules, "botocore", None)
    reply, line = ask(serve(token="bedrock-key").url)
    assert SAID == reply.text
    assert "bedrock-key" not in line.model_dump_json()


def test_a_missing_extra_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge of a replay is made without boto3; only what goes to AWS needs it."""
    monkeypatch.setitem(sys.modules, "botocore", None)
    BedrockModel(NAME, "", CassetteTransport(Cassette.holding([]), "judge", None))
    with pytest.raises(UserError, match="needs boto3") as caught:
        BedrockModel.upstream("https://bedrock-runtime.eu-central-1.amazonaws.com", 1, None)
    assert caught.value.hint.startswith('pip install "boto3>=')


def test_missing_credentials_are_told(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file, no variable, no server gives any."""
    pytest.importorskip("botocore")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(UnavailableError, match="no AWS credentials"):
        ask(serve().url)


def test_the_address_follows_from_region_or_endpoint() -> None:
    """Without either there is none, and a live call says so."""
    url = "https://bedrock-runtime.us-east-1.amazonaws.com"
    assert url == runtime_url({"AWS_REGION": "us-east-1"}) == runtime_url({"AWS_DEFAULT_REGION": "us-east-1"})
    assert "http://h:1" == runtime_url({"AWS_REGION": "r", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "http://h:1"})
    assert None is runtime_url({})
    with pytest.raises(UserError, match="no address of Bedrock"):
        BedrockModel.upstream("", 1, None)


def test_a_region_is_needed_to_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint of another name does not tell it."""
    pytest.importorskip("botocore")
    monkeypatch.delenv("AWS_REGION")
    hosts = ("http://127.0.0.1:9", "https://bedrock-runtime.eu-west-1.amazonaws.com.evil.org")
    for url in hosts:
        with pytest.raises(UserError, match="no AWS region"):
            SigningTransport(network(url, 1), url, {})


def test_a_signed_request_is_known_with_its_region() -> None:
    """What the tap must sign anew."""
    signed = "AWS4-HMAC-SHA256 Credential=AKID/20260101/eu-west-1/bedrock/aws4_request, SignedHeaders=host"
    assert ("eu-west-1", None) == (region_signed(signed), region_signed("Bearer x"))
