"""The viewer: which folders are runs, what their trend shows, and whom the server answers."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from click.testing import CliRunner
from make_run import hostile_texts, make_run

from evalrun.cli import main
from evalrun.comparison import compare
from evalrun.comparison.measured import read_run
from evalrun.digest import tagged
from evalrun.errors import UserError
from evalrun.journal import RunFolder
from evalrun.jsonl import pretty_json
from evalrun.reports import html
from evalrun.reports.comparison import page as comparison
from evalrun.view import page
from evalrun.view.listing import Finished, Runs, Unreadable
from evalrun.view.server import create_app, listen
from evalrun.view.trend import MOST, trends

SMALL = {"single_chunk": 8, "guardrail": 8}


def small_run(path: Path, started: str = "2026-12-09T12:09:00+00:00", **how: Any) -> RunFolder:
    """A run of 16 questions that started then."""
    folder = make_run(path, **{"sizes": SMALL, "draws": 1, **how})
    meta = json.loads((path / "meta.json").read_text("utf-8"))
    (path / "meta.json").write_text(json.dumps({**meta, "run": path.name, "started": started}), "utf-8")
    return folder


def finished(path: Path) -> list[Finished]:
    """The finished runs of a folder."""
    return [run for run in Runs(path).newest_first() if isinstance(run, Finished)]


def text_of(markup: bytes) -> str:
    """The words of a page, without tags."""
    return re.sub(r"\s+", " ", re.sub(r"<style>.*?</style>|<[^>]*>", " ", markup.decode(), flags=re.DOTALL))


# ---------------------------------------------------------------- which folders are runs


def test_the_newest_run_comes_first_by_its_own_start(tmp_path: Path) -> None:
    """By the moment in meta.json, time zones minded, whatever the folders are called."""
    small_run(tmp_path / "a", "2026-12-01T10:00:00+00:00")
    small_run(tmp_path / "c", "2026-12-01T10:30:00+02:00")
    small_run(tmp_path / "b", "2026-12-02T10:00:00+00:00")
    assert ["b", "a", "c"] == [run.name for run in finished(tmp_path)]


def test_what_is_no_finished_run_is_listed_with_the_reason(tmp_path: Path) -> None:
    """Half-written, broken and empty folders stand in the list; folders of other things do not."""
    small_run(tmp_path / "whole")
    for name in ("half", "torn", "nometa", "empty", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "half" / "draws.jsonl").write_bytes((tmp_path / "whole" / "draws.jsonl").read_bytes())
    (tmp_path / "torn" / "run.json").write_text('{"format": "run.v1",')
    (tmp_path / "nometa" / "run.json").write_bytes((tmp_path / "whole" / "run.json").read_bytes())
    (tmp_path / "other" / "notes.txt").write_text("")
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "whole")
    found = {run.name: run for run in Runs(tmp_path).newest_first()}
    wrong = {name: run.wrong for name, run in found.items() if isinstance(run, Unreadable)}
    assert {"whole", "half", "torn", "nometa", "empty"} == set(found)
    assert {"half", "torn", "nometa", "empty"} == set(wrong)
    assert "16 answers kept so far" in wrong["half"]
    assert wrong["torn"].startswith("run.json: Invalid JSON")
    assert "no meta.json here" in wrong["nometa"]
    shown = text_of(page.index_page(Runs(tmp_path)))
    assert "5 runs of 1 config" in shown
    assert 4 == shown.count("no result")


@pytest.mark.parametrize("started", ["", "yesterday", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00"])
def test_a_start_that_is_no_moment_stops_nothing(tmp_path: Path, started: str) -> None:
    """The run is listed all the same, by the age of its folder where need be."""
    small_run(tmp_path / "odd", started)
    small_run(tmp_path / "good")
    assert {"odd", "good"} == {run.name for run in finished(tmp_path)}
    assert b"odd" in page.index_page(Runs(tmp_path))


def test_one_run_is_an_index_of_one(tmp_path: Path) -> None:
    """A run folder itself may be named."""
    small_run(tmp_path / "1209-quality")
    runs = Runs(tmp_path / "1209-quality")
    assert runs.only
    assert not Runs(tmp_path).only
    assert ["1209-quality"] == [run.name for run in runs.newest_first()]
    assert isinstance(runs.find("1209-quality"), Finished)


def test_an_empty_folder_says_how_to_fill_it(tmp_path: Path) -> None:
    """There is a page, and it names the command."""
    assert "evalrun run CONFIG" in text_of(page.index_page(Runs(tmp_path)))


# ---------------------------------------------------------------- trends


def test_a_trend_holds_the_runs_of_one_config_oldest_first(tmp_path: Path) -> None:
    """A config run once has none; the config of the newest run comes first."""
    for day in (1, 2, 3):
        small_run(tmp_path / f"q{day}", f"2026-12-0{day}T10:00:00+00:00", seed=day)
    small_run(tmp_path / "once", "2026-12-09T10:00:00+00:00", name="redteam")
    small_run(tmp_path / "d1", "2026-12-04T10:00:00+00:00", name="drift")
    small_run(tmp_path / "d2", "2026-12-05T10:00:00+00:00", name="drift")
    made = trends(finished(tmp_path))
    assert ["drift", "quality"] == [trend.config for trend in made]
    assert ["q1", "q2", "q3"] == [run.name for run in made[1].runs]


def test_a_track_shows_the_runs_own_numbers(tmp_path: Path) -> None:
    """Value and limits are those of run.json, and stand in the table too."""
    for day in (1, 2):
        small_run(tmp_path / f"q{day}", f"2026-12-0{day}T10:00:00+00:00", seed=day)
    [trend] = trends(finished(tmp_path))
    track = next(one for one in trend.tracks if one.metric == "grounded")
    runs = [RunFolder(tmp_path / name).header for name in ("q1", "q2")]
    own = [
        (e.value, e.low, e.high) for header in runs for e in header.estimates if e.metric == "grounded"
        if e.group == "answerable"
    ]  # fmt: skip
    assert own == [point.figures for point in track.points]
    shown = text_of(page.index_page(Runs(tmp_path)))
    assert page.figures(track, track.points[0]) in shown
    assert "[" in page.figures(track, track.points[0])


def test_a_gate_on_this_list_has_no_interval(tmp_path: Path) -> None:
    """It infers nothing, and neither does its trend."""
    for day in (1, 2):
        small_run(tmp_path / f"q{day}", f"2026-12-0{day}T10:00:00+00:00")
    [trend] = trends(finished(tmp_path))
    track = next(one for one in trend.tracks if one.gate and one.gate.infer == "this_set")
    assert "recall@5" == track.metric
    assert "[" not in page.figures(track, track.points[0])
    assert 1 == len(set(track.points[0].figures))


def test_gated_numbers_come_first(tmp_path: Path) -> None:
    """In the order of the gates, each once."""
    for day in (1, 2):
        small_run(tmp_path / f"q{day}", f"2026-12-0{day}T10:00:00+00:00", sizes=None)
    [trend] = trends(finished(tmp_path))
    keys = [(track.metric, track.group) for track in trend.tracks]
    gates = [(v.gate.metric, v.gate.group) for v in trend.runs[-1].header.verdicts]
    assert gates == keys[: len(gates)]
    assert len(set(keys)) == len(keys)


def test_a_change_between_two_runs_is_named(tmp_path: Path) -> None:
    """Other questions, another judge or another config: the numbers before and after do not compare."""
    small_run(tmp_path / "1", "2026-12-01T10:00:00+00:00")
    small_run(tmp_path / "2", "2026-12-02T10:00:00+00:00")
    small_run(tmp_path / "3", "2026-12-03T10:00:00+00:00", config_digest=tagged("config", ["other"]))
    small_run(tmp_path / "4", "2026-12-04T10:00:00+00:00", sizes={"single_chunk": 9}, judge=False)
    run = json.loads((tmp_path / "4" / "run.json").read_text("utf-8"))
    run["dataset"]["digest"] = tagged("dataset", ["other"])
    (tmp_path / "4" / "run.json").write_text(json.dumps(run), "utf-8")
    [trend] = trends(finished(tmp_path))
    assert ("", "", "config changed", "other questions, another judge, config changed") == trend.changes


@pytest.mark.parametrize("how", [{"partial": "--limit 3"}, {"complete": False}, {"exit_code": 5}])
def test_a_run_that_concluded_nothing_is_in_no_trend(tmp_path: Path, how: dict[str, Any]) -> None:
    """It is counted as left out; its row in the list remains."""
    small_run(tmp_path / "1", "2026-12-01T10:00:00+00:00")
    small_run(tmp_path / "2", "2026-12-02T10:00:00+00:00", **how)
    small_run(tmp_path / "3", "2026-12-03T10:00:00+00:00")
    [trend] = trends(finished(tmp_path))
    assert ["1", "3"] == [run.name for run in trend.runs]
    assert 1 == trend.left_out
    assert "1 run left out" in text_of(page.index_page(Runs(tmp_path)))


def test_long_histories_are_bounded(tmp_path: Path) -> None:
    """The newest runs are shown, the others counted; older rows are folded, none is lost."""
    first = small_run(tmp_path / "run-00", "2026-11-01T10:00:00+00:00")
    names = [f"run-{place:02d}" for place in range(page.OPEN_RUNS + 5)]
    for place, name in enumerate(names[1:], start=1):
        (tmp_path / name).mkdir()
        meta = json.loads((first.path / "meta.json").read_text("utf-8"))
        meta["started"] = f"2026-12-01T{place // 60:02d}:{place % 60:02d}:00+00:00"
        (tmp_path / name / "meta.json").write_text(json.dumps(meta), "utf-8")
        (tmp_path / name / "run.json").write_bytes((first.path / "run.json").read_bytes())
    [trend] = trends(finished(tmp_path))
    assert names[-MOST:] == [run.name for run in trend.runs]
    assert len(names) - MOST == trend.older
    markup = page.index_page(Runs(tmp_path)).decode()
    assert "5 older runs" in markup
    assert all(f'href="/{name}/report.html"' in markup for name in names)


@pytest.mark.parametrize(
    ("how", "word"),
    [
        ({"exit_code": 1}, "fails"),
        ({"exit_code": 3}, "undecided"),
        ({"exit_code": 4}, "error"),
        ({"exit_code": 0}, "undecided"),
        ({"exit_code": 0, "judge": False}, "holds"),
        ({"exit_code": 0, "gates": False}, "no gates"),
        ({"exit_code": 0, "gates": False, "partial": "--limit 3"}, "partial"),
    ],
)
def test_the_word_of_a_run_follows_its_exit_code(tmp_path: Path, how: dict[str, Any], word: str) -> None:
    """Nothing is called a verdict that is none."""
    assert word == page.verdict(small_run(tmp_path / "run", **how).header)


# ---------------------------------------------------------------- text that is not to be trusted


def test_hostile_text_is_only_text(tmp_path: Path) -> None:
    """Names of folders, configs and datasets, notes and starts are written out, never obeyed."""
    for place, text in enumerate(hostile_texts()):
        name = text.encode("utf-8", "replace").decode().replace("/", "_").replace("\0", "_")[:60]
        small_run(tmp_path / f"{place} {name}", name=text.encode("utf-8", "replace").decode(), notes=(name,))
    markup = page.index_page(Runs(tmp_path)).decode()
    assert "<script" not in markup
    assert "<img" not in markup
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", markup)
    assert len(hostile_texts()) == markup.count('<a class="run-row"')


def test_a_name_that_is_no_utf8_is_shown_and_harms_nothing(tmp_path: Path) -> None:
    """File systems know names that no text is."""
    small_run(tmp_path / "good")
    os.mkdir(os.fsencode(tmp_path) + b"/odd-\xff")
    assert "2 runs" in text_of(page.index_page(Runs(tmp_path)))


# ---------------------------------------------------------------- the server


@asynccontextmanager
async def serving(path: Path) -> AsyncIterator[tuple[aiohttp.ClientSession, int]]:
    """The viewer of ``path`` on a free port, and a client for it."""
    listener = listen(0)
    port = listener.getsockname()[1]
    runner = web.AppRunner(create_app(Runs(path), port), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client:
            yield client, port
    finally:
        await runner.cleanup()


async def test_index_and_report_are_served_under_their_policies(tmp_path: Path) -> None:
    """The report is the one that the run's own journals make; nothing but its own script may run."""
    folder = small_run(tmp_path / "1209-quality")
    async with serving(tmp_path) as (client, _):
        index = await client.get("/")
        assert 'href="/1209-quality/report.html"' in await index.text()
        report = await client.get("/1209-quality/report.html")
        assert html.render(folder) == await report.read()
    for reply, policy in ((index, page.policy()), (report, html.policy())):
        assert 200 == reply.status
        assert "text/html; charset=utf-8" == reply.headers["Content-Type"]
        assert f"{policy}; frame-ancestors 'none'" == reply.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; ")
        assert "unsafe" not in policy
        assert "nosniff" == reply.headers["X-Content-Type-Options"]
        assert "no-store" == reply.headers["Cache-Control"]
    assert "script" not in page.policy()


