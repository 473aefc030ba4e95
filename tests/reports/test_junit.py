"""junit.xml: valid, unique, counted, clean."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from make_run import make_hostile, make_run, stored, verdict

from evalrun.journal import RunFolder
from evalrun.records import Case, Gate, Metric, RunHeader, Score
from evalrun.reports.junit import distinct, render
from evalrun.reports.rows import read_rows
from evalrun.reports.words import one_line, visible
from known import json_of, known, lines_of

TESTS = Path(__file__).parents[1]
SCHEMA = etree.XMLSchema(etree.parse(TESTS / "data" / "junit-10.xsd"))
"""The schema of Jenkins' xUnit plugin as pytest's source distribution ships it (MIT, see its head)."""


def parsed(folder: RunFolder) -> Any:
    root = etree.fromstring(render(folder))
    SCHEMA.assertValid(root)
    return root


def counts(element: Any) -> dict[str, int]:
    return {
        name: len(element.findall(f".//{tag}"))
        for name, tag in [("tests", "testcase"), ("failures", "failure"), ("errors", "error")]
    }


def declared(element: Any) -> dict[str, int]:
    return {name: int(element.get(name)) for name in ("tests", "failures", "errors")}


def test_counts_equal_the_elements(quality: RunFolder) -> None:
    """Root and suites say how many cases, failures, errors and skipped they hold."""
    root = parsed(quality)
    assert counts(root) == declared(root)
    for suite in root:
        assert counts(suite) == declared(suite)
        assert len(suite.findall(".//skipped")) == int(suite.get("skipped"))


def test_gates_carry_the_failures(quality: RunFolder) -> None:
    """A failed gate is a failure, an undecided one an error, and wrong answers are skipped with a reason."""
    root = parsed(quality)
    gates = root.find("testsuite[@name='gates']")
    assert (1, 1) == (int(gates.get("failures")), int(gates.get("errors")))
    assert 1 == int(root.get("failures"))
    assert "at most .71 (exact limit)" == gates.find(".//failure").get("message")
    skipped = root.findall("testsuite[@name='grounded']//skipped")
    assert "grounded answer: 0 of 3; expected always" in {element.get("message") for element in skipped}


def test_undecided_gate_that_warns_passes(tmp_path: Path) -> None:
    """``on_undecided: warn`` is a passed case that says so."""
    gate = Gate(metric="right", group="all", min=0.7, on_undecided="warn")
    told = verdict([], gate, "undecided", why="the interval holds .70")
    root = parsed(make_run(tmp_path / "r", verdicts=(told,)))
    case = root.find("testsuite[@name='gates']/testcase")
    assert [] == case.findall("error")
    assert "the interval holds .70" in case.findtext("system-out")


def test_failures_for_those_who_want_them_red(tmp_path: Path) -> None:
    """``reports.junit.cases: failure`` turns wrong answers into failures."""
    config = {"reports": {"junit": {"cases": "failure"}}}
    root = parsed(make_run(tmp_path / "r", config=config, faults=False))
    suite = root.find("testsuite[@name='unsupported']")
    assert 0 < int(suite.get("failures"))
    assert 0 == int(suite.get("skipped"))


def jx03(tmp_path: Path, statuses: list[str]) -> RunFolder:
    """A run of one metric whose cases come out as told."""
    folder = RunFolder(tmp_path / "jx03")
    metric = Metric(id="contains", event="contains", kind="rate", better="higher", per="case")
    words = {"skipped": "not_applicable"}
    for number, status in enumerate(statuses):
        folder.append("cases", Case(id=f"q{number}", question="?", category="c"))
        score: Any = words.get(status, status)
        folder.append("scores", Score(case=f"q{number}", index=None, metric="contains", status=score))
    made = make_run(tmp_path / "base", sizes={"guardrail": 0}, gates=False, faults=False)
    header: RunHeader = made.header.model_copy(
        update={
            "metrics": (metric,),
            "estimates": (),
            "config": {"reports": {"junit": {"cases": "failure"}}},
            "journals": folder.seal(),
        }
    )
    folder.write_header(header, made.meta)
    return folder


@known(
    "JX-03",
    json_of("jx-03-counts.json")["outcomes"],
    ["error"] * 3,
    ["skipped", "skipped", "pass"],
    ["fail"] * 7 + ["error"] * 5 + ["skipped"] * 3 + ["pass"] * 2,
)
def test_outcomes_are_counted_as_what_they_are(given: list[str], tmp_path: Path) -> None:
    """A wrong answer is a failure, a broken call an error; on root and suite as in the elements inside."""
    root = parsed(jx03(tmp_path, given))
    expected = {"tests": len(given), "failures": given.count("fail"), "errors": given.count("error")}
    for element in (root, root.find("testsuite")):
        assert expected == declared(element) == counts(element)
    suite = root.find("testsuite")
    assert given.count("skipped") == int(suite.get("skipped")) == len(suite.findall(".//skipped"))


DIGEST = distinct(["a", "A"])[0].removeprefix("a")


@known(
    "JX-02",
    [line["id"] for line in lines_of("jx-02-same-names.jsonl")],
    ["a", "A", f"a{DIGEST}", f"A{DIGEST}", f"a{DIGEST} (2)"],
    ["x", "x\u00a0", "X", "x (2)", "x\u2003", " x", "x (2) ", "\u1e9e", "ss", "ß", "\u0130", "i\u0307"],
    ["(blank)", "(Blank)", "\u200b", "(BLANK) ", "."],
)
def test_names_are_unique_and_stable(given: list[str], tmp_path: Path) -> None:
    """Ids that differ in case or outer space only, or look like one that was made apart, have names that do
    not, whatever their order.
    """
    extra = [(Case(id=ident, question="Same text?", category="c"), "yes") for ident in given]
    root = parsed(make_run(tmp_path / "r", sizes={}, draws=2, extra=extra, gates=False))
    keys = Counter(
        (case.get("classname"), case.get("name").strip().casefold()) for case in root.iter("testcase")
    )
    assert 2 * len(given) <= len(keys)
    assert {1} == set(keys.values())
    assert distinct(given)[0] == distinct(given[::-1])[-1]


def test_a_name_that_is_like_no_other_is_left_alone() -> None:
    """JX-02: only what would collide is told apart; the same text twice gets a number."""
    ids = [line["id"] for line in lines_of("jx-02-same-names.jsonl")]
    assert "q2" == distinct(ids)[3]
    assert ["a", "b", "a (3)"] != distinct(["a", "b", "a"])
    assert 4 == len({name.casefold() for name in distinct(["a", "a", "a", "A"])})


@known(
    "JX-01",
    json_of("jx-01-control-chars.json")["answers"],
    ["c1 \x85 \x9b31m \x7f", "cr \r lf\r\n vt \x0b ff \x0c", "]]]]>><![CDATA[ ]]", "\udfff\ud83d"],
    [
        "\ufdd0 \U0001fffe \U0010ffff",
        "\u202e\u2066\u200f",
        "\x1b]8;;http://x\x07y\x1b]8;;\x07",
        "&#0; &#x1b; %00",
    ],
)
def test_control_characters_are_shown_and_the_file_is_valid(given: list[str], tmp_path: Path) -> None:
    """In answers, reasons, ids and names of categories; tab, line end and emoji stay as they are."""
    root = parsed(make_hostile(tmp_path / "r", given))
    faults = " ".join(case.findtext("error") for case in root.find("testsuite[@name='run']"))
    names = " ".join(case.get("name") for case in root.iter("testcase"))
    for text in given:
        assert visible(stored(text)) in faults
        assert one_line(stored(text)) in names


def test_hostile_text_is_clean_xml(hostile: RunFolder) -> None:
    """Forbidden characters are shown, nothing ends an element, and the file is valid."""
    root = parsed(hostile)
    faults = [case.findtext("error") for case in root.find("testsuite[@name='run']")]
    assert any("nul \\x00 bs \\x08 esc \\x1b[31mred" in fault for fault in faults)
    assert any("ffff \\ufffe \\uffff" in fault for fault in faults)
    assert any('cdata ]]> end & < > "' in fault for fault in faults)
    assert any("ok 😀\ttab\nline" in fault for fault in faults)
    assert [] == root.findall(".//script")


@pytest.mark.parametrize(("wanted", "found"), [(True, True), (False, False)])
def test_model_text_only_when_asked_for(tmp_path: Path, wanted: bool, found: bool) -> None:
    """Answers stay out unless ``include_text`` says otherwise."""
    config = {"reports": {"junit": {"include_text": wanted}}}
    data = render(make_run(tmp_path / "r", config=config))
    assert found == (b"I have no information about that" in data)


def test_only_times_come_from_meta(quality: RunFolder, tmp_path: Path) -> None:
    """Two runs that differ in meta.json differ in ``time`` and ``timestamp`` alone."""
    again = make_run(tmp_path / "r")
    meta = again.meta.model_copy(update={"seconds": 99.5, "started": "2027-01-01T00:00:00Z", "run": "x"})
    again.write_header(again.header, meta)
    first, second = parsed(quality), parsed(again)
    assert etree.tostring(first) != etree.tostring(second)
    for element in [*first.iter(), *second.iter()]:
        element.attrib.pop("time", None)
        element.attrib.pop("timestamp", None)
    assert etree.tostring(first) == etree.tostring(second)


WITHOUT_LXML = """
import sys
sys.modules["lxml"] = None
from pathlib import Path
from evalrun.journal import RunFolder
from evalrun.reports.junit import render
sys.stdout.buffer.write(render(RunFolder(Path(sys.argv[1]))))
"""


def test_same_bytes_with_either_xml_library(quality: RunFolder) -> None:
    """Whether lxml is installed changes nothing."""
    command = [sys.executable, "-c", WITHOUT_LXML, str(quality.path)]
    assert render(quality) == subprocess.run(command, capture_output=True, check=True).stdout


def test_of_a_large_run_the_worst_questions_are_shown(quality: RunFolder) -> None:
    """As many as fit; each suite says how many there are, and where they all stand."""
    root = etree.fromstring(render(quality, most=10))
    SCHEMA.assertValid(root)
    assert counts(root) == declared(root)
    shown = {case.get("name") for case in root.iterfind("testsuite[@name='right']/testcase")}
    assert {row.id for row in read_rows(quality).worst()[:10]} == shown
    note = root.find("testsuite[@name='right']//property[@name='shown']").get("value")
    assert "the 10 worst of 64 questions; scores.jsonl holds them all" == note
    assert b'name="shown"' not in render(quality)


def test_the_file_stays_below_what_ci_systems_read(quality: RunFolder) -> None:
    """Fewer questions where they would take more room; the gates always stand there."""
    whole = render(quality)
    cut = render(quality, room=len(whole) - 1)
    assert len(cut) < len(whole)
    assert 5 == len(etree.fromstring(render(quality, room=0)).findall("testsuite[@name='gates']/testcase"))
