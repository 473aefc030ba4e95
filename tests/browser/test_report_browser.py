"""report.html in a real browser: what a person clicks, types and reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from make_run import make_run

from evalrun.journal import RunFolder

Visit = Callable[..., Any]
ReportOf = Callable[[RunFolder], str]
Violations = Callable[..., list[str]]
A4 = {"width": 718, "height": 1047}
"""An A4 sheet inside margins of 1 cm, in CSS pixels."""

OVERLAPPING = """[...document.querySelectorAll('.gate-row, .figure')].flatMap((row) => {
    const boxes = [...row.querySelectorAll('.needs, .measured, .num, .lost')].map((cell) => {
        const range = document.createRange();
        range.selectNodeContents(cell);
        return [cell.textContent, range.getBoundingClientRect()];
    });
    return boxes.flatMap(([one, a], place) => boxes.slice(place + 1).filter(([other, b]) =>
        a.width && b.width && a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
    ).map(([other]) => `${one} / ${other}`));
})"""
"""Pairs of figures of a row that stand on each other."""
OPEN_EACH = """[...document.querySelectorAll('#list li a')].filter((link) => {
    link.click();
    const drawer = document.querySelector('#drawer');
    const shown = drawer.querySelectorAll('.draw').length > 0 && drawer.scrollWidth <= drawer.clientWidth;
    drawer.close();
    return !shown;
}).map((link) => link.textContent)"""
"""Opens and closes every question; the texts of those whose drawer is empty or too wide."""


def listed(page: Any) -> list[str]:
    """The ids in the list of questions, as they stand."""
    ids: list[str] = page.locator("#list li:visible .id").all_text_contents()
    return ids


def unfold(page: Any) -> None:
    """Open everything that is folded."""
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")


# ---------------------------------------------------------------- filters and the address


def test_gate_filters_and_the_hash_keeps_it(quality: RunFolder, report_of: ReportOf, visit: Visit) -> None:
    """A click on a gate leaves its questions, worst first; the address alone brings the same view back."""
    page = visit(report_of(quality))
    page.locator("[data-gate='gate-correctly_refused-out_of_corpus']").click()
    first = listed(page)
    assert 16 == len(first)
    assert all(ident.startswith("out-of-corpus") for ident in first)
    assert page.url.endswith("#gate-correctly_refused-out_of_corpus")
    again = visit(report_of(quality) + "#gate-correctly_refused-out_of_corpus")
    assert first == listed(again)
    again.locator("#ungate").click()
    assert 64 == len(listed(again))


def test_every_filter_is_kept_in_the_hash(quality: RunFolder, report_of: ReportOf, visit: Visit) -> None:
    """Category, kind of trouble and words together survive a reload, and going back undoes a gate."""
    page = visit(report_of(quality))
    page.locator("#cat").select_option("out_of_corpus")
    page.locator("#out").select_option("flips")
    page.locator("#q").fill("kubernetes")
    kept = listed(page)
    assert 0 < len(kept) < 16
    assert "q=kubernetes&cat=out_of_corpus&out=flips" in page.url
    page.reload()
    assert kept == listed(page)
    assert ("kubernetes", "flips") == (
        page.locator("#q").input_value(),
        page.locator("#out").input_value(),
    )
    page.locator("#clear").click()
    page.locator("[data-gate='gate-grounded-answerable']").click()
    assert 36 == len(listed(page))
    page.go_back()
    assert 64 == len(listed(page))


def test_text_filter_finds_words_of_answers(quality: RunFolder, report_of: ReportOf, visit: Visit) -> None:
    """The search looks into answers too, and says how many questions are left."""
    page = visit(report_of(quality))
    page.locator("#q").fill("kubernetes clusters")
    assert 0 < len(listed(page)) < 64
    assert f"{len(listed(page))} of 64 listed questions" == page.locator("#count").text_content()
    page.locator("#clear").click()
    assert 64 == len(listed(page))


# ---------------------------------------------------------------- the drawer


def test_drawer_shows_the_lie_where_it_stands(quality: RunFolder, report_of: ReportOf, visit: Visit) -> None:
    """Question, answers with the invention underlined, context, proof and the command are in the drawer."""
    page = visit(report_of(quality) + "#case=single-chunk-06")
    drawer = page.locator("#drawer")
    assert "Which streaming tools do you know well?" == drawer.locator("h2").text_content()
    assert "I have run Pulsar in production for years" == drawer.locator("mark.invented").first.text_content()
    assert 5 == drawer.locator(".chunk").count()
    assert "✓ relevant" in drawer.locator(".chunk.relevant header").text_content()
    assert (
        "evalrun run configs/quality.yaml --live --case single-chunk-06"
        == drawer.locator(".command").text_content()
    )
    assert "3 of 3 seen on the wire" in drawer.text_content()


def test_supported_claim_lights_its_quote(quality: RunFolder, report_of: ReportOf, visit: Visit) -> None:
    """Pointing at a supported claim lights its quote in the context, and so does the keyboard."""
    page = visit(report_of(quality) + "#case=single-chunk-06")
    assert 0 == page.locator("mark.quote.lit").count()
    page.locator("button.claim").first.hover()
    assert "have used Spark for batch jobs" == page.locator("mark.quote.lit").first.text_content()
    page.mouse.move(0, 0)
    assert 0 == page.locator("mark.quote.lit").count()
    page.locator("button.claim").first.focus()
    assert "have used Spark for batch jobs" == page.locator("mark.quote.lit").first.text_content()


def test_from_a_failed_gate_to_the_answer_in_two_clicks(
    quality: RunFolder, report_of: ReportOf, visit: Visit
) -> None:
    """The gate that fails names its worst question; its view names what was invented."""
    page = visit(report_of(quality))
    failed = page.locator(".gate.fails")
    worst = failed.locator(".why a")
    ident = worst.text_content()
    worst.click()
    assert page.url.endswith(f"#case={ident}")
    assert page.locator("#drawer mark.invented").count()
    page.locator("#close").click()
    assert not page.locator("#drawer").is_visible()


def test_keyboard_alone(quality: RunFolder, report_of: ReportOf, visit: Visit) -> None:
    """Arrows walk the squares, Enter opens, arrows go on, Escape closes and gives the focus back."""
    page = visit(report_of(quality))
    square = page.locator(".squares a").first
    square.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.url.endswith("#case=single-chunk-02")
    page.keyboard.press("ArrowRight")
    assert not page.url.endswith("#case=single-chunk-02")
    page.keyboard.press("Escape")
    assert not page.locator("#drawer").is_visible()
    assert "single-chunk-02" == page.evaluate("document.activeElement.dataset.case")


def test_keyboard_reaches_gates_and_stays_in_the_drawer(
    quality: RunFolder, report_of: ReportOf, visit: Visit
) -> None:
    """Tab goes from the skip link to the gates; in the drawer it never leaves it."""
    page = visit(report_of(quality))
    for _ in range(2):
        page.keyboard.press("Tab")
    assert "gate-recall_5-answerable" in page.evaluate("document.activeElement.dataset.gate").replace(
        "@", "_"
    )
    page.keyboard.press("Enter")
    assert "#gate-recall@5-answerable" in page.url.replace("%40", "@")
    page.locator("#list a:visible").first.press("Enter")
    for _ in range(12):
        page.keyboard.press("Tab")
        assert page.evaluate(
            "document.activeElement === document.body || document.querySelector('#drawer')"
            ".contains(document.activeElement)"
        )


# ---------------------------------------------------------------- sizes, schemes, paper


@pytest.mark.parametrize("width", [320, 360, 390, 761, 1024, 1440, 1900])
def test_nothing_is_wider_than_the_page(
    quality: RunFolder, report_of: ReportOf, visit: Visit, width: int
) -> None:
    """On a phone, a small and a large screen; the drawer is the whole page on a phone."""
    page = visit(report_of(quality), viewport={"width": width, "height": 800})
    unfold(page)
    assert width == page.evaluate("document.documentElement.scrollWidth")
    assert [] == page.evaluate(OVERLAPPING)
    page.locator("#list a").first.click()
    box = page.locator("#drawer").bounding_box()
    assert box["x"] + box["width"] == width
    assert (box["width"] == width) == (width <= 760)
    assert page.evaluate("(d) => d.scrollWidth <= d.clientWidth", page.locator("#drawer").element_handle())


def test_dark_mode_follows_the_system(quality: RunFolder, report_of: ReportOf, visit: Visit) -> None:
    """The ground is dark and the text light, in the drawer too."""
    page = visit(report_of(quality) + "#case=single-chunk-06", color_scheme="dark")
    for place in ("body", "#drawer"):
        ground, ink = (
            page.evaluate(
                f"getComputedStyle(document.querySelector('{place}')).{what}.match(/\\d+/g).map(Number)"
            )
            for what in ("backgroundColor", "color")
        )
        assert max(ground[:3]) < 60
        assert min(ink[:3]) > 200


def test_print_has_gates_figures_and_grid_on_one_page(
    quality: RunFolder, report_of: ReportOf, visit: Visit
) -> None:
    """Black on white whatever the screen is; the list of questions starts the second page."""
    page = visit(report_of(quality), viewport=A4, color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert "rgb(255, 255, 255)" == page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert A4["height"] >= page.evaluate("document.querySelector('.two').getBoundingClientRect().bottom")
    assert "page" == page.evaluate("getComputedStyle(document.querySelector('#cases')).breakBefore")
    assert not page.locator("#filters").is_visible()


def test_a_page_without_its_script_still_shows_the_run(
    quality: RunFolder, report_of: ReportOf, visit: Visit
) -> None:
    """Gates, figures, grid and list are there; what needs the script says so."""
    page = visit(report_of(quality), java_script_enabled=False)
    assert 5 == page.locator(".gate").count()
    assert 64 == page.locator("#list li:visible").count()
    assert not page.locator("#filters").is_visible()
    assert "need this page's own script" in page.locator("noscript").text_content()


# ---------------------------------------------------------------- what may come from outside, and how much


def test_hostile_run_does_nothing_but_show(hostile: RunFolder, report_of: ReportOf, visit: Visit) -> None:
    """Every question of a hostile run opens; nothing runs, is fetched, navigates or makes the page wider."""
    page = visit(report_of(hostile), viewport={"width": 1024, "height": 800})
    unfold(page)
    assert 30 < page.locator("#list li").count()
    assert [] == page.evaluate(OPEN_EACH)
    assert 1024 == page.evaluate("document.documentElement.scrollWidth")
    assert 3 == page.evaluate("document.scripts.length")
    assert (
        0
        == page.locator(
            "img, iframe, object, embed, base, [onerror], [onload], meta[http-equiv=refresh]"
        ).count()
    )
    assert [] == page.evaluate(
        "[...document.links].map((link) => link.getAttribute('href')).filter((href) => !href.startsWith('#'))"
    )
    assert [] == page.evaluate(
        "document.body.innerText.match(/[\\u0000-\\u0008\\u000b-\\u001f\\u007f\\u202a-\\u202e]/g) ?? []"
    )


def test_a_long_answer_is_cut_with_a_pointer(hostile: RunFolder, report_of: ReportOf, visit: Visit) -> None:
    """40 kB in one word: the drawer shows the beginning and names the journal that holds all of it."""
    page = visit(report_of(hostile))
    page.locator("#q").fill("widewidewide")
    page.locator("#list li:visible a").first.click()
    said = page.locator("#drawer .draw .text").first.text_content()
    assert said.startswith("widewide")
    assert len(said) < 5_000
    assert "draws.jsonl" in said


@pytest.mark.parametrize("text", ["#case=%3Cimg%20src%3Dx%3E", "#gate-__proto__&q=%E0%A4%A", "#__proto__"])
def test_hostile_hashes_are_ignored(report_of: ReportOf, visit: Visit, tmp_path: Path, text: str) -> None:
    """An address from somebody else opens nothing that is not on the page, and stops nothing."""
    folder = make_run(tmp_path / "small", sizes={"single_chunk": 8}, draws=1)
    page = visit(report_of(folder) + text)
    assert not page.locator("#drawer .draw").count()
    assert page.locator("#filters").evaluate("(filters) => !filters.hidden")


def test_many_questions_open_fast(visit: Visit, report_of: ReportOf, tmp_path: Path) -> None:
    """700 questions take one page of bounded size; the worst open, the others are pointed to."""
    folder = make_run(tmp_path / "many", sizes={"single_chunk": 550, "guardrail": 150}, draws=1)
    page = visit(report_of(folder) + "#case=single-chunk-02")
    told = page.locator("#drawer-body").text_content()
    assert "draws.jsonl" in told or "single-chunk-02" in told


# ---------------------------------------------------------------- accessibility


@pytest.mark.parametrize("width", [390, 1440])
def test_axe_finds_nothing(
    quality: RunFolder, report_of: ReportOf, visit: Visit, violations: Violations, width: int
) -> None:
    """No violation, wide and narrow, with all folds open, then with a question open."""
    page = visit(report_of(quality), viewport={"width": width, "height": 900})
    unfold(page)
    assert [] == violations(page)
    page.locator("#list a").first.click()
    assert [] == violations(page)


def test_axe_finds_nothing_in_the_dark(
    quality: RunFolder, report_of: ReportOf, visit: Visit, violations: Violations
) -> None:
    """Only colours differ there."""
    colours = {"type": "tag", "values": ["cat.color"]}
    page = visit(report_of(quality), color_scheme="dark")
    unfold(page)
    assert [] == violations(page, colours)
    page.locator("#list a").first.click()
    assert [] == violations(page, colours)
