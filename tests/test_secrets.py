"""The owner's keys: wherever a config puts one, and whatever repeats it, no file and no screen holds it."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from click.testing import CliRunner

from evalrun.cli import main
from evalrun.journal import RunFolder
from evalrun.planning import load
from evalrun.process import Process
from evalrun.redaction import HIDDEN, secrets_of, without
from fakes.servers import Json, there

KEY = "sk-s3cr3t-0123456789"
TOKEN = "tok-another.s3cr3t"
FORMS = (KEY, TOKEN, KEY[:8], TOKEN[:8], KEY[-8:])
"""Keys, and what is left of them where a text is cut."""


class Repeating:
    """A bot, and a model server, that repeats all it was sent: in answers, contexts and errors."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.port = there(self._start())

    async def _start(self) -> int:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return int(self._runner.addresses[0][1])

    def stop(self) -> None:
        there(self._runner.cleanup())

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.text()
        sent = f"{request.path_qs} {dict(request.headers)} {body}"
        self.seen.append(sent)
        if "FAIL" in body:
            return web.json_response({"error": sent}, status=400)
        if "ODD" in body:
            return web.json_response({"nothing": sent, sent: 1})
        if "PLAIN" in body:
            return web.Response(text=sent)
        if "DROP" in body:
            assert request.transport is not None
            request.transport.close()
        message = {"role": "assistant", "content": f"I was sent {sent}"}
        return web.json_response(
            {
                "answer": f"I was sent {sent}",
                "contexts": [sent],
                "choices": [{"message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 9, "completion_tokens": 9},
            }
        )


@pytest.fixture
def bot() -> Any:
    """A server that repeats."""
    made = Repeating()
    yield made
    made.stop()


def questions(folder: Path) -> None:
    """One question for each way to repeat."""
    rows: list[Json] = [
        {"id": word.lower(), "question": f"{word} is asked", "category": "c"}
        for word in ("ANSWER", "FAIL", "ODD", "PLAIN", "DROP")
    ]
    (folder / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def sinks(folder: Path, config: Path, *options: str) -> dict[str, str]:
    """Everything that a run, its reports and the commands about it write or print, by where."""
    run = str(folder / "run")
    commands = (
        ["run", str(config), *options, "--output", run],
        ["report", run, "--full"],
        ["report", run, "--json"],
        ["report", run, "--annotations", "github"],
        ["export", run],
        ["export", run, "--format", "jsonl"],
        ["verify", run],
        ["validate", str(config)],
        ["plan", str(config)],
    )
    found: dict[str, str] = {}
    for command in commands:
        result = CliRunner().invoke(main, command)
        assert 70 != result.exit_code, (command, result.output)
        found[" ".join(command[:1])] = result.output + repr(result.exception)
    for path in folder.rglob("*"):
        if path.is_file() and path not in (config, folder / "q.jsonl"):
            found[str(path.relative_to(folder))] = path.read_bytes().decode("utf-8", "replace")
    written = ("draws.jsonl", "run.json", "meta.json", "report.html", "junit.xml", "summary.md")
    assert {f"run/{name}" for name in written} <= set(found)
    assert 5 == len(list(RunFolder(Path(run)).draws()))
    return found


def leaks(found: dict[str, str]) -> list[str]:
    """Where a key stands, in any of its forms."""
    return [f"{where}: {form}" for where, text in found.items() for form in FORMS if form in text]


@pytest.mark.parametrize("kind", ["launch", "command"])
def test_a_key_in_the_environment_of_a_bot_is_hidden(kind: str, tmp_path: Path) -> None:
    """Its name says what it is, as that of a header does, though it stands in the config itself."""
    (tmp_path / "bot.py").write_text(TELLING[kind])
    env = "{OPENAI_API_KEY: FAKE-own-key-7719, MODE: plain-mode-7719}"
    command = "[python, bot.py, '{port}']"
    target = {
        "launch": f"{{kind: http, launch: {{command: {command}, env: {env}}}}}",
        "command": f"{{kind: command, command: [python, bot.py], env: {env}}}",
    }
    config = tmp_path / "c.yaml"
    config.write_text(
        f"name: c\ndataset: q.jsonl\nprovenance: none\nscorers: [refusal_rule]\ntarget: {target[kind]}\n"
    )
    questions(tmp_path)
    found = {where: text for where, text in sinks(tmp_path, config, "--live").items() if where != "bot.py"}
    assert [] == [where for where, text in found.items() if "FAKE-own-key-7719" in text]
    assert "I know [hidden] and plain-mode-7719" in found["run/draws.jsonl"]


SAYING = "f\"I know {os.environ['OPENAI_API_KEY']} and {os.environ['MODE']}\""
TELLING = {
    "command": f"""
import json, os, sys
for line in sys.stdin:
    print(json.dumps({{"id": json.loads(line)["id"], "answer": {SAYING}}}), flush=True)
""",
    "launch": f"""
import json, os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Bot(BaseHTTPRequestHandler):
    def do_GET(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        said = json.dumps({{"answer": {SAYING}}}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)
    do_POST = do_GET
HTTPServer(("127.0.0.1", int(sys.argv[1])), Bot).serve_forever()
""",
}
BARE = '{question: "{question}"}'
PLACES = {
    "header": ("127.0.0.1:{port}", "/ask", '{Authorization: "Bearer ${BOT_KEY}"}', BARE),
    "odd header": ("127.0.0.1:{port}", "/ask", '{X-Custom: "${BOT_TOKEN}"}', BARE),
    "body": ("127.0.0.1:{port}", "/ask", "{}", '{question: "{question}", auth: ["${BOT_KEY}"]}'),
    "query": ("127.0.0.1:{port}", "/ask?api_key=${BOT_KEY}&k=1", "{}", BARE),
    "path": ("127.0.0.1:{port}", "/v/${BOT_TOKEN}/ask", "{}", BARE),
    "plain name": ("127.0.0.1:{port}", "/ask?k=${BOT_KEY}", "{}", BARE),
    "base path": ("127.0.0.1:{port}/v/${BOT_TOKEN}", "/ask", "{}", BARE),
}
"""Where a config may put a key: address, path, headers, body."""
SETTING = """\
name: c
dataset: q.jsonl
draws: 1
provenance: claimed
scorers: [refusal_rule, novel_terms]
target:
  kind: http
  url: 'http://URL'
  path: 'PATH'
  headers: HEADERS
  body: BODY
  contexts: contexts
  k: 1
  limits: {retries: 0, timeout: 20}
"""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("at", ["nothing", "bot"])
def test_no_key_of_a_config_reaches_any_sink(
    place: str, at: str, bot: Repeating, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bot gets it and repeats it; run folder, cassette, reports, screens and errors do not have it."""
    monkeypatch.setenv("BOT_KEY", KEY)
    monkeypatch.setenv("BOT_TOKEN", TOKEN)
    url, path, headers, body = PLACES[place]
    questions(tmp_path)
    text = SETTING.replace("URL", url.replace("{port}", str(bot.port))).replace("PATH", path)
    text = text.replace("HEADERS", headers).replace("BODY", body)
    text += "cassette: {path: cassette, at: bot}\n" if at == "bot" else ""
    (tmp_path / "c.yaml").write_text(text)
    found = sinks(tmp_path, tmp_path / "c.yaml", "--record" if at == "bot" else "--live")
    assert any(form in sent for sent in bot.seen for form in FORMS)
    assert [] == leaks(found)
    assert HIDDEN in found["run/draws.jsonl"]


@pytest.mark.parametrize("who", ["bot", "judge"])
def test_a_key_that_a_model_repeats_is_not_recorded(
    who: str, bot: Repeating, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model server puts its caller's key into replies and errors; the cassette and the run hold neither."""
    monkeypatch.setenv("MODEL_ACCESS", KEY)
    questions(tmp_path)
    url = f"http://127.0.0.1:{bot.port}"
    target = (
        f"{{kind: openai, url: '{url}', model: m, key_env: MODEL_ACCESS, limits: {{retries: 0}}}}"
        if who == "bot"
        else f"{{kind: http, url: '{url}', path: /ask, contexts: contexts, k: 1, limits: {{retries: 0}}}}"
    )
    judge = (
        f"judge: {{model: openai/j, base_url: '{url}', key_env: MODEL_ACCESS, rubric: r.yaml}}\n"
        "scorers: [faithful]\nprovenance: claimed\n"
        if who == "judge"
        else "scorers: [refusal_rule]\nprovenance: none\n"
    )
    rubric = Path(__file__).parents[1] / "configs" / "rubrics" / "claims.yaml"
    (tmp_path / "r.yaml").write_bytes(rubric.read_bytes())
    (tmp_path / "c.yaml").write_text(
        f"name: c\ndataset: q.jsonl\ndraws: 1\ntarget: {target}\n{judge}cassette: {{path: cassette}}\n"
    )
    found = sinks(tmp_path, tmp_path / "c.yaml", "--record")
    assert any(KEY in sent for sent in bot.seen)
    assert any(name.startswith("cassette/") for name in found)
    assert [] == leaks(found)


def test_last_words_hold_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that dies printing its environment, and a bot that does, are shown without their keys."""
    monkeypatch.setenv("PROGRAM_KEY", KEY)
    monkeypatch.setenv("INHERITED_TOKEN", TOKEN)
    dies = "import os,sys; sys.stderr.write(repr(dict(os.environ))); sys.stderr.flush(); sys.exit(3)"
    (tmp_path / "dies.py").write_text(dies)
    (tmp_path / "q.jsonl").write_text('{"id": "a", "question": "Why?", "category": "c"}\n')
    command = f'command: [{json.dumps(sys.executable)}, dies.py], env: {{OWN_KEY: "${{PROGRAM_KEY}}"}}'
    told = command.replace("dies.py", 'dies.py, "{port}"')
    head = "name: c\ndataset: q.jsonl\ndraws: 1\nprovenance: none\nscorers: [refusal_rule]\n"
    for target in (
        f"{{kind: command, {command}, limits: {{retries: 0}}}}",
        f"{{kind: http, launch: {{{told}}}}}",
    ):
        (tmp_path / "c.yaml").write_text(f"{head}target: {target}\n")
        output = str(tmp_path / target[7:11])
        result = CliRunner().invoke(main, ["run", str(tmp_path / "c.yaml"), "--live", "--output", output])
        assert "OWN_KEY" in result.output
        assert [] == leaks({"screen": result.output})
        assert HIDDEN in result.output


@pytest.mark.parametrize("before", range(24))
def test_no_half_of_a_key_is_left_where_a_text_is_cut(before: int) -> None:
    """What a program wrote last is kept to some bytes; these may begin anywhere."""
    command = [sys.executable, "-c", f"import os; print('x' + os.environ['A_KEY'] * 900 + 'y' * {before})"]

    async def words() -> str:
        process = await Process.start(command, {"A_KEY": KEY}, Path.cwd(), what="it")
        await process.wait()
        await process.drained()
        await process.stop()
        return process.last_words()

    told = asyncio.run(words())
    assert HIDDEN in told
    assert [] == [KEY[at : at + 4] for at in range(len(KEY) - 3) if KEY[at : at + 4] in told]


@pytest.mark.parametrize("before", range(0, 40, 8))
@pytest.mark.parametrize("kind", ["python", "command"])
def test_no_half_of_a_key_is_left_of_a_wrong_reply(
    kind: str, before: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message shows the beginning of what a bot said."""
    monkeypatch.setenv("BOT_KEY", KEY)
    said = f"{'z' * before}{KEY}"
    name = f"said_after_{before}"
    (tmp_path / f"{name}.py").write_text(
        f"import json, sys\ndef answer(question, key):\n    return {{'nothing': {said!r}}}\n"
        "if __name__ == '__main__':\n    for line in sys.stdin:\n"
        "        found = answer(0, 0) | {'id': json.loads(line)['id']}\n"
        "        print(json.dumps(found), flush=True)\n"
    )
    (tmp_path / "q.jsonl").write_text('{"id": "a", "question": "Why?", "category": "c"}\n')
    slots = '{question: "{question}", key: "${BOT_KEY}"}'
    target = (
        f"{{kind: python, function: '{name}:answer', args: {slots}}}"
        if kind == "python"
        else f"{{kind: command, command: [{json.dumps(sys.executable)}, {name}.py], body: {slots}}}"
    )
    (tmp_path / "c.yaml").write_text(
        f"name: c\ndataset: q.jsonl\ndraws: 1\nprovenance: none\nscorers: [refusal_rule]\ntarget: {target}\n"
    )
    output = tmp_path / "run"
    CliRunner().invoke(main, ["run", str(tmp_path / "c.yaml"), "--live", "--output", str(output)])
    draws = (output / "draws.jsonl").read_text()
    assert "no text at 'answer'" in draws
    assert "z" * before + HIDDEN[:1] in draws
    assert [] == leaks({"draws": draws})


def test_no_repr_shows_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a traceback or a log would print of a config with a key in every place."""
    monkeypatch.setenv("BOT_KEY", KEY)
    (tmp_path / "q.jsonl").write_text('{"id": "a", "question": "Why?", "category": "c"}\n')
    (tmp_path / "c.yaml").write_text(
        "name: c\ndataset: q.jsonl\nprovenance: none\nscorers: [refusal_rule]\ntarget:\n  kind: http\n"
        '  url: "http://127.0.0.1:1/${BOT_KEY}"\n  path: "/ask?key=${BOT_KEY}"\n'
        '  headers: {X-Key: "${BOT_KEY}"}\n  body: {question: "{question}", key: "${BOT_KEY}"}\n'
    )
    config = load(tmp_path / "c.yaml")
    assert KEY in config.secrets
    assert KEY in config.target.options.body["key"]
    for shown in (repr(config), str(config), repr(config.target), repr(config.target.options)):
        assert KEY not in shown


def test_words_of_keys() -> None:
    """By the names that say so; hidden however they are escaped, a longer one first."""
    assert (KEY,) == secrets_of({"authorization": f"Bearer {KEY}", "accept": "application/json"})[-1:]
    assert HIDDEN == without("ab%2Bcd%3D%3D", ("ab+cd==",))
    assert f"{HIDDEN} {HIDDEN}" == without("abcdef abcdefghi", ("abcdef", "abcdefghi"))
