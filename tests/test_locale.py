"""Text of any script, on a console of any encoding."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from evalrun.cli import main
from evalrun.dataset import load_dataset
from known import CASES, known, lines_of

TIMED = {"meta.json", "report.html", "junit.xml", "summary.md"}
"""They show when and how fast the run went, which is another time in each."""
OLD = ({"PYTHONIOENCODING": "cp1252"}, {"LC_ALL": "C", "PYTHONUTF8": "0"})


def scored(path: Path, output: Path, env: dict[str, str] | None) -> tuple[int, dict[str, bytes]]:
    """Exit code and files of ``evalrun score``: in this process, or in one that has these variables."""
    arguments = ["score", str(path), "--output", str(output)]
    if env is None:
        code = CliRunner().invoke(main, arguments).exit_code
    else:
        program = [sys.executable, "-c", "from evalrun.cli import main; main()"]
        done = subprocess.run(
            [*program, *arguments], env={**os.environ, **env}, capture_output=True, check=False
        )
        assert b"Traceback" not in done.stderr, done.stderr
        code = done.returncode
    files = {one.name: one.read_bytes() for one in output.iterdir()}
    assert TIMED <= files.keys()
    assert all(data.decode("utf-8") for data in files.values() if data)
    return code, {name: data for name, data in files.items() if name not in TIMED}


TL_01 = lines_of("tl-01-non-utf8.jsonl")


@known(
    "TL-01",
    TL_01,
    [{"id": "\u202eid", "question": "\u0130\u1e9e \U0001f468\u200d\U0001f469\u200d\U0001f467 \u0300"}],
    [{"id": "a\u2028b", "question": "\ufffd \ue000 \u00a0 \u2713 \U0010fffd \u0661"}],
)
def test_an_old_console_changes_no_file(given: list[dict[str, str]], tmp_path: Path) -> None:
    """In any locale the exit code and every file are the same, files are UTF-8, nothing cannot be said."""
    rows = [row | {"answer": row["question"], "category": "any"} for row in given]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    found = [scored(path, tmp_path / "here" / "run", None)]
    for number, env in enumerate(OLD):
        found.append(scored(path, tmp_path / str(number) / "run", env))
    assert found[0] == found[1] == found[2]
    assert rows[0]["question"] in found[0][1]["draws.jsonl"].decode("utf-8")


def test_a_dataset_in_any_script_is_read(tmp_path: Path) -> None:
    """TL-01: ids and questions hold what people write."""
    (case,) = load_dataset(CASES / "tl-01-non-utf8.jsonl").cases
    assert (TL_01[0]["id"], TL_01[0]["question"]) == (case.id, case.question)
