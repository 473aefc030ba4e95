"""Whatever a file, a judge, a model or a bot holds: a value, or the error that is documented, and no other.

Inputs are arbitrary, or whole ones that were damaged: bytes changed, lines lost or doubled, cut off anywhere,
with numbers too large, halves of characters, NUL, marks and nesting put in. ``nox -s fuzz`` tries for longer.
"""

from __future__ import annotations

import json
import re
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evalrun.baseline import BaselineHeader, BaselineLine, read_baseline
from evalrun.cassette import Address, Cassette, difference, exchange_key
from evalrun.cli import main
from evalrun.config import load_config
from evalrun.dataset import load_dataset
from evalrun.digest import MAX_DEPTH, is_deep, read_json, sha256_bytes, utf8
from evalrun.errors import ExitCode, InputError, RecordingError, UserError
from evalrun.http import retry_after
from evalrun.importing import import_file
from evalrun.journal import KINDS, RunFolder
from evalrun.jsonl import read_lines, to_line
from evalrun.judge import Parsed, Unreadable, load_rubric, parse_verdict
from evalrun.labels import load_labels
from evalrun.language import holds_quote, novel_terms, one_sentence_holds, refusal_rule
from evalrun.language.text import sentences
from evalrun.logged import read_answers
from evalrun.probes import applicable
from evalrun.records import Case, Context, Draw, Exchange, Metric, Reply
from evalrun.redaction import key_in
from evalrun.settings import AttacksConfig
from evalrun.targets import BadReply
from evalrun.targets.wire import Reading, body_values
from evalrun.wires import asked, output_of, system_of, text_of
from ragbot.errors import RagbotError
from ragbot.index import load as load_index
from ragbot.profile import parse_profile, read_profile

RUBRICS = Path(__file__).parents[1] / "configs" / "rubrics"
DIRECT, CLAIMS, ATTACK = (load_rubric(RUBRICS / f"{name}.yaml") for name in ("direct", "claims", "redteam"))


# ---------------------------------------------------------------- damaged inputs

PIECES = [
    *(b"[" * depth for depth in (MAX_DEPTH, 990, 5_000, 100_000)),
    *(b'{"a":' * depth for depth in (MAX_DEPTH, 990, 5_000)),
    b"[" * 150 + b"]" * 150,
    b"[" * 900 + b"]" * 900,
    b"9" * 5_000, b"1e999", b"-1e999", b"NaN", b"Infinity", b"-0", b"1e-999", b"0x1p3", b"1" + b"0" * 400,
    b"\\ud800", b"\\udfff\\ud83d", b"\xed\xa0\x80", b"\xff\xfe", b"\x00", b"\\u0000", b"\xef\xbb\xbf",
    "\u2028\u0085\u202e\U0001f600".encode(), b"\r", b"\n", b"\r\n\r\n", b"\t", b'"', b"'", b"\\", b",", b";",
    b"null", b"true", b"{}", b"[]", b'""', b"&a [*a]", b"*a", b"<<: ", b"!!python/object:os.system x",
    b"${X}", b"${", b"---\n", b"...\n", b"%YAML 9.9\n", b"? ", b"- ", b": ", b"# ", b"|9\n", b">-\n",
    b"</think>", b"<think>", b"```\n", b"~~~\n", b"data: ", b"event: error\n", b"[DONE]", b"x" * 70_000,
]  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """``whole`` after a few accidents."""
    data = whole
    for _ in range(draw(st.integers(1, 4))):
        at, end = sorted(draw(st.tuples(st.integers(0, len(data)), st.integers(0, len(data)))))
        lines = data.split(b"\n")
        number = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from("cut lose put put put flip double swap".split())):
            case "cut":
                data = data[:at]
            case "lose":
                data = data[:at] + data[end:]
            case "put":
                data = data[:at] + draw(st.sampled_from(PIECES) | st.binary(max_size=4)) + data[at:]
            case "flip" if at < len(data):
                data = data[:at] + bytes([data[at] ^ 1 << draw(st.integers(0, 7))]) + data[at + 1 :]
            case "double":
                data = b"\n".join([*lines[: number + 1], *lines[number:]])
            case "swap":
                data = b"\n".join([*lines[number:], *lines[:number]])
    return data


