"""One process at a time works on a run; the system frees the lock of a process that died.

Windows has no such locks: there, a starting run prints one line that no other process may work on it.
"""

import logging
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from medthink.core.clock import now_utc
from medthink.core.errors import LedgerError

_LOCK = ".lock"
_HAS_LOCKS = find_spec("fcntl") is not None
# `is_locked` takes the lock for a few microseconds: a run starting at that moment tries again.
_TRIES, _PAUSE_S = 5, 0.02


def is_locked(folder: Path) -> bool:
    """Whether a process is working on the run; nothing is written. False if the system has no locks."""
    if not _HAS_LOCKS:
        return False
    import fcntl

    try:
        handle = os.open(folder / _LOCK, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file system without locks
    finally:
        os.close(handle)
    return False


@contextmanager
def lock_run(folder: Path) -> Iterator[None]:
    """Hold the run's lock, or raise LedgerError naming its owner."""
    if not _HAS_LOCKS:
        logging.getLogger("medthink").warning(
            "This system has no file locks: make sure that no other process works on %s.", folder
        )
        yield
        return
    path = folder / _LOCK
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise LedgerError(
            f"{folder}: cannot be written: {error.strerror}", remedy="check the folder's permissions"
        ) from None
    try:
        _take(handle, folder)
        yield
    finally:
        os.close(handle)


def _take(handle: int, folder: Path) -> None:
    if not any(_try(handle, last=tried == _TRIES - 1) for tried in range(_TRIES)):
        holder = os.pread(handle, 200, 0).decode(errors="replace").strip() or "another process"
        raise LedgerError(f"{folder} is in use by {holder}", remedy="wait for it, or work on another run")
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()} since {now_utc()}\n".encode(), 0)


def _try(handle: int, *, last: bool) -> bool:
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if not last:
            time.sleep(_PAUSE_S)
        return False
    return True
