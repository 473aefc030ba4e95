"""The screen a run ends with."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from make_run import make_run
from rich.cells import cell_len

from evalrun.journal import RunFolder
from evalrun.reports.console import Progress, bar_text, print_json, print_run


class Stream(io.StringIO):
    """A stream of a chosen encoding that may be a terminal."""

    def __init__(self, encoding: str = "utf-8", terminal: bool = False) -> None:
        super().__init__()
        self._encoding = encoding
        self._terminal = terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return self._terminal


def screen(folder: RunFolder, width: int = 80, **how: bool) -> str:
    stream = Stream()
    print_run(folder, stream, width=width, **how)
    return stream.getvalue()


def test_screen_tells_what_there_is_to_know(quality: RunFolder) -> None:
    """Bot, judge, proof, figures, gates with reasons, the worst, the sentence and the exit code."""
    text = screen(quality)
    for part in (
        "evalrun quality · twin.v1 · 64 questions × 3 draws",
        "! same model as the bot",
        "192 answers, recorded 2026-12-02; 0 model calls, 192 replayed",
        "191 of 192: the judge read exactly what the model was given (observed)",
        "JUDGE not measured against labels",
        "decided by: at most .71 (exact limit)",
        "to hold at this rate takes 13 questions",
        "1 of 5 gates fails, 1 undecided: not safe to ship on this evidence",
        "exit 1",
        "report.html#gate-correctly_refused-out_of_corpus",
        "next:   evalrun run configs/quality.yaml --live --case single-chunk-08",
    ):
        assert part in text
    assert "estimate" not in text


@pytest.mark.parametrize("width", [80, 100, 200])
def test_tables_fit_the_width(quality: RunFolder, width: int) -> None:
    """No line but the path and the command is wider than the terminal."""
    lines = screen(quality, width).splitlines()
    wide = [line for line in lines if cell_len(line) > width and not line.startswith(("look:", "next:"))]
    assert [] == wide


def test_pipe_gets_plain_text(quality: RunFolder) -> None:
    """Without a terminal there is no escape sequence."""
    assert "\x1b" not in screen(quality)


def test_no_color(quality: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal gets colour, and none with NO_COLOR."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured, plain = Stream(terminal=True), Stream(terminal=True)
    print_run(quality, coloured)
    monkeypatch.setenv("NO_COLOR", "1")
    print_run(quality, plain)
    assert "\x1b[1;31m" in coloured.getvalue()
    assert "31m" not in plain.getvalue()


def test_ascii_terminal(hostile: RunFolder) -> None:
    """Where the stream is not UTF-8 nothing but its own characters is written."""
    stream = Stream("ascii")
    print_run(hostile, stream)
    assert stream.getvalue().isascii()
    assert "=o=" in stream.getvalue()


def test_hostile_text_is_shown_and_does_nothing(hostile: RunFolder) -> None:
    """Markup is literal, control characters are written out, and no line is forged."""
    text = screen(hostile, 200, full=True)
    assert "[bold red]markup[/bold red]" in text
    assert "\\x1b[31mred" in text
    assert not set(text) & {"\x1b", "\x00", "\x08", "\u202e"}


def test_quiet_says_the_verdict_and_where_to_look(quality: RunFolder) -> None:
    """``--quiet`` leaves the gates, what went wrong, the sentence with the exit code, and the path."""
    lines = screen(quality, quiet=True).splitlines()
    assert lines[0].startswith("GATES")
    assert lines[-2].endswith("exit 1")
    assert "WHAT THE BOT DID" not in "\n".join(lines)


def test_full_shows_every_group(quality: RunFolder) -> None:
    """``--full`` adds the figures per category."""
    assert "multi_chunk, 12 questions" in screen(quality, full=True)
    assert "multi_chunk, 12 questions" not in screen(quality)


def test_run_without_judge(tmp_path: Path) -> None:
    """Without a judge there is no judge line, no outcome and no fault."""
    text = screen(make_run(tmp_path / "r", judge=False))
    assert "judge   none" in text
    assert "JUDGE" not in text
    assert "grounded" not in text
    assert "recall@5" in text


def test_empty_category_is_no_data(tmp_path: Path) -> None:
    """A category without questions shows no figure, not 0."""
    text = screen(make_run(tmp_path / "r", sizes={"single_chunk": 8, "guardrail": 0}), full=True)
    line = text[text.index("guardrail, 0 questions") :].splitlines()[1]
    assert "–" in line
    assert "no data" in line


def test_everything_right(tmp_path: Path) -> None:
    """A run with nothing wrong has no WORST list and no next command."""
    folder = make_run(tmp_path / "r", sizes={"guardrail": 0}, faults=False, gates=False)
    assert "WORST" not in screen(folder)
    assert "next:" not in screen(folder)


def test_nothing_concluded_gives_no_next_command(tmp_path: Path) -> None:
    """Where a recording is stale the error says what to run; asking one question live would not help."""
    stale = "3 answers of 1 cases have a stale recording: a: run again with --record-missing"
    text = screen(make_run(tmp_path / "r", exit_code=4, errors=(stale,)))
    assert f"error  {stale}" in text
    assert "nothing is concluded" in text
    assert "next:" not in text


def test_json_is_the_file(quality: RunFolder) -> None:
    """``--json`` prints run.json, in ASCII too."""
    stream, narrow = Stream(), Stream("ascii")
    print_json(quality, stream)
    print_json(quality, narrow)
    assert (quality.path / "run.json").read_text("utf-8") == stream.getvalue()
    assert json.loads(stream.getvalue()) == json.loads(narrow.getvalue())
    assert narrow.getvalue().isascii()


def test_bar_marks_value_and_interval() -> None:
    """The dot is at the value, the line spans the interval, and the ends are inside the bar."""
    assert "··━━●━━····" == bar_text(0.4, 0.2, 0.6, 11)
    assert "●··········" == bar_text(0.0, None, None, 11)
    assert "·······━━━●" == bar_text(1.0, 0.7, 1.0, 11)


@pytest.fixture
def ticking() -> Callable[[], float]:
    """A clock that is a second later each time it is asked."""
    seconds = iter(range(10_000))
    return lambda: float(next(seconds))


def test_progress_in_a_log(ticking: Callable[[], float]) -> None:
    """Elsewhere than on a terminal it is a plain line now and then, and one at the end."""
    stream = Stream()
    progress = Progress(stream, every=5, clock=ticking)
    progress.start(10, 10)
    for number in range(10):
        progress.answered(ok=number != 3)
        progress.judged(ok=True)
    progress.stop()
    lines = stream.getvalue().splitlines()
    assert 2 < len(lines) < 20
    assert lines[-1].startswith("answered 9/10, judged 10/10, 1 failed, ")
    assert "left" in lines[1]


def test_the_time_left_is_told_of_more_than_one_or_two(ticking: Callable[[], float]) -> None:
    """The first answer may have waited for a model to load; a few tell more."""
    progress = Progress(Stream(), clock=ticking)
    progress.start(100, 0)
    progress.answered(ok=False)
    assert progress.line().startswith("answered 0/100, 1 failed, ")
    assert "left" not in progress.line()
    for _ in range(6):
        progress.answered(ok=True)
    assert "left" not in progress.line()
    progress.answered(ok=True)
    assert "left" in progress.line()


def test_a_terminal_that_cannot_redraw_gets_plain_lines(
    ticking: Callable[[], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would show nothing at all until the end."""
    monkeypatch.setenv("TERM", "dumb")
    stream = Stream(terminal=True)
    progress = Progress(stream, every=5, clock=ticking)
    progress.start(20, 0)
    for _ in range(10):
        progress.answered(ok=True)
    assert not progress.live
    assert stream.getvalue().startswith("answered ")
    assert "\x1b" not in stream.getvalue()