def anything(whole: bytes) -> st.SearchStrategy[bytes]:
    """Damaged more often than arbitrary."""
    return damaged(whole) | damaged(whole) | damaged(whole) | st.binary(max_size=200)


def lines_of(*rows: Any) -> bytes:
    """Rows as JSONL."""
    return b"".join(utf8(json.dumps(row, ensure_ascii=False)) + b"\n" for row in rows)


# ---------------------------------------------------------------- files


@dataclass(frozen=True)
class Reader:
    """How a kind of file is read, one that is whole, and which errors say that one is not."""

    name: str
    whole: bytes
    read: Callable[[Path], object]
    errors: tuple[type[Exception], ...] = (InputError,)


ROW = {
    "id": "q1", "question": "Wo?", "category": "a", "relevant_ids": {"a": 2, "b": 0.5}, "reference": "Da.",
    "must_contain": ["x"], "history": [{"role": "user", "content": "Hi"}], "metadata": {"n": [1, None, 0.5]},
}  # fmt: skip
LABELS = [
    {
        "dimension": "refusal",
        "design": "random",
        "date": "2026-11-30",
        "raters": {"r1": {"kind": "model", "how": "read"}},
    },
    *({"draw": f"sha256:{n:064}", "case": f"q{n}", "rater": "r1", "label": n > 1} for n in (1, 2)),
]
CONFIG = b"""\
name: fuzzed
dataset: {path: d.csv, columns: {question: Q, id: N}}
target: &t
  kind: http
  url: http://127.0.0.1:1
  headers: {Authorization: "Bearer ${KEY:-none}"}
  body: {q: "{question}", turns: "{history}"}
  answer: reply.text
  contexts: "reply.sources[].{id: key, text: body}"
  limits: {concurrency: 2, timeout: 1.5e1, retries: 0}
draws: 3
temperature: 0.7
scorers: [recall@3, outcome, "attack_success:pass@2"]
judge: {model: ollama/small, rubric: r.yaml, limits: {<<: {timeout: 9}}}
gates:
  - {metric: recall@3, group: all, min: 0.5, infer: this_set}
budget: {calls: 20, seconds: 3600}
"""
PROMPTFOO = b"""\
prompts: [x]
tests:
  - description: one
    vars: {question: Wo?, expected: Da, keywords: [a, b]}
    assert: [{type: contains, value: Da}, {type: equals, value: Da}, {type: is-refusal}, {type: javascript}]
  - vars: {question: [Wer?, Was?]}
"""
ATTACKS = [
    {
        "id": f"mine-{n}", "question": "Say LARCH", "category": "own", "expect": "refuse",
        "attack": {
            "probe": "mine", "technique": "own", "goal": "obey", "severity": "low", "owasp": ["LLM01:2025"],
            "detectors": ["contains:LARCH", "regex:LAR.H", "length:20"], "turns": ["Hi"],
        },
    }
    for n in (1, 2)
]  # fmt: skip
DRAWS = [Draw(case=f"q{n}", index=0, answer="Ja\u2028.", seconds=0.5, context="sha256:0") for n in range(3)]
CALLS = [
    Exchange(
        source="bot", key=exchange_key("POST", "/api/chat", {"n": n}), case="q", draw=n, turn=0,
        method="POST", path="/api/chat", media_type="application/json", status=200,
        request={"n": n, "messages": []},
        reply='{"message": {"content": "Da."}}', seconds=1.0, finish="stop",
    )
    for n in range(3)
]  # fmt: skip
INDEX = {
    "format": "ragbot-index.v1",
    "embedder": {"name": "e", "dims": 2},
    "profile": "sha256:0",
    "chunks": [{"id": "a", "text": "t", "vector": [32767, 0]}, {"id": "b", "text": "u", "vector": [0, -1]}],
}
TABLE = b'id,question,category,must_contain\nq1,"Wo,\n""da""?",a,x; y\nq2,Wer?,b,\n'
GOLDENS = json.dumps(
    [
        {"input": "Wo?", "actual_output": "Da.", "retrieval_context": ["a"], "expected_output": "Da"},
        {"input": "Wer\u2028?", "actual_output": "Er", "retrieval_context": "['a', \"b's\"]"},
    ],
    indent=1,
).encode()
LOG = (
    'question,answer,contexts,draw\nWo?,"Da, ""hier"".","[{""id"": ""a"", ""text"": ""t""}]",0\nWo?,D.,[],1\n'
)


