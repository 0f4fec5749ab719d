"""How long `medthink --help` takes, as a multiple of starting Python at all."""

import subprocess
import sys
import time
from statistics import median

ROUNDS = 20
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "medthink --help": [sys.executable, "-m", "medthink", "--help"],
    "medthink data --help": [sys.executable, "-m", "medthink", "data", "--help"],
}


def seconds(command: list[str]) -> float:
    """Wall time of one start."""
    begin = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def main() -> None:
    """Alternate the commands, print medians and ratios."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS):
        for name, command in COMMANDS.items():
            times[name].append(seconds(command))
    base = median(times["python -c pass"])
    print(f"{'command':<24}{'median ms':>12}{'× python':>12}")
    for name, values in times.items():
        print(f"{name:<24}{median(values) * 1000:>12.1f}{median(values) / base:>12.2f}")


if __name__ == "__main__":
    main()
