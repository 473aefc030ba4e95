"""The time before a run in which modules are imported and files are read.

Owns what Python does less of meanwhile. What is loaded is the business of each command.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Look for no garbage: what is made here stays. Nor is it looked through again during the run."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