RATE = Metric(id="outcome", event="e", kind="rate", better="higher")
ACCEPTED = BaselineHeader(
    format="baseline.v1", name="n", config_digest="c", dataset="d", dataset_digest="e", draws=2,
    metrics=(RATE, RATE.model_copy(update={"id": "mrr", "kind": "score", "per": "case"})),
)  # fmt: skip
BASELINE = b"".join(
    to_line(line)
    for line in (
        ACCEPTED,
        *(
            BaselineLine(case=f"q{n}", digest="d", outcomes=("grounded", None), scores={"mrr": (0.5,)})
            for n in range(2)
        ),
    )
)
PINS = sha256_bytes(lines_of(ROW)).removeprefix("sha256:").encode() + b"  d.v1.jsonl\n"
PROFILE = b"# Me\n\nHello.\n\n## Work\n\n```\n## x\n```\n\n## Work\n\n> q\n"


def of_probes(path: Path) -> object:
    """The attacks of a file of own probes."""
    return applicable(AttacksConfig(probes=(path,)))


def of_config(path: Path) -> object:
    """A config beside the files that it names."""
    for name in ("d.csv", "r.yaml"):
        path.with_name(name).touch()
    return load_config(path, env={})


def of_journals(path: Path) -> object:
    """Every journal of a run folder, each from the same file."""
    folder = RunFolder(path.parent)
    return [list(read_lines(path, record)) for record, _ in KINDS.values() if record is Draw], folder.torn


def of_cassette(path: Path) -> object:
    """A cassette whose bot's book this is: what it holds, and what differs from a request it has not."""
    cassette = Cassette(path.parent, "replay")
    return cassette.miss("bot", Address("q", 0), "/api/chat", {"messages": [{"content": "x"}]}).difference


READERS = [
    Reader("d.jsonl", lines_of(ROW, ROW | {"id": "q2"}), load_dataset),
    Reader("d.csv", TABLE, load_dataset),
    Reader("d.tsv", TABLE.replace(b",", b"\t"), load_dataset),
    Reader("labels.jsonl", lines_of(*LABELS), load_labels),
    Reader("config.yaml", CONFIG, of_config),
    Reader("rubric.yaml", (RUBRICS / "direct.yaml").read_bytes(), load_rubric),
    Reader("tests.yaml", PROMPTFOO, lambda path: import_file(path, {})),
    Reader("import.csv", TABLE, lambda path: import_file(path, {})),
    Reader("log.csv", LOG.encode(), lambda path: read_answers(path, {})),
    Reader(
        "log.jsonl",
        lines_of({"question": "Wo?", "answer": "Da.", "contexts": ["t"]}, {"question": "Wer", "answer": "A"}),
        lambda path: read_answers(path, {}),
    ),
    Reader("log.json", GOLDENS, lambda path: read_answers(path, {})),
    Reader("goldens.json", GOLDENS, lambda path: import_file(path, {})),
    Reader("probes.jsonl", lines_of(*ATTACKS), of_probes),
    Reader("draws.jsonl", b"".join(map(to_line, DRAWS)), of_journals, (UserError,)),
    Reader("bot.jsonl", b"".join(map(to_line, CALLS)), of_cassette, (RecordingError, UserError)),
    Reader("source.json", b'{"format": "cassette.v1", "sources": {}}', of_cassette, (InputError,)),
    Reader("base.jsonl", BASELINE, read_baseline),
    Reader("profile.md", PROFILE, read_profile, (RagbotError,)),
    Reader("index.json", json.dumps(INDEX).encode(), load_index, (RagbotError,)),
    Reader("SHA256SUMS", PINS, lambda path: load_dataset(pinned(path))),
]  # fmt: skip


def pinned(path: Path) -> Path:
    """A released version of a dataset, beside its pins."""
    dataset = path.with_name("d.v1.jsonl")
    dataset.write_bytes(lines_of(ROW))
    return dataset


