"""How long commands take to start: every `--help`, and a comparison and a report of small runs.

CPU seconds, as multiples of starting Python at all, because wall time depends on what else the machine does. Bytecode
is cached, as it is for users, and the least of several rounds counts: the first one compiles.
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from medthink.cli import COMMANDS

ROUNDS = 5
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
_MEDTHINK = (sys.executable, "-m", "medthink")


def cpu_seconds(*command: str) -> float:
    """The CPU time of one start, user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True, env=_ENVIRONMENT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def least(*command: str) -> float:
    """The least of several rounds: whatever is added to it is not the command's."""
    return min(cpu_seconds(*command) for _ in range(ROUNDS))


def main() -> None:
    """Print the time of every command, as a multiple of Python's own start."""
    base = least(sys.executable, "-c", "pass")
    print(f"{'command':<28}{'CPU ms':>9}{'× python':>11}")

    def show(name: str, *words: str) -> None:
        took = least(*_MEDTHINK, *words)
        print(f"{name:<28}{took * 1000:>9.0f}{took / base:>11.1f}", flush=True)

    show("--version", "--version")
    show("--help", "--help")
    for name in COMMANDS:
        show(f"{name} --help", name, "--help")
    with tempfile.TemporaryDirectory() as folder:
        bench, runs, page = (str(Path(folder) / name) for name in ("bench", "runs", "report.html"))
        cpu_seconds(*_MEDTHINK, "data", "synth", "-o", bench, "--count", "20")
        for model in ("retrieval", "longest"):
            cpu_seconds(*_MEDTHINK, "run", bench, "--model", f"baseline/{model}", "-o", f"{runs}/{model}")
        show("compare two runs", "compare", runs)
        show("report of one run", "report", f"{runs}/longest", "-o", page)
        show("report of two runs", "report", runs, "-o", page)


if __name__ == "__main__":
    main()