async def test_two_runs_are_compared(tmp_path: Path) -> None:
    """The page is that of ``evalrun diff --html``, under its own policy; the index offers it."""
    old, new = small_run(tmp_path / "old run", seed=1), small_run(tmp_path / "new", seed=2)
    async with serving(tmp_path) as (client, _):
        index = await (await client.get("/")).text()
        reply = await client.get("/diff", params={"old": "old run", "new": "new"})
        assert comparison.render(compare(read_run(old), read_run(new))) == await reply.read()
    assert f"{comparison.policy()}; frame-ancestors 'none'" == reply.headers["Content-Security-Policy"]
    assert 'action="/diff"' in index
    assert '<option value="old run">' in index
    assert "form-action 'self'" in page.policy()


async def test_runs_that_cannot_be_compared_are_a_sentence(tmp_path: Path) -> None:
    """Names that are none: 404. Runs that asked different questions: 409, and no such pair is offered."""
    small_run(tmp_path / "a")
    header = small_run(tmp_path / "b").header
    other = header.dataset.model_copy(update={"digest": tagged("dataset", [2])})
    (tmp_path / "b" / "run.json").write_bytes(pretty_json(header.model_copy(update={"dataset": other})))
    (tmp_path / "half").mkdir()
    async with serving(tmp_path) as (client, _):
        for old, new, status, told in (
            ("a", "", 404, "Name the new run."),
            ("<b>gone", "a", 404, "&#39;&lt;b&gt;gone&#39; is not in this folder"),
            ("../a", "a", 404, "is not in this folder"),
            ("a", "half", 404, "half: not finished"),
            ("a", "b", 409, "the runs asked different datasets"),
        ):
            reply = await client.get("/diff", params={"old": old, "new": new})
            assert (status, True) == (reply.status, told in await reply.text()), (old, new)
        assert 'action="/diff"' not in await (await client.get("/")).text()


