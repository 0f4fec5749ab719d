"""The processes that a test starts: they hear their signals, and none outlives its test."""

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

# What a shell or `nohup` may have told us to ignore, and every child of ours with us.
_OFTEN_IGNORED = ("SIGINT", "SIGQUIT", "SIGHUP", "SIGTERM")
_BECOME_SUBREAPER = 36
# Python's and Jupyter's own and the database server of the tests, started once and kept for the whole session.
_KEPT = ("multiprocessing.resource_tracker", "multiprocessing.forkserver", "loky", "pgserver", "postgres: ")
_PATIENCE_S = 60.0


def pytest_configure() -> None:
    """Let children hear the signals that this process was told to ignore, and adopt what they leave."""
    for name in _OFTEN_IGNORED:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            # A handler that does nothing ignores it here all the same, and a new program starts with the default.
            signal.signal(number, lambda *_: None)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_BECOME_SUBREAPER, 1, 0, 0, 0)


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    """Fail the test that leaves a process behind, and end that process."""
    before = _running_children()
    yield
    left = _left_after(before)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert not left, f"processes left behind: {list(left.values())}"


def _left_after(before: dict[int, str]) -> dict[int, str]:
    """The children that are new and stay; one that is about to end gets a moment."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        left = {pid: words for pid, words in _running_children().items() if pid not in before}
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.02)


def _running_children() -> dict[int, str]:
    """The command line of every child that has not ended; none where the system does not tell."""
    pids = [pid for task in Path("/proc/self/task").glob("*/children") for pid in _read(task).split()]
    words = {int(pid): _command(Path("/proc", pid)) for pid in pids if not _has_ended(Path("/proc", pid))}
    return {pid: line for pid, line in words.items() if not any(kept in line for kept in _KEPT)}


def _has_ended(process: Path) -> bool:
    """Whether a child has ended, waited for or not."""
    return _read(process / "stat").rpartition(")")[2].split()[:1] in ([], ["Z"], ["X"])


def _command(process: Path) -> str:
    """A process's command line; its name alone while it is still being loaded."""
    return _read(process / "cmdline").replace("\0", " ").strip() or _read(process / "comm").strip()


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # it ended while we looked
        return ""
