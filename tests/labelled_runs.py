"""Makes label files for the run folders of the tests about judge and labels.

Owns headers, rows and their digests; the runs are those of ``paired_runs``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from evalrun.journal import RunFolder

DESIGN = "random"
Row = tuple[str, str, bool]
"""Case, digest of the draw, label."""


def header(**fields: Any) -> dict[str, Any]:
    """The header of a label file by one rater; ``fields`` replace its own."""
    made: dict[str, Any] = {
        "dimension": "refusal",
        "design": DESIGN,
        "date": "2026-11-30",
        "raters": {"r1": {"kind": "model", "how": "read"}},
    }
    return made | fields


def write_labels(path: Path, rows: Iterable[Row], rater: str = "r1", **fields: Any) -> Path:
    """A label file of one rater."""
    return write_all(path, {rater: rows}, **fields)


def write_all(path: Path, rows: Mapping[str, Iterable[Row]], **fields: Any) -> Path:
    """A label file of several raters."""
    raters = {name: {"kind": "model", "how": "read"} for name in rows}
    lines: list[Any] = [header(**({"raters": raters} | fields))]
    for rater, labels in rows.items():
        lines += [
            {"draw": draw, "case": case, "rater": rater, "label": label} for case, draw, label in labels
        ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def first_draws(folder: RunFolder) -> dict[str, str]:
    """Case → the digest of its first draw."""
    return {draw.case: draw.digest or "" for draw in folder.draws() if draw.index == 0}


def labelled(folder: RunFolder, labels: dict[str, bool]) -> list[Row]:
    """Rows that label the first draw of each case."""
    digests = first_draws(folder)
    return [(case, digests[case], label) for case, label in labels.items()]
