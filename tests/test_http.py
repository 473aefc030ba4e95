"""One client per service: deadlines, retries, rates, and waits that all keep."""

from __future__ import annotations

import asyncio
import email.utils
import time
from collections import Counter
from collections.abc import Collection

import httpx
import pytest
from aiohttp import web

from evalrun.errors import UnavailableError, UnreachableError
from evalrun.http import TOGETHER, Limits, RetryTransport, Service, Watch, retry_after
from fakes.servers import Json, scripted, serving
from known import json_of, known

QUICK = Limits(concurrency=4, timeout=60, retries=0)
WAIT = {"retry-after": "1"}


async def ok(request: web.Request) -> web.Response:
    """Answers everything."""
    return web.json_response({"answer": "ok"})


async def nobody(port_of: str = "127.0.0.1") -> str:
    """A URL where nobody listens any more."""
    async with serving(ok, port_of) as url:
        return url


async def test_a_bad_status_is_returned_and_a_dead_port_names_the_url() -> None:
    """A status is the caller's to judge; no connection is an error that says where."""
    async with serving(scripted([{"status": 404, "body": "no"}])) as url, Service("bot", url, QUICK) as bot:
        assert 404 == (await bot.call("GET", "/ask")).status_code
        assert f"{url}/ask" == bot.shown("/ask")
    url = await nobody()
    async with Service("the bot", url, QUICK) as bot:
        with pytest.raises(UnavailableError) as caught:
            await bot.call("POST", "/ask", {})
    assert f"the bot: {url}/ask: " in caught.value.message


async def test_the_port_of_a_launched_bot_is_in_no_message() -> None:
    """Its port is another one in each run, and messages stand in files that must be the same bytes."""
    url = await nobody()
    async with Service("the bot", url, QUICK, launched=True) as bot:
        with pytest.raises(UnavailableError) as caught:
            await bot.call("POST", "/ask", {})
    assert "the bot: /ask: no connection, or it broke off" == caught.value.message
    assert url in caught.value.hint
    assert "/ask" == bot.shown("/ask")


# ---------------------------------------------------------------- retries and deadlines


def response(**headers: str) -> httpx.Response:
    """A reply with these headers."""
    return httpx.Response(429, headers={name.replace("_", "-"): value for name, value in headers.items()})


def test_the_wait_is_read_in_both_forms_and_nonsense_is_no_wait() -> None:
    """Seconds, or a date; a date that is gone is no wait at all."""
    assert 7.0 == retry_after(response(retry_after="7"))
    later = retry_after(response(retry_after=email.utils.formatdate(time.time() + 30, usegmt=True)))
    assert later is not None
    assert 28 < later <= 30
    assert 0.0 == retry_after(response(retry_after="Wed, 21 Oct 2015 07:28:00 GMT"))
    assert 0.0 == retry_after(response(retry_after="Wed, 21 Oct 2015 07:28:00 -0000"))
    for text in (
        "",
        "soon",
        "-5",
        "1.5",
        "²",
        "Wed, 99 Oct 99999 07:28:00 GMT",
    ):
        assert retry_after(httpx.Response(429, headers={b"retry-after": text.encode("latin-1")})) is None


def in_turn(*waits: str) -> list[Json]:
    """A server that asks for these waits, one after the other, and then answers."""
    replies: list[Json] = [{"status": 429, "headers": {"retry-after": wait}} for wait in waits]
    return [*replies, {"status": 200, "json": {"answer": "ok"}}]


