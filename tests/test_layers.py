"""The table of layers: a module imports from lower layers, or sideways without a cycle; nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SRC = Path(__file__).parent.parent / "src"
LAYERS: dict[str, tuple[str, ...]] = {
    "evalrun": (
        "errors digest addresses bounded circuit stats ranking language textfile wires owasp converters "
        "canaries redaction invocation differences",
        "records outcomes registry reducers jsonl locking provenance yamlfile validation pins plugins",
        "cassette network http fallback aws process",
        "settings config dataset labels journal folders targets models",
        "tap launch sampler judge summary gates agreement labelling reports comparison baseline rates "
        "probing relevance beside drop_gates attempts probes detectors answers logged",
        "scorers",
        "suite shortfalls planning certificate evidence correction outlook resuming spending pipeline "
        "conclusion verify runner preflight forecast recordings view labelled starter importing exporting "
        "schemas",
        "cli",
    ),
    "ragbot": (
        "contract errors models page guard connection",
        "profile index",
        "answer",
        "service",
        "cli",
    ),
}
LAYER = {
    f"{package}.{name}": number
    for package, layers in LAYERS.items()
    for number, names in enumerate(layers)
    for name in names.split()
}


def modules(src: Path) -> dict[str, Path]:
    """Dotted name → file of every module below ``src``."""
    return {
        ".".join(path.relative_to(src).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted(src.rglob("*.py"))
    }


def station(module: str) -> str:
    """The part of a module's name that the table knows: ``evalrun.stats`` of ``evalrun.stats.rate``."""
    return ".".join(module.split(".")[:2])


def imports(name: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules of the two packages that a file imports, wherever in it: at the top or in a function."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in LAYERS)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            origin = ".".join([*parts, *filter(None, [node.module])])
            if origin.split(".")[0] in LAYERS:
                for alias in node.names:
                    submodule = f"{origin}.{alias.name}"
                    yield submodule if submodule in known else origin


def faults(src: Path) -> list[str]:
    """What breaks the table, in words."""
    known = modules(src)
    graph = {name: set(imports(name, path, known)) - {name} for name, path in known.items()}
    pairs = [(name, other) for name, used in graph.items() for other in sorted(used)]
    found = [fault for name, other in pairs if (fault := judged(name, other))]
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found.append("cycle: " + " -> ".join(error.args[1]))
    return found


def judged(name: str, other: str) -> str:
    """Why ``name`` may not import ``other``, or an empty string."""
    if station(name) == station(other):
        return ""
    if name.split(".")[0] != other.split(".")[0]:
        return f"{name} imports {other}: HTTP is all the two packages share"
    if name in LAYERS:
        return f"{name} imports {other}: the package root imports nothing"
    unknown = [module for module in (name, other) if station(module) not in LAYER]
    if unknown:
        return f"{name} imports {other}: '{station(unknown[0])}' has no layer"
    own, its = LAYER[station(name)], LAYER[station(other)]
    return f"{name} (layer {own}) imports {other} (layer {its})" if its > own else ""


def test_imports_go_to_lower_layers_or_sideways_without_a_cycle() -> None:
    """Every import of the two packages, at the top of a file or inside a function."""
    assert [] == faults(SRC)


def test_every_module_has_a_layer() -> None:
    """Also one that imports nothing and that nothing imports yet."""
    assert set() == {station(name) for name in modules(SRC)} - set(LAYERS) - set(LAYER)


def test_only_answer_searches_the_index() -> None:
    """One module of ragbot calls ``search``, so that a question is retrieved on one road only."""
    callers = {
        name
        for name, path in modules(SRC).items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if name.startswith("ragbot.") and isinstance(node, ast.Attribute) and node.attr == "search"
    }
    assert {"ragbot.answer"} == {name for name in callers if reads_the_index(name)}


def reads_the_index(name: str) -> bool:
    """Whether a module of ragbot imports the index."""
    known = modules(SRC)
    return "ragbot.index" in imports(name, known[name], known)


WRONG = [
    ("evalrun/records.py", "import evalrun.gates", "records (layer 1) imports evalrun.gates (layer 4)"),
    ("evalrun/gates.py", "from . import cli", "gates (layer 4) imports evalrun.cli (layer 7)"),
    (
        "evalrun/gates.py",
        "def f():\n    from evalrun import cli",
        "gates (layer 4) imports evalrun.cli (layer 7)",
    ),
    (
        "evalrun/stats/rate.py",
        "from ..gates import x",
        "stats.rate (layer 0) imports evalrun.gates (layer 4)",
    ),
    (
        "evalrun/tap.py",
        "from ragbot.index import x",
        "tap imports ragbot.index: HTTP is all the two packages share",
    ),
    ("evalrun/odd.py", "import evalrun.gates", "odd imports evalrun.gates: 'evalrun.odd' has no layer"),
]


@pytest.mark.parametrize(("module", "text", "fault"), WRONG)
def test_a_wrong_import_is_found(tmp_path: Path, module: str, text: str, fault: str) -> None:
    """Upwards, relative, inside a function, across the packages, from a module nobody placed."""
    for name in ("cli", "records", "gates"):
        write(tmp_path, f"evalrun/{name}.py", "")
    write(tmp_path, module, text)
    assert [f"evalrun.{fault}"] == faults(tmp_path)


def test_a_root_that_imports_is_found(tmp_path: Path) -> None:
    """``import evalrun`` loads nothing else."""
    write(tmp_path, "evalrun/__init__.py", "import evalrun.errors")
    write(tmp_path, "evalrun/errors.py", "")
    assert ["evalrun imports evalrun.errors: the package root imports nothing"] == faults(tmp_path)


def test_a_cycle_is_found(tmp_path: Path) -> None:
    """Two modules of one layer that import each other."""
    write(tmp_path, "evalrun/tap.py", "import evalrun.launch")
    write(tmp_path, "evalrun/launch.py", "def f():\n    import evalrun.tap")
    [fault] = faults(tmp_path)
    assert fault.startswith("cycle: evalrun.")


def write(src: Path, name: str, text: str) -> None:
    """A file below ``src``."""
    (src / name).parent.mkdir(parents=True, exist_ok=True)
    (src / name).write_text(text, encoding="utf-8")
