"""Released versions of data files and the digests they are pinned to.

Owns which names are released versions (``NAME.vN.SUFFIX``) and the ``SHA256SUMS`` beside them, in the format
of ``sha256sum``. Leaves what stands in the files to others.
"""

from __future__ import annotations

import re
from pathlib import Path

from evalrun.errors import InputError, Problem, UserError
from evalrun.jsonl import write_atomically
from evalrun.textfile import lines, read_text

PINS = "SHA256SUMS"
_RELEASED = re.compile(r"(?P<stem>[^\\\n]+)\.v(?P<version>[1-9][0-9]*)(?P<suffix>\.[^.\\\n]+)\Z")
_PIN = re.compile(r"(?P<digest>[0-9a-f]{64}) [ *](?P<name>.+)\Z")


def check_pin(path: Path, digest: str) -> tuple[str, ...]:
    """Notes on the file with this digest: one where it is a released version that nobody pinned.

    Raises:
        InputError: it is a released version and no longer what was pinned, or the pins cannot be read.
    """
    if not _RELEASED.match(path.name):
        return ()
    pinned = _read(path.parent / PINS).get(path.name)
    if pinned is None:
        return (f"{path.name} is not pinned yet; 'evalrun freeze {path}' pins it",)
    if f"sha256:{pinned}" != digest:
        raise InputError(
            [
                Problem(
                    str(path),
                    f"changed since it was released: its sha256 is not the one pinned in {PINS}",
                    f"a released version stays as it is: restore it, and save the change as {_next(path)}",
                )
            ]
        )
    return ()


def pin(path: Path, digest: str) -> bool:
    """Pin a released version; False where it already is.

    Raises:
        UserError: the name is not one of a released version.
        InputError: it is pinned to another digest, or the pins cannot be read.
    """
    if not _RELEASED.match(path.name):
        raise UserError(
            f"{path.name} is not the name of a released version",
            f"rename it to {path.stem}.v1{path.suffix}; other files may change freely",
        )
    check_pin(path, digest)
    pins = _read(path.parent / PINS)
    if path.name in pins:
        return False
    pins[path.name] = digest.removeprefix("sha256:")
    text = "".join(f"{pins[name]}  {name}\n" for name in sorted(pins))
    try:
        write_atomically(path.parent / PINS, text.encode())
    except OSError as fault:
        raise UserError(f"{path.parent / PINS} cannot be written: {fault.strerror}") from None
    return True


def _next(path: Path) -> str:
    """The name of the version after this one."""
    found = _RELEASED.match(path.name)
    return f"{found['stem']}.v{int(found['version']) + 1}{found['suffix']}" if found else path.name


def _read(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    pins: dict[str, str] = {}
    problems: list[Problem] = []
    for number, line in lines(read_text(path)):
        found = _PIN.match(line)
        if found is None:
            problems.append(
                Problem(f"{path}:{number}", "not a line of sha256sum", "64 hex digits, two spaces, a name")
            )
        elif pins.setdefault(found["name"], found["digest"]) != found["digest"]:
            problems.append(
                Problem(f"{path}:{number}", f"a second digest for {found['name']}", "keep the first")
            )
    if problems:
        raise InputError(problems)
    return pins
