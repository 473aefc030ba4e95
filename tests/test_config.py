"""Config files: what is read, what is refused and where, and what of a config is public."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from evalrun.config import RunConfig, check_gates, load_config
from evalrun.digest import canonical_json, tagged
from evalrun.errors import InputError, Problem, UserError
from evalrun.records import Gate, Metric, Record
from evalrun.registry import UnknownName
from evalrun.yamlfile import parse_yaml
from known import json_of, known, text_of

MINIMAL = "name: n\ndataset: d.jsonl\ntarget: {kind: fake, k: 5}\nscorers: [mrr]\n"
FULL = """\
name: quality
dataset: d.jsonl
target:
  kind: fake
  k: 5
  headers: {Authorization: "Bearer ${KEY}"}
  launch: {command: [bot, --port, "{port}"], env: {OLLAMA_HOST: "{tap}", TOKEN: "${KEY}"}, timeout: 9}
  limits: {concurrency: 8, timeout: 120, rate: 2.5, retries: 0}
cassette: {path: tapes/q, upstream: "${OLLAMA_HOST:-http://127.0.0.1:11434}", ignore: ['\\d{4}-\\d\\d']}
draws: 3
temperature: 0.7
max_tokens: 320
scorers: [recall@3, recall@5, outcome]
judge: {model: "ollama/small:1.5b", rubric: r.yaml, temperature: 0, limits: {concurrency: 4}}
labels: [l.jsonl]
provenance: reported
budget: {calls: 2000, seconds: 3600}
gates:
  - {metric: recall@5, group: answerable, min: 0.70, infer: this_set}
  - {metric: grounded, max: 0.5, on_undecided: warn}
reports: {junit: {cases: failure, include_text: true}}
"""


class FakeOptions(Record):
    """The options of a target that exists in this file only."""

    kind: str
    k: int = Field(default=3, ge=1)
    headers: dict[str, str] = Field(default_factory=dict)
    url: str | None = None


def fake_options(kind: str) -> type[BaseModel]:
    """As the registry of targets would, with one target in it."""
    if kind != "fake":
        raise UnknownName(f"unknown target '{kind}'", "known: fake")
    return FakeOptions


def written(folder: Path, text: str) -> Path:
    """A config beside the files that it names."""
    for name in ("d.jsonl", "r.yaml", "l.jsonl"):
        (folder / name).touch()
    path = folder / "c.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def loaded(folder: Path, text: str, *overrides: str, **env: str) -> RunConfig:
    """The config that a text is read as."""
    return load_config(written(folder, text), overrides, env=env, options_of=fake_options)


def refused(folder: Path, text: str, *overrides: str, **env: str) -> list[str]:
    """The problems of a text, as ``line:col: message``."""
    path = written(folder, text)
    with pytest.raises(InputError) as caught:
        load_config(path, overrides, env=env, options_of=fake_options)
    return [
        f"{problem.where}: {problem.message}".removeprefix(f"{path}:") for problem in caught.value.problems
    ]


def changed(key: str, value: str) -> str:
    """The minimal config with one top-level line more, or another."""
    kept = [line for line in MINIMAL.splitlines() if not line.startswith(f"{key}:")]
    return "\n".join([*kept, f"{key}: {value}", ""])


# ---------------------------------------------------------------- what is read


def test_a_full_config_is_read(tmp_path: Path) -> None:
    """Every section arrives with its values, paths joined to the config's folder."""
    config = loaded(tmp_path, FULL, KEY="secret")
    assert "quality" == config.name
    assert config.dataset is not None
    assert tmp_path / "d.jsonl" == config.dataset.path
    assert FakeOptions(kind="fake", k=5, headers={"Authorization": "Bearer secret"}) == config.target.options
    assert config.target.launch is not None
    assert ("bot", "--port", "{port}") == config.target.launch.command
    assert {"OLLAMA_HOST": "{tap}", "TOKEN": "secret"} == config.target.launch.env
    assert (8, 120, 2.5, 0) == tuple(config.target.limits.model_dump().values())
    assert config.cassette is not None
    assert tmp_path / "tapes/q" == config.cassette.path
    assert "http://127.0.0.1:11434" == config.cassette.upstream
    assert (3, 0.7, 320) == (config.draws, config.temperature, config.max_tokens)
    assert config.judge is not None
    assert tmp_path / "r.yaml" == config.judge.rubric
    assert (tmp_path / "l.jsonl",) == config.labels
    assert "reported" == config.provenance
    assert (2000, 3600) == (config.budget.calls, config.budget.seconds)
    assert Gate(metric="recall@5", group="answerable", min=0.7, infer="this_set") == config.gates[0]
    assert Gate(metric="grounded", max=0.5, on_undecided="warn") == config.gates[1]
    assert ("failure", True) == (config.reports.junit.cases, config.reports.junit.include_text)
    assert (tmp_path / "c.yaml", tmp_path) == (config.path, config.folder)


def test_a_minimal_config_has_defaults(tmp_path: Path) -> None:
    """One draw, the highest level of proof, no judge, no gates, no budget."""
    config = loaded(tmp_path, MINIMAL)
    assert (1, "observed", None, None, (), ()) == (
        config.draws, config.provenance, config.judge, config.cassette, config.gates, config.labels,
    )  # fmt: skip
    assert (None, None) == (config.budget.calls, config.budget.seconds)


