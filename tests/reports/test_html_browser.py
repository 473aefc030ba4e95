"""report.html in a real browser: what a person clicks, types and reads (Playwright, Chromium)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from make_run import make_run

from evalrun.journal import RunFolder
from evalrun.reports.html import render

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("no chromium here", allow_module_level=True)

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Open the page of a run; at the end nothing but the page was asked for and nothing was complained of."""
    told: list[str] = []
    pages: list[Any] = []

    def open_page(folder: RunFolder, hash_: str = "", **how: Any) -> Any:
        path = tmp_path / "report.html"
        path.write_bytes(render(folder))
        found = browser.new_page(reduced_motion="reduce", **how)
        pages.append(found)
        found.on("console", lambda message: told.append(message.text))
        found.on("pageerror", lambda error: told.append(str(error)))
        found.on(
            "request", lambda request: told.append(request.url) if path.name not in request.url else None
        )
        found.goto(path.as_uri() + hash_)
        return found

    yield open_page
    for found in pages:
        found.close()
    assert [url for url in told if url != "data:,"] == []


def listed(page: Any) -> list[str]:
    ids: list[str] = page.locator("#list li:visible .id").all_text_contents()
    return ids


def test_gate_filters_and_the_hash_keeps_it(quality: RunFolder, visit: Open) -> None:
    """A click on a gate leaves its questions, worst first; the address alone brings the same view back."""
    page = visit(quality)
    page.locator("[data-gate='gate-correctly_refused-out_of_corpus']").click()
    first = listed(page)
    assert 16 == len(first)
    assert all(ident.startswith("out-of-corpus") for ident in first)
    assert page.url.endswith("#gate-correctly_refused-out_of_corpus")
    again = visit(quality, "#gate-correctly_refused-out_of_corpus")
    assert first == listed(again)
    again.locator("#ungate").click()
    assert 64 == len(listed(again))


def test_text_filter_finds_words_of_answers(quality: RunFolder, visit: Open) -> None:
    """The search looks into answers too, and says how many questions are left."""
    page = visit(quality)
    page.locator("#q").fill("kubernetes clusters")
    assert 0 < len(listed(page)) < 64
    assert f"{len(listed(page))} of 64 listed questions" == page.locator("#count").text_content()
    page.locator("#clear").click()
    assert 64 == len(listed(page))


def test_drawer_shows_the_lie_where_it_stands(quality: RunFolder, visit: Open) -> None:
    """Question, answers with the invention underlined, context, proof and the command are in the drawer."""
    page = visit(quality, "#case=single-chunk-06")
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


def test_supported_claim_lights_its_quote(quality: RunFolder, visit: Open) -> None:
    """Focus on a supported claim lights its quote in the context."""
    page = visit(quality, "#case=single-chunk-06")
    assert 0 == page.locator("mark.quote.lit").count()
    page.locator("button.claim").first.focus()
    assert "have used Spark for batch jobs" == page.locator("mark.quote.lit").first.text_content()


def test_keyboard_alone(quality: RunFolder, visit: Open) -> None:
    """Arrows walk the squares, Enter opens, arrows go on, Escape closes and gives the focus back."""
    page = visit(quality)
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


def test_hostile_run_does_nothing_but_show(hostile: RunFolder, visit: Open) -> None:
    """Every question of a hostile run opens; nothing runs, is fetched or makes the page wider."""
    page = visit(hostile, viewport={"width": 1024, "height": 800})
    for place in range(page.locator("#list li").count()):
        page.locator("#list li a").nth(place).click()
        assert page.locator("#drawer .draw").count()
        page.keyboard.press("Escape")
    assert page.evaluate("window.__pwned === undefined")
    assert 3 == page.evaluate("document.scripts.length")
    assert 1024 == page.evaluate("document.documentElement.scrollWidth")


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("where", ["", "#case=single-chunk-06"])
def test_axe_finds_nothing(
    browser: Any, quality: RunFolder, tmp_path: Path, width: int, scheme: str, where: str
) -> None:
    """No accessibility violation, light and dark, wide and narrow, with all folds open."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    path = tmp_path / "report.html"
    path.write_bytes(render(quality))
    how: dict[str, Any] = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    page = browser.new_page(reduced_motion="reduce", bypass_csp=True, **how)
    page.goto(path.as_uri() + where)
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    assert [] == axe.Axe().run(page).response["violations"]
    assert width == page.evaluate("document.documentElement.scrollWidth")
    page.close()


def test_many_questions_open_fast(visit: Open, tmp_path: Path) -> None:
    """700 questions take one page of bounded size; the worst open, the others are pointed to."""
    folder = make_run(tmp_path / "many", sizes={"single_chunk": 550, "guardrail": 150}, draws=1)
    page = visit(folder, "#case=single-chunk-02")
    told = page.locator("#drawer-body").text_content()
    assert "draws.jsonl" in told or "single-chunk-02" in told
