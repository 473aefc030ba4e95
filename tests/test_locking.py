"""A folder that one process at a time may write to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from evalrun.errors import ExitCode, UserError
from evalrun.locking import FolderLock

HOLDER = """
import sys, time
from pathlib import Path
from evalrun.locking import FolderLock
lock = FolderLock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def test_who_comes_second_is_told_who_writes_there(tmp_path: Path) -> None:
    """With exit 2, and the number of the process; after the end of the first the folder is free."""
    folder = tmp_path / "cassette"
    with closing(FolderLock(folder)), pytest.raises(UserError) as caught:
        FolderLock(folder)
    assert f"{folder}: process {os.getpid()} is writing there" == caught.value.message
    assert ExitCode.USAGE is caught.value.exit_code
    FolderLock(folder).close()


def test_a_lock_ends_with_its_process_however_that_ends(tmp_path: Path) -> None:
    """The file that a killed process left behind keeps nobody out."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "held\n" == process.stdout.readline()
        with pytest.raises(UserError, match=f"process {process.pid} is writing there"):
            FolderLock(tmp_path)
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    assert (tmp_path / ".lock").exists()
    with closing(FolderLock(tmp_path)):
        assert str(os.getpid()) == (tmp_path / ".lock").read_text()


def test_nothing_is_left_of_a_folder_into_which_nothing_was_written(tmp_path: Path) -> None:
    """One that was there before stays."""
    FolderLock(tmp_path / "new").close()
    (tmp_path / "old").mkdir()
    FolderLock(tmp_path / "old").close()
    with closing(FolderLock(tmp_path / "used")):
        (tmp_path / "used" / "bot.jsonl").touch()
    assert ["old", "used"] == sorted(path.name for path in tmp_path.iterdir())
    assert ["bot.jsonl"] == [path.name for path in (tmp_path / "used").iterdir()]


def test_of_many_at_once_never_two_hold_it(tmp_path: Path) -> None:
    """Also while the one that ends takes the file away."""
    holding, most = [0], [0]
    guard = threading.Lock()

    def work() -> None:
        for _ in range(50):
            try:
                lock = FolderLock(tmp_path)
            except UserError:
                continue
            with guard:
                holding[0] += 1
                most[0] = max(most[0], holding[0])
            with guard:
                holding[0] -= 1
            lock.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 == most[0]


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_folder_that_cannot_be_made_is_a_users_error(tmp_path: Path, name: str) -> None:
    """It says which."""
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be written"):
        FolderLock(tmp_path / name)
