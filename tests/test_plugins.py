"""Modules that a config names: what they register is found, and a fault in one is told at its place."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from evalrun.errors import ExitCode

ROOT = Path(__file__).parent.parent
PROGRAM = [sys.executable, "-P", "-c", "from evalrun.cli import main; main()"]
CONFIG = """\
name: p
plugins: [{plugin}]
dataset: q.jsonl
target: {{kind: http, url: "http://127.0.0.1:1"}}
scorers: [{scorer}]
provenance: none
"""


def evalrun(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """``evalrun`` as a process of its own: plugins stay loaded in one that has them."""
    return subprocess.run([*PROGRAM, *args], cwd=folder, capture_output=True, encoding="utf-8", check=False)


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """A copy of the examples."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "examples", ignore=ignored)
    return tmp_path


def test_the_example_runs_and_its_numbers_are_derived_again(examples: Path) -> None:
    """Its scorer measures, its report is written, and verify knows it by the config."""
    done = evalrun(examples, "run", "examples/plugin/config.yaml", "--live", "--output", "run")
    assert 0 == done.returncode, done.stderr
    assert "at most 58 characters" in done.stdout
    long = (examples / "run" / "long-answers.txt").read_text("utf-8")
    named = {line.partition(":")[0] for line in long.splitlines()}
    assert {"hours-01", "loans-01"} <= named
    assert "cards-01" not in named
    blind = evalrun(examples, "verify", "run")
    assert ExitCode.USAGE == blind.returncode
    assert "--config" in blind.stderr
    seen = evalrun(examples, "verify", "run", "--config", "examples/plugin/config.yaml")
    assert 0 == seen.returncode, seen.stderr


def test_the_example_has_a_test_of_its_own(examples: Path) -> None:
    """It passes as a plugin's author would run it."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "."]
    folder = examples / "examples" / "plugin"
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)
    assert 0 == done.returncode, done.stdout
    assert "1 passed" in done.stdout


@pytest.mark.parametrize(
    ("plugin", "source", "scorer", "said"),
    [
        ("nowhere", None, "latency", "config.yaml:2:11: there is no module 'nowhere'"),
        ("broken", "x = 1\ny = 1 / 0\n", "latency", "broken.py:2: ZeroDivisionError"),
        ("typo", "def (:\n", "latency", "typo.py:1: SyntaxError"),
        ("needs", "import not_there_at_all\n", "latency", "needs.py:1: ModuleNotFoundError"),
        ("leaves", "raise SystemExit(3)\n", "latency", "leaves.py:1: SystemExit"),
        ("json", "x = 1\n", "latency", "'json' is another module here"),
        ("twice", "from evalrun.scorers import SCORERS\n@SCORERS('latency')\ndef f(k): ...\n", "latency",
         "scorer 'latency' is registered twice"),
        ("fine", "x = 1\n", "breif", "config.yaml:5:11: "),
        ("not-a-name", None, "latency", "config.yaml:2:11: "),
    ],
)  # fmt: skip
def test_a_fault_is_told_at_its_place(
    plugin: str, source: str | None, scorer: str, said: str, tmp_path: Path
) -> None:
    """Where the config names the module, and which of its lines failed; no traceback."""
    if source is not None:
        (tmp_path / f"{plugin}.py").write_text(source, "utf-8")
    (tmp_path / "config.yaml").write_text(CONFIG.format(plugin=plugin, scorer=scorer), "utf-8")
    (tmp_path / "q.jsonl").write_text('{"id": "a", "question": "q"}\n', "utf-8")
    done = evalrun(tmp_path, "validate", "config.yaml")
    assert ExitCode.USAGE == done.returncode
    assert said in done.stderr
    assert "Traceback" not in done.stderr
