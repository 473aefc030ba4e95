"""What an installation of the wheel alone holds: every package with its size, and none that an extra brings.

Run by ``nox -s wheel`` as ``python tests/installed_sizes.py SITE_PACKAGES``; exit 1 where an extra leaked in.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NAME = "evalrun"


def named(found: Iterable[Distribution]) -> dict[str, Distribution]:
    """Name → distribution."""
    return {canonicalize_name(one.metadata["Name"]): one for one in found}


def required(distribution: Distribution, extra: str = "") -> set[str]:
    """What a distribution needs, or what it needs for an extra beside that."""
    lines = map(Requirement, distribution.requires or ())
    return {canonicalize_name(line.name) for line in lines if applies(line, extra)}


def applies(line: Requirement, extra: str) -> bool:
    """Whether a requirement is one of the extra (``""``: of none)."""
    if line.marker is None or line.marker.evaluate({"extra": ""}):
        return not extra
    return bool(extra) and line.marker.evaluate({"extra": extra})


def reached(names: Iterable[str], known: Mapping[str, Distribution]) -> set[str]:
    """The packages, and all that these need in turn, as far as they are known."""
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += required(known[name]) if name in known else ()
    return found


def leaked(base: Mapping[str, Distribution], known: Mapping[str, Distribution]) -> list[str]:
    """The packages of ``base`` that only an extra asks for; ``known`` has the extras installed."""
    own = base[NAME]
    extras = [str(extra) for extra in own.metadata.get_all("Provides-Extra") or ()]
    asked = set().union(*(required(own, extra) for extra in extras))
    # Also where it was added to the dependencies: what an extra names is not part of the base.
    rest = reached(required(own) - asked, known)
    return sorted((reached(asked, known) - rest) & set(base))


def size(distribution: Distribution) -> int:
    """Bytes on disk of what it installed."""
    files = [Path(str(file.locate())) for file in distribution.files or ()]
    return sum(file.stat().st_size for file in files if file.is_file())


def main(site: str) -> int:
    """Print the table, largest first."""
    base = named(distributions(path=[site]))
    sizes = sorted(((size(one), name, one.version) for name, one in base.items()), reverse=True)
    for number, name, version in sizes:
        print(f"{number / 1e6:8.1f} MB  {name} {version}")
    print(f"{sum(number for number, _, _ in sizes) / 1e6:8.1f} MB  {len(sizes)} packages")
    found = leaked(base, named(distributions()))
    if found:
        print(f"an extra leaked into the base installation: {', '.join(found)}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
