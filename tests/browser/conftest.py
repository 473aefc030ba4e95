"""One browser for all of these tests, and pages that are watched.

Owns how Chromium is started and what every page is held to: no complaint in the console, no request but to
itself, no dialog, no other page and nothing that text from outside could have done.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from make_run import hostile_texts, make_run

from evalrun.journal import RunFolder
from evalrun.records import Case
from evalrun.reports.html import render

CHROMIUM = shutil.which("chromium")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PWNED = "window.__pwned = 1"
ALARM = "Object.defineProperty(window, '__pwned', { set() { console.error('text has run'); } })"
HOSTILE = (
    f"<script>{PWNED}; alert(1)</script>",
    f'<img src="http://127.0.0.1:9/x" onerror="{PWNED}"><svg onload="{PWNED}">',
    f"<iframe srcdoc='<script>parent.{PWNED}</script>'></iframe>",
    "<meta http-equiv='refresh' content='0;url=/x'><form action=/x><button autofocus>ok",
    f"\"'><a href=\"javascript:{PWNED}\" autofocus onfocus='{PWNED}'>go</a><base href='//127.0.0.1:9/'>",
    "</textarea></title></style></script></template><!-- --><plaintext>",
    "שלום עולם, ما هو اسمك؟ \u202eevil\u202c \u2066isolated\u2069 \u200frtl mark",
    "bell \x07 esc \x1b[2J null \x00 del \x7f next \x85 line \u2028 separator \ufeff",
    "constructor",
    "__proto__",
    "z\u0351\u0352\u0353\u0354\u0355\u0356" * 40,
    "wide" * 10_000,  # one word of 40 kB
    "A long answer in many words. " * 1_400,  # 40 kB
)


# ---------------------------------------------------------------- the browser


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """Debian's Chromium, started once. It ends with this folder's tests: while Playwright runs, no other
    event loop can run in this thread."""
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no chromium here")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield found
        found.close()


@dataclass
class Visits:
    """Opens pages and keeps what they did that no page may do; ``expected``: what a test provokes itself."""

    browser: Any
    told: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    contexts: list[Any] = field(default_factory=list)

    def __call__(self, url: str, **how: Any) -> Any:
        """A page of its own at ``url``; ``how`` as for a browser context."""
        context = self.browser.new_context(**{"reduced_motion": "reduce", **how})
        self.contexts.append(context)
        context.set_default_timeout(30_000)
        context.add_init_script(ALARM)
        page = context.new_page()
        self._watch(page, context, url)
        page.goto(url)
        return page

    def _watch(self, page: Any, context: Any, url: str) -> None:
        home = re.match(r"file:.*?(?=#|$)|\w+://[^/]+", url)
        assert home is not None
        note = self.told.append
        page.on("console", lambda message: note(f"console: {message.text}"))
        page.on("pageerror", lambda error: note(f"error: {error}"))
        page.on("dialog", lambda dialog: (note(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("download", lambda download: note(f"download: {download.url}"))
        page.on("frameattached", lambda frame: note(f"frame: {frame.url}"))
        page.on("request", lambda request: self._request(request.url, home[0]))
        context.on("page", lambda other: note(f"other page: {other.url}") if other is not page else None)

    def _request(self, url: str, home: str) -> None:
        if not url.startswith((home, "data:image/svg+xml,", "data:,")):
            self.told.append(f"request: {url}")

    def end(self) -> None:
        """Close all pages; fail where one of them did what it may not."""
        for context in self.contexts:
            context.close()
        kept = [text for text in self.told if not any(re.search(known, text) for known in self.expected)]
        assert [] == kept


@pytest.fixture
def visit(browser: Any) -> Iterator[Visits]:
    """Open pages; at the end all of them have behaved."""
    visits = Visits(browser)
    yield visits
    visits.end()


# ---------------------------------------------------------------- accessibility


@pytest.fixture(scope="package")
def violations() -> Callable[..., list[str]]:
    """What axe-core finds on a page: rule and element of each violation."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()

    def found(page: Any, rules: dict[str, Any] | None = None) -> list[str]:
        options = {"resultTypes": ["violations"], **({"runOnly": rules} if rules else {})}
        return [
            f"{violation['id']}: {node['html'][:160]}"
            for violation in axe.run(page, options=options).response["violations"]
            for node in violation["nodes"]
        ]

    return found


# ---------------------------------------------------------------- runs


@pytest.fixture(scope="package")
def quality(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run of 64 questions × 3 draws: gates of every kind, a lost draw, a reading that failed."""
    return make_run(tmp_path_factory.mktemp("quality") / "1209-quality")


@pytest.fixture(scope="package")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run in which every text that can come from outside is hostile."""
    texts = [
        text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        for text in (*HOSTILE, *hostile_texts())
    ]
    extra = [
        (Case(id=f"h{place} {text[:300]}", question=text, category=text[:300], reference=text), text)
        for place, text in enumerate(texts)
    ]
    return make_run(
        tmp_path_factory.mktemp("hostile") / "<b>hostile</b>",
        sizes={"single_chunk": 8},
        extra=extra,
        name=HOSTILE[0],
        notes=tuple(texts),
        errors=tuple(texts),
    )


@pytest.fixture(scope="package")
def report_of() -> Callable[[RunFolder], str]:
    """The address of a run's report as a file."""

    def address(folder: RunFolder) -> str:
        path = folder.path / "report.html"
        if not path.exists():
            path.write_bytes(render(folder))
        return path.as_uri()

    return address


# ---------------------------------------------------------------- programs


@pytest.fixture(scope="package")
def start() -> Iterator[Callable[..., tuple[subprocess.Popen[str], str]]]:
    """Start ``evalrun`` or ``ragbot``; the process and the address it prints. All end with the tests."""
    running: list[subprocess.Popen[str]] = []

    def program(name: str, *args: str, **env: str) -> tuple[subprocess.Popen[str], str]:
        process = subprocess.Popen(
            [str(Path(sys.executable).with_name(name)), *args],
            env={**os.environ, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        running.append(process)
        assert process.stdout is not None
        told = []
        for line in process.stdout:
            told.append(line)
            if found := re.search(r"http://[^\s/]+", line):
                return process, found[0]
        raise AssertionError(f"{name} did not start: {''.join(told)}")

    yield program
    for process in running:
        process.terminate()
        process.communicate(timeout=20)