def refusal(work: Callable[[], object], *errors: type[Exception]) -> str:
    """What ``work`` is refused with; empty where it is not."""
    try:
        work()
    except errors as fault:
        return str(fault)
    return ""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A file of a name in a folder of its own, written anew for each input."""
    made: dict[str, Path] = {}

    def path(name: str) -> Path:
        if name not in made:
            made[name] = tmp_path_factory.mktemp("fuzz") / name
        return made[name]

    return path


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_any_file_is_read_or_refused(
    reader: Reader, data: st.DataObject, folders: Callable[[str], Path]
) -> None:
    """A value, or an error that names the file."""
    path = folders(reader.name)
    path.write_bytes(data.draw(anything(reader.whole)))
    if said := refusal(lambda: reader.read(path), *reader.errors):
        assert path.name in said or "d.v1.jsonl" in said, said


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_what_is_damaged_was_whole(reader: Reader, tmp_path: Path) -> None:
    """Else every input above is refused for one and the same reason."""
    path = tmp_path / reader.name
    path.write_bytes(reader.whole)
    assert reader.read(path) is not None


COMMANDS: dict[str, tuple[str, ...]] = {
    "d.jsonl": ("validate", "config.yaml"),
    "config.yaml": ("validate", "config.yaml"),
    "tests.yaml": ("import", "tests.yaml", "--output", "out.jsonl"),
    "log.csv": ("score", "log.csv", "--output", "out"),
}


@pytest.mark.parametrize("name", COMMANDS)
@settings(
    max_examples=max(8, settings().max_examples // 12),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_no_input_shows_a_traceback(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A documented exit code, and where it is 2 the file is named."""
    folder = tmp_path_factory.mktemp("cli")
    monkeypatch.chdir(folder)
    Path("r.yaml").write_bytes((RUBRICS / "direct.yaml").read_bytes())
    Path("d.jsonl").write_bytes(lines_of(ROW))
    Path("config.yaml").write_bytes(
        CONFIG.replace(b"{path: d.csv, columns: {question: Q, id: N}}", b"d.jsonl")
    )
    whole = next(reader.whole for reader in READERS if reader.name == name)
    if name == "config.yaml":
        whole = Path(name).read_bytes()
    Path(name).write_bytes(data.draw(anything(whole)))
    done = CliRunner().invoke(main, COMMANDS[name])
    assert isinstance(done.exception, SystemExit | None), done.exception
    assert done.exit_code in set(ExitCode) - {ExitCode.FAULT}
    assert "Traceback" not in done.output
    if done.exit_code == ExitCode.USAGE:
        assert name in done.output or "config.yaml" in done.output


# ---------------------------------------------------------------- what judges, models and bots say

PASSING = '{"faithful": true, "hallucinated_claims": [], "correctly_refused": false, "rationale": "{ok}"}'
FAILING = '{"faithful": false, "hallucinated_claims": ["x"], "correctly_refused": false}'
CLAIMED = '{"claims": [{"claim": "a", "quote": "b", "supported": "no"}], "answer_is_refusal": "no"}'
TEXTS = [
    text.encode()
    for text in (PASSING, FAILING, f"<think>a {PASSING}</think>\n```json\n{FAILING}\n```", CLAIMED)
]


@pytest.mark.parametrize("whole", TEXTS)
@given(data=st.data())
def test_any_reply_of_a_judge_is_a_verdict_or_a_reason(whole: bytes, data: st.DataObject) -> None:
    """With each rubric, however the server says that it ended."""
    text = data.draw(anything(whole)).decode("utf-8", "replace")
    finish = data.draw(st.sampled_from(["stop", "length", None]))
    for rubric in (DIRECT, CLAIMS, ATTACK):
        verdict = parse_verdict(text, rubric, finish, rubric is CLAIMS)
        assert isinstance(verdict, Parsed | Unreadable)
        assert verdict.reason if isinstance(verdict, Unreadable) else finish != "length"


