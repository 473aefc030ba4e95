"""A bound on how long a search may take: some patterns take for ever on some texts.

Owns the alarm alone; what a search that was stopped comes to belongs to whoever searches.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

SECONDS = 2.0
"""What a pattern of a config or a dataset is given for one text."""


@contextlib.contextmanager
def within(error: Exception, seconds: float = SECONDS) -> Iterator[None]:
    """End what takes longer by raising ``error``; neither Ctrl-C nor an event loop ends a search in C.

    Where there is no such alarm (another thread, Windows), it is not bounded.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: object) -> None:
        raise error

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
