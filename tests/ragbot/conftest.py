"""Fixtures of ragbot's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from ragbot_fakes import FakeOllama


@pytest.fixture
def cases() -> Path:
    """The folder of the case files."""
    return Path(__file__).parents[1] / "cases"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index cache of this test alone."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("RAGBOT_CACHE", str(folder))
    return folder


@pytest.fixture
async def ollama(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeOllama]:
    """A fake model server that ``OLLAMA_HOST`` leads to."""
    async with FakeOllama().running() as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        yield server
