"""When a service is plainly down, so that a run stops asking it and says what it has not asked.

Owns the count and its words. What counts as nobody being there is decided by :mod:`evalrun.network`; what a
run does then, by the pipeline.
"""

from __future__ import annotations

import time

FAILURES = 5
"""Calls in a row, each with all its retries."""


class Circuit:
    """Opens where so many calls, one after the other, found nobody; it does not close again.

    Calls that fail together count once: of a hundred in flight a short break takes all, and says no more than
    one of them.
    """

    def __init__(self, name: str) -> None:
        self.down = ""
        """What it has come to, in words; empty while the service is worth asking."""
        self._name = name
        self._failures = 0
        self._last = 0.0

    def tried(self, begun: float, unreachable: str) -> None:
        """A call has ended that was begun at ``begun`` (``time.perf_counter``).

        ``unreachable``: why nobody was there; empty where somebody was.
        """
        if not unreachable:
            self._failures = 0
        elif begun >= self._last:
            self._failures += 1
            self._last = time.perf_counter()
        if self._failures >= FAILURES and not self.down:
            self.down = f"{self._name} is down, nobody was there {FAILURES} times in a row: {unreachable}"
