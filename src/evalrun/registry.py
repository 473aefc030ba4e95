"""Named factories: how scorers, targets, models, rubric shapes, probes and reports are found.

Owns name → factory, ``name@k`` specs and the nearest-name hint. What a factory makes is the business of the
package that registers it.
"""

from __future__ import annotations

import difflib
import importlib.util
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from evalrun.errors import UserError

T = TypeVar("T")
_SPEC = re.compile(r"(?P<name>[a-z][a-z0-9_]*)(?:@(?P<k>[1-9][0-9]*))?\Z")


class UnknownName(UserError):
    """A name that nothing is registered under."""


def nearest(name: str, known: Iterable[str]) -> str:
    """``did you mean 'x'?`` or an empty string."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean '{found[0]}'?" if found else ""


def parse_spec(spec: str) -> tuple[str, int | None]:
    """``recall@5`` → ``("recall", 5)``; ``mrr`` → ``("mrr", None)``.

    Raises:
        UserError: the text is not a name, or not ``name@k`` with k a positive whole number.
    """
    found = _SPEC.match(spec)
    if found is None:
        raise UserError(f"'{spec}' is not a name, or name@k with k from 1", "write it like recall@5 or mrr")
    return found["name"], int(found["k"]) if found["k"] else None


class Registry(Generic[T]):
    """One open folder: ``package`` is imported when a name is first asked for.

    Where the folder has a module of that name, it is that module alone.
    """

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self._package = package
        self._factories: dict[str, T] = {}
        self._loaded = False

    def __call__(self, name: str) -> Callable[[T], T]:
        """Decorator that registers a factory under ``name``."""

        def register(factory: T) -> T:
            if not str(getattr(factory, "__module__", "")).startswith(f"{self._package}."):
                self.load()  # a plugin must not take a name before it is given
            if name in self._factories and self._factories[name] is not factory:
                raise ValueError(f"{self.kind} '{name}' is registered twice")
            self._factories[name] = factory
            return factory

        return register

    def load(self) -> None:
        """Import every module of the folder once, so that its decorators have run."""
        if self._loaded:
            return
        self._loaded = True
        package = importlib.import_module(self._package)
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{self._package}.{module.name}")

    def _load_namesake(self, name: str) -> bool:
        """Import the module called ``name``, if there is one; whether that registered the name."""
        module = f"{self._package}.{name}"
        if name.isidentifier() and importlib.util.find_spec(module) is not None:
            importlib.import_module(module)
        return name in self._factories

    def names(self) -> list[str]:
        """Every registered name, sorted."""
        self.load()
        return sorted(self._factories)

    def __iter__(self) -> Iterator[tuple[str, T]]:
        self.load()
        return iter(sorted(self._factories.items(), key=lambda item: item[0]))

    def get(self, name: str) -> T:
        """The factory of ``name``.

        Raises:
            UnknownName: nothing is registered under it; the hint names the nearest.
        """
        if name not in self._factories and not self._load_namesake(name):
            self.load()
        if name not in self._factories:
            known = ", ".join(self.names())
            raise UnknownName(
                f"unknown {self.kind} '{name}'", nearest(name, self._factories) or f"known: {known}"
            )
        return self._factories[name]
