"""What watches the pages of the other tests does see what it watches for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("markup", "noticed"),
    [
        ("<script>window.__pwned = 1</script>", "text has run"),
        ("<script>console.warn('odd')</script>", "console: odd"),
        ("<script>throw new Error('fault')</script>", "error: fault"),
        ("<img src='http://127.0.0.1:9/x'>", "request: http://127.0.0.1:9/x"),
        ("<script src='other.js'></script>", "request: file:"),
        ("<script>alert('hello')</script>", "dialog: hello"),
        ("<iframe srcdoc='x'></iframe>", "frame: "),
        ("<meta http-equiv='refresh' content='0;url=other.html'>", "request: file:"),
    ],
)
def test_a_page_that_misbehaves_is_noticed(visit: Any, tmp_path: Path, markup: str, noticed: str) -> None:
    """Whatever hostile text could do to a page fails the test that opened it."""
    path = tmp_path / "page.html"
    path.write_text(f"<!doctype html><title>x</title>{markup}")
    watched = type(visit)(visit.browser)
    page = watched(path.as_uri())
    for _ in range(100):
        if watched.told:
            break
        page.wait_for_timeout(50)
    assert noticed in "\n".join(watched.told)
    with pytest.raises(AssertionError):
        watched.end()


def test_a_page_that_behaves_is_let_pass(visit: Any, tmp_path: Path) -> None:
    """Nothing is noticed where there is nothing."""
    path = tmp_path / "page.html"
    path.write_text("<!doctype html><title>x</title><link rel=icon href='data:,'><p>text")
    visit(path.as_uri())
    visit.end()


def test_axe_sees_what_is_wrong(visit: Any, violations: Callable[..., list[str]], tmp_path: Path) -> None:
    """A picture without words, and words that can hardly be seen."""
    path = tmp_path / "page.html"
    path.write_text(
        "<!doctype html><html lang=en><title>x</title><main><h1>x</h1>"
        "<img src='data:,'><p style='color: #bbb; background: #fff'>pale</main>"
    )
    found = {violation.partition(":")[0] for violation in violations(visit(path.as_uri()))}
    assert {"image-alt", "color-contrast"} <= found
