"""The reports of one small run, held byte for byte: a change of wording or layout shows in the diff.

To renew them after a change that is meant: ``PYTHONPATH=tests python tests/reports/test_golden.py``.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from make_run import make_run

from evalrun.journal import RunFolder
from evalrun.reports import junit, markdown
from evalrun.reports.console import print_run

GOLDEN = Path(__file__).parent / "golden"
SIZES = {"single_chunk": 9, "out_of_corpus": 9}


def _screen(folder: RunFolder, width: int) -> bytes:
    stream = io.StringIO()
    print_run(folder, stream, width=width)
    return stream.getvalue().replace(str(folder.path), "runs/1209-quality").encode()


REPORTS: dict[str, Callable[[RunFolder], bytes]] = {
    "junit.xml": junit.render,
    "summary.md": markdown.render,
    "screen-80.txt": lambda folder: _screen(folder, 80),
    "screen-160.txt": lambda folder: _screen(folder, 160),
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return make_run(tmp_path_factory.mktemp("golden") / "1209-quality", sizes=SIZES, draws=2)


@pytest.mark.parametrize("name", sorted(REPORTS))
def test_golden(small: RunFolder, name: str) -> None:
    """The report is what it was."""
    assert (GOLDEN / name).read_bytes() == REPORTS[name](small)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    with TemporaryDirectory() as place:
        made = make_run(Path(place) / "1209-quality", sizes=SIZES, draws=2)
        GOLDEN.mkdir(exist_ok=True)
        for name, written in REPORTS.items():
            (GOLDEN / name).write_bytes(written(made))