def test_a_dataset_may_have_columns(tmp_path: Path) -> None:
    """A CSV's columns stand beside its path."""
    config = loaded(tmp_path, changed("dataset", "{path: d.jsonl, columns: {question: Q}}"))
    assert config.dataset is not None
    assert {"question": "Q"} == config.dataset.columns


def test_targets_come_from_their_registry(tmp_path: Path) -> None:
    """Without anything said, the kinds are those that are registered."""
    text = MINIMAL.replace("fake", "ragbot")
    assert 5 == load_config(written(tmp_path, text), env={}).target.options.k


@pytest.mark.parametrize(
    ("host", "url"),
    [
        (None, "http://127.0.0.1:11434"),
        ("1.2.3.4", "http://1.2.3.4:11434"),
        ("1.2.3.4:80", "http://1.2.3.4:80"),
        ("https://models.example/", "https://models.example"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        (":11435", "http://127.0.0.1:11435"),
        ("box/ollama/", "http://box:11434/ollama"),
        ("[::1]:11434", "http://[::1]:11434"),
        ("::1", "http://[::1]:11434"),
        ("http://[::]:5", "http://[::1]:5"),
        ("https://h/v1?api-version=2", "https://h/v1?api-version=2"),
    ],
)
def test_the_judge_is_where_ollama_is(tmp_path: Path, host: str | None, url: str) -> None:
    """``OLLAMA_HOST`` is read as Ollama reads it."""
    env = {"OLLAMA_HOST": host} if host else {}
    judge = loaded(tmp_path, changed("judge", "{model: ollama/m, rubric: r.yaml}"), **env).judge
    assert judge is not None
    assert url == judge.base_url


def test_a_scheme_is_missing_only_for_ollama(tmp_path: Path) -> None:
    """Its port is known; another server's address is not made up."""
    text = changed("judge", '{model: ollama/m, rubric: r.yaml, base_url: "a"}')
    judge = loaded(tmp_path, text).judge
    assert judge is not None
    assert "http://a:11434" == judge.base_url
    text = changed("judge", '{model: openai/m, rubric: r.yaml, base_url: "a/v1"}')
    with pytest.raises(InputError, match=r"'judge\.base_url' is not the address of a server") as caught:
        loaded(tmp_path, text)
    assert "write it like https://a/v1" == caught.value.problems[0].hint


def test_a_base_url_goes_before_the_environment(tmp_path: Path) -> None:
    """What the file says of the judge's server is not overruled."""
    text = changed("judge", '{model: ollama/m, rubric: r.yaml, base_url: "http://a:1"}')
    judge = loaded(tmp_path, text, OLLAMA_HOST="b:2").judge
    assert judge is not None
    assert "http://a:1" == judge.base_url


# ---------------------------------------------------------------- what is refused, and where


def test_everything_wrong_is_told_at_once_in_order(tmp_path: Path) -> None:
    """Unknown and duplicate keys, types, limits, unset variables, files and specs, each at its place."""
    text = """\
name: ../x
dataset: nope.jsonl
target:
  kind: fake
  kk: 5
  k: "5"
  limits: {concurrency: 0, timout: 3}
  launch: {command: [bot, 8000], env: {K: "${NOPE}"}}
cassette: {path: a, upstream: "${OTHER}"}
drwas: 3
draws: true
draws: 4
temperature: -1
scorers: [recall@0, mrr]
judge: {model: small, rubric: r.yaml}
labels: x
gates:
  - {metric: recall@5, min: 2}
  - {metric: mrr, treshold: .5}
  - 3
reports: {junit: {cases: fail}}
"""
    assert [
        "1:7: 'name' cannot be the name of a folder everywhere",
        f"2:10: 'dataset.path' names no file: {tmp_path / 'nope.jsonl'}",
        "5:3: unknown key 'target.kk'",
        "6:6: 'target.k' should be a whole number (it is \"5\")",
        "7:25: 'target.limits.concurrency' should be at least 1 (it is 0)",
        "7:28: unknown key 'target.limits.timout'",
        "8:27: 'target.launch.command.1' should be text (it is 8000)",
        "8:43: 'target.launch.env.K' needs the environment variable NOPE, which is not set",
        "9:31: 'cassette.upstream' needs the environment variable OTHER, which is not set",
        "10:1: unknown key 'drwas'",
        "11:8: 'draws' should be a whole number (it is true)",
        "12:1: key 'draws' stands twice, on lines 11 and 12",
        "13:14: 'temperature' should be at least 0 (it is -1)",
        "14:11: 'scorers.0' is not a scorer: 'recall@0' is not a name, or name@k with k from 1",
        "15:16: 'judge.model' is not provider/name",
        "16:9: 'labels' should be a list (it is \"x\")",
        "18:29: 'gates.0.min' should be at most 1 (it is 2)",
        "19:19: unknown key 'gates.1.treshold'",
        "20:5: 'gates.2' should be a mapping (it is 3)",
        "21:26: 'reports.junit.cases' should be 'skipped' or 'failure' (it is \"fail\")",
    ] == refused(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (changed("drwas", "3"), "did you mean 'draws'?"),
        (changed("target", "{kind: fake, lanch: {}}"), "did you mean 'launch'?"),
        (changed("target", "{kind: fake, header: {}}"), "did you mean 'headers'?"),
        (changed("target", "{kind: fake, limits: {concurency: 1}}"), "did you mean 'concurrency'?"),
        (changed("gates", "[{metric: mrr, min: 0, on_undecide: warn}]"), "did you mean 'on_undecided'?"),
        (changed("reports", "{junit: {case: failure}}"), "did you mean 'cases'?"),
        (changed("budget", "{money: 1}"), "known: calls, cost, seconds, tokens"),
    ],
)
def test_an_unknown_key_comes_with_the_nearest_known_one(tmp_path: Path, text: str, hint: str) -> None:
    """At every depth, also among the options of a target; where none is near, all are named."""
    with pytest.raises(InputError) as caught:
        load_config(written(tmp_path, text), env={}, options_of=fake_options)
    assert [hint] == [problem.hint for problem in caught.value.problems]


