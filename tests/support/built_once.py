"""What is dear to make is made once for all workers of a test session; no test changes it."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


def built_once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], None]) -> Path:
    """The folder of this name; the first worker that asks for it builds it, the others wait."""
    own = factory.getbasetemp()
    # A worker's folder is inside the session's.
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    folder, done = shared / name, shared / f"{name}.done"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            build(folder)
            done.touch()
    return folder