async def test_an_html_file_of_a_run_folder_is_not_served(tmp_path: Path) -> None:
    """What somebody put there in place of the report never reaches the browser."""
    small_run(tmp_path / "run")
    (tmp_path / "run" / "report.html").write_text("<script>window.__pwned = 1</script>")
    async with serving(tmp_path) as (client, _):
        assert "__pwned" not in await (await client.get("/run/report.html")).text()


async def test_a_run_that_appears_is_in_the_next_index(tmp_path: Path) -> None:
    """Each request reads the folder anew."""
    async with serving(tmp_path) as (client, _):
        assert "no run in this folder" in await (await client.get("/")).text()
        small_run(tmp_path / "new")
        assert "/new/report.html" in await (await client.get("/")).text()
        assert 200 == (await client.get("/new/report.html")).status


async def test_broken_runs_get_a_page_that_says_so(tmp_path: Path) -> None:
    """Unreadable header: 404. Journals that do not fit: 500. The server goes on."""
    for name in ("torn", "spoiled", "good"):
        small_run(tmp_path / name)
    (tmp_path / "torn" / "run.json").write_text("{")
    (tmp_path / "spoiled" / "draws.jsonl").write_text('{"no": "<b>draw</b>"}\n')
    async with serving(tmp_path) as (client, _):
        torn = await client.get("/torn/report.html")
        assert (404, True) == (torn.status, "Invalid JSON" in await torn.text())
        spoiled = await client.get("/spoiled/report.html")
        assert (500, True) == (spoiled.status, "draws.jsonl:1" in await spoiled.text())
        assert (200, 200) == ((await client.get("/")).status, (await client.get("/good/report.html")).status)


