"""How far a run is while it goes on: live lines on a terminal, a plain line every few seconds elsewhere.

Owns the counting of what it is told and the guess of the time left. The runner tells it; it asks nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

BAR = 24
FEW = 8
"""Of so many answers and verdicts the time left is told: of one or two it would be a guess at the first."""


class Progress:
    """Answered, judged, errors, rate and time left. Telling it costs next to nothing."""

    def __init__(
        self, stream: TextIO, every: float = 5.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        self._every = every
        self._clock = clock
        self._live: Live | None = None
        self._outlook: Callable[[], str] = str
        self._total = self._to_judge = self._answered = self._judged = self._unanswered = self._unjudged = 0
        self._began = self._told = 0.0

    @property
    def live(self) -> bool:
        """Whether there is a terminal to draw on, and so a place for what the gates would say.

        One that cannot redraw a line (``TERM=dumb``) gets plain lines, as a log does.
        """
        return self._stream.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")

    def start(self, total_draws: int, to_judge: int, outlook: Callable[[], str] = str) -> None:
        """Begin: how many answers are to come, how many are to be judged, what the gates would say."""
        self._total, self._to_judge, self._outlook = total_draws, to_judge, outlook
        self._began = self._told = self._clock()
        if self.live:
            self._draw()

    def _draw(self) -> None:
        console = Console(file=self._stream, markup=False, highlight=False, emoji=False)
        self._live = Live(console=console, get_renderable=self._drawn, refresh_per_second=4, transient=True)
        self._live.start(refresh=True)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """While something else is said, the live lines are away; else they would be drawn over it."""
        if self._live is None:
            yield
            return
        self._live.stop()
        yield
        self._draw()

    def answered(self, ok: bool) -> None:
        """One more answer, or one that failed for good."""
        self._answered += 1
        self._unanswered += not ok
        self._tell()

    def judged(self, ok: bool) -> None:
        """One more answer judged, or a reading that failed for good."""
        self._judged += 1
        self._unjudged += not ok
        self._tell()

    def stop(self) -> None:
        """End the line; what was done stays on a plain stream."""
        if self._live is not None:
            self._live.stop()
            self._live = None
        elif self._total:
            self._print()

    def _tell(self) -> None:
        if self._live is None and self._clock() - self._told >= self._every:
            self._told = self._clock()
            self._print()

    def _print(self) -> None:
        self._stream.write(self.line() + "\n")
        self._stream.flush()

    def line(self) -> str:
        """``answered 40/192, judged 36/192, 2 failed, 3.4/s, about 0:45 left``."""
        parts = [f"answered {self._answered - self._unanswered}/{self._total}"]
        if self._to_judge:
            parts.append(f"judged {self._judged - self._unjudged}/{self._to_judge}")
        parts.append(f"{self._unanswered + self._unjudged} failed")
        return ", ".join([*parts, *self._pace()])

    def _pace(self) -> list[str]:
        seconds = self._clock() - self._began
        done, planned = self._answered + self._judged, self._total + self._to_judge
        if seconds <= 0 or not done:
            return []
        pace = [f"{self._answered / seconds:.1f}/s"]
        if done < min(FEW, planned):
            return pace
        left = round(seconds / done * (planned - done))
        return [*pace, f"about {left // 60}:{left % 60:02d} left"] if left > 0 else pace

    def _drawn(self) -> Text:
        planned = self._total + self._to_judge
        full = round(BAR * (self._answered + self._judged) / planned) if planned else 0
        done, open_ = ("━", "·") if "utf" in (self._stream.encoding or "").lower() else ("=", ".")
        style = "red" if self._unanswered + self._unjudged else ""
        drawn = Text.assemble(
            (done * full, "green"), (open_ * (BAR - full), "dim"), "  ", (self.line(), style)
        )
        gates = self._outlook()
        return drawn.append(f"\ngates   {gates}", "dim") if gates else drawn
