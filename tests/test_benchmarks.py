"""What the benchmark measures and when it says that a budget is broken."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def load(name: str) -> ModuleType:
    """A script of ``benchmarks`` as a module."""
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for the types of their fields
    spec.loader.exec_module(module)
    return module


speed: Any = load("speed")
stub: Any = load("stub")


def ran(asked: float, cpu: float, peak: float) -> Any:
    """A run that took so many seconds of asking and of processors, and so many MB."""
    return speed.Run(speed.Cost(0, asked + 1, cpu, peak), asked, Path())


def broken(small: Any, large: Any, bare: Any) -> set[str]:
    """The budgets that these runs break."""
    return {line.what for line in speed.lines_of([small], [large], [bare]) if line.broken}


def test_a_budget_that_is_kept_is_no_news(capsys: pytest.CaptureFixture[str]) -> None:
    """Twice the work of the bare loop, a wall near the ideal one, and little memory."""
    good = ran(1.7, 1.4, 90), ran(5.0, 3.9, 93), ran(1.6, 0.7, 40)
    assert set() == broken(*good)
    assert 0 == speed.show(speed.lines_of(*([run] for run in good)))
    assert "NO" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("small", "large", "what"),
    [
        (ran(2.2, 1.4, 90), ran(5.0, 3.9, 93), "wall of asking / ideal wall"),
        (ran(1.7, 2.0, 90), ran(5.0, 3.9, 93), "CPU a sample / that of the aiohttp loop"),
        (ran(1.7, 1.4, 111), ran(5.0, 3.9, 114), "peak memory at 1,000 cases, MB"),
        (ran(1.7, 1.4, 90), ran(5.0, 3.9, 95), "  its growth, kB a case"),
    ],
)
def test_each_budget_can_be_broken(small: Any, large: Any, what: str) -> None:
    """One at a time: a slow run, a busy one, a large one, one that grows."""
    assert {what} == broken(small, large, ran(1.6, 0.7, 40))


def test_faults_come_at_fixed_places() -> None:
    """Every n-th request is one, the first kind that is due."""
    faults = stub.Faults(errors=2, resets=3)
    assert ["", "errors", "resets", "errors", "", "errors"] == [faults.of(number) for number in range(1, 7)]
    assert "" == stub.Faults().of(1)


def test_a_run_and_the_yardstick_make_the_same_calls(tmp_path: Path) -> None:
    """Two a case, the same bodies but for the number of the item; the stub saw so many at once."""
    run = speed.evalrun(tmp_path, 30, latency=0.01)
    assert (0, 0) < (run.cost.cpu, run.cost.peak)
    assert 0 < run.asked < run.cost.wall
    asked, judged = speed.bodies(run.folder, tmp_path / "bodies.txt").read_text("utf-8").splitlines()
    assert asked.count("item 0") == 1 < judged.count("tem 0")
    assert speed.yardstick(tmp_path, 30, tmp_path / "bodies.txt").asked > 0


def test_a_stub_that_misbehaves_loses_no_answer(tmp_path: Path) -> None:
    """A refused or a cut request is asked again."""
    lines = speed.faulty(tmp_path, cases=60)
    assert (0, False) == (lines[0].measured, lines[0].broken)