@known(
    "CC-01",
    (json_of("cc-01-retry-after-date.json")["server_in_order"], 2),
    (in_turn("Sunday, 06-Nov-94 08:49:37 GMT", "0"), 0),
    (in_turn("soon", "-5"), 0),
    (in_turn("1.5", "Wed, 99 Oct 99999 07:28:00 GMT"), 0),
)
async def test_a_wait_given_as_date_or_seconds_is_kept(given: tuple[list[Json], float]) -> None:
    """The call waits until the date, then the seconds, then has its answer; nonsense is no crash."""
    script, least = given
    at: list[float] = []

    async def handle(request: web.Request) -> web.Response:
        at.append(time.time())
        reply = script[len(at) - 1]
        headers = dict(reply.get("headers", {}))
        if headers.get("retry-after", "").startswith("<now"):
            headers["retry-after"] = email.utils.formatdate(at[0] + 2, usegmt=True)
        return web.json_response(reply.get("json", {}), status=reply["status"], headers=headers)

    async with serving(handle) as url, Service("bot", url, Limits(retries=2)) as bot:
        reply = await bot.call("POST", "/ask", {})
    assert {"answer": "ok"} == reply.json()
    assert 2 == bot.retries
    if least:  # a date has whole seconds: the wait asked for is up to one shorter than two
        assert at[1] >= int(at[0] + 2) - 0.01
        assert at[2] - at[1] >= 1


async def test_a_longer_wait_than_we_keep_is_not_shortened() -> None:
    """A server that asks for an hour is not asked after a minute: it counts as one that is not there."""
    script: list[Json] = [{"status": 429, "headers": {"retry-after": "3600"}}, {"json": {"answer": "ok"}}]
    async with serving(scripted(script)) as url, Service("bot", url, Limits(retries=2)) as bot:
        with pytest.raises(UnreachableError, match="HTTP 429: it asks to be left alone for 3600 s"):
            await bot.call("POST", "/ask", {})
        # Nor does the next call, which would have its answer, wait for a minute and then come.
        with pytest.raises(UnreachableError, match=r"HTTP 429 before: it asks to be left alone for 3[56]"):
            await asyncio.wait_for(bot.call("POST", "/ask", {}), 10)
    assert 0 == bot.retries


WORKERS = json_of("cc-02-lockstep.json")["workers"]


@known(
    "CC-02", (WORKERS, {"status": 429}), (40, {"status": 503}), (WORKERS, {"status": 429, "headers": WAIT})
)
async def test_workers_that_are_turned_away_together_do_not_come_back_together(
    given: tuple[int, Json],
) -> None:
    """The second attempts are spread over at least half of the second that they may wait; a wait that the
    server asks for is not shortened.
    """
    workers, refusal = given
    seen: dict[str, list[float]] = {}

    async def handle(request: web.Request) -> web.Response:
        times = seen.setdefault((await request.json())["worker"], [])
        times.append(time.monotonic())
        return web.json_response({}, **(refusal if len(times) == 1 else {}))

    async with serving(handle) as url, Service("bot", url, Limits(concurrency=workers, retries=1)) as bot:
        replies = await asyncio.gather(*(bot.call("POST", "/", {"worker": str(i)}) for i in range(workers)))
    assert {200} == {reply.status_code for reply in replies}
    if "headers" in refusal:
        assert all(second - first >= 1 for first, second in seen.values())
        return
    second = [times[1] for times in seen.values()]
    assert max(second) - min(second) > 0.5


@known(
    "CC-03",
    (json_of("cc-03-one-never-answers.json"), "nothing"),
    ({"rows": 5, "concurrency": 1}, "headers"),
    ({"rows": 9, "concurrency": 9}, "half a body"),
)
async def test_one_call_that_never_answers_ends_alone(given: tuple[Json, str]) -> None:
    """Its deadline ends it, unrepeated, and the others have their answers: whatever it has sent till then."""
    rows, sent = given[0]["rows"], given[1]
    asked = 0

    async def handle(request: web.Request) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        if asked != min(7, rows):
            return web.json_response({})
        reply = web.StreamResponse()
        if sent != "nothing":
            await reply.prepare(request)
        if sent == "half a body":
            await reply.write(b"{")
        await asyncio.sleep(30)
        return reply

    limits = Limits(concurrency=given[0]["concurrency"], timeout=0.7, retries=2)
    async with serving(handle) as url, Service("bot", url, limits) as bot:
        calls = (bot.call("POST", "/ask", {}) for _ in range(rows))
        replies = await asyncio.gather(*calls, return_exceptions=True)
    lost = [reply for reply in replies if isinstance(reply, UnavailableError)]
    assert 1 == len(lost)
    assert "no whole reply within 0.7 s" in str(lost[0])
    assert rows == asked