def test_a_dataset_that_is_null_is_missing(tmp_path: Path) -> None:
    """As one that is not there; beside an attack suite it is none too many."""
    assert ["1:1: 'dataset' is missing"] == refused(tmp_path, changed("dataset", "null"))
    attacks = changed("dataset", "null") + "redteam: {}\n"
    assert loaded(tmp_path, attacks, "scorers=[attack_success]").redteam is not None


def test_of_a_target_without_a_kind_only_that_is_told(tmp_path: Path) -> None:
    """Which other keys it may have depends on it."""
    wrong = changed("target", "{kind: null, url: 'http://h'}")
    assert ["4:16: 'target.kind' should be text (it is null)"] == refused(tmp_path, wrong)


@pytest.mark.parametrize(
    ("launch", "said"),
    [
        ('{command: ["a\\0"]}', "'target.launch.command.0' holds a NUL, which no program can be given"),
        (
            '{command: [a], env: {A: "\\0"}}',
            "'target.launch.env.A' holds a NUL, which no program can be given",
        ),
        ('{command: [a], env: {"A=B": x}}', "'target.launch.env.A=B' is not the name of a variable"),
        ('{command: [a], env: {"": x}}', "'target.launch.env.' is not the name of a variable"),
        ('{command: [a], ready: "/a b"}', "'target.launch.ready' is not a path: write it like /ask"),
    ],
)
def test_what_no_program_can_be_given_is_refused(tmp_path: Path, launch: str, said: str) -> None:
    """The system would refuse it in the middle of a run, and not say which it was."""
    text = changed("target", f"{{kind: fake, launch: {launch}}}")
    assert any(said in line for line in refused(tmp_path, text))


def test_missing_keys_are_named(tmp_path: Path) -> None:
    """What has no default must be there."""
    assert [f"1:1: '{name}' is missing" for name in ("name", "target", "scorers", "dataset")] == refused(
        tmp_path, "draws: 1\n"
    )


@pytest.mark.parametrize("text", ["", "3", "[a]", "just text"])
def test_a_config_is_a_mapping(tmp_path: Path, text: str) -> None:
    """Any other YAML is refused."""
    assert ["1:1: a config is a mapping of keys"] == refused(tmp_path, text)


def test_an_unknown_kind_is_told_at_its_place(tmp_path: Path) -> None:
    """The registry's own words, where the kind stands."""
    assert ["4:16: unknown target 'fale'"] == refused(tmp_path, changed("target", "{kind: fale}"))


@pytest.mark.parametrize(
    "name",
    ["../x", "a/b", "a|b?", "con", "NUL.txt", "name.", " x", ".hidden", "a:b", "x" * 65, "", "a\\b", "-x"],
)
def test_a_name_that_is_no_folder_everywhere_is_refused(tmp_path: Path, name: str) -> None:
    """Separators, device names and dots at the ends do not become paths."""
    assert ["4:7: 'name' cannot be the name of a folder everywhere"] == refused(
        tmp_path, changed("name", json.dumps(name))
    )  # fmt: skip


@known(
    "RS-05",
    (json_of("rs-05-names.json")["model_names"], ["llama3_8b"]),
    (["COM1", "lpt9.txt", "a\tb", "a\x00b", "..", ".", "q*", 'q"', "<q>", "q\u202e", "q1"], ["q1"]),
    (
        ["name ", "name", "na/../me", "\\\\host\\share", "C:", "aux", "é", "~", "quality-2"],
        ["name", "quality-2"],
    ),
)
def test_names_that_models_have_are_no_folders(given: tuple[list[str], list[str]], tmp_path: Path) -> None:
    """Of the names in the case file the one that is safe is taken; so of those of devices and paths."""
    taken = []
    for name in given[0]:
        try:
            taken.append(loaded(tmp_path, changed("name", json.dumps(name))).name)
        except InputError:
            continue
    assert given[1] == taken


@pytest.mark.parametrize("number", ["0", "-1"])
@pytest.mark.parametrize(
    "key",
    [
        "draws",
        "max_tokens",
        "target.limits.concurrency",
        "target.limits.timeout",
        "target.limits.rate",
        "judge.limits.concurrency",
        "judge.limits.timeout",
        "target.launch.timeout",
        "budget.calls",
        "budget.seconds",
        "budget.tokens",
        "budget.cost",
        "target.k",
    ],
)
def test_zero_and_less_never_hang_a_run(tmp_path: Path, key: str, number: str) -> None:
    """Counts and times that would never end are refused, in the file and with --set."""
    base = FULL.replace("${KEY}", "k")
    (problem,) = refused(tmp_path, base, f"{key}={number}")
    assert problem.startswith(f"--set {key}={number}: '{key}' should be ")


