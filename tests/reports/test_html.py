"""report.html as a file: one page, nothing fetched, text is text. What it does is in test_html_browser.py."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lxml import html
from make_run import hostile_texts, make_hostile, make_run, stored

from evalrun.journal import RunFolder
from evalrun.records import BaselineInfo, BaselineValue, Case, Chunk, Gate, Quote, Verdict
from evalrun.reports.console import look
from evalrun.reports.detail import TEXT_MOST, relevant
from evalrun.reports.html import LIST_PER_GATE, LIST_WORST, render, strips
from evalrun.reports.words import visible
from known import json_of, known


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
    assert "notes" in page(hostile).findtext(".//header/details/summary")
    check_shown(hostile, hostile_texts())


def check_shown(folder: RunFolder, texts: Sequence[str]) -> None:
    """Each text is shown, and nothing of it is an element, an attribute or an address."""
    tree = page(folder)
    notes = [item.text_content() for item in tree.xpath("//ul[@class='told']/li/span")]
    answers = {draw["answer"] for case in data(tree)["cases"] for draw in case["draws"]}
    for text in texts:
        assert visible(stored(text)) in notes
        assert visible(stored(text)) in answers
    assert ["application/json", "application/json", None] == [s.get("type") for s in tree.iter("script")]
    known_elements = set(page_of_plain_text(folder))
    assert set() == {element.tag for element in tree.iter() if isinstance(element.tag, str)} - known_elements
    for element in tree.iter():
        for name, value in element.attrib.items():
            assert not name.startswith("on")
            assert name not in ("style", "srcset", "src", "action")
            assert name != "href" or value.startswith(("#", "data:,"))


def page_of_plain_text(folder: RunFolder) -> list[str]:
    """The names of the elements that the page of a run without any hostile text has."""
    plain = make_hostile(folder.path.parent / f"{folder.path.name}-plain", ["plain"])
    return [element.tag for element in page(plain).iter() if isinstance(element.tag, str)]


@known(
    "HR-01",
    [json_of("hr-01-script-close.json")["answer"]],
    ["</SCRIPT\t/><svg/onload=alert(1)>", "</script foo>", "<!--<script>", "--></script>"],
    ["<script>", "\u2028</script\x00>", "</style><script src=//x></script>", "]]></script><![CDATA["],
)
def test_no_script_but_our_own_is_on_the_page(given: list[str], tmp_path: Path) -> None:
    """An answer ends no script block, however it writes the tag."""
    check_shown(make_hostile(tmp_path / "r", given), given)


@known(
    "HR-02",
    [*json_of("hr-02-markup.json").values()],
    ["' onclick=alert(1) x='", '"><svg><animate onbegin=alert(1)>', "`onfocus=alert(1) autofocus`"],
    ["[x](JaVaScRiPt:alert(1))", "<a href='data:text/html,<script>'>x</a>", "&lt;img src=x&gt; &#60;b&#62;"],
)
def test_markup_in_names_is_text(given: list[str], tmp_path: Path) -> None:
    """In cells, attributes and headings; no address that acts is made a link."""
    check_shown(make_hostile(tmp_path / "r", given), given)


@known(
    "HR-03",
    json_of("hr-03-placeholder.json")["answers"],
    ["{{ css }}", "{{ data | tojson }}", "{% include 'report.css' %}", "{# x #}"],
    ["{{ '{{' }} css }}", "{% raw %}{{ css }}", "{{ data|safe }}{{ data|safe }}", "\\g<0>", "{0.__class__}"],
)
def test_own_template_markers_do_not_expand(given: list[str], tmp_path: Path) -> None:
    """An answer that looks like a page's template is text, and the page does not grow by it."""

    def size(name: str, answers: list[str]) -> int:
        extra = [
            (Case(id=f"a{number}", question=answer, category="c"), answer)
            for number, answer in enumerate(answers)
        ]
        folder = make_run(tmp_path / name, sizes={}, extra=extra, gates=False)
        kept = {draw["answer"] for case in data(page(folder))["cases"] for draw in case["draws"]}
        assert set(answers) == kept
        return len(render(folder))

    assert (
        abs(
            size("markers", given)
            - size("plain", ["z" * len(answer) + str(i) for i, answer in enumerate(given)])
        )
        < 1500
    )


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
