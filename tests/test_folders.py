"""Where run folders are made: one run each, and none left where nothing came about."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalrun.errors import UserError
from evalrun.folders import give_back, new_run_folder


def test_of_two_runs_into_one_folder_the_second_is_refused(tmp_path: Path) -> None:
    """The first takes the folder at once, long before it has anything to write."""
    first = new_run_folder(tmp_path / "out", "quality")
    with pytest.raises(UserError, match="another run writes there"):
        new_run_folder(tmp_path / "out", "quality")
    first.let_go()


def test_what_a_run_left_that_was_killed_before_its_first_question_is_taken_over(tmp_path: Path) -> None:
    """``--resume`` says to run again, and so the folder of that run must not be refused."""
    new_run_folder(tmp_path / "out", "quality").let_go()
    assert ["cases.jsonl"] == [path.name for path in (tmp_path / "out").iterdir()]
    new_run_folder(tmp_path / "out", "quality").let_go()


@pytest.mark.parametrize("taken", ["a case", "a link", "another file"])
def test_a_folder_that_holds_something_is_refused(taken: str, tmp_path: Path) -> None:
    """Whatever it is, it stays as it was."""
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    out.mkdir()
    elsewhere.touch()
    if taken == "a link":
        (out / "cases.jsonl").symlink_to(elsewhere)
    else:
        (out / ("cases.jsonl" if taken == "a case" else "notes.txt")).write_text("{}\n")
    before = [(path, path.read_bytes()) for path in out.iterdir()]
    with pytest.raises(UserError, match="not empty"):
        new_run_folder(out, "quality")
    assert before == [(path, path.read_bytes()) for path in out.iterdir()]


def test_a_taken_name_gets_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --output a second run of a day goes beside the first."""
    monkeypatch.chdir(tmp_path)
    first, second = (new_run_folder(None, "quality").path for _ in range(2))
    assert f"{first}-2" == str(second)


def test_a_folder_is_given_back_only_when_nothing_is_in_it(tmp_path: Path) -> None:
    """An error before the first case leaves no folder; one after it keeps what was written."""
    empty, used = new_run_folder(tmp_path / "a", "x"), new_run_folder(tmp_path / "b", "x")
    used.file("cases").write_bytes(b"{}\n")
    give_back(empty)
    give_back(used)
    assert not empty.path.exists()
    assert used.file("cases").exists()