@pytest.mark.parametrize(
    "path",
    [
        "/../secret/report.html",
        "/..%2fsecret/report.html",
        "/%2e%2e/report.html",
        "/%2e%2e%2fsecret/report.html",
        "/run/../../secret/report.html",
        "/run/..%2f..%2fsecret%2freport.html",
        "/..%5csecret/report.html",
        "/%2Fetc/report.html",
        "/run%00/report.html",
        "/link/report.html",
        "/run/run.json",
        "/run/draws.jsonl",
        "/run/",
        "/run",
        "//report.html",
        "/%ff%fe/report.html",
        "/report.html",
    ],
)
async def test_no_path_leads_anywhere_else(tmp_path: Path, path: str) -> None:
    """A run outside of the folder, a link out of it, and the files of a run are out of reach."""
    small_run(tmp_path / "runs" / "run")
    small_run(tmp_path / "secret")
    (tmp_path / "runs" / "link").symlink_to(tmp_path / "secret")
    async with serving(tmp_path / "runs") as (_, port):
        status, body = await raw(port, f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}")
    assert status in (400, 404)
    assert "single-chunk-01" not in body


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PROPFIND"])
@pytest.mark.parametrize("path", ["/", "/run/report.html"])
async def test_only_get_is_answered(tmp_path: Path, method: str, path: str) -> None:
    """Nothing can be changed, so nothing else is understood."""
    small_run(tmp_path / "run")
    async with serving(tmp_path) as (_, port):
        status, _ = await raw(port, f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}")
    assert 405 == status


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        ["evil.example"],
        ["evil.example:{port}"],
        ["127.0.0.1"],
        ["127.0.0.1:1"],
        ["127.0.0.1.evil.example:{port}"],
        ["0.0.0.0:{port}"],
        ["127.0.0.1:{port}", "evil.example"],
    ],
)
async def test_other_hosts_are_refused(tmp_path: Path, hosts: list[str]) -> None:
    """A page that makes its own name point to loopback learns nothing."""
    small_run(tmp_path / "run")
    async with serving(tmp_path) as (_, port):
        lines = [f"Host: {host.format(port=port)}" for host in hosts]
        status, body = await raw(port, "GET / HTTP/1.1", *lines)
    assert 400 == status
    assert "/run/" not in body


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}"])
async def test_own_names_are_answered(tmp_path: Path, host: str) -> None:
    """However loopback is written."""
    async with serving(tmp_path) as (_, port):
        assert 200 == (await raw(port, "GET / HTTP/1.1", f"Host: {host.format(port=port)}"))[0]


