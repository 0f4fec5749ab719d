"""A misbehaving server in a process of its own, and `medthink` as a user calls it."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

FAULT_SERVER = Path(__file__).parents[1] / "faults" / "fault_server.py"
_PATIENCE_S = 120.0


class Server:
    """A fault server, or another program, started with some flags; asked for its own counts over HTTP."""

    def __init__(self, *flags: str, program: Path = FAULT_SERVER) -> None:
        command = [sys.executable, str(program), "--port", "0", "--lifetime", "240", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self._output = self.process.stdout
        self.url = f"http://127.0.0.1:{int(self._output.readline())}"

    def ask(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=30) as reply:
            return json.loads(reply.read())

    @property
    def requests(self) -> int:
        return int(self.ask("/_stats")["requests"])

    def wait_for(self, requests: int) -> None:
        wait_until(lambda: self.requests >= requests)

    def open(self) -> None:
        """Let go the requests that it holds."""
        self.ask("/_open")

    def wait_until_alone(self) -> None:
        """Wait until it has read all that came over connections that are closed now; ours is the one that is left."""
        wait_until(lambda: self.ask("/_stats")["connections"] == 1)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self._output.close()


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until something holds, as long as a slow machine may take for it."""
    deadline = time.monotonic() + _PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def medthink(
    *words: object, env: dict[str, str] | None = None, prefix: Sequence[str] = (), **options: Any
) -> subprocess.Popen[str]:
    """Start `medthink` with these words, by another command where `prefix` names one."""
    command = [*prefix, sys.executable, "-m", "medthink", *map(str, words)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | (env or {}), **options
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for it; exit code, standard output, standard error."""
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err