async def test_a_reply_that_trickles_is_ended_by_the_deadline() -> None:
    """A deadline is for the whole reply: a byte now and then does not push it back."""

    async def trickle(request: web.Request) -> web.StreamResponse:
        reply = web.StreamResponse()
        await reply.prepare(request)
        for _ in range(100):
            await reply.write(b" ")
            await asyncio.sleep(0.05)
        return reply

    async with serving(trickle) as url, Service("bot", url, Limits(timeout=0.3, retries=0)) as bot:
        with pytest.raises(UnavailableError, match=r"no whole reply within 0\.3 s"):
            await bot.call("GET", "/")


async def test_a_watcher_is_told_of_each_attempt_and_may_end_them() -> None:
    """Each attempt is announced; where the watcher says that it is final, no other is made."""
    begun: list[int] = []
    script: list[Json] = [{"status": 502, "headers": {"retry-after": "0"}}, {"json": {}}]
    limits = Limits(retries=2)
    async with serving(scripted(script)) as url, Service("bot", url, limits) as bot:
        watch = Watch(begin=lambda: begun.append(1), final=lambda: False)
        assert 200 == (await bot.call("POST", "/", {}, watch=watch)).status_code
    assert [1, 1] == begun
    async with serving(scripted(script)) as url, Service("bot", url, limits) as bot:
        watch = Watch(begin=lambda: begun.append(1), final=lambda: True)
        assert 502 == (await bot.call("POST", "/", {}, watch=watch)).status_code
    assert [1, 1, 1] == begun


async def test_a_service_is_asked_no_more_at_once_than_it_allows() -> None:
    """The limit holds whatever the number of tasks that ask."""
    running, most = 0, 0

    async def handle(request: web.Request) -> web.Response:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return web.json_response({})

    async with serving(handle) as url, Service("bot", url, Limits(concurrency=3)) as bot:
        await asyncio.gather(*(bot.call("POST", "/", {}) for _ in range(12)))
    assert 3 == most


async def test_a_rate_spaces_calls_out() -> None:
    """Twenty calls a second: the fifth is not before 0.2 s after the first."""
    at: list[float] = []

    async def handle(request: web.Request) -> web.Response:
        at.append(time.monotonic())
        return web.json_response({})

    async with serving(handle) as url, Service("bot", url, Limits(concurrency=8, rate=20)) as bot:
        await asyncio.gather(*(bot.call("POST", "/", {}) for _ in range(5)))
    assert max(at) - min(at) > 0.15


# ---------------------------------------------------------------- what is asked again, and when


MAY_PASS = (408, 425, 429, 500, 501, 502, 503, 504, 507, 529)
STAYS = (400, 401, 403, 404, 405, 409, 410, 413, 422, 451)


async def test_statuses_that_may_pass_are_asked_again_and_no_others() -> None:
    """Each attempt is counted; of the rest the same question would get the same reply."""
    asked: list[int] = []

    async def handle(request: web.Request) -> web.Response:
        status = int(request.path[1:])
        asked.append(status)
        again = asked.count(status) > 1
        return web.json_response({}, status=200 if again else status, headers={"retry-after": "0"})

    limits = Limits(concurrency=20, retries=2)
    async with serving(handle) as url, Service("bot", url, limits) as bot:
        calls = (bot.call("POST", f"/{status}", {}) for status in (*MAY_PASS, *STAYS))
        replies = [reply.status_code for reply in await asyncio.gather(*calls)]
    assert [*(200 for _ in MAY_PASS), *STAYS] == replies
    assert len(MAY_PASS) == bot.retries
    assert sorted((*MAY_PASS, *MAY_PASS, *STAYS)) == sorted(asked)