async def raw(port: int, *lines: str) -> tuple[int, str]:
    """Status and all of the reply to a request written by hand, so that no client tidies it up."""
    import asyncio

    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write("\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1"))
    reply = (await asyncio.wait_for(reader.read(), 20)).decode("utf-8", "replace")
    writer.close()
    return int(reply.split()[1]), reply


# ---------------------------------------------------------------- the command


def started(*args: str) -> tuple[subprocess.Popen[str], str]:
    """``evalrun view`` as a process, and the address it prints."""
    command = [str(Path(sys.executable).with_name("evalrun")), "view", "--port", "0", "--no-open", *args]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    return process, re.findall(r"http://\S+", line)[0]


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_until_it_is_told_to_stop(tmp_path: Path, end: signal.Signals) -> None:
    """It prints its address, answers there, and ends quietly with 0, also while a browser is connected."""
    small_run(tmp_path / "run")
    process, url = started(str(tmp_path))
    port = int(url.rpartition(":")[2].strip("/"))
    with process, socket.create_connection(("127.0.0.1", port), timeout=10) as browser:
        browser.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        assert browser.recv(15).startswith(b"HTTP/1.1 200")
        process.send_signal(end)
        assert 0 == process.wait(20)
        assert process.stdout is not None
        assert "" == process.stdout.read()


def test_the_command_leads_to_the_report_of_one_run(tmp_path: Path) -> None:
    """A run named on the command line is what opens."""
    small_run(tmp_path / "12 09")
    process, url = started(str(tmp_path / "12 09"))
    with process:
        process.send_signal(signal.SIGINT)
        assert url.endswith("/12%2009/report.html")
        assert 0 == process.wait(20)


def test_a_folder_that_is_not_there_is_named() -> None:
    """The message says which command makes runs."""
    done = CliRunner().invoke(main, ["view", "nowhere", "--no-open"])
    assert 2 == done.exit_code
    assert "nowhere: there is no such folder" in done.output
    assert "evalrun run CONFIG" in done.output


def test_a_port_in_use_is_named() -> None:
    """At once, with what to do."""
    with listen(0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"127.0.0.1:{port}.*(?s:.*)--port"):
            listen(port)
