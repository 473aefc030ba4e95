"""The pages of the viewer: the index of runs with their trends, and a short text where there is none to show.

Owns what stands on them; their look is that of the run's report, with a few rules of its own. They run no
script. All text is escaped by jinja.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import cache
from urllib.parse import quote

from jinja2 import Environment

from evalrun.records import RunHeader
from evalrun.reports import frame, words
from evalrun.view.listing import Finished, Runs
from evalrun.view.trend import Point, Track, concluded, trends

STYLES = ("report.css", "view.css")
REPORT = "report.html"
DIFF = "/diff"
WORD = {2: "error", 4: "error", 5: "error", 70: "error", 130: "interrupted"}
"""Exit codes without a verdict → what stands in its place."""
OPEN_RUNS = 30
"""The newest runs stand open, the others are folded."""


def index_page(runs: Runs) -> bytes:
    """The index."""
    listed = runs.newest_first()
    finished = [run for run in listed if isinstance(run, Finished)]
    return _render(
        "view.html.j2",
        path=str(runs.path),
        listed=listed,
        finished=finished,
        configs=len({run.header.name for run in finished}),
        open_runs=OPEN_RUNS,
        trends=trends(finished),
        compared=comparable(finished),
    )


def message_page(title: str, text: str) -> bytes:
    """A page that says why there is nothing else."""
    return _render("message.html.j2", title=title, text=text)


def policy() -> str:
    """What a browser may do with these pages: use their own style, and choose two runs to compare."""
    return frame.policy(STYLES, forms=True)


def comparable(newest_first: Iterable[Finished]) -> list[list[Finished]]:
    """Runs of the same dataset that came to a conclusion, where there are at least two of them."""
    by_dataset: dict[str, list[Finished]] = {}
    for run in filter(concluded, newest_first):
        by_dataset.setdefault(run.header.dataset.digest, []).append(run)
    return [runs for runs in by_dataset.values() if len(runs) > 1]


def report_path(name: str) -> str:
    """Where the report of a run is, seen from the index."""
    return f"/{quote(name, safe='')}/{REPORT}"


def _render(template: str, **values: object) -> bytes:
    styles = [frame.own(name) for name in STYLES]
    page = _environment().get_template(template).render(styles=styles, policy=policy(), **values)
    return page.encode("utf-8", "replace")


@cache
def _environment() -> Environment:
    return frame.environment(
        {"moment": _moment, "day": _day, "report": report_path},
        {"figures": figures, "asked": asked, "verdict": verdict, "diff": DIFF},
    )


def _moment(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M}"


def _day(when: datetime) -> str:
    return f"{when:%Y-%m-%d}"


def figures(track: Track, point: Point) -> str:
    """``.81 [.68, .90]``, or a dash where a run has no such number."""
    value, low, high = point.figures
    if value is None:
        return "–"
    limits = "" if low == high else words.interval(track.newest.kind, low, high)
    return f"{words.figure(track.newest.kind, value, track.newest.unit)} {limits}".rstrip()


def asked(point: Point) -> int:
    """Questions behind a point."""
    return point.estimate.n if point.estimate else 0


def verdict(header: RunHeader) -> str:
    """A word for what a run came to; its sentence says more."""
    if header.exit_code in WORD:
        return WORD[header.exit_code]
    if header.partial:
        return "partial"
    return words.tone(header) if header.verdicts else "no gates"
