"""report.html as a file: one page, nothing fetched, text is text. What it does is in test_html_browser.py."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from lxml import html
from make_run import hostile_texts, make_run

from evalrun.journal import RunFolder
from evalrun.records import BaselineInfo, BaselineValue, Case, Chunk, Gate, Quote, Verdict
from evalrun.reports.console import look
from evalrun.reports.detail import TEXT_MOST, relevant
from evalrun.reports.html import LIST_PER_GATE, LIST_WORST, render, strips
from evalrun.reports.words import visible


def page(folder: RunFolder) -> Any:
    return html.fromstring(render(folder).decode())


def data(tree: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(tree.get_element_by_id("data").text)
    return found


def text(tree: Any, ident: str) -> str:
    return " ".join(tree.get_element_by_id(ident).text_content().split())


def test_verdict_gates_and_reasons_are_on_the_page(quality: RunFolder) -> None:
    """The sentence is the heading; each gate says its verdict, figures, reason and worst question."""
    tree = page(quality)
    assert "1 of 5 gates fails" in tree.find(".//h1").text_content()
    failed = text(tree, "gate-correctly_refused-out_of_corpus")
    assert failed.startswith("✕ fails refused correctly_refused, out_of_corpus · 16 questions")
    assert "Decided by: at most .71 (exact limit); needs >= .75." in failed
    assert "Worst: out-of-corpus-05" in failed
    assert "judge unmeasured" in text(tree, "gate-grounded-answerable")


def test_every_chart_has_its_table(quality: RunFolder) -> None:
    """The figures that the charts draw stand in tables too."""
    tree = page(quality)
    rows = tree.xpath("//section[@id='gates']//tbody/tr")
    verdicts = quality.header.verdicts
    assert [v.gate.name for v in verdicts] == [row.find("th").text for row in rows]
    counted = tree.xpath("//section[@id='grid']//tbody/tr")
    assert 192 == sum(int(row.findall("td")[1].text) for row in counted)
    assert 192 == sum(int(cell.text) for row in counted for cell in row.findall("td")[2:])


def test_the_baseline_is_a_ghost(tmp_path: Path) -> None:
    """A drop is drawn around what the baseline had, against the least it may be; figures have ghosts too."""
    drop = Verdict(
        gate=Gate(metric="grounded", group="answerable", max_drop=0.05),
        decision="undecided", value=-0.1, low=-0.3, high=0.1, baseline=0.8, n=36,
    )  # fmt: skip
    kept = BaselineInfo(
        name="quality.baseline.jsonl", sha256="sha256:0", config_digest="sha256:1",
        values=(
            BaselineValue(metric="grounded", group="answerable", value=0.8),
            BaselineValue(metric="faithful", group="all", value=0.6),
        ),
    )  # fmt: skip
    tree = page(make_run(tmp_path / "r", verdicts=(drop,), baseline=kept))
    (bar,) = tree.get_element_by_id("gate-grounded-answerable-drop").xpath(".//svg[contains(@class, 'bar')]")
    assert {"ghost": ["80.00%"], "dot": ["70.00%"]} == {
        name: bar.xpath(f".//circle[@class='{name}']/@cx") for name in ("ghost", "dot")
    }
    assert ["50.00%", "90.00%"] == [bar.xpath(f".//line[@class='span']/@{end}")[0] for end in ("x1", "x2")]
    assert ["75.00%"] == bar.xpath(".//line[@class='bound']/@x1")
    assert ["80.00%", "60.00%"] == sorted(
        tree.xpath("//section[@id='figures']//circle[@class='ghost']/@cx"), reverse=True
    )
    row = " ".join(tree.xpath("//section[@id='gates']//tbody/tr")[0].text_content().split())
    assert "grounded, answerable (drop)UNDECIDEDdrop <= .05-.10-.30+.10.8036" in row
    assert "grey ring" in text(tree, "gates")


def test_without_a_baseline_there_is_no_ghost(quality: RunFolder) -> None:
    """Nor a word of it."""
    assert [] == page(quality).xpath("//circle[@class='ghost']")
    assert "grey ring" not in text(page(quality), "gates")


def test_console_points_to_an_anchor_of_the_page(quality: RunFolder) -> None:
    """The ``look:`` line of the console ends in an id that the page has."""
    anchor = look(quality, quality.header).rpartition("#")[2]
    assert page(quality).get_element_by_id(anchor) is not None


def test_policy_allows_the_own_style_and_script_only(quality: RunFolder) -> None:
    """The policy names the digests of the one style and the one script; nothing else could run."""
    tree = page(quality)
    policy = tree.xpath("//meta[@http-equiv='Content-Security-Policy']/@content")[0]
    for name, element in (
        ("style-src", tree.find(".//style")),
        ("script-src", tree.xpath("//script[not(@type)]")[0]),
    ):
        digest = base64.b64encode(hashlib.sha256(element.text.encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy


def test_nothing_is_fetched_and_nothing_inline_acts(hostile: RunFolder) -> None:
    """No address leaves the page; no attribute holds script or style."""
    tree = page(hostile)
    for element in tree.iter():
        for name, value in element.attrib.items():
            assert not name.startswith("on")
            assert name not in ("style", "srcset", "src", "action", "xlink:href")
            if name == "href":
                assert value.startswith(("#", "data:,"))
    assert ["application/json", "application/json", None] == [s.get("type") for s in tree.iter("script")]
    assert 0 == len(tree.xpath("//img|//iframe|//object|//embed|//form[@action]|//b[@onmouseover]"))


def test_hostile_text_is_shown_as_text(hostile: RunFolder) -> None:
    """Every hostile text stands in the page, escaped as text and as JSON."""
    tree = page(hostile)
    notes = [item.text_content() for item in tree.xpath("//ul[@class='told']/li/span")]
    assert "notes" in tree.findtext(".//header/details/summary")
    answers = {draw["answer"] for case in data(tree)["cases"] for draw in case["draws"]}
    for wild in hostile_texts():
        stored = wild.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        assert visible(stored) in notes
        assert visible(stored) in answers


@pytest.mark.parametrize(
    "marker", ["{{ css }}", "{{ data | tojson }}", "{% include 'report.css' %}", "{# x #}"]
)
def test_own_template_markers_do_not_expand(tmp_path: Path, marker: str) -> None:
    """An answer that looks like this page's own template is text, and the page does not grow by it."""

    def size(answer: str) -> int:
        folder = make_run(
            tmp_path / answer[:2] / str(len(answer)),
            sizes={},
            extra=[(Case(id="a", question=answer, category="c"), answer)],
            gates=False,
        )
        assert {answer} == {draw["answer"] for draw in data(page(folder))["cases"][0]["draws"]}
        return len(render(folder))

    assert abs(size(marker) - size("z" * len(marker))) < 1000