def test_progress_on_a_terminal_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal one line is redrawn and erased at the end."""
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Stream(terminal=True)
    progress = Progress(stream)
    progress.start(2, 0)
    progress.answered(ok=True)
    progress.stop()
    assert "answered" in stream.getvalue()
    assert "\x1b[2K" in stream.getvalue()
    assert "judged" not in stream.getvalue()


def test_what_is_said_aside_is_not_drawn_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The live lines are away while it is said, and are drawn below it without going up again."""
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Stream(terminal=True)
    progress = Progress(stream)
    progress.start(2, 2, lambda: "faithful .80 so far, needs >= .50")
    with progress.aside():
        stream.write("finishing what is in flight\n")
    before, _, after = stream.getvalue().partition("finishing what is in flight\n")
    progress.stop()
    assert before.rstrip("\r").endswith("\x1b[2K")
    assert "\x1b[1A" not in after.partition("answered")[0]
    assert "answered" in after


def test_progress_on_a_terminal_shows_what_the_gates_would_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Below the line of counts stands the forecast of the gates, as long as there is one."""
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Stream(terminal=True)
    progress = Progress(stream)
    progress.start(2, 2, lambda: "faithful .80 so far, needs >= .50")
    progress.answered(ok=True)
    progress.stop()
    assert "gates   faithful .80 so far, needs >= .50" in stream.getvalue()
