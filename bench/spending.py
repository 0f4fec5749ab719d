"""What a command takes, its threads and children included."""

import os
import subprocess
import sys
import time
from typing import NamedTuple


class Spending(NamedTuple):
    """One process from start to end."""

    cpu_s: float
    wall_s: float
    peak_mb: float


def spend(command: list[object]) -> Spending:
    """Run the command to its end; its output is shown only when it fails."""
    # An installed package has its bytecode at hand; an environment that keeps none would measure the compiler.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    words = list(map(str, command))
    started = time.perf_counter()
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env) as process:
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.perf_counter() - started
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{output.decode(errors='replace')}")
    return Spending(usage.ru_utime + usage.ru_stime, wall_s, usage.ru_maxrss / 1024)
