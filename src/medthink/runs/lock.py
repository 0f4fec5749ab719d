"""One process at a time works on a run; the system frees the lock of a process that died."""

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from medthink.core.clock import now_utc
from medthink.core.errors import LedgerError


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Hold the run's lock, or raise LedgerError naming who has it."""
    path = folder / ".lock"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise LedgerError(
            f"{folder}: cannot be written: {error.strerror}", remedy="check the folder's rights"
        ) from None
    try:
        _take(handle, folder)
        yield
    finally:
        os.close(handle)


def _take(handle: int, folder: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(handle, 200, 0).decode(errors="replace").strip() or "another process"
        raise LedgerError(f"{folder} is in use by {holder}", remedy="wait for it, or work on another run") from None
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()} since {now_utc()}\n".encode(), 0)