async def test_the_last_reply_is_returned_when_retries_run_out() -> None:
    """It says best what is wrong."""
    script: list[Json] = [{"status": 503, "headers": {"retry-after": "0"}, "body": "full"}]
    async with serving(scripted(script)) as url, Service("bot", url, Limits(retries=1)) as bot:
        reply = await bot.call("POST", "/ask", {})
    assert (503, "full", 1) == (reply.status_code, reply.text, bot.retries)


async def test_one_429_is_a_pause_for_all() -> None:
    """Nobody asks in the second that one caller was told to wait, also not those who were asked nothing yet;
    afterwards they do not come all at once.
    """
    at: list[float] = []

    async def handle(request: web.Request) -> web.Response:
        at.append(time.monotonic())
        if len(at) == 1:
            return web.json_response({}, status=429, headers={"retry-after": "1"})
        return web.json_response({})

    async with serving(handle) as url, Service("bot", url, Limits(concurrency=8, retries=1)) as bot:
        first = asyncio.create_task(bot.call("POST", "/", {}))
        while not at:  # noqa: ASYNC110  the others are to come after the reply
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        others = await asyncio.gather(*(bot.call("POST", "/", {}) for _ in range(7)))
        replies = [await first, *others]
    assert {200} == {reply.status_code for reply in replies}
    assert min(at[1:]) - at[0] >= 0.99
    assert max(at[1:]) - min(at[1:]) > 0.2
    assert (9, 1) == (len(at), bot.retries)


async def test_a_503_is_the_affair_of_one_call() -> None:
    """It may be about that one question: the others go on."""
    at: dict[str, float] = {}

    async def handle(request: web.Request) -> web.Response:
        name = (await request.json())["name"]
        first = name not in at
        at.setdefault(name, time.monotonic())
        if name == "slow" and first:
            return web.json_response({}, status=503, headers={"retry-after": "1"})
        return web.json_response({})

    async with serving(handle) as url, Service("bot", url, Limits(concurrency=4, retries=1)) as bot:
        slow = asyncio.create_task(bot.call("POST", "/", {"name": "slow"}))
        await asyncio.sleep(0.05)
        await bot.call("POST", "/", {"name": "other"})
        assert at["other"] - at["slow"] < 0.9
        assert 200 == (await slow).status_code


class AtOnce(httpx.AsyncBaseTransport):
    """Has a reply to every request at hand."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """An empty one."""
        return httpx.Response(200, request=request)


async def rounds_of(calls: int, cancelled: Collection[int] = ()) -> list[int]:
    """In which round of the event loop each of so many calls went on with its reply."""
    transport, now, seen = RetryTransport(Limits(concurrency=calls), AtOnce()), 0, list[int]()

    async def one() -> None:
        await transport.handle_async_request(httpx.Request("GET", "http://bot"))
        seen.append(now)

    tasks = [asyncio.create_task(one()) for _ in range(calls)]
    while not all(task.done() for task in tasks):
        now += 1
        await asyncio.sleep(0)
        if now == 1:
            for number in cancelled:
                tasks[number].cancel()
    return seen


async def test_of_replies_that_come_together_a_few_are_gone_on_with_at_a_time() -> None:
    """Between them the network has its turn; nobody waits for longer than that takes."""
    seen = await rounds_of(20)
    assert seen == sorted(seen)
    assert TOGETHER == max(Counter(seen).values())
    assert 20 == len(seen)
    assert -(-20 // TOGETHER) + 1 >= seen[-1] - seen[0]


async def test_who_waits_for_a_turn_and_is_gone_takes_none() -> None:
    """The others go on."""
    assert 16 == len(await rounds_of(20, cancelled=(4, 5, 6, 19)))
