"""How evalrun was started, so that a command which is shown can be pasted.

Owns the words before a command of ours. Only the console shows them: a file that is kept is the same, whoever
made it.
"""

from __future__ import annotations

import os
import re

COMMANDS = (
    "accept agree cassette ci diff export freeze import init label list plan redteam report run score "
    "validate verify view"
).split()
_OURS = re.compile(rf"(?<![\w./-])(?<!uv run )evalrun (?=(?:{'|'.join(COMMANDS)})\b)")
_BY_UV = "UV_RUN_RECURSION_DEPTH"
"""Set by ``uv run``, in whose environment alone the program may be found."""


def as_started(text: str) -> str:
    """``text`` with every command of ours as it has to be typed here: behind ``uv run``, if this one was."""
    return _OURS.sub("uv run evalrun ", text) if _BY_UV in os.environ else text
