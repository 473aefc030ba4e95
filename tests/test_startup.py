"""What starting up costs: help and version import click only, and a run never imports ``scipy.stats``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

import evalrun.cli
import ragbot.cli

EXAMPLE = Path(__file__).parent.parent / "docs" / "examples" / "own-bot"
SCRIPT = """
import json, sys
before = set(sys.modules)
import {program}.cli
code = None
try:
    {program}.cli.main({arguments!r}, prog_name="{program}")
except SystemExit as end:
    code = end.code
with open("modules.json", "w") as file:
    # None stands for a module that may not be imported.
    found = [name for name, module in sys.modules.items() if name not in before and module is not None]
    json.dump({{"code": code, "modules": found}}, file)
"""


def loaded(program: str, arguments: list[str], folder: Path) -> tuple[int | None, list[str]]:
    """Exit code of a command in a fresh interpreter, and the modules it imported, in their order."""
    script = SCRIPT.format(program=program, arguments=arguments)
    subprocess.run([sys.executable, "-c", script], cwd=folder, check=True, capture_output=True)
    found = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    return found["code"], found["modules"]


def foreign(modules: Iterable[str]) -> set[str]:
    """The top-level packages among ``modules`` that are not Python's own."""
    return {name.partition(".")[0] for name in modules} - sys.stdlib_module_names


@pytest.mark.parametrize("program", ["evalrun", "ragbot"])
@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_import_click_only(program: str, argument: str, tmp_path: Path) -> None:
    """Nothing else stands between a user and the first line."""
    code, modules = loaded(program, [argument], tmp_path)
    assert 0 == code
    assert {"click", program} == foreign(modules)
    assert not {f"evalrun.cli.{module}" for module, _ in evalrun.cli.COMMANDS.values()} & set(modules)


@pytest.mark.parametrize(
    ("program", "command"),
    [
        *(("evalrun", name) for name in sorted(evalrun.cli.main.commands)),
        *(("ragbot", name) for name in sorted(ragbot.cli.main.commands)),
    ],
)
def test_help_of_a_command_imports_click_only(program: str, command: str, tmp_path: Path) -> None:
    """Each command imports what it needs inside its body."""
    code, modules = loaded(program, [command, "--help"], tmp_path)
    assert 0 == code
    assert {"click", program} == foreign(modules)


UNNEEDED = (
    "scipy.stats",  # alone it would take longer than all of the run
    "evalrun.comparison",
    "evalrun.drop_gates",
    "evalrun.beside",
    "evalrun.logged",
    "evalrun.suite",
    "evalrun.detectors",
    "evalrun.evidence",
    "evalrun.agreement",
    "evalrun.probes",
    "evalrun.models.bedrock",
    "evalrun.targets.python",
    "httpx._main",
    "pygments",
    "numpy.f2py",
    "numpy.testing",
    "numpy.ma",
)
"""What a run needs none of, as long as its config does not ask for it."""


def test_a_run_imports_what_it_needs(tmp_path: Path) -> None:
    """A whole run, from config to reports. numpy comes by the one module that keeps it to one thread."""
    shutil.copytree(EXAMPLE, tmp_path / "bot")
    code, modules = loaded("evalrun", ["run", "bot/config.yaml", "--live", "--output", "run"], tmp_path)
    assert 0 == code
    assert (tmp_path / "run" / "run.json").is_file()
    assert "scipy.special" in modules
    assert [] == sorted({*UNNEEDED} & {*modules})
    after_numpy = modules[modules.index("numpy") :]  # a module comes behind those that it imports
    assert "evalrun.stats.blas" == next(name for name in after_numpy if name.startswith("evalrun."))


def test_a_plan_needs_neither_statistics_nor_reports(tmp_path: Path) -> None:
    """A bot that is to be launched waits for the plan, so a plan without gates imports little."""
    script = "import json, sys, evalrun.planning; print(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, check=True)
    known = {"numpy", "jinja2", "aiohttp.web", "evalrun.stats", "evalrun.reports", *UNNEEDED}
    assert {"httpx._main", "pygments"} >= known & {*json.loads(done.stdout)}


def test_numpy_takes_one_thread_and_leaves_the_environment_as_it_was(tmp_path: Path) -> None:
    """A bot that is launched later must not inherit what only this program wants."""
    script = "import os; before = dict(os.environ); import evalrun.stats; assert before == dict(os.environ)"
    if Path("/proc/self/task").is_dir():
        script += "; assert 1 == len(os.listdir('/proc/self/task'))"
    env = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    assert 0 == subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=env, check=False).returncode


def test_the_statistics_of_a_run_do_not_import_scipy_stats(tmp_path: Path) -> None:
    """``import evalrun.stats`` leaves it to those who need it."""
    script = "import evalrun.stats, sys; sys.exit('scipy.stats' in sys.modules)"
    assert 0 == subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=False).returncode


def test_what_is_held_back_from_scipy_is_there_for_whoever_asks(tmp_path: Path) -> None:
    """``evalrun.stats.special`` only puts off what ``scipy.special`` would have numpy load."""
    script = "import evalrun.stats.special, numpy as np; assert np.ma.array([1]).sum() == 1; "
    script += "np.testing.assert_equal(1, 1); np.polynomial, np.ctypeslib, np.f2py; import scipy.stats"
    assert 0 == subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=False).returncode


BARE = """
import importlib, pkgutil, sys
for name in ("boto3", "botocore", "s3transfer"):
    sys.modules[name] = None
import evalrun, ragbot
for package in (evalrun, ragbot):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
from evalrun.models import model
from ragbot.models import chat_model
chat_model("openai/m"), chat_model("m")
print(*model.names())
"""


def test_everything_but_bedrock_itself_works_without_the_extra(tmp_path: Path) -> None:
    """Each module can be imported where boto3 cannot, and every provider has its name."""
    env = {**os.environ, "OPENAI_BASE_URL": "http://127.0.0.1:9"}
    done = subprocess.run(
        [sys.executable, "-c", BARE], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert (0, "bedrock ollama openai") == (done.returncode, done.stdout.strip()), done.stderr


def test_the_extra_is_no_part_of_the_base_install() -> None:
    """What needs boto3 stands in ``evalrun[bedrock]`` alone."""
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8"))["project"]
    assert ["boto3>=1.42.42"] == project["optional-dependencies"]["bedrock"]
    assert not [name for name in project["dependencies"] if name.startswith(("boto", "s3transfer"))]
