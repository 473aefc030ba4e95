"""The page of ``evalrun label --html`` in a real browser: keys, what is kept, and the file it saves."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from datetime import date
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from evalrun.journal import RunFolder
from evalrun.labelling import Question, choose_random, new_header
from evalrun.labels import load_labels
from evalrun.records import Rater
from evalrun.reports.sheet import render

Violations = Callable[..., list[str]]


@pytest.fixture
def sheet(tmp_path: Path) -> Callable[[RunFolder, int], tuple[str, list[Question]]]:
    """Write the page of a run; its address and the answers on it."""

    def write(folder: RunFolder, count: int) -> tuple[str, list[Question]]:
        chosen = choose_random(folder, 3, count)
        header = new_header(folder, "faithful", "random", 3, "r1", Rater(kind="human", how="read"))
        path = tmp_path / "sheet.html"
        path.write_bytes(render(chosen, "faithful", header, "r1"))
        return path.as_uri(), chosen

    return write


def test_keys_make_a_label_file(sheet: Any, quality: RunFolder, visit: Any, tmp_path: Path) -> None:
    """y, n, s and b as in the terminal; what is saved is a label file of these answers."""
    visit.expected.append("^download: blob:")
    address, chosen = sheet(quality, 4)
    page = visit(address)
    assert 1 == page.locator(".answer:visible").count()
    assert "1 of 4" == page.locator("#at").inner_text()
    assert page.locator("#save").is_disabled()
    for key in "ynbysn":
        page.keyboard.press(key)
    assert page.locator("#finished").is_visible()
    assert "3 labelled" == page.locator("#count").inner_text()
    with page.expect_download() as caught:
        page.keyboard.press("d")
    saved = tmp_path / caught.value.suggested_filename
    caught.value.save_as(saved)
    labels = load_labels(saved)
    keys = [question.key for question in chosen]
    assert [(*keys[0], True), (*keys[1], True), (*keys[3], False)] == [
        (row.case, row.draw, row.label) for row in labels.rows
    ]
    assert ("faithful", "random", 3) == (labels.header.dimension, labels.header.design, labels.header.seed)
    assert abs((labels.header.date - date.today()).days) <= 1


def progress(page: Any) -> tuple[str, str]:
    """Where the page is, and how many answers it says are labelled."""
    return page.locator("#at").inner_text(), page.locator("#count").inner_text()


def test_a_reloaded_page_goes_on(sheet: Any, quality: RunFolder, visit: Any) -> None:
    """What was said stands in the address: a reload keeps it where the browser stores nothing for a file.

    Modifiers leave the keys to the browser.
    """
    address, _ = sheet(quality, 4)
    page = visit(address)
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('none'); } })"
    )
    page.reload()
    page.locator("#yes").click()
    page.keyboard.press("Control+y")
    page.keyboard.press("s")
    page.keyboard.press("n")
    assert ("4 of 4", "2 labelled") == progress(page)
    page.reload()
    assert ("2 of 4", "2 labelled") == progress(page)
    page.keyboard.press("b")
    assert "true" == page.locator("#yes").get_attribute("aria-pressed")


def test_labels_of_another_sheet_in_the_address_are_not_taken(
    sheet: Any, quality: RunFolder, visit: Any
) -> None:
    """The same path may hold another sheet tomorrow; so may a hand-written address."""
    address, _ = sheet(quality, 3)
    for hash_ in ("#evalrun-label-0123456789abcdef=yyy", "#yyy", "#=yyy", "#evalrun-label-"):
        assert ("1 of 3", "0 labelled") == progress(visit(address + hash_))


def test_a_closed_page_goes_on(sheet: Any, quality: RunFolder, visit: Any, tmp_path: Path) -> None:
    """What was said is kept by the browser. Asked over http: Chromium may lose what it stores for a file."""
    sheet(quality, 3)
    handler = functools.partial(Quiet, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/sheet.html"
        page = visit(address)
        page.keyboard.press("y")
        page.goto("about:blank")
        page.goto(address)
        assert ("2 of 3", "1 labelled") == progress(page)
        server.shutdown()


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder, and has no icon to offer."""

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer a browser's own wish for an icon with nothing, not with an error."""
        if self.path == "/favicon.ico":
            self.send_response(204)
            self.end_headers()
        else:
            super().do_GET()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible(sheet: Any, quality: RunFolder, visit: Any, violations: Violations, scheme: str) -> None:
    """No violation, neither at an answer nor at the end."""
    address, _ = sheet(quality, 1)
    page = visit(address, color_scheme=scheme)
    assert [] == violations(page)
    page.keyboard.press("n")
    assert [] == violations(page)


def test_hostile_texts_stay_text(sheet: Any, hostile: RunFolder, visit: Any) -> None:
    """Whatever stands in questions, contexts and answers, the page asks for nothing and runs nothing."""
    address, chosen = sheet(hostile, 99)
    page = visit(address)
    for _ in chosen:
        page.keyboard.press("s")
    assert page.locator("#finished").is_visible()