@known(
    "CC-06",
    (text_of("cc-06-zero.yaml"), "it is 0"),
    (text_of("cc-06-zero.yaml").replace(": 0", ": -1"), "it is -1"),
    (text_of("cc-06-zero.yaml").replace(": 0", ": -0"), "it is 0"),
    (text_of("cc-06-zero.yaml").replace(": 0", ": -9999999999999999999"), "it is -9999999999999999999"),
)
def test_the_zero_of_the_case_file_is_refused(given: tuple[str, str], tmp_path: Path) -> None:
    """Its sampler.concurrency is our target.limits.concurrency."""
    ours = mapped(given[0], ("sampler:\n  concurrency", "  limits:\n    concurrency"))
    message = f"5:18: 'target.limits.concurrency' should be at least 1 ({given[1]})"
    assert [message] == refused(tmp_path, ours)


@pytest.mark.parametrize("number", ["0.5", "1e400", "true", '"4"', "1.5", "[]", ".inf", ".nan", "null"])
def test_what_is_no_count_is_no_concurrency(tmp_path: Path, number: str) -> None:
    """Neither a part of one, nor all there are, nor a word."""
    base = FULL.replace("${KEY}", "k").replace("{concurrency: 8,", f"{{concurrency: {number},")
    (problem,) = refused(tmp_path, base)
    assert "'target.limits.concurrency' " in problem


def mapped(text: str, *pairs: tuple[str, str]) -> str:
    """A case file in our keys: its dataset and service become ours, ``pairs`` the rest; what is odd stays."""
    ours = text.replace("data/profile.jsonl", "d.jsonl")
    ours = ours.replace("service:\n  url: http://127.0.0.1:8000/ask", "target:\n  kind: fake")
    for theirs, mine in pairs:
        assert theirs in ours
        ours = ours.replace(theirs, mine)
    return ours + "name: n\nscorers: [mrr]\n"


NORWAY = text_of("ym-01-norway.yaml")


@known(
    "YM-01",
    (NORWAY, ["en", "no", "on"], ["off", "work"]),
    (
        NORWAY.replace("no, on", "NO, On, y, N, Yes, 1_000, 0o9, 08, 12:30:45, 2026-01-01"),
        ["en", "NO", "On", "y", "N", "Yes", "1_000", "0o9", "12:30:45", "2026-01-01"],
        ["off", "work"],
    ),
    (
        NORWAY.replace("off", "OFF").replace("no, on", "!!str no"),
        "tag !!str is not read here",
        ["OFF", "work"],
    ),
    (NORWAY.replace("no, on", "false"), "should be text (it is false)", ["off", "work"]),
    (NORWAY.replace("no, on", "~, 1e3"), "should be text (it is null)", ["off", "work"]),
)
def test_norway_stays_a_word(given: tuple[str, Any, list[str]], tmp_path: Path) -> None:
    """A list of language codes and switches arrives as the words that stand there, or is refused."""
    text, words, switches = given
    ours = mapped(
        text,
        ("languages:", "  launch:\n    command:"),
        (f"categories:\n  - {switches[0]}\n  - work\n", ""),
    )
    if isinstance(words, str):
        assert words in refused(tmp_path, ours)[0]
        return
    if "08" in text:
        assert ["5:50: 'target.launch.command.8' should be text (it is 8)"] == refused(tmp_path, ours)
        ours = ours.replace(" 08,", "")
    config = loaded(tmp_path, ours)
    assert config.target.launch is not None
    assert tuple(words) == config.target.launch.command
    assert switches == parse_yaml(text, tmp_path / "n.yaml").value["categories"]


TWICE = text_of("ym-02-duplicate-key.yaml")


@known(
    "YM-02",
    (TWICE, "8:3: key 'judge.temperature' stands twice, on lines 5 and 8"),
    (
        TWICE.replace("  threshold: 0.1", '  "thres\\u0068old": 0.1'),
        "8:3: key 'judge.temperature' stands twice, on lines 5 and 8",
    ),
    (
        TWICE.replace("  threshold: 0.1", "judge: {threshold: 0.1}"),
        "8:1: key 'judge' stands twice, on lines 4 and 8",
    ),
    (
        TWICE.replace("  threshold: 0.1", "  limits: {timeout: 1, retries: 2, 'timeout': 3}"),
        "8:36: key 'judge.limits.timeout' stands twice, on lines 8 and 8",
    ),
)
def test_a_duplicate_key_is_refused(given: tuple[str, str], tmp_path: Path) -> None:
    """The threshold that stands twice decides nothing, however the key is written and at whatever depth."""
    ours = mapped(
        given[0],
        ("threshold", "temperature"),
        ("thres\\u0068old", "temp\\u0065rature") if "u0068" in given[0] else ("small", "small"),
        ("small-judge", "ollama/small\n  rubric: r.yaml"),
    )
    assert [given[1]] == refused(tmp_path, ours)


def test_a_merge_key_may_bring_a_key_that_stands_there_too(tmp_path: Path) -> None:
    """YM-02: it is no second one: the mapping's own wins."""
    limits = "limits: {<<: {timeout: 9, retries: 1}, timeout: 3}"
    found = loaded(tmp_path, MINIMAL.replace("k: 5", f"k: 5, {limits}")).target.limits
    assert (3, 1) == (found.timeout, found.retries)


EXPONENT = text_of("ym-03-exponent.yaml")


