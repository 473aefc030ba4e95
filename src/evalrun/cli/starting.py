"""The commands that begin and end with files of other tools: a first project, questions in, answers out."""

from __future__ import annotations

import contextlib
import re
import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import click

from evalrun.cli.parameters import FILE, FOLDER, WRITTEN
from evalrun.cli.told import echo

if TYPE_CHECKING:
    from evalrun.importing import Imported
    from evalrun.records import Case
    from evalrun.starter import Ci, Kind

_KINDS = ("http", "openai", "command", "python", "ragbot")
_URLS = {
    "http": "http://127.0.0.1:8000",
    "openai": "http://127.0.0.1:8080/v1",
    "ragbot": "http://127.0.0.1:8765",
}
_FOR = {
    "url": ("http", "openai", "ragbot"),
    "headers": ("http",),
    "body": ("http", "command", "python"),
    "answer": ("http", "command", "python"),
    "contexts": ("http", "command", "python", "openai"),
    "model": ("openai",),
    "key_env": ("openai",),
    "command": ("command",),
    "function": ("python",),
}
_FLAGS = {"headers": "--header", "body": "--request"}
_REQUEST = 'write it like --request \'{"question": "{question}"}\''


@click.command()
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option("--target", "kind", type=click.Choice(_KINDS), help="What kind of bot it is; with --url http.")
@click.option("--url", help="http, openai, ragbot: its address. A bot behind http is asked one question.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="http: as 'X-Key=${BOT_KEY}'.")
@click.option("--request", metavar="JSON", help='What it takes: \'{"question": "{question}"}\'.')
@click.option("--answer", metavar="JMESPATH", help="Where its reply holds the answer.")
@click.option("--contexts", metavar="JMESPATH", help="Where its reply holds what was retrieved.")
@click.option("--model", help="openai: the model's name.")
@click.option("--key-env", metavar="NAME", help="openai: the variable that holds the key.")
@click.option("--command", "program", metavar="LINE", help="command: how the program is started.")
@click.option("--function", metavar="MODULE:NAME", help="python: the function, seen from DIR.")
@click.option("--judge", metavar="PROVIDER/MODEL", help="A model that reads the answers.")
@click.option("--questions", type=FILE, metavar="FILE", help="Your own, as evalrun import takes them.")
@click.option(
    "--ci",
    type=click.Choice(("github", "gitlab", "none")),
    default="github",
    show_default=True,
    help="Whose CI the jobs are for.",
)
@click.option("--name", help="What it is called (default: the folder's name).")
def init(
    folder: Path | None,
    kind: Kind | None,
    url: str | None,
    headers: tuple[str, ...],
    request: str | None,
    answer: str | None,
    contexts: str | None,
    model: str | None,
    key_env: str | None,
    program: str | None,
    function: str | None,
    judge: str | None,
    questions: Path | None,
    ci: Ci,
    name: str | None,
) -> None:
    """Write a config, ten questions and CI jobs for your bot into DIR; overwrites nothing.

    Asks on a terminal for what the options do not say. A bot behind http is asked one question, to see what
    it takes and where its reply holds the answer; with --answer it is not. With --judge its rubric is written
    too, and a label file that waits for labels.
    """
    from evalrun.starter import CONFIG, Answers, files_of, names_of, refuse_existing, write_files

    into = folder or Path()
    refuse_existing(into, names_of(ci, judge is not None))
    given = {
        "url": url,
        "headers": _pairs(headers),
        "body": _template(request),
        "answer": answer,
        "contexts": contexts,
        "model": model,
        "key_env": key_env,
        "command": _words(program or ""),
        "function": function,
    }
    by_url: Kind | None = "http" if url else None
    chosen = kind or by_url or cast("Kind", _ask("--target", "What kind of bot is it", _KINDS[0], _KINDS))
    _refuse_strange(chosen, given)
    details = given | _details(chosen, given)
    answers = Answers.model_validate(
        {"name": name or _name_of(into), "kind": chosen, "judge": judge, "ci": ci, **details}
    )
    cases = _imported(questions) if questions else None
    files = files_of(answers, cases)
    made = {parent for name in files for parent in (into / name).parents if not parent.exists()}
    written = write_files(into, files)
    _check(into / CONFIG, written, made)
    for path in written:
        echo(f"wrote {path}")
    if cases is None:
        echo("the ten questions fit any bot and tell little: put your own in their place")
    echo(f"next: evalrun run {shlex.quote(str(into / CONFIG))}")


def _ask(flag: str, text: str, default: str | None = None, choices: Sequence[str] = ()) -> str:
    """What the user types; without a terminal the option must say it."""
    from evalrun.errors import UserError

    if not sys.stdin.isatty():
        known = f": {', '.join(choices)}" if choices else ""
        raise UserError(f"{flag} is missing, and there is no terminal to ask at", f"{text.lower()}{known}")
    kind = click.Choice(choices) if choices else None
    return str(click.prompt(text, default=default, type=kind))


def _pairs(headers: Sequence[str]) -> dict[str, str]:
    from evalrun.errors import UserError
    from evalrun.redaction import secrets_of

    if wrong := [text for text in headers if "=" not in text]:
        raise UserError(
            f"--header {wrong[0]}: is not NAME=VALUE", "write it like --header 'X-Key=${BOT_KEY}'"
        )
    pairs = {name.strip(): value.strip() for name, _, value in (text.partition("=") for text in headers)}
    for name, value in pairs.items():
        if secrets_of({name: value}) and "${" not in value:
            raise UserError(
                f"--header {name}: its value looks like a key, and would stand in a file in the open",
                f"put it into a variable, and write --header '{name}=${{BOT_KEY}}'",
            )
    return pairs


def _words(line: str) -> tuple[str, ...]:
    """A command line as a shell would take it apart."""
    from evalrun.errors import UserError

    try:
        return tuple(shlex.split(line))
    except ValueError as fault:
        raise UserError(f"--command {line}: {str(fault).lower()}", "close every quote") from None


def _template(request: str | None) -> Any:
    import json

    from evalrun.digest import read_json
    from evalrun.errors import UserError

    if request is None:
        return None
    try:
        template = read_json(request)
    except ValueError as fault:
        raise UserError(f"--request: not valid JSON: {fault}", _REQUEST) from None
    if '"{question}"' not in json.dumps(template):
        raise UserError('--request: the question has no place: "{question}" is not in it', _REQUEST)
    return template


def _refuse_strange(kind: str, given: Mapping[str, Any]) -> None:
    """Options of another kind of bot are a mistake."""
    from evalrun.errors import UserError

    for option, kinds in _FOR.items():
        if given[option] and kind not in kinds:
            flag = _FLAGS.get(option, f"--{option.replace('_', '-')}")
            raise UserError(f"{flag} is not for --target {kind}", f"it is for {', '.join(kinds)}")


def _details(kind: Kind, given: Mapping[str, Any]) -> dict[str, Any]:
    """What is still to be known of a bot of this kind."""
    if kind == "command":
        line = given["command"] or _words(_ask("--command", "How is the program started"))
        return {"command": line, **_shape(given)}
    if kind == "python":
        return {
            "function": given["function"] or _ask("--function", "Which function", "bot:answer"),
            **_shape(given),
        }
    url = _address(given["url"] or _ask("--url", "At which address does it listen", _URLS[kind]))
    if kind == "http":
        return {"url": url, **_looked_at(url, given)}
    return {
        "url": url,
        "model": given["model"] or (_ask("--model", "Which model") if kind == "openai" else None),
    }


def _address(url: str) -> str:
    from evalrun.addresses import bot_url
    from evalrun.errors import UserError

    try:
        return bot_url(url)
    except ValueError as fault:
        what, _, hint = str(fault).partition(": ")
        raise UserError(f"--url {url}: {what}", hint) from None


def _shape(given: Mapping[str, Any]) -> dict[str, Any]:
    """Request and answer as they are by default, where nothing else is said."""
    return {"body": given["body"] or {"question": "{question}"}, "answer": given["answer"] or "answer"}


def _looked_at(url: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Request, answer and contexts as options say, else as one question to the bot shows, else as asked."""
    import asyncio
    import json

    from evalrun.errors import UnavailableError, UserError
    from evalrun.probing import BODIES, probe
    from evalrun.reports.words import one_line
    from evalrun.starter import from_environment

    if given["answer"]:
        return _shape(given)
    headers = {name: from_environment(text) for name, text in given["headers"].items()}
    try:
        found = asyncio.run(probe(url, headers, [given["body"]] if given["body"] else BODIES))
    except UnavailableError as error:
        hint = (
            error.hint
            or "start the bot, or say where its reply has the answer: with --answer it is not asked"
        )
        raise UnavailableError(error.message, hint) from None
    echo(f"asked {url} one question:\n  {one_line(found.reply, 300)}")
    contexts = given["contexts"] or found.contexts
    seen = (("the answer", found.answer), ("contexts", contexts))
    places = ", ".join(f"{what} at {at}" if at else f"{what} nowhere" for what, at in seen)
    echo(f"  it takes {json.dumps(found.body)}; in its reply: {places}")
    if sys.stdin.isatty():
        answer = _ask("--answer", "Where is the answer (JMESPath)", found.answer)
        contexts = _ask("--contexts", "Where is what was retrieved (- for nowhere)", contexts or "-")
        return {"body": found.body, "answer": answer, "contexts": None if contexts == "-" else contexts}
    if found.answer is None:
        raise UserError(f"{url}: nothing in its reply looks like an answer", "say where it is with --answer")
    return {"body": found.body, "answer": found.answer, "contexts": contexts}


def _name_of(folder: Path) -> str:
    """The folder's name, as the name of runs."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name).strip("-._")[:60].strip("-._")
    return name or "bot"


def _imported(path: Path) -> Sequence[Case]:
    """Questions of another file: a dataset as it is, anything else as ``evalrun import`` reads it."""
    from evalrun.dataset import load_dataset
    from evalrun.importing import import_file

    if path.suffix.lower() == ".jsonl":
        return load_dataset(path).cases
    made = import_file(path, {})
    _tell(made)
    return made.cases


def _tell(made: Imported) -> None:
    """What was read as what, and what was left behind."""
    echo("read as: " + ", ".join(f"{ours} = '{theirs}'" for ours, theirs in made.read_as.items()))
    for problem in made.left:
        echo(str(problem), err=True)


@click.command(name="import")
@click.argument("file", type=FILE)
@click.option("--map", "pairs", multiple=True, metavar="FIELD=NAME", help="Their name of a field of a case.")
@click.option("--output", type=WRITTEN, metavar="FILE", help="Default: FILE's name with .jsonl.")
def import_(file: Path, pairs: tuple[str, ...], output: Path | None) -> None:
    """Turn the questions of FILE (CSV, JSON, or a promptfoo config) into a dataset; overwrites nothing.

    What is not taken over is said with its place and the reason.
    """
    from evalrun.errors import UserError
    from evalrun.importing import import_file
    from evalrun.reports.words import count
    from evalrun.starter import lines_of, write_files

    if wrong := [text for text in pairs if "=" not in text]:
        raise UserError(f"--map {wrong[0]}: is not FIELD=NAME", "write it like --map question=Query")
    made = import_file(file, {name: theirs for name, _, theirs in (text.partition("=") for text in pairs)})
    target = output or file.with_suffix(".jsonl")
    write_files(target.parent, {target.name: lines_of(made.cases)})
    _tell(made)
    taken, left = count(len(made.cases), "question"), count(len(made.left), "thing")
    echo(f"{target}: {taken}; {left} {'was' if len(made.left) == 1 else 'were'} not taken over")


@click.command()
@click.argument("folder", metavar="RUN", type=FOLDER)
@click.option("--format", "form", type=click.Choice(["csv", "jsonl"]), default="csv", show_default=True)
@click.option("--output", type=WRITTEN, metavar="FILE", help="Default: standard output.")
def export(folder: Path, form: Literal["csv", "jsonl"], output: Path | None) -> None:
    """Print a RUN as a table, one row a draw: question, answer, contexts, verdict, scores.

    In CSV no text is a formula: an apostrophe stands before one that would be.
    """
    from evalrun.errors import UserError
    from evalrun.exporting import export as table_of
    from evalrun.journal import RunFolder

    run = RunFolder(folder)
    run.need_all()
    table = table_of(run, form)
    if output is None:
        sys.stdout.buffer.write(table)
        sys.stdout.buffer.flush()
        return
    try:
        with output.open("xb") as file:
            file.write(table)
    except OSError as error:
        raise UserError(f"{output}: cannot be written: {error.strerror}", "name another file") from None
    echo(f"wrote {output}")


def _check(config: Path, written: Sequence[Path], made: Collection[Path]) -> None:
    """What was written can be run, or it is taken away again."""
    from evalrun.errors import UserError
    from evalrun.planning import load, make_plan

    try:
        make_plan(load(config), "live")
    except UserError:
        for path in written:
            path.unlink()
        for folder in sorted(made, key=lambda path: len(path.parts), reverse=True):
            with contextlib.suppress(OSError):  # another may have put something there
                folder.rmdir()
        raise


ALL = (init, import_, export)
