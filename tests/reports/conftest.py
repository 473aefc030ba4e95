"""Run folders that several tests of the reports read; none of them writes into one."""

from __future__ import annotations

import pytest
from make_run import hostile_texts, make_hostile, make_run

from evalrun.journal import RunFolder


@pytest.fixture(scope="session")
def quality(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run of 64 questions × 3 draws: gates of every kind, a lost draw, a reading that failed."""
    return make_run(tmp_path_factory.mktemp("runs") / "1209-quality")


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run in which every text that can come from outside is hostile."""
    return make_hostile(tmp_path_factory.mktemp("runs") / "hostile", hostile_texts())