@known(
    "YM-03",
    (EXPONENT, 0.1, 60),
    (EXPONENT.replace("1e-1", "1E-1").replace("6e1", "6.e+1"), 0.1, 60),
    (EXPONENT.replace("1e-1", ".1e0").replace("6e1", "+0.6E2"), 0.1, 60),
    (EXPONENT.replace("1e-1", "10e-2").replace("6e1", "0x3c"), 0.1, 60),
)
def test_exponents_are_numbers(given: tuple[str, float, float], tmp_path: Path) -> None:
    """A temperature and a timeout in exponent form arrive as numbers."""
    timeout = re.findall("timeout_s: (.*)", given[0])[0]
    ours = mapped(given[0], ("sampler:\n  temperature", "temperature"), (f"  timeout_s: {timeout}", ""))
    ours = ours.replace("kind: fake", f"kind: fake\n  limits: {{timeout: {timeout}}}")
    config = loaded(tmp_path, ours)
    assert given[1:] == (config.temperature, config.target.limits.timeout)


SLIP = text_of("ym-04-typo-key.yaml")


@known(
    "YM-04",
    (SLIP, "min_covrage", ["6:5: unknown key 'gates.0.min_covrage'", "8:1: unknown key 'drwas'"]),
    (
        SLIP.replace("sampels: 5", "target: {}\nlimits: {timeout: 3}").replace("target: {}\n", ""),
        "min_covrage",
        ["6:5: unknown key 'gates.0.min_covrage'", "8:1: unknown key 'limits'"],
    ),
    (
        SLIP.replace("sampels: 5", "Draws: 5"),
        "Min_coverage",
        ["6:5: unknown key 'gates.0.Min_coverage'", "8:1: unknown key 'Draws'"],
    ),
    (
        SLIP.replace("sampels: 5", '"draws ": 5\njudge: {modle: ollama/x, rubric: r.yaml, model: ollama/x}'),
        "min-coverage",
        [
            "6:5: unknown key 'gates.0.min-coverage'",
            "8:1: unknown key 'draws '",
            "9:9: unknown key 'judge.modle'",
        ],
    ),
)
def test_misspelt_keys_are_not_ignored(given: tuple[str, str, list[str]], tmp_path: Path) -> None:
    """The gate and the count that a slip would have switched off are both told; so is a misplaced key."""
    text, slip, problems = given
    ours = mapped(
        text, ("  faithful:\n    treshold", f"  - metric: faithful\n    {slip}"), ("samples", "draws")
    ).replace("sampels", "drwas")
    found = refused(tmp_path, ours)
    assert sorted(problems) == sorted(problem for problem in found if "unknown" in problem)


UNSET = text_of("ym-05-env-unset.yaml")
NAMED = "needs the environment variable EVALRUN_TEST_KEY_UNSET, which is"


@known(
    "YM-05",
    (UNSET, f"5:20: 'target.headers.Authorization' {NAMED} not set"),
    (
        UNSET.replace("Bearer ", "").replace("}", "}${EVALRUN_TEST_KEY_UNSET}"),
        f"5:20: 'target.headers.Authorization' {NAMED} not set",
    ),
    (
        UNSET.replace('"', "'"),
        f"5:20: 'target.headers.Authorization' {NAMED} set, but empty",
    ),
    (
        UNSET.replace("${EVALRUN_TEST_KEY_UNSET}", "${}"),
        "5:20: 'target.headers.Authorization' holds '${' without a variable name",
    ),
    (
        UNSET.replace("${EVALRUN_TEST_KEY_UNSET}", "${EVALRUN TEST}"),
        "5:20: 'target.headers.Authorization' holds '${' without a variable name",
    ),
)
def test_an_unset_variable_is_found_before_any_request(given: tuple[str, str], tmp_path: Path) -> None:
    """A header is never sent with a placeholder in it, nor empty."""
    env = {"EVALRUN_TEST_KEY_UNSET": ""} if "empty" in given[1] else {}
    assert [given[1]] == refused(tmp_path, mapped(given[0]), **env)


BOMB = text_of("ym-06-alias-bomb.yaml")
BOMB_HEAD = BOMB[: BOMB.index("  a:")]


def bomb(step: str) -> str:
    """Nine steps, each made of the one before it."""
    steps = (f"  {name}: &{name} {step.format(before)}\n" for before, name in itertools.pairwise("abcdefghi"))
    return BOMB_HEAD + "  a: &a {x: 1}\n" + "".join(steps)


@known(
    "YM-06",
    (BOMB, "9:14: more than 20,000 value"),
    (bomb("{{a: *{0}, b: *{0}, c: [*{0}, *{0}], d: *{0}, e: *{0}}}"), "10:28: more than 20,000 value"),
    (bomb("{{<<: [*{0}, *{0}, *{0}, *{0}, *{0}, *{0}, *{0}, *{0}]}}"), "10:15: more than 20,000 value"),
    (BOMB_HEAD + "  a: &a x\n  b: " + "[" * 60 + "*a" + "]" * 60, "6:54: nested deeper than 50 levels"),
    (BOMB_HEAD + "  a: [" + "x, " * 25_000 + "]", "5:59974: more than 20,000 value"),
)
def test_an_alias_bomb_is_refused(given: tuple[str, str], tmp_path: Path) -> None:
    """The expanded size is counted before anything is built: of lists, merge keys and mere nesting."""
    assert [given[1]] == [problem[: len(given[1])] for problem in refused(tmp_path, mapped(given[0]))]


