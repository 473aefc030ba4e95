"""What many tests stand on: the case files, and a small project with a scripted bot, model and judge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A project in which everything is right, with servers of its own."""
    made = Project(tmp_path)
    yield made
    made.stop()
