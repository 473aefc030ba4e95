"""AWS's side of a call to Bedrock: region, credentials, signature.

Owns what needs the extra ``bedrock``, and imports it only where a request really goes to AWS: a replay signs
nothing. The signature is made anew for each attempt, since it holds the time.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from typing import Any

import httpx
import yarl

from evalrun.errors import UnavailableError, UserError

BEARER = "AWS_BEARER_TOKEN_BEDROCK"
ENDPOINT = "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"
_REGION = re.compile(r"\Abedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.(?:api\.aws|amazonaws\.com(?:\.cn)?)\Z")
_SIGNED = re.compile(r"AWS4-HMAC-SHA256 Credential=[^/]*/\d{8}/([a-z0-9-]+)/bedrock/")


def runtime_url(env: Mapping[str, str]) -> str | None:
    """Base URL of Bedrock's runtime, from the endpoint or the region that environment or profile names."""
    if url := env.get(ENDPOINT):
        return url
    region = env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION") or _profile_region()
    return f"https://bedrock-runtime.{region}.amazonaws.com" if region else None


def _profile_region() -> str | None:
    try:
        found = _botocore().session.get_session().get_config_variable("region")
    except Exception:  # not installed, or a profile that is not there: the call itself will say so
        return None
    return str(found) if found else None


def region_signed(authorization: str) -> str | None:
    """The region that a signed request was signed for; None where it is no AWS signature."""
    found = _SIGNED.match(authorization)
    return found[1] if found else None


def _botocore() -> Any:
    try:
        import botocore.auth
        import botocore.awsrequest
        import botocore.session
    except ImportError:
        raise UserError(
            "calling Bedrock needs boto3, which is not installed",
            'pip install "boto3>=1.42.42"; in a clone: uv sync --extra bedrock',
        ) from None
    return botocore


class SigningTransport(httpx.AsyncBaseTransport):
    """Signs what it sends with the AWS credentials of this machine, or sends the bearer token of ``env``.

    Raises:
        UserError: boto3 is missing, or no region is known.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport, base_url: str, env: Mapping[str, str]) -> None:
        self._inner = inner
        self._token = env.get(BEARER, "").strip()
        self._credentials: Any = None
        if self._token:
            return
        self._botocore = _botocore()
        self._session = self._botocore.session.get_session()
        found = _REGION.match(httpx.URL(base_url).host)
        self._region = (
            found[1] if found else env.get("AWS_REGION") or self._session.get_config_variable("region")
        )
        if not self._region:
            raise UserError("no AWS region is known", "set AWS_REGION")

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One request, signed.

        Raises:
            UnavailableError: there are no credentials, or they could not be renewed.
        """
        await request.aread()
        if self._token:
            request.headers["authorization"] = f"Bearer {self._token}"
        else:
            # Credentials may come from a file, another program or a server.
            request.headers.update(await asyncio.to_thread(self._signature, request))
        return await self._inner.handle_async_request(request)

    def _signature(self, request: httpx.Request) -> dict[str, str]:
        try:
            if self._credentials is None:
                self._credentials = self._session.get_credentials()
            frozen = self._credentials.get_frozen_credentials() if self._credentials else None
        except Exception as fault:  # botocore's own, of many kinds
            raise UnavailableError(
                f"the AWS credentials cannot be used: {type(fault).__name__}",
                "run: aws sts get-caller-identity",
            ) from fault
        if frozen is None:
            raise UnavailableError(
                "there are no AWS credentials here",
                f"run aws configure, or set {BEARER} to an API key of Bedrock",
            )
        kept = {"content-type": request.headers.get("content-type", "application/json")}
        url = str(yarl.URL(str(request.url)))  # as the network will write it: what is signed is what is sent
        signed = self._botocore.awsrequest.AWSRequest(request.method, url, kept, request.content)
        self._botocore.auth.SigV4Auth(frozen, "bedrock", self._region).add_auth(signed)
        return dict(signed.headers.items())

    async def aclose(self) -> None:
        """Close the transport inside."""
        await self._inner.aclose()


class ResigningTransport(httpx.AsyncBaseTransport):
    """Signs anew what came signed for another host, in the region it was signed for; all else passes."""

    def __init__(self, inner: httpx.AsyncBaseTransport, base_url: str) -> None:
        self._inner = inner
        self._base_url = base_url
        self._signing: dict[str, SigningTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One request.

        Raises:
            UserError: it has to be signed, and boto3 or credentials are missing.
        """
        region = region_signed(request.headers.get("authorization", ""))
        if region is None:
            return await self._inner.handle_async_request(request)
        if region not in self._signing:
            env = {**os.environ, "AWS_REGION": region}
            self._signing[region] = SigningTransport(self._inner, self._base_url, env)
        return await self._signing[region].handle_async_request(request)

    async def aclose(self) -> None:
        """Close the transport inside."""
        await self._inner.aclose()
