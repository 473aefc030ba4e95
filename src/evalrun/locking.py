"""What one process at a time may write to, for as long as it lives.

Owns the lock, which is the system's own and so ends with its process, however that ends. What is locked, and
what it means that it is, belongs to ``journal`` and ``cassette``.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import IO

from evalrun.errors import UserError

NAME = ".lock"


def hold(file: IO[bytes]) -> bool:
    """Keep an open file from other processes until it is closed; False where another one has it.

    True also where the system or the file system has no such locks: there nobody is kept from anything. Over
    NFS a lock counts on all machines, if the server has locks.
    """
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


class FolderLock:
    """A folder that is this process's to write to, by a file ``.lock`` in it that says which process that is.

    The folder is made where it is not there, and taken away again if it is empty at the end.

    Raises:
        UserError: another process writes there, or nobody can.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made = not folder.exists()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = self._taken()
        except OSError as error:
            raise UserError(f"{folder}: cannot be written: {error.strerror}", "name another folder") from None

    def _taken(self) -> IO[bytes]:
        while True:
            file = (self._folder / NAME).open("a+b")
            if not hold(file):
                raise self._refused(file)
            if self._still_there(file):
                break
            file.close()  # who had it took the file away before this one was locked
        file.truncate(0)
        file.write(str(os.getpid()).encode())
        file.flush()
        return file

    def _still_there(self, file: IO[bytes]) -> bool:
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(file.fileno()), (self._folder / NAME).stat())
        return False

    def _refused(self, file: IO[bytes]) -> UserError:
        file.seek(0)
        pid = file.read(20).decode("ascii", "replace")
        file.close()
        return UserError(
            f"{self._folder}: process {pid if pid.isdigit() else '?'} is writing there",
            "wait for its end, or stop it with kill: what it has recorded is kept",
        )

    def close(self) -> None:
        """Let others write there."""
        with contextlib.suppress(OSError):
            (self._folder / NAME).unlink()
        self._file.close()
        if self._made:
            with contextlib.suppress(OSError):
                self._folder.rmdir()