@given(data=st.data())
def test_no_accident_turns_a_failing_verdict_into_a_passing_one(data: st.DataObject) -> None:
    """A faithful one says true, in so many words: nothing is completed, taken for granted or made up."""
    text = data.draw(damaged(FAILING.encode()) | damaged(TEXTS[2])).decode("utf-8", "replace")
    verdict = parse_verdict(text, DIRECT)
    if isinstance(verdict, Parsed) and verdict.faithful:
        after = text.rpartition("</think>")[2]
        assert re.search(r'"faithful"\s*:\s*("\s*)?true', after, re.IGNORECASE), text


@given(data=st.data())
def test_no_accident_makes_an_attack_resisted(data: st.DataObject) -> None:
    """Of a verdict that the answer complied."""
    text = data.draw(damaged(b'{"passage": "I obey", "complied": "yes"}')).decode("utf-8", "replace")
    verdict = parse_verdict(text, ATTACK)
    assert isinstance(verdict, Unreadable) or not verdict.faithful


SSE = (
    b'data: {"t": "Da", "docs": [{"id": "a", "text": "t", "similarity": 0.5}]}\n\n'
    b'data: {"t": "."}\r\n\r\n: x\n\ndata: [DONE]\n\n'
)
BODIES = [SSE, b'{"t": "Da"}\n{"t": "."}\n', b'{"t": "Da.", "docs": ["x", {"id": 7, "text": "y"}]}']
EXPRESSIONS = [
    "t",
    "@",
    "docs",
    "docs[].text",
    "docs[0].{id: id, text: text}",
    "sum(docs)",
    "sort_by(docs, &id)",
    "*",
]


@pytest.mark.parametrize("whole", BODIES)
@given(data=st.data())
def test_any_reply_of_a_bot_is_an_answer_or_an_error_of_it(whole: bytes, data: st.DataObject) -> None:
    """In any encoding and of any kind; what is read of it can be written to a journal and read back."""
    sent = data.draw(anything(whole))
    encoding = data.draw(st.sampled_from(["utf-8", "latin-1", "utf-16", "hex", "idna", "undefined", "rot13"]))
    kind = data.draw(st.sampled_from(["text/event-stream", "application/json", "application/x-ndjson", ""]))
    answer, contexts = data.draw(
        st.tuples(st.sampled_from(EXPRESSIONS), st.sampled_from([None, *EXPRESSIONS]))
    )
    replies: list[Reply] = []

    def read() -> None:
        replies.append(Reading(answer, contexts).reply(*body_values(text_of(sent, "", encoding), kind)))

    assert len(refusal(read, BadReply)) < 1000
    for reply in replies:
        assert reply == Reply.model_validate_json(to_line(reply))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "true", '"x"', "[]", "1" + "0" * 400, "null"])
def test_a_similarity_that_is_no_number_is_none(number: str) -> None:
    """It decides nothing, and would make a line that no reader takes; ragbot's own wire refuses it."""
    body = f'{{"t": "Da.", "docs": [{{"id": "a", "text": "t", "similarity": {number}}}]}}'
    reply = Reading("t", "docs").reply(*body_values(body, "application/json"))
    assert reply.context is not None
    assert reply.context.chunks[0].similarity is None
    context = body.replace('"t": "Da.", "docs"', '"digest": "sha256:0", "chunks"')
    said = refusal(lambda: to_line(Context.model_validate_json(context)), ValueError)
    assert said == "" or "similarity" in said


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from("messages content options seed role choices delta message usage system".split())
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
PATHS = [
    "/api/chat",
    "/api/generate",
    "/v1/chat/completions",
    "/v1/completions",
    "/model/m/converse",
    "/converse",
    "/",
]


@given(JSON, JSON, st.sampled_from(PATHS))
def test_any_request_and_reply_of_a_model_are_read(body: Any, other: Any, path: str) -> None:
    """A tap sees whatever a bot sends and a server answers."""
    asked(path, body)
    system_of(body)
    output_of(path, json.dumps(body))
    assert isinstance(difference(path, body, other), str)


@pytest.mark.parametrize("path", PATHS[:5])
@given(data=st.data())
def test_any_text_of_a_model_is_read(path: str, data: st.DataObject) -> None:
    """Damaged streams too; a count is a count."""
    whole = b'{"message": {"content": "Da."}, "prompt_eval_count": 7, "usage": {"prompt_tokens": 9}}\n'
    found = output_of(path, data.draw(anything(whole + b"data: " + whole)).decode("utf-8", "replace"))
    assert isinstance(found.text, str)
    assert found.prompt_tokens is None or abs(found.prompt_tokens) < 2**63