@pytest.mark.parametrize("name", ["x" * 256, "é" * 128, "a\0b", f"{'x/' * 3}{'y' * 300}.jsonl"])
def test_what_no_file_system_takes_is_no_path(tmp_path: Path, name: str) -> None:
    """Of a dataset, a rubric, a recording: refused before anybody looks for it."""
    (problem,) = refused(tmp_path, changed("dataset", json.dumps(name)))
    assert problem.endswith(" 'dataset.path' is not a path")


def test_a_scorer_twice_is_refused(tmp_path: Path) -> None:
    """A metric is measured once."""
    assert ["4:10: 'scorers' holds 'mrr' twice"] == refused(tmp_path, changed("scorers", "[mrr, a, mrr]"))


def test_scorers_are_checked_by_whoever_knows_them(tmp_path: Path) -> None:
    """The one that is passed in decides whether a spec is measured at all."""

    def only_mrr(spec: str) -> None:
        if spec != "mrr":
            raise UserError(f"unknown scorer '{spec}'", "did you mean 'mrr'?")

    path = written(tmp_path, changed("scorers", "[mrr, mrx]"))
    with pytest.raises(InputError) as caught:
        load_config(path, env={}, options_of=fake_options, check_scorer=only_mrr)
    assert (
        Problem(f"{path}:4:16", "'scorers.1' is not a scorer: unknown scorer 'mrx'", "did you mean 'mrr'?"),
    ) == caught.value.problems


@pytest.mark.parametrize("scorer", ["recall@6", "ndcg@6", "all_relevant@6"])
def test_no_metric_looks_deeper_than_the_target_retrieves(tmp_path: Path, scorer: str) -> None:
    """A k above the target's own would measure the cut, not the retriever."""
    message = f"'{scorer}' looks deeper than the target retrieves (k: 5)"
    assert [f"4:11: {message}"] == refused(tmp_path, changed("scorers", f"[{scorer}]"))
    gates = changed("gates", f"[{{metric: {scorer}, min: 0.5}}]")
    assert [f"5:18: {message}"] == refused(tmp_path, gates)


def test_a_metric_as_deep_as_the_target_is_allowed(tmp_path: Path) -> None:
    """The limit itself is fine."""
    assert ("recall@5",) == loaded(tmp_path, changed("scorers", "[recall@5]")).scorers


@pytest.mark.parametrize("bounds", ["", ", min: 0.1, max: 0.9"])
def test_a_gate_has_exactly_one_limit(tmp_path: Path, bounds: str) -> None:
    """Neither none nor two."""
    assert ["5:9: 'gates.0' needs one of 'min', 'max' and 'max_drop'"] == refused(
        tmp_path, changed("gates", f"[{{metric: mrr{bounds}}}]")
    )


@pytest.mark.parametrize(
    ("gate", "problem"),
    [
        ("{min: 0.1}", "5:9: 'gates.0' needs a 'metric'"),
        (
            "{max_drop: {metric: mrr, margin: 0.1, baseline: b.jsonl}, min: 0.1}",
            "5:9: 'gates.0' needs one of",
        ),
        (
            "{max_drop: {metric: mrr, margin: 0.1, baseline: b.jsonl}, metric: mrr}",
            "5:9: 'gates.0' names a me",
        ),
        (
            "{max_drop: {metric: mrr, margin: 0.1, baseline: b.jsonl}, method: exact}",
            "5:9: 'gates.0' has no exa",
        ),
        (
            "{max_drop: {metric: mrr, margin: 1, baseline: b.jsonl}}",
            "5:42: 'gates.0.max_drop.margin' should be",
        ),
        ("{max_drop: {metric: mrr, margin: 0.1}}", "5:20: 'gates.0.max_drop.baseline' is missing"),
        (
            "{max_drop: {metric: mrr, margin: 0.1, baseline: no.jsonl}}",
            "5:57: 'gates.0.max_drop.baseline' names",
        ),
    ],
)
def test_a_gate_on_a_drop_is_whole(tmp_path: Path, gate: str, problem: str) -> None:
    """It names its metric, its margin and a baseline that is there, and nothing that does not fit."""
    (tmp_path / "b.jsonl").write_text("", "utf-8")
    (found,) = refused(tmp_path, changed("gates", f"[{gate}]"))
    assert found.startswith(problem), found


def test_a_gate_on_a_drop_is_a_gate(tmp_path: Path) -> None:
    """One type for all gates; the path of the baseline is not public."""
    (tmp_path / "b.jsonl").write_text("", "utf-8")
    drop = "{max_drop: {metric: mrr, margin: 0.05, baseline: b.jsonl}, group: all}"
    config = loaded(tmp_path, changed("gates", f"[{drop}, {{metric: mrr, min: 0.1}}]"))
    assert ("mrr, all (drop)", "drop <= .05") == (config.gates[0].name, config.gates[0].needs)
    assert tmp_path / "b.jsonl" == config.gates[0].baseline
    assert "b.jsonl" not in json.dumps(config.public())


def test_a_run_is_held_against_one_baseline(tmp_path: Path) -> None:
    """Two gates may not name two files."""
    for name in ("b.jsonl", "c.jsonl"):
        (tmp_path / name).write_text("", "utf-8")
    drops = [
        f"{{max_drop: {{metric: {m}, margin: 0, baseline: {b}}}}}"
        for m, b in (("mrr", "b.jsonl"), ("m", "c.jsonl"))
    ]
    (found,) = refused(tmp_path, changed("gates", f"[{', '.join(drops)}]"))
    assert "a second baseline, the first is at" in found


