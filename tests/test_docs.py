"""The documentation tells the truth: generated pages are current, commands run, links and words exist."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

from evalrun.config import check_gates
from evalrun.dataset import load_dataset
from evalrun.errors import ExitCode, InputError
from evalrun.planning import load, scorers_of
from evalrun.scorers import all_metrics
from evalrun.yamlfile import parse_yaml
from fakes.jobs import commands_in, fault_of
from fakes.servers import FakeModel, Json

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "data").rglob("*.md")])


def load_generator() -> ModuleType:
    """``docs/generate.py`` as a module."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for the types of their fields
    spec.loader.exec_module(module)
    return module


generate: Any = load_generator()


# ---------------------------------------------------------------- generated text


@pytest.mark.parametrize("name", sorted(generate.PAGES))
def test_a_generated_page_is_current(name: str) -> None:
    """Else: uv run python docs/generate.py."""
    assert generate.PAGES[name]() == (generate.REFERENCE / name).read_text(encoding="utf-8")


def test_no_generated_page_is_left_over() -> None:
    """Every file of docs/reference is made from code."""
    assert set(generate.PAGES) == {path.name for path in generate.REFERENCE.iterdir()}


@pytest.mark.parametrize("name", sorted(set(generate.BLOCKS) - {"screen", "attacks"}))
def test_a_generated_block_of_the_readme_is_current(name: str) -> None:
    """Else: uv run python docs/generate.py."""
    assert generate.BLOCKS[name]() == generate.blocks(generate.README.read_text(encoding="utf-8"))[name]


def test_the_readme_has_every_block() -> None:
    """The headline is filled by what computes it from the recording."""
    found = generate.blocks(generate.README.read_text(encoding="utf-8"))
    assert {*generate.BLOCKS, "headline"} == set(found)


def test_the_story_stands_with_the_intervals_it_deserves() -> None:
    """26 of 35 and 4 of 8, by Wilson; a share without its counts gets no interval."""
    assert ".74 [.58, .86], 26 of 35" == generate.story("faithful", "all")
    assert ".50 [.22, .78], 4 of 8" == generate.story("correctly_refused", "out_of_corpus")
    assert "[" not in generate.story("recall@3", "all")


def test_a_block_is_replaced_and_its_neighbours_stay() -> None:
    """Also where it was empty; one that differs in times only stays as it is."""
    text = "a\n<!-- generated: x -->\n<!-- end -->\nb\n<!-- generated: y -->\n1.5 s\n<!-- end -->\nc\n"
    made = generate.with_block(generate.with_block(text, "x", "new"), "y", "2.5 s")
    assert {"x": "new", "y": "1.5 s"} == generate.blocks(made)
    assert ["a", "b", "c"] == [line for line in made.splitlines() if line in "abc"]


def every_command() -> Iterator[tuple[str, click.Command]]:
    """Name and command, over the live command tables of both programs."""
    for program, group in generate.PROGRAMS.items():
        for path in generate.commands(group):
            command: click.Command = group
            for name in path:
                assert isinstance(command, click.Group)
                command = command.commands[name]
            yield " ".join([program, *path]), command


@pytest.mark.parametrize(("name", "command"), [pytest.param(*pair, id=pair[0]) for pair in every_command()])
def test_every_command_is_documented(name: str, command: click.Command) -> None:
    """It says what it does, has a section with all of its options, and a line in the README."""
    section = section_of((generate.REFERENCE / "commands.md").read_text(encoding="utf-8"), name)
    options = [option for parameter in command.params for option in parameter.opts if option[0] == "-"]
    assert command.help
    assert [] == [option for option in options if option not in section]
    if " " in name:
        assert f"| `{name}` |" in generate.README.read_text(encoding="utf-8")


def section_of(text: str, heading: str) -> str:
    """The text below a heading of the second level."""
    return text.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def test_every_exit_code_has_a_meaning() -> None:
    """The page lists the codes there are, each once."""
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", generate.exit_codes_page(), re.MULTILINE)
    assert [int(code) for code in ExitCode] == [int(code) for code, _ in rows]


