"""The pictures of the documentation: there, small, and with the colours they should have."""

from __future__ import annotations

import importlib.util
import struct
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent


def load() -> ModuleType:
    """``docs/pictures.py`` as a module."""
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pictures: Any = load()
NAMES = {
    f"{page}-{width}-{scheme}.png"
    for page in ("report", "drawer", "chat", "index", "matrix")
    for width in pictures.SIZES
    for scheme in pictures.SCHEMES
} | {"report-print.png"}


def pixels_of(png: bytes) -> Any:
    """The pixels of a PNG with a palette: shape (height, width, 3)."""
    width, height = struct.unpack(">II", png[16:24])
    parts, at = {}, 8
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        kind, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        (check,) = struct.unpack(">I", png[at + 8 + size : at + 12 + size])
        assert zlib.crc32(kind + data) == check
        parts[kind] = data
        at += 12 + size
    rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not rows[:, 0].any()
    return np.frombuffer(parts[b"PLTE"], np.uint8).reshape(-1, 3)[rows[:, 1:]]


def test_every_picture_is_there_and_small() -> None:
    """Each page in every size and scheme, and the report on paper. Else: uv run nox -s pictures."""
    found = {path.name: path.read_bytes() for path in pictures.PICTURES.glob("*.png")}
    assert NAMES == set(found)
    for name, png in found.items():
        height, width, _ = pixels_of(png).shape
        assert f"-{width}-" in name or (width, height) == tuple(pictures.A4.values())
        assert len(png) < 300_000, name


def test_a_picture_of_few_colours_stays_as_it_is() -> None:
    """Up to 256 nothing is lost."""
    dice = np.random.default_rng(1)
    palette = dice.integers(0, 256, (256, 3)).astype(np.uint8)
    pixels = palette[dice.integers(0, 256, (40, 60))]
    assert np.array_equal(pixels, pixels_of(pictures.indexed(pixels)))


@pytest.mark.parametrize("count", [1, 2])
def test_a_rare_colour_among_many_greys_is_kept(count: int) -> None:
    """A small red mark on a page of smooth greys stays red."""
    ramp = np.linspace(0, 255, 300 * 300).reshape(300, 300, 1)
    dice = np.random.default_rng(2)
    pixels = np.clip(ramp + dice.integers(-3, 4, (300, 300, 3)), 0, 255).astype(np.uint8)
    pixels[5, :count] = (179, 38, 30)
    made = pixels_of(pictures.indexed(pixels))
    assert [179, 38, 30] == made[5, 0].tolist()
    assert np.abs(made.astype(int) - pixels).max() < 24
