"""The look at an installation: what each package takes, and that nothing of an extra is among them."""

from __future__ import annotations

from importlib.metadata import Distribution, distributions
from pathlib import Path

import pytest

import installed_sizes


def installed(site: Path, name: str, *requires: str, extras: tuple[str, ...] = ()) -> None:
    """One package in a folder of packages, with a file of ten bytes."""
    info = site / f"{name}-1.dist-info"
    info.mkdir(parents=True)
    (site / f"{name}.py").write_text("x = 12345\n", "utf-8")
    lines = [f"Name: {name}", "Version: 1", *(f"Provides-Extra: {extra}" for extra in extras)]
    lines += [f"Requires-Dist: {line}" for line in requires]
    (info / "METADATA").write_text("Metadata-Version: 2.1\n" + "\n".join(lines) + "\n", "utf-8")
    (info / "RECORD").write_text(f"{name}.py,,10\n", "utf-8")


EXTRA = 'cloud>=2 ; extra == "bedrock"'


def world(folder: Path, *base: str) -> dict[str, Distribution]:
    """Everything installed, extras included: a client of a cloud, what it needs, and what both need."""
    installed(folder, "evalrun", *base, EXTRA, extras=("bedrock",))
    installed(folder, "web", "shared")
    installed(folder, "cloud", "wire", "shared")
    for name in ("wire", "shared"):
        installed(folder, name)
    return installed_sizes.named(distributions(path=[str(folder)]))


def only(known: dict[str, Distribution], *names: str) -> dict[str, Distribution]:
    """An installation with these alone."""
    return {name: known[name] for name in names}


def test_a_base_without_extras_holds_nothing_of_them(tmp_path: Path) -> None:
    """What both need is no leak."""
    known = world(tmp_path, "web")
    assert [] == installed_sizes.leaked(only(known, "evalrun", "web", "shared"), known)


@pytest.mark.parametrize(
    ("base", "there", "leak"),
    [
        (("web", "cloud"), ("evalrun", "web", "cloud", "wire", "shared"), ["cloud", "wire"]),
        (("web",), ("evalrun", "web", "shared", "wire"), ["wire"]),
    ],
)
def test_a_leak_is_named(
    tmp_path: Path, base: tuple[str, ...], there: tuple[str, ...], leak: list[str]
) -> None:
    """An extra's package among the dependencies, or come in some other way."""
    known = world(tmp_path, *base)
    assert leak == installed_sizes.leaked(only(known, *there), known)


def test_the_table_has_every_package(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With what its files take; the exit code says whether something leaked."""
    installed(tmp_path, "evalrun", "web", EXTRA, extras=("bedrock",))
    installed(tmp_path, "web")
    assert 0 == installed_sizes.main(str(tmp_path))
    shown = capsys.readouterr().out
    assert "web 1" in shown
    assert "2 packages" in shown
    assert 10 == installed_sizes.size(installed_sizes.named(distributions(path=[str(tmp_path)]))["web"])