# ---------------------------------------------------------------- commands in the text


def console_blocks() -> list[tuple[str, list[str]]]:
    """Document and commands of each block of commands."""
    fence = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return [
        (path.relative_to(ROOT).as_posix(), re.findall(r"^\$ (.+)$", block, re.MULTILINE))
        for path in DOCUMENTS
        for block in fence.findall(path.read_text(encoding="utf-8"))
    ]


NOX = "uv run nox"
BLOCKS = [pytest.param(commands, id=f"{document}: {commands[0]}") for document, commands in console_blocks()]


def said(body: Json) -> str:
    """What the model server of these tests says: the least that fits the schema, or that it does not know."""
    return json.dumps(least(body["format"])) if "format" in body else "I don't have information about that."


def least(schema: Json) -> Any:
    """The smallest value a JSON schema allows."""
    if "enum" in schema:
        return schema["enum"][-1]
    if schema["type"] == "object":
        return {name: least(schema["properties"][name]) for name in schema.get("required", ())}
    return {"array": [], "string": "", "boolean": False}[schema["type"]]


@pytest.fixture(scope="module")
def model_server() -> Iterator[FakeModel]:
    """A model server for commands that ask one."""
    server = FakeModel(said).start()
    yield server
    server.stop()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with copies of what the commands read."""
    generate.copy_of_project(tmp_path)
    return tmp_path


@pytest.mark.parametrize("commands", BLOCKS)
def test_the_commands_of_a_document_run(commands: list[str], clone: Path, model_server: FakeModel) -> None:
    """Each block from top to bottom, as a reader would type it, with a model server at OLLAMA_HOST."""
    env = {**generate.environment(clone), "OLLAMA_HOST": model_server.url}
    for command in commands:
        assert command.startswith("uv run "), "the documentation runs everything in the project's environment"
        run(command.removeprefix("uv run "), clone, env)


def run(command: str, folder: Path, env: dict[str, str]) -> None:
    """Run one command to its end; nox is asked whether it has the session, a server until it is ready."""
    if command.split()[0] == "nox":
        return has_session(command)
    argv = generate.argv_of(command)
    if command.startswith("ragbot serve"):
        return serves(argv, folder, env)
    if command == "python docs/generate.py":
        return changes_nothing(argv, folder, env)
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode in ends(command), f"{command}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr


def ends(command: str) -> set[int]:
    """How a command may end. With real models the twin's gates say what they find; the weaker twin fails."""
    if "configs/quality-weak.yaml" in command.split() and "run" in command.split():
        return {ExitCode.GATE_FAILED}
    asks = generate.QUALITY in command and ("--live" in command or "--record" in command)
    return {ExitCode.OK, ExitCode.GATE_FAILED, ExitCode.NOT_ENOUGH_EVIDENCE} if asks else {ExitCode.OK}


def has_session(command: str) -> None:
    """These tests run inside nox: it is only asked to read its file and choose the session."""
    arguments = command.partition(" -- ")[0].split()[1:]
    argv = [sys.executable, "-m", "nox", *arguments, *([] if "--list" in arguments else ["--list"])]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    assert 0 == done.returncode, done.stderr
    assert "* " in done.stdout, "no session is chosen"


def changes_nothing(argv: list[str], folder: Path, env: dict[str, str]) -> None:
    """Run the generator: every page and block is current, the screen of a run included."""
    before = texts(folder)
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, encoding="utf-8", check=False)
    assert 0 == done.returncode, done.stderr
    assert before == texts(folder)


def texts(folder: Path) -> dict[str, str]:
    """Name → text of every document of a copy."""
    paths = [folder / "README.md", *(folder / "docs").rglob("*.md")]
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in paths}