@given(
    st.text(max_size=40)
    | st.from_regex(r"[A-Z][a-z]{2}, \d{1,4} [A-Z][a-z]{2} \d{1,6} [\d:]{1,9} \w{0,4}", fullmatch=True)
)
@example("9" * 5_000)
def test_any_wait_that_a_server_asks_for_is_read(text: str) -> None:
    """Or is none."""
    headers: Any = {"retry-after": text.encode("utf-8", "replace")}
    wait = retry_after(httpx.Response(429, headers=headers))
    assert wait is None or wait >= 0


# ---------------------------------------------------------------- laws

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12).filter(str.strip)
CASES = st.builds(
    Case,
    id=WORDS,
    question=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(str.strip),
    category=st.sampled_from(["a", "b_c", "größe"]),
    expect=st.sampled_from(["answer", "refuse"]),
    reference=st.none() | WORDS,
    must_contain=st.lists(WORDS, max_size=2).map(tuple),
    relevant_ids=st.none() | st.lists(WORDS, max_size=2, unique=True).map(tuple),
    metadata=st.dictionaries(
        WORDS, st.integers() | WORDS | st.floats(allow_nan=False, allow_infinity=False), max_size=2
    ),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(CASES, min_size=1, max_size=4, unique_by=lambda case: case.id.strip().casefold()), st.randoms()
)
def test_cases_are_read_as_they_were_written_in_any_order(
    folders: Callable[[str], Path], cases: list[Case], chance: Any
) -> None:
    """A dataset of our own lines gives the same cases back, whatever stands between them."""
    path = folders("law.jsonl")
    path.write_bytes(b"\n \r\n".join(to_line(case).strip(b"\n") for case in cases))
    if said := refusal(lambda: load_dataset(path), InputError):
        assert "differ only in case or spaces" in said or "control character" in said, said
        return
    assert tuple(cases) == load_dataset(path).cases
    chance.shuffle(cases)
    path.write_bytes(b"".join(map(to_line, cases)))
    assert tuple(cases) == load_dataset(path).cases


JOURNAL = b"".join(map(to_line, DRAWS))


@pytest.mark.parametrize("at", range(len(JOURNAL) + 1))
def test_a_journal_that_is_cut_anywhere_keeps_its_whole_lines(
    at: int, folders: Callable[[str], Path]
) -> None:
    """Of the line that was cut nothing is left, and of the others all."""
    path = folders("draws.jsonl")
    path.write_bytes(JOURNAL[:at])
    kept = JOURNAL[:at].count(b"\n")
    journal = RunFolder(path.parent)
    assert DRAWS[:kept] == list(journal.draws())
    assert bool(journal.torn) == (at > 0 and JOURNAL[at - 1 : at] != b"\n")


@given(st.permutations(CALLS))
def test_the_lines_of_a_recording_may_stand_in_any_order(lines: list[Exchange]) -> None:
    """Each is found by its draw and its key."""
    cassette = Cassette.holding(lines)
    for call in CALLS:
        assert call == cassette.find("bot", Address("q", call.draw or 0), call.key)


@given(data=st.data())
def test_sections_of_any_profile_are_parts_of_it(data: st.DataObject) -> None:
    """What is kept stands there as it was written, in its order; ids are all different."""
    source = data.draw(anything(b"Hi\n\n## A\n\na\n\n## A\n\n```\n## b\n```\n\n# C\n\nc\n\n## D\n")).decode(
        "utf-8", "replace"
    )
    try:
        profile = parse_profile(source)
    except RagbotError:
        return
    ids = [section.id for section in profile.sections]
    assert len(set(ids)) == len(ids)
    starts = [section.line for section in profile.sections]
    assert sorted(starts) == starts
    plain = re.sub(r"\r\n?", "\n", source.removeprefix("\ufeff"))
    for section in profile.sections:
        assert section.text in plain


# ---------------------------------------------------------------- size