@pytest.mark.parametrize("number", ["-0.1", "1.1"])
@pytest.mark.parametrize("bound", ["min", "max"])
def test_a_gates_limit_lies_between_0_and_1(tmp_path: Path, bound: str, number: str) -> None:
    """A percentage is not a share."""
    (problem,) = refused(tmp_path, changed("gates", f"[{{metric: mrr, {bound}: {number}}}]"))
    assert problem.startswith(f"5:28: 'gates.0.{bound}' should be at ")


def test_two_gates_of_one_name_are_refused(tmp_path: Path) -> None:
    """A gate is known by metric and group, so these are unique."""
    gates = changed("gates", "[{metric: mrr, min: 0.1}, {metric: mrr, min: 0.2}]")
    assert [f"5:34: a second gate on 'mrr, all', the first is at {tmp_path}/c.yaml:5:9"] == refused(
        tmp_path, gates
    )


@pytest.mark.parametrize("url", ["ftp://a", "http://", "http://a b", "http://a:99999", "http://[::1"])
def test_an_address_that_is_none_is_refused(tmp_path: Path, url: str) -> None:
    """Before a run, not as a failed connection."""
    text = changed("cassette", json.dumps({"path": "a", "upstream": url}))
    assert ["5:37: 'cassette.upstream' is not the address of a server"] == refused(tmp_path, text)


def test_a_pattern_that_does_not_compile_is_refused(tmp_path: Path) -> None:
    """With the reason that the regex engine gives."""
    (problem,) = refused(tmp_path, changed("cassette", "{path: a, ignore: ['(']}"))
    assert problem.startswith("5:30: 'cassette.ignore.0' is not a regular expression: missing )")


def test_a_message_never_shows_a_secret(tmp_path: Path) -> None:
    """A wrong value from the environment is shown as it is written in the file."""
    (problem,) = refused(tmp_path, changed("provenance", "${KEY}"), KEY="hunter2")
    assert problem.endswith('(it is "${KEY}")')
    assert "hunter2" not in problem


# ---------------------------------------------------------------- --set


def test_set_changes_values_at_any_depth(tmp_path: Path) -> None:
    """Dotted keys, list items by index, YAML values, sections that were not there."""
    config = loaded(
        tmp_path,
        FULL,
        "draws=1",
        "target.k=7",
        "gates.0.min=0.5",
        "scorers=[mrr, recall@7]",
        "target.headers.X=y=z",
        KEY="k",
    )
    assert 1 == config.draws
    assert 7 == config.target.options.k
    assert 0.5 == config.gates[0].min
    assert ("mrr", "recall@7") == config.scorers
    assert {"Authorization": "Bearer k", "X": "y=z"} == config.target.options.headers
    assert 5 == loaded(tmp_path, MINIMAL, "budget.calls=5").budget.calls


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("draws", "is not key=value"),
        ("=1", "is not key=value"),
        ("a..b=1", "is not key=value"),
        ("gates.9.min=1", "there is no 'gates.9' to set"),
        ("gates.x=1", "there is no 'gates.x' to set"),
        ("draws.x=1", "there is no 'draws.x' to set"),
        ("draws=x", "'draws' should be a whole number (it is \"x\")"),
        ("drwas=1", "unknown key 'drwas'"),
        ("draws=[", "not valid YAML: expected the node content, but found '<stream end>'"),
        ("name=${NOT_SET}", "needs the environment variable NOT_SET, which is not set"),
        ("name=!x y", "tag !x is not read here"),
    ],
)
def test_a_fault_of_an_override_is_told_as_one(tmp_path: Path, override: str, problem: str) -> None:
    """The message points at the command line, not at the file."""
    assert [f"--set {override}: {problem}"] == refused(tmp_path, FULL, override, KEY="k")


def test_an_override_mends_what_it_replaces(tmp_path: Path) -> None:
    """A fault of the file that is overridden is gone."""
    text = changed("temperature", "${NOT_SET}")
    assert 0.5 == loaded(tmp_path, text, "temperature=0.5").temperature


# ---------------------------------------------------------------- what is public


def test_public_holds_what_is_measured_and_no_more(tmp_path: Path) -> None:
    """Limits, addresses, paths and budgets are no part of a run's identity."""
    assert {
        "plugins": [],
        "name": "quality",
        "dataset": {"columns": None},
        "target": {
            "kind": "fake",
            "k": 5,
            "headers": {"Authorization": "Bearer ${KEY}"},
            "launch": {
                "command": ["bot", "--port", "{port}"],
                "env": {"OLLAMA_HOST": "{tap}", "TOKEN": "${KEY}"},
                "ready": "/healthz",
            },
        },
        "cassette": {"at": "model", "redact": [], "ignore": ["\\d{4}-\\d\\d"]},
        "draws": 3,
        "temperature": 0.7,
        "max_tokens": 320,
        "scorers": ["recall@3", "recall@5", "outcome"],
        "judge": {"model": "ollama/small:1.5b", "temperature": 0.0},
        "provenance": "reported",
        "gates": [gate.model_dump() for gate in loaded(tmp_path, FULL, KEY="secret").gates],
        "reports": {"junit": {"cases": "failure", "include_text": True}},
    } == loaded(tmp_path, FULL, KEY="secret").public()


def test_public_never_holds_a_secret(tmp_path: Path) -> None:
    """What came from the environment stands as it is written."""
    assert "hunter2" not in canonical_json(loaded(tmp_path, FULL, KEY="hunter2").public())