def serves(argv: list[str], folder: Path, env: dict[str, str]) -> None:
    """Start a server on a free port, wait until it is ready, and stop it."""
    with subprocess.Popen(
        [*argv, "--port", "0"], cwd=folder, env=env, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stderr is not None
            line = next(text for text in server.stderr if "http://" in text)
            url = re.findall(r"http://\S+", line)[0]
            assert ready(f"{url}/healthz")
        finally:
            server.terminate()


def ready(url: str) -> bool:
    """Whether ``url`` answers 200 before long."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for _ in range(100):
        try:
            with direct.open(url, timeout=5) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    return False


def test_ci_runs_the_readmes_own_test_command() -> None:
    """The last line of .ci/run, and nothing else runs tests there."""
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").strip().splitlines()
    commands = [
        command for document, block in console_blocks() if document == "README.md" for command in block
    ]
    assert NOX == lines[-1]
    assert NOX in commands


# ---------------------------------------------------------------- YAML in the text


YAML = re.compile(r"^([ ]*)```ya?ml ?(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
BASE = """\
name: any
dataset: ../data/datasets/twin.v1.jsonl
target: {kind: ragbot, url: "http://127.0.0.1:1"}
scorers: [recall@5, outcome, faithful, correct]
judge: {model: ollama/m, rubric: rubrics/claims.yaml}
"""
"""What a section of a config is put into."""
MADE = ("quality.baseline.jsonl", "own-attacks.jsonl", "questions.jsonl")
"""Files that sections name and that a reader would have made."""


def yaml_blocks(kind: str) -> list[tuple[str, str]]:
    """``document:line`` and text of the blocks that are marked so: ``""`` for a config, else ``jobs``."""
    found = []
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        for block in YAML.finditer(text):
            assert block[2] in ("", "jobs", "compose"), f"{path}: what is YAML marked '{block[2]}'?"
            line = text.count("\n", 0, block.start()) + 1
            if block[2] == kind:
                found.append((f"{path.relative_to(ROOT).as_posix()}:{line}", block[3]))
    return found


def params(kind: str) -> list[Any]:
    """The blocks as parameters of a test."""
    return [pytest.param(text, id=place) for place, text in yaml_blocks(kind)]


@pytest.fixture
def configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for configs beside the project's data and rubrics."""
    monkeypatch.setenv("TAP_TOKEN", "0123456789abcdef")
    folder = tmp_path / "configs"
    shutil.copytree(ROOT / "configs" / "rubrics", folder / "rubrics")
    (tmp_path / "data").symlink_to(ROOT / "data")
    for name in MADE:
        (folder / name).touch()
    return folder


def problems_of(block: str, folder: Path) -> list[str]:
    """What is wrong with a config, or with a section of one in an otherwise good config."""
    path = folder / "config.yaml"
    path.write_text(block, "utf-8")
    try:
        given = parse_yaml(block, path)
        if given.problems or not isinstance(given.value, dict):
            return [problem.message for problem in given.problems] or ["is no config"]
        whole = {**parse_yaml(BASE, path).value, **given.value} if "name" not in given.value else given.value
        if "redteam" in given.value:
            del whole["dataset"]
            whole["scorers"] = ["attack_success", "over_refusal"]
        path.write_text(json.dumps(whole), "utf-8")
        config = load(path)
        metrics = {metric.id: metric for metric in all_metrics(scorers_of(config))}
        groups = load_dataset(ROOT / "data/datasets/twin.v1.jsonl").groups
        return [problem.message for problem in check_gates(config, metrics, groups)]
    except InputError as error:
        return [problem.message for problem in error.problems]


@pytest.mark.parametrize("block", params(""))
def test_a_config_in_the_text_is_one(block: str, configs: Path) -> None:
    """Whole, or a section that can be pasted into one; its gates are on what it measures."""
    assert [] == problems_of(block, configs)


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("judge: {model: ollama/a}\njudge: {model: ollama/b}\n", "judge"),
        ("launch: {command: [bot]}\n", "launch"),
        ("gates:\n  - {metric: gronded, min: 0.5}\n", "gronded"),
        ("target: {kind: http, answr: text}\n", "answr"),
        ("- a list\n", "is no config"),
    ],
)
def test_a_wrong_section_would_be_found(block: str, said: str, configs: Path) -> None:
    """A key twice, at the wrong depth, misspelt, or a gate on nothing."""
    assert any(said in problem for problem in problems_of(block, configs))