def megabytes(work: Callable[[], object]) -> float:
    """Peak memory of ``work``."""
    tracemalloc.start()
    try:
        work()
    except (InputError, BadReply):
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak / 1e6


LONG = 2_000_000


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("d.jsonl", b'{"id": "q", "question": "' + b"x" * LONG + b'"}'),
        ("d.jsonl", b"[" * LONG),
        ("d.jsonl", b'{"id": ' * (LONG // 7)),
        ("d.csv", b"id,question\nq," + b"x" * LONG),
        ("d.csv", b'id,question\nq,"' + b'""' * (LONG // 2)),
        ("log.csv", b"question,answer\nWo?," + b"x" * LONG),
        ("labels.jsonl", b'{"raters": "' + b"\\u2028" * (LONG // 6)),
        ("config.yaml", b"name: " + b"x" * LONG),
        ("tests.yaml", b"tests: &a [" + b"*a, " * 100_000),
    ],
)
def test_a_line_of_any_length_takes_a_few_times_its_size(name: str, data: bytes, tmp_path: Path) -> None:
    """Of a line of two megabytes no more than thirty are kept, whether it is read or refused."""
    path = tmp_path / name
    path.write_bytes(data)
    reader = next(one for one in READERS if one.name == name)
    assert megabytes(lambda: reader.read(path)) < 30


GROWING: dict[str, tuple[int, Callable[[int], object]]] = {
    "verdict, many objects": (4_000, lambda n: parse_verdict("{} " * n, DIRECT)),
    "verdict, spaces": (20_000, lambda n: parse_verdict("{}" + " " * n + "{}", DIRECT)),
    "verdict, open brackets": (20_000, lambda n: parse_verdict('{"a" ' * n, DIRECT)),
    "events": (4_000, lambda n: body_values("data: 1\n\n" * n, "text/event-stream")),
    "an event of many lines": (8_000, lambda n: body_values("data: 1\n" * n, "text/event-stream")),
    "ndjson": (8_000, lambda n: body_values("1\n" * n, "")),
    "model's stream": (2_000, lambda n: output_of("/api/chat", '{"message": {"content": "x"}}\n' * n)),
    "sentences, blank lines": (4_000, lambda n: sentences("a" + " \n" * n + "a")),
    "sentences, brackets": (4_000, lambda n: sentences("a." + ")" * n + "a")),
    "a refusal's words": (400, lambda n: refusal_rule("kann nichts " * n)),
    "concessions": (400, lambda n: refusal_rule("though, " * n)),
    "names": (1_000, lambda n: novel_terms("x Ab-Cd 1.2 " * n, "ab 1 " * n)),
    "a quote": (1_000, lambda n: holds_quote("walk dog cat " * n, "walk dog cat " * 8 + "mouse " * 9)),
    "a claim": (1_000, lambda n: one_sentence_holds("walk dog cat. " * n, "walked dog house")),
    "what begins like a key": (2_000, lambda n: key_in("sk-aaaa-" * n + "1")),
    "what begins like a token": (2_000, lambda n: key_in("eyJaaaaaaaaaaaa." * n + "-eyJ" * n)),
    "headings": (400, lambda n: parse_profile("## A\n\nx\n\n" * n)),
}


@pytest.mark.parametrize("name", GROWING)
def test_time_grows_as_the_input_does(name: str) -> None:
    """Four times as much takes less than ten times as long; a square would take sixteen."""
    size, work = GROWING[name]

    def seconds(n: int) -> float:
        start = time.process_time()
        work(n)
        return time.process_time() - start

    work(size)
    assert min(seconds(4 * size) for _ in range(3)) < 10 * min(seconds(size) for _ in range(3)) + 0.01


@given(st.integers(0, 3 * MAX_DEPTH), st.booleans())
def test_depth_is_counted_exactly(depth: int, lists: bool) -> None:
    """A value at the limit is read, one beyond it is not, of lists and of objects."""
    opening, closing = ("[", "]") if lists else ('{"a": ', "}")
    text = opening * depth + "1" + closing * depth
    if depth <= MAX_DEPTH:
        assert not is_deep(read_json(text))
    else:
        with pytest.raises(ValueError, match="nested too deeply"):
            read_json(text)
