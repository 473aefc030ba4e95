"""What many tests stand on: a small project with a scripted bot, model and judge; and how much is tried.

Random inputs are the same in every run, and a slow machine fails none of them; with HYPOTHESIS_PROFILE=fuzz
(``nox -s fuzz``) they are new ones, and many.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from fakes.project import Project

# Commands are shown as this process was started; what tests expect does not depend on who started them.
os.environ.pop("UV_RUN_RECURSION_DEPTH", None)
# A job in the background ignores Ctrl-C, one under nohup its terminal's end, and so would all that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

settings.register_profile("reproducible", deadline=None, derandomize=True)
settings.register_profile(
    "fuzz", deadline=None, max_examples=3000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "reproducible"))


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A project in which everything is right, with servers of its own."""
    made = Project(tmp_path)
    yield made
    made.stop()


@pytest.fixture
def fault(record_property: Callable[[str, object], None]) -> Callable[..., None]:
    """Notes a row of the table of faults: what was done, how many times, what was lost and asked again."""

    def note(scenario: str, again: int, times: int = 1, lost: int = 0) -> None:
        record_property("fault", (scenario, times, lost, again))

    return note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table of faults, where any were tried and it is asked for."""
    rows: dict[str, list[int]] = {}
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name == "fault" and report.when == "call":
                scenario, *counts = value
                sums = rows.setdefault(scenario, [0, 0, 0])
                rows[scenario] = [a + b for a, b in zip(sums, counts, strict=True)]
    if not rows or "FAULT_SERIES" not in os.environ:
        return
    terminalreporter.section("faults: after each, the run came to what it is without")
    terminalreporter.write_line(f"{'fault':<28}{'times':>6}{'draws lost':>12}{'calls repeated':>16}")
    for scenario, (times, lost, again) in sorted(rows.items()):
        terminalreporter.write_line(f"{scenario:<28}{times:>6}{lost:>12}{again:>16}")
