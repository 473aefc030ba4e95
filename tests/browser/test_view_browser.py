"""The index of ``evalrun view`` in a real browser, and the reports it leads to."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from make_run import make_run

from evalrun.journal import RunFolder

Visit = Callable[..., Any]
Violations = Callable[..., list[str]]


def move(folder: Path, started: str) -> None:
    """Give a run another start."""
    meta = json.loads((folder / "meta.json").read_text("utf-8"))
    (folder / "meta.json").write_text(json.dumps({**meta, "run": folder.name, "started": started}), "utf-8")


@pytest.fixture(scope="module")
def address(start: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory, hostile: RunFolder) -> str:
    """The viewer of five runs of one config, one of another, two hostile, one partial and two broken ones."""
    runs = tmp_path_factory.mktemp("view") / "runs"
    for day in range(1, 6):
        make_run(runs / f"120{day}-quality", seed=day, draws=1 if day < 3 else 3)
        move(runs / f"120{day}-quality", f"2026-12-0{day}T12:00:00+00:00")
    make_run(runs / "1206-redteam", name="redteam", judge=False, draws=1)
    move(runs / "1206-redteam", "2026-12-06T12:00:00+00:00")
    make_run(runs / "1207-part", partial="--limit 5", gates=False, sizes={"single_chunk": 5}, draws=1)
    move(runs / "1207-part", "2026-12-07T12:00:00+00:00")
    for number in (1, 2):
        shutil.copytree(hostile.path, runs / f"<b onclick=alert({number})>\u202ehostile{number}")
    (runs / "half").mkdir()
    shutil.copy(runs / "1201-quality" / "draws.jsonl", runs / "half")
    (runs / "torn").mkdir()
    (runs / "torn" / "run.json").write_text('{"<b>format</b>": ')
    _, url = start("evalrun", "view", str(runs), "--port", "0", "--no-open")
    return str(url)


def test_from_the_index_to_the_answer_that_sank_a_gate(address: str, visit: Visit) -> None:
    """The newest run stands on top; its report opens, works as it does from a file, and back leads back."""
    page = visit(address)
    rows = page.locator(".runs > li")
    assert 11 == rows.count()
    assert page.locator("a.run-row .name b").all_text_contents().index("1205-quality") < (
        page.locator("a.run-row .name b").all_text_contents().index("1204-quality")
    )
    page.get_by_role("link", name="1205-quality").first.click()
    page.wait_for_url(f"{address}/1205-quality/report.html")
    page.locator(".gate.fails .why a").click()
    assert page.locator("#drawer .draw").count()
    page.keyboard.press("Escape")
    page.locator("[data-gate='gate-grounded-answerable']").click()
    assert 36 == page.locator("#list li:visible").count()
    page.goto(address)
    assert page.url.rstrip("/") == address


def test_broken_runs_are_told_apart(address: str, visit: Visit) -> None:
    """Half-written and torn ones stand there with the reason and lead nowhere."""
    page = visit(address)
    lost = page.locator(".run-row.lost")
    assert 2 == lost.count()
    assert lost.filter(has_text="half").get_by_text("64 answers kept so far").is_visible()
    assert lost.filter(has_text="torn").get_by_text("run.json: Invalid JSON").is_visible()
    assert 0 == lost.locator("a").count()
    partial = page.locator("a.run-row").filter(has_text="1207-part")
    assert partial.get_by_text("partial", exact=True).is_visible()
    assert partial.get_by_text("no gates", exact=True).is_visible()


def test_trend_shows_each_run_with_its_interval(address: str, visit: Visit) -> None:
    """A mark and an interval for each of five runs, a table that says the same, the rest behind a fold."""
    page = visit(address)
    trend = page.locator(".trend").filter(has_text="quality over 5 runs")
    card = trend.locator(".track-card").filter(has_text="grounded answer")
    assert 5 == card.locator(".mark").count()
    assert 5 == card.locator(".span").count()
    trend.get_by_text("quality as a table").click()
    assert 5 == trend.locator("tbody tr").count()
    now = card.locator(".now").text_content()
    assert trend.locator("tbody tr").first.locator("td").filter(has_text=now.split()[0]).count()
    folded = trend.get_by_text("numbers without a gate")
    assert not trend.locator(".track-card").filter(has_text="unsupported claim").last.is_visible()
    folded.click()
    assert trend.locator(".track-card").filter(has_text="unsupported claim").last.is_visible()


def test_hostile_names_and_reports_do_nothing_but_show(address: str, visit: Visit) -> None:
    """In the index, and in the report that the index leads to."""
    page = visit(address)
    assert 0 == page.locator("script, img, iframe, base, [onclick], [onerror]").count()
    hostile = page.locator("a.run-row").filter(has_text="hostile1")
    assert "<b onclick=alert(1)>\\u202ehostile1" == hostile.locator(".name b").text_content()
    hostile.click()
    page.wait_for_url(f"{address}/%3Cb%20onclick*/report.html")
    assert 20 < page.locator("#list li").count()


@pytest.mark.parametrize("width", [390, 1024, 1440])
def test_nothing_is_wider_than_the_page(address: str, visit: Visit, width: int) -> None:
    """Also with every fold open."""
    page = visit(address, viewport={"width": width, "height": 800})
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    assert width == page.evaluate("document.documentElement.scrollWidth")


def test_keys_alone_open_a_report(address: str, visit: Visit) -> None:
    """Tab reaches the runs in their order."""
    page = visit(address)
    page.keyboard.press("Tab")
    first = page.evaluate("document.activeElement.getAttribute('href')")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{first}")
    assert page.locator("#gates-title").count()


def test_two_runs_are_chosen_and_compared(address: str, visit: Visit, violations: Violations) -> None:
    """From the index to the comparison of the runs chosen, and back."""
    page = visit(address)
    form = page.get_by_role("form", name="Compare two runs").first
    form.get_by_label("old").select_option("1203-quality")
    form.get_by_label("new").select_option("1205-quality")
    form.get_by_role("button", name="Compare").click()
    page.wait_for_url(f"{address}/diff?old=1203-quality&new=1205-quality")
    assert "1203-quality" in page.content()
    assert page.locator("h1").text_content()
    assert [] == violations(page)
    page.go_back()
    assert page.locator("#runs-title").count()


def test_what_is_not_there_is_a_page_that_leads_back(address: str, visit: Visit) -> None:
    """A run that was deleted in the meantime."""
    visit.expected.append("404")  # type: ignore[attr-defined]
    page = visit(f"{address}/gone/report.html")
    assert "No such run" == page.locator("h1").text_content()
    page.get_by_role("link", name="All runs").click()
    page.locator("#runs").wait_for()


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1440, "light"), (1440, "dark")])
def test_axe_finds_nothing(
    address: str, visit: Visit, violations: Violations, width: int, scheme: str
) -> None:
    """With all folds open, hostile and broken runs among the others."""
    page = visit(address, viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    assert [] == violations(page)