JOBS = [
    pytest.param(command, id=f"{place}: {command}")
    for place, text in yaml_blocks("jobs")
    for command in commands_in(parse_yaml(text, Path(place)).value)
]


@pytest.mark.parametrize("block", params("jobs"))
def test_the_jobs_for_ci_are_yaml(block: str) -> None:
    """Without a key twice, and with commands of evalrun in it."""
    document = parse_yaml(block, Path("ci.md"))
    assert [] == document.problems
    assert {"validate", "run"} <= {command.split()[1] for command in commands_in(document.value)}


@pytest.mark.parametrize("block", params("compose"))
def test_a_file_for_containers_is_yaml(block: str) -> None:
    """It is not run here; services it has."""
    document = parse_yaml(block, Path("compose.yaml"))
    assert [] == document.problems
    assert document.value["services"]


@pytest.mark.parametrize("job", JOBS)
def test_a_job_for_ci_is_a_command_that_there_is(job: str, tmp_path: Path) -> None:
    """Its options exist, take what they are given, and set what a config has."""
    assert "" == fault_of(job, tmp_path)


@pytest.mark.parametrize(
    "job",
    [
        "evalrun runn evalrun.yaml",
        "evalrun run evalrun.yaml --record-mising",
        "evalrun run evalrun.yaml --draws none",
        "evalrun run evalrun.yaml --set budget.costs=1",
        "evalrun run",
    ],
)
def test_a_wrong_job_would_be_found(job: str, tmp_path: Path) -> None:
    """A command, an option, a value or a key that there is not; nothing to work on."""
    assert fault_of(job, tmp_path)


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda path: path.name)
def test_editors_find_the_schema_of_a_shipped_config(path: Path) -> None:
    """The first line names it, from where the config lies."""
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    assert first.startswith("# yaml-language-server: $schema=")
    assert (path.parent / first.partition("$schema=")[2]).resolve() == ROOT / "docs/schema/config.schema.json"


# ---------------------------------------------------------------- links and words


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    """Each link to a file of the project names one that exists, and a heading that is there."""
    text = path.read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    assert [] == [link for link in links if not leads(path, link)]


def leads(path: Path, link: str) -> bool:
    """Whether a link of a document has a file, and its heading."""
    name, _, heading = link.partition("#")
    file = path.parent / name if name else path
    if not file.exists():
        return False
    titles = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE) if heading else []
    return not heading or heading in {generate.anchor(title) for title in titles}


def test_the_glossary_is_sorted_and_holds_the_names_of_outcomes_and_proof_levels() -> None:
    """Every word that the code gives a draw stands there."""
    from evalrun.records import LEVELS
    from evalrun.scorers.outcome import EVENTS

    text = (ROOT / "GLOSSARY.md").read_text(encoding="utf-8")
    words = re.findall(r"^\| ([a-z ]+) \|", text.partition("\n## ")[0], re.MULTILINE)[1:]
    assert sorted(words) == words
    assert set() == {*EVENTS, *LEVELS} - set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))


# ---------------------------------------------------------------- pins


def test_every_dependency_is_pinned_by_version_alone() -> None:
    """Declared packages have an exact pin, and no pin names an address."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pins = project["tool"]["uv"]["constraint-dependencies"]
    groups = [item for group in project["dependency-groups"].values() for item in group]
    declared = [*project["project"]["dependencies"], *(item for item in groups if isinstance(item, str))]
    assert [] == [pin for pin in pins if not re.match(r"[a-z0-9-]+==[0-9][^@/\s]*( ; .+)?$", pin)]
    assert set() == {name_of(item) for item in declared} - {name_of(pin) for pin in pins}


def name_of(requirement: str) -> str:
    """The package a requirement is about."""
    return re.split(r"[^A-Za-z0-9._-]", requirement)[0].lower().replace(".", "-").replace("_", "-")
