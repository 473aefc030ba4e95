"""Modules that a config names, imported so that their decorators register scorers, targets, probes, reports.

Owns finding them, in the config's folder or in the environment, and what is said of one that cannot be
imported. What they register under which name is the business of each registry.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterator, Sequence
from importlib.machinery import PathFinder
from pathlib import Path

Fault = tuple[int, str, str]


def import_plugins(names: Sequence[str], folder: Path) -> Iterator[Fault]:
    """Import each of ``names``, ``folder`` first on the path; yields (index, message, hint) of each fault.

    A module runs when it is imported: whoever may write a config may run code here, as by ``target.launch``.
    """
    if names and str(folder.resolve()) not in sys.path:
        sys.path.insert(0, str(folder.resolve()))
    for index, name in enumerate(names):
        if fault := _import(name, folder.resolve()):
            yield index, *fault


def _import(name: str, folder: Path) -> tuple[str, str] | None:
    top = name.partition(".")[0]
    if (shadowed := _shadowed(top, folder)) is not None:
        return f"'{top}' is another module here, {shadowed}", "call yours something else"
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            return f"there is no module '{error.name}' in {folder} or in this environment", ""
        return _failed(name, folder, error)
    except (Exception, SystemExit) as error:
        return _failed(name, folder, error)
    return None


def _shadowed(top: str, folder: Path) -> str | None:
    """Where the module of this name comes from, if it is loaded already and not the one in ``folder``."""
    ours, loaded = PathFinder.find_spec(top, [str(folder)]), sys.modules.get(top)
    spec = getattr(loaded, "__spec__", None)
    if ours is None or spec is None or spec.origin == ours.origin:
        return None
    return str(spec.origin)


def _failed(name: str, folder: Path, error: BaseException) -> tuple[str, str]:
    message = f"{name} cannot be imported: {_place(error, folder)}{type(error).__name__}: {error}"
    return message, "mend it, or leave it out"


def _place(error: BaseException, folder: Path) -> str:
    """``file:line: `` of the last place in the user's own files, where there is one."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_shown(Path(error.filename), folder)}:{error.lineno}: "
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(folder)]
    return f"{_shown(Path(own[-1].filename), folder)}:{own[-1].lineno}: " if own else ""


def _shown(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else path.name