def test_only_one_element_comes_from_meta(quality: RunFolder, tmp_path: Path) -> None:
    """Two runs that differ in meta.json differ in ``#meta`` alone."""
    again = make_run(tmp_path / "r")
    changed = {"run": "other", "config_path": "x.yaml", "seconds": 1.0, "started": "2027", "attempt": 2}
    again.write_header(again.header, again.meta.model_copy(update=changed))
    first, second = render(quality).decode(), render(again).decode()
    footer = re.compile(r'<footer id="meta".*?</footer>', re.DOTALL)
    assert first != second
    assert footer.sub("", first) == footer.sub("", second)


def test_long_texts_are_cut_with_a_pointer(tmp_path: Path) -> None:
    """A 40 KB answer is cut, says how long it is and which journal holds it whole."""
    case = Case(id="long", question="?", category="c")
    folder = make_run(tmp_path / "r", sizes={}, extra=[(case, "x" * 40_000)], gates=False)
    answer = data(page(folder))["cases"][0]["draws"][0]["answer"]
    assert TEXT_MOST < len(answer) < TEXT_MOST + 200
    assert answer.endswith("40,000 characters in all; the whole text is in draws.jsonl")


def test_many_questions_are_counted_and_the_worst_shown(tmp_path: Path) -> None:
    """Above 600 questions bars count all, squares show 100, the list points to the rest."""
    folder = make_run(tmp_path / "r", sizes={"single_chunk": 500, "out_of_corpus": 150}, draws=1)
    tree = page(folder)
    squares = tree.xpath("//div[@class='squares']/a")
    listed = tree.xpath("//ol[@id='list']/li")
    assert 100 == len(squares)
    assert LIST_WORST <= len(listed) <= LIST_WORST + 2 * LIST_PER_GATE
    assert "of 650 questions are listed; scores.jsonl holds them all" in text(tree, "count")
    assert 2 == len(tree.xpath("//*[local-name()='svg'][@class='stack']"))


def test_run_without_judge_gates_or_questions(tmp_path: Path) -> None:
    """Nothing measured by a judge, no gates, no questions: the page says so and stands."""
    tree = page(make_run(tmp_path / "a", judge=False))
    assert "No judge" in text(tree, "judge")
    tree = page(make_run(tmp_path / "b", sizes={"guardrail": 0}, gates=False, partial="--case x"))
    assert "this is a partial run" in text(tree, "gates")
    assert [] == data(tree)["cases"]


def test_gate_on_nothing_is_drawn_without_a_dot(tmp_path: Path) -> None:
    """A gate whose figure is undefined shows a dash and no mark at 0."""
    tree = page(make_run(tmp_path / "r", sizes={"single_chunk": 8}))
    gate = tree.get_element_by_id("gate-correctly_refused-guardrail")
    assert "measured –" in " ".join(gate.text_content().split())
    assert [] == gate.xpath(".//*[local-name()='circle']")


def test_relevance_by_id_grade_and_quote() -> None:
    """A chunk is marked relevant by its id, by a grade above 0, or by a quote it holds."""
    chunk = Chunk(id="a", text="I spoke at  Flink Forward.")

    def case(wanted: Any) -> Case:
        return Case(id="c", question="?", category="c", relevant_ids=wanted)

    assert relevant(case(("a",)), chunk)
    assert not relevant(case(("b",)), chunk)
    assert not relevant(case({"a": 0.0}), chunk)
    assert relevant(case({"a": 2.0}), chunk)
    assert relevant(case((Quote(quote="at Flink Forward"),)), chunk)
    assert not relevant(case(None), chunk)


def test_strips_fill_the_square() -> None:
    """A strip a draw with few draws, a strip an outcome with many; they fill the width."""
    assert [("grounded", 0.0, 9.0), ("error", 10.0, 10.0)] == strips(["grounded", "error"], 20)
    many = strips(["answered", "grounded"] * 5, 20)
    assert [("grounded", 0.0, 10.0), ("answered", 10.0, 10.0)] == many
