"""The commands about a cassette: what it holds, whether its lines are as they were recorded, what can go."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalrun.cli.parameters import FILE
from evalrun.cli.told import echo

if TYPE_CHECKING:
    from evalrun.records import Exchange

_SHOWN = 60


@click.group()
def cassette() -> None:
    """Look into the cassette of a CONFIG, check it, and prune it."""


@cassette.command()
@click.argument("config", type=FILE)
@click.option("--case", "cases", multiple=True, metavar="ID", help="Only the calls of this case.")
@click.option("--book", type=click.Choice(["bot", "judge"]), help="Only the calls of one of the two.")
@click.option("--full", is_flag=True, help="Show prompts and replies in full.")
def show(config: Path, cases: tuple[str, ...], book: str | None, full: bool) -> None:
    """Show the recorded calls, one a line: case, draw, turn, model, seconds, and how the reply begins."""
    from rich.text import Text

    from evalrun.cassette import BOOKS
    from evalrun.planning import load
    from evalrun.recordings import Recording
    from evalrun.reports.screen import print_lines
    from evalrun.reports.words import visible

    recording = Recording.of(load(config))
    for name in BOOKS:
        for line in recording.lines(name) if book in (None, name) else ():
            if cases and line.case not in cases:
                continue
            rows = [_row(name, line), *(_whole(line) if full else ())]
            print_lines([Text(visible(row)) for row in rows], sys.stdout, 80)


def _row(book: str, line: Exchange) -> str:
    from evalrun.reports.words import one_line
    from evalrun.wires import asked

    where = line.path if line.case is None else f"{line.case}, draw {(line.draw or 0) + 1}"
    turn = f", turn {line.turn + 1}" if line.turn else ""
    who = asked(line.path, line.request).model or line.path
    gone = f"  {line.redacted} redacted" if line.redacted else ""
    return f"{book:<5}  {where}{turn}  {who}  {line.seconds:g} s{gone}  {one_line(_said(line), _SHOWN)}"


def _said(line: Exchange) -> str:
    """What a model said; of another call that a draw made, the bot's own reply as it came."""
    from evalrun.wires import is_generation, output_of

    if is_generation(line.path):
        return output_of(line.path, line.reply).text
    return "" if line.case is None else line.reply


def _whole(line: Exchange) -> list[str]:
    import json

    from evalrun.wires import asked, is_generation

    body = json.dumps(line.request, ensure_ascii=False) if line.case is not None else ""
    texts = asked(line.path, line.request).prompt if is_generation(line.path) else (body,)
    prompt = [f"  > {row}" for text in texts for row in text.split("\n")]
    return [*prompt, *(f"  < {row}" for row in _said(line).split("\n")), ""]


@cassette.command()
@click.argument("config", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
def stats(config: Path, as_json: bool) -> None:
    """Count what is recorded: calls, questions, draws, models, tokens, seconds, size, days."""
    from evalrun.planning import load
    from evalrun.recordings import Recording, stats_of
    from evalrun.reports.screen import print_record
    from evalrun.reports.words import count, visible

    found = stats_of(Recording.of(load(config)))
    if as_json:
        print_record(found, sys.stdout)
        return
    for one in found.books:
        echo(f"{one.book:<5}  {count(one.lines, 'line')}, {one.bytes / 1024:,.0f} KiB")
        if not one.draws:
            continue
        tokens = "not counted"
        if one.prompt_tokens is not None:
            tokens = f"{one.prompt_tokens:,} read, {one.completion_tokens or 0:,} written"
        asked = f"{count(one.cases, 'question')}, {count(one.draws, 'draw')}"
        echo(f"       {asked}" + (f"; {visible(', '.join(one.models))}" if one.models else ""))
        echo(f"       tokens {tokens}; {one.seconds:,.0f} s of the model")
        if one.recorded:
            echo(f"       recorded {visible(' to '.join(dict.fromkeys(one.recorded)))}")


@cassette.command("verify")
@click.argument("config", type=FILE)
def verify_(config: Path) -> None:
    """Check every line: key and finish are those of request and reply, none is twice, all are in order.

    Exit 5 where one is not as it was recorded. A reply that holds what looks like a key is noted.
    """
    from evalrun.cassette import BOOKS
    from evalrun.errors import ProvenanceError
    from evalrun.planning import load
    from evalrun.recordings import Recording, faults_of, keys_of, redactions_of
    from evalrun.reports.words import count, visible

    recording = Recording.of(load(config))
    if faults := faults_of(recording):
        head = f"{recording.path}: {count(len(faults), 'fault')}"
        raise ProvenanceError("\n".join([head, *map(visible, faults)]), "record again: --record-missing")
    total = sum(len(recording.lines(book)) for book in BOOKS)
    echo(f"{recording.path}: every line is as it was recorded ({count(total, 'line')})")
    lines, places, asked = redactions_of(recording)
    if recording.redaction.patterns or lines:
        echo(f"redacted: {lines} {'reply' if lines == 1 else 'replies'}, in {count(places, 'place')}")
    if asked:
        echo(f"note: what cassette.redact takes out of replies stands in {count(asked, 'request')}")
    for found in keys_of(recording):
        echo(f"note: {visible(found)}; 'cassette.redact' and 'run --record-missing' take it out")


@cassette.command()
@click.argument("configs", nargs=-1, required=True, type=FILE, metavar="CONFIG...")
@click.option("--write", is_flag=True, help="Take the lines out; without it they are only told.")
def prune(configs: tuple[Path, ...], write: bool) -> None:
    """Find the lines that no draw of CONFIG asks for, by replaying it; changes nothing without --write.

    Name every config that uses the cassette: what only another one needs would go. A replay that misses
    something is exit 4, and nothing goes. Calls that are no generations, such as embeddings, stay.
    """
    import asyncio
    from contextlib import closing, nullcontext

    from evalrun import recordings
    from evalrun.errors import UserError
    from evalrun.locking import FolderLock
    from evalrun.planning import load
    from evalrun.reports.words import count, visible

    loaded = [load(path) for path in configs]
    recording, *others = [recordings.Recording.of(config) for config in loaded]
    for path, other in zip(configs[1:], others, strict=True):
        if other.path.resolve() != recording.path.resolve():
            raise UserError(f"{path}: another cassette than that of {configs[0]}", "prune one at a time")
    with closing(FolderLock(recording.path)) if write else nullcontext():
        found = recordings.prune(recording, asyncio.run(recordings.needed_by(loaded)))
        if write:
            recordings.write_pruned(recording, found)
    for one in found:
        total = len(one.dead) + len(one.kept)
        echo(f"{one.book}.jsonl: {len(one.dead)} of {count(total, 'line')} needed by no draw")
        for line in one.dead:
            echo(f"  {visible(line.case or '')}, draw {(line.draw or 0) + 1}")
    if not write and any(one.dead for one in found):
        echo("nothing was changed; --write takes them out")


ALL = (cassette,)