@pytest.mark.parametrize(
    "override",
    [
        "target.limits.concurrency=1",
        "target.url=http://other:1",
        "target.launch.timeout=1",
        "judge.limits.timeout=900",
        "judge.base_url=http://other:1",
        "cassette.path=elsewhere",
        "cassette.upstream=http://other:1",
        "budget.calls=1",
    ],
)
def test_how_a_run_is_made_is_not_in_the_digest(tmp_path: Path, override: str) -> None:
    """A run may continue with other limits, on other ports."""
    assert loaded(tmp_path, FULL, KEY="a").digest == loaded(tmp_path, FULL, override, KEY="b").digest


@pytest.mark.parametrize(
    "override",
    [
        "draws=2",
        "temperature=0.1",
        "target.k=9",
        "judge.model=ollama/other",
        "gates.0.min=0.71",
        "provenance=none",
    ],
)
def test_what_is_measured_is_in_the_digest(tmp_path: Path, override: str) -> None:
    """Anything that may change a number makes it another config."""
    assert loaded(tmp_path, FULL, KEY="a").digest != loaded(tmp_path, FULL, override, KEY="a").digest


def test_the_digest_is_that_of_the_public_part(tmp_path: Path) -> None:
    """It can be derived from a run folder alone, wherever the config lay."""
    config = loaded(tmp_path, FULL, KEY="a")
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    assert tagged("config", config.public()) == config.digest
    assert config.digest == loaded(folder, FULL, KEY="a").digest


# ---------------------------------------------------------------- gates against metrics and groups


def metric(name: str, **parts: Any) -> Metric:
    """A metric with nothing remarkable but its name and ``parts``."""
    return Metric(**{"id": name, "event": "e", "kind": "rate", "better": "higher", **parts})


METRICS = {
    "mrr": metric("mrr", kind="score", deterministic=True),
    "grounded": metric("grounded", population="answerable"),
    "latency": metric("latency", kind="quantity"),
}
GROUPS = ("all", "answerable", "unanswerable", "guardrail")


def gate_problems(folder: Path, gates: Sequence[str]) -> list[str]:
    """What is wrong with gates, as ``line:col: message``, and the hint."""
    config = loaded(folder, changed("gates", "[" + ", ".join(gates) + "]"))
    return [
        f"{problem.where}: {problem.message}; {problem.hint}".removeprefix(f"{folder}/c.yaml:")
        for problem in check_gates(config, METRICS, GROUPS)
    ]


def test_gates_that_can_be_computed_have_no_problem(tmp_path: Path) -> None:
    """Known metrics, known groups, each fit for the other."""
    gates = ["{metric: mrr, min: 0.5, infer: this_set}", "{metric: grounded, group: guardrail, min: 0.5}"]
    assert [] == gate_problems(tmp_path, gates)


@pytest.mark.parametrize(
    ("gate", "problem"),
    [
        (
            "{metric: grouded, min: 0.5}",
            "5:18: a gate on 'grouded', which no scorer of this config measures; did you mean 'grounded'?",
        ),
        (
            "{metric: mrr, min: 0.5, group: gardrail}",
            "5:40: no cases in group 'gardrail'; did you mean 'guardrail'?",
        ),
        ("{metric: latency, min: 0.5}", "5:9: 'latency' is a quantity; a gate needs a rate or a score; "),
        (
            "{metric: grounded, min: 0.5, infer: this_set}",
            "5:9: 'infer: this_set' is for deterministic metrics; 'grounded' is not one; ",
        ),
        (
            "{metric: grounded, min: 0.5, group: unanswerable}",
            "5:9: 'grounded' counts answerable cases only: write group: answerable; ",
        ),
    ],
)
def test_a_gate_that_cannot_be_computed_is_told(tmp_path: Path, gate: str, problem: str) -> None:
    """Unknown names come with the nearest; unfit pairs with the reason."""
    assert [problem] == gate_problems(tmp_path, [gate])


# ---------------------------------------------------------------- anything at all

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
KEYS = st.sampled_from([*RunConfig.model_fields, "unknown"])


@settings(max_examples=100, deadline=None)
@given(parts=st.dictionaries(KEYS, VALUES, max_size=4), override=st.text(max_size=20))
def test_any_values_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, parts: dict[str, Any], override: str
) -> None:
    """Whatever stands under the keys of a config, the answer is a config or an input error."""
    text = MINIMAL.replace("name: n\n", "") + "".join(
        f"{key}: {json.dumps(value)}\n" for key, value in parts.items() if key not in MINIMAL
    )
    folder = tmp_path_factory.mktemp("c")
    try:
        found: object = loaded(folder, text, "name=n", override)
    except InputError as fault:
        found = fault.problems
    assert isinstance(found, RunConfig) or found


@pytest.mark.parametrize("name", ["q.jsonl", "q.csv", "q.tsv", "q.jsonl.gz"])
def test_a_dataset_is_no_config(tmp_path: Path, name: str) -> None:
    """It is told so in a line, not by what a YAML parser makes of it."""
    path = tmp_path / name
    path.write_bytes(b'{"id": "a", "question": "Where?"}\\n{"id": "b", "question": "When?"}\\n')
    with pytest.raises(InputError) as told:
        load_config(path)
    assert [f"{path}: a file of questions or answers, and no config"] == [
        f"{problem.where}: {problem.message}" for problem in told.value.problems
    ]
