"""Make docs/pictures/*.png from the shipped recording: what people see, in every size and both schemes.

Owns which pictures there are and how small they become. Runs replay the recording; the chat gets its answers
from the same recording, streamed by a scripted model server. Run it as ``uv run nox -s pictures``.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from fakes.servers import Json  # noqa: E402
from fakes.streaming import StreamingModel  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
CONFIG = "configs/quality.yaml"
RECORDING = ROOT / "data" / "cassettes" / "quality" / "bot.jsonl"
SIZES = {1440: 1000, 1024: 900, 390: 844}
SCHEMES = ("light", "dark")
A4 = {"width": 718, "height": 1047}
"""An A4 sheet inside margins of 1 cm, in CSS pixels."""
RUNS = {"1203-quality": ("--draws", "1"), "1204-quality": ("--draws", "2"), "1205-part": ("--limit", "5"),
        "1206-quality": ()}  # fmt: skip
"""Run folder → how it differs from the config; the last is the run as it is shipped."""
ATTACKED = "1207-redteam"
"""The run folder of the attacks, beside the runs that the index lists."""
ASKED = ("sc-deploy-01", "gr-home-01")
"""The questions of the chat: one that the profile answers, one that it does not."""
SOURCE = "Nomad"
"""A word of the passage that answers the first of them."""
CHROMIUM = shutil.which("chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync"]  # fmt: skip


# ---------------------------------------------------------------- what is shown


def program(name: str, *args: str) -> list[str]:
    """A program of this environment."""
    return [str(Path(sys.executable).with_name(name)), *args]


def make_runs(folder: Path) -> None:
    """Replay the recording into ``folder``, and give each run a start of its own that never changes."""
    for place, (name, args) in enumerate(RUNS.items()):
        command = program("evalrun", "run", CONFIG, "--quiet", "--output", str(folder / name), *args)
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
        if done.returncode not in (0, 1, 3):
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}")
        path = folder / name / "meta.json"
        meta = json.loads(path.read_text("utf-8"))
        meta |= {"started": f"2026-12-{name[2:4]}T09:{12 + place}:00+00:00", "seconds": 11.8}
        path.write_text(json.dumps(meta), "utf-8")
    half = folder / "1205-quality"
    half.mkdir()
    shutil.copy(folder / "1203-quality" / "draws.jsonl", half)
    os.utime(half, (1796462000, 1796462000))


def attack(folder: Path) -> None:
    """Replay the attacks into ``folder``."""
    command = program("evalrun", "redteam", "--quiet", "--output", str(folder))
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    if done.returncode not in (0, 1, 3):
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}")


def recorded() -> dict[str, tuple[str, str]]:
    """Case → question and first answer, as recorded."""
    found = {}
    for line in RECORDING.read_text("utf-8").splitlines():
        exchange = json.loads(line)
        if exchange["draw"] == 0:
            question = exchange["request"]["messages"][-1]["content"].rpartition("\n\nQuestion: ")[2]
            found[exchange["case"]] = (question, json.loads(exchange["reply"])["message"]["content"])
    return found


@contextmanager
def served(*command: str, cwd: Path, **env: str) -> Iterator[str]:
    """Start a program that prints its address, and stop it at the end."""
    with subprocess.Popen(
        program(*command),
        cwd=cwd,
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            line = next(text for text in process.stdout if "http://" in text)
            yield re.findall(r"http://[^\s/]+", line)[0]
        finally:
            process.terminate()


@contextmanager
def chatting(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """The twin with a model server that streams recorded answers; its address and the questions to ask."""
    known = dict(recorded()[case] for case in ASKED)

    def say(body: Json) -> str:
        return known[body["messages"][-1]["content"].rpartition("\n\nQuestion: ")[2]]

    model = StreamingModel(say)
    model.start()
    profile = str(ROOT / "data" / "corpus" / "profile.md")
    serve = ("ragbot", "serve", "--build", "--profile", profile, "--port", "0")
    try:
        with served(*serve, cwd=ROOT, OLLAMA_HOST=model.url, RAGBOT_CACHE=str(folder)) as url:
            yield url, list(known)
    finally:
        model.stop()


# ---------------------------------------------------------------- pictures


def ask(page: Any, questions: list[str]) -> None:
    """Ask one after the other, open a source of the first answer, and look at its question."""
    for question in questions:
        page.get_by_label("Your question").fill(question)
        page.keyboard.press("Enter")
        page.locator("#turns > li:last-child:not(.waiting) .said").wait_for()
    first = page.locator("#turns > li").first
    first.get_by_text("Made from").click()
    first.locator(".sources li").filter(has_text=SOURCE).locator("summary").click()
    page.locator("#scroll").evaluate("(box) => { box.scrollTop = 0; document.activeElement.blur(); }")
    page.mouse.move(0, 0)


def open_worst(page: Any) -> None:
    """Open the first question of the list: the worst."""
    page.locator("#list a").first.click()


def all_pictures(browser: Any, folder: Path) -> Iterator[tuple[str, bytes]]:
    """Name and PNG of each picture."""
    with served("evalrun", "view", "runs", "--port", "0", "--no-open", cwd=folder, TZ="UTC") as viewer:
        report = f"{viewer}/{list(RUNS)[-1]}/report.html"
        yield from each(browser, "index", viewer, lambda page: None)
        yield from each(browser, "report", report, lambda page: None)
        yield from each(browser, "drawer", report, open_worst)
        page = visit(browser, report, A4, "light")
        page.emulate_media(media="print")
        yield "report-print", shot(page)
    yield from each(browser, "matrix", (folder / ATTACKED / "report.html").as_uri(), show_matrix)
    with chatting(folder) as (chat, questions):
        yield from each(browser, "chat", chat, lambda page: ask(page, questions))


def show_matrix(page: Any) -> None:
    """Scroll to technique against goal."""
    page.locator("#matrix").evaluate("(section) => section.scrollIntoView()")


def each(browser: Any, name: str, url: str, act: Callable[[Any], None]) -> Iterator[tuple[str, bytes]]:
    """One page in every size and scheme."""
    for width, height in SIZES.items():
        for scheme in SCHEMES:
            page = visit(browser, url, {"width": width, "height": height}, scheme)
            act(page)
            yield f"{name}-{width}-{scheme}", shot(page)


def visit(browser: Any, url: str, viewport: dict[str, int], scheme: str) -> Any:
    """A page as it looks on the day of the last run."""
    page = browser.new_page(viewport=viewport, color_scheme=scheme, reduced_motion="reduce")
    page.clock.set_fixed_time("2026-12-07T09:00:00Z")
    page.goto(url)
    return page


def shot(page: Any) -> bytes:
    """What is in sight, as a small PNG; closes the page."""
    png = base64.b64encode(page.screenshot(caret="hide")).decode()
    page.goto("about:blank")
    raw = base64.b64decode(page.evaluate(DECODE, png))
    width, height = struct.unpack(">II", base64.b64decode(png)[16:24])
    page.close()
    return indexed(np.frombuffer(raw, np.uint8).reshape(height, width, 4)[:, :, :3])


DECODE = """async (png) => {
    const blob = new Blob([Uint8Array.from(atob(png), (c) => c.charCodeAt(0))]);
    const image = await createImageBitmap(blob);
    const canvas = new OffscreenCanvas(image.width, image.height).getContext('2d');
    canvas.drawImage(image, 0, 0);
    const data = canvas.getImageData(0, 0, image.width, image.height).data;
    let text = '';
    for (let at = 0; at < data.length; at += 32768) {
        text += String.fromCharCode(...data.subarray(at, at + 32768));
    }
    return btoa(text);
}"""
"""PNG → pixels, by the browser itself, base64 both."""


def indexed(pixels: NDArray[np.uint8]) -> bytes:
    """A PNG with at most 256 colours; pixels have shape (height, width, 3)."""
    height, width, _ = pixels.shape
    packed = pixels.astype(np.uint32) @ np.array([65536, 256, 1], np.uint32)
    colours, place, counts = np.unique(packed, return_inverse=True, return_counts=True)
    rgb = np.stack([colours >> 16, colours >> 8 & 255, colours & 255], axis=1).astype(np.int64)
    palette, nearest = reduced(rgb, counts)
    rows = np.zeros((height, width + 1), np.uint8)  # a row begins with its filter: none
    rows[:, 1:] = nearest[place.reshape(height, width)]
    return b"".join([
        b"\x89PNG\r\n\x1a\n",
        chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        chunk(b"PLTE", palette.astype(np.uint8).tobytes()),
        chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)),
        chunk(b"IEND", b""),
    ])  # fmt: skip


def reduced(rgb: NDArray[np.int64], counts: NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """A palette for colours that are so frequent, and the place in it of each colour.

    The colour that is missed most, by its distance from the palette and its frequency, is added next: a rare
    red among thousands of greys is kept.
    """
    chosen: list[int] = [int(counts.argmax())]
    distance = np.square(rgb - rgb[chosen[0]]).sum(1)
    nearest = np.zeros(len(rgb), np.uint8)
    while len(chosen) < 256 and distance.any():
        chosen.append(int((distance * counts).argmax()))
        other = np.square(rgb - rgb[chosen[-1]]).sum(1)
        nearest[other < distance] = len(chosen) - 1
        distance = np.minimum(distance, other)
    return rgb[chosen], nearest


def chunk(kind: bytes, data: bytes) -> bytes:
    """One chunk of a PNG."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def main() -> None:
    """Write every picture; a file that is not one of them any more is removed."""
    from playwright.sync_api import sync_playwright

    if CHROMIUM is None:
        raise SystemExit("no chromium here: apt-get install chromium")
    PICTURES.mkdir(exist_ok=True)
    before, written = set(PICTURES.glob("*.png")), set()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        make_runs(folder / "runs")
        attack(folder / ATTACKED)
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for picture, png in all_pictures(browser, folder):
            path = PICTURES / f"{picture}.png"
            path.write_bytes(png)
            written.add(path)
            print(f"{path.relative_to(ROOT)}  {len(png) // 1024} KB")
        browser.close()
    for path in before - written:
        path.unlink()


if __name__ == "__main__":
    main()
