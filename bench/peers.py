"""The job of `bench_run.py cpu` by other harnesses: 200 calls × 8 images of 50 KB, against the same server.

They are installed apart, in `.venv-peers`, because each brings a hundred packages. Whoever is not there is said to be
missing. All take turns in one run, whole processes, import included, and none re-encodes an image.

    python bench/peers.py [--rounds 3] [--no-install]
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path

from bench_run import CPU_CASES, CPU_IN_FLIGHT, IMAGES, Bench
from loopback import loopback
from spending import Spending, spend

HERE = Path(__file__).parent
VENV = HERE.parent / ".venv-peers"
PYTHON = VENV / "bin" / "python"
# What is measured, by the name it is installed under; what has a target has it as a multiple of our own CPU.
PEERS = {"inspect_ai": HERE / "peer_inspect.py"}
TARGETS = {"inspect_ai": 8.0}
# Named in the target, but they bring torch and a gigabyte each and read no dataset but their own: never installed here.
NOT_DRIVEN = ("lmms_eval", "vlmeval")


def install() -> None:
    """Make `.venv-peers` once."""
    if not PYTHON.exists():
        venv.create(VENV, with_pip=True)
    if any(version(name) is None for name in PEERS):
        packages = [*PEERS, "openai"]
        subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", *packages], check=True)


def version(name: str) -> str | None:
    """The installed version, or None."""
    code = f"from importlib.metadata import version; print(version({name!r}))"
    found = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=False)
    return found.stdout.strip() or None


def measure(bench: Bench, url: str, names: list[str]) -> dict[str, list[Spending]]:
    """Everybody in turn, forwards and backwards."""
    table = bench.benchmark(CPU_CASES) / "test.jsonl"

    def peer(name: str) -> Callable[[], Spending]:
        logs = bench.root / "logs"
        shutil.rmtree(logs, ignore_errors=True)
        return lambda: spend([PYTHON, PEERS[name], url, table, CPU_IN_FLIGHT, logs])

    turns: dict[str, Callable[[], Spending]] = {
        "bare aiohttp": lambda: bench.bare(url, calls=CPU_CASES, in_flight=CPU_IN_FLIGHT),
        "medthink": lambda: bench.run(url, cases=CPU_CASES, in_flight=CPU_IN_FLIGHT),
    } | {name: peer(name) for name in names}
    results: dict[str, list[Spending]] = {name: [] for name in turns}
    for number in range(bench.rounds):
        for name in turns if number % 2 == 0 else reversed(turns):
            results[name].append(turns[name]())
    return results


def show(results: dict[str, list[Spending]]) -> None:
    """One line each, with the multiple of our own CPU."""
    middle = {name: Spending(*map(statistics.median, zip(*rounds, strict=True))) for name, rounds in results.items()}
    ours = middle["medthink"].cpu_s
    print(f"{'':<22}{'CPU s':>8}{'wall s':>8}{'peak MB':>9}{'× ours':>8}  target")
    for name, one in middle.items():
        label = f"{name} {version(name) or ''}" if name in PEERS else name
        target = f"≥ {TARGETS[name]:g}: {'met' if one.cpu_s >= TARGETS[name] * ours else 'MISSED'}" * (name in TARGETS)
        print(f"{label:<22}{one.cpu_s:>8.2f}{one.wall_s:>8.2f}{one.peak_mb:>9.0f}{one.cpu_s / ours:>8.1f}  {target}")


def main() -> None:
    parser = argparse.ArgumentParser(description="the same job by other harnesses")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-install", action="store_true", help="measure what is in .venv-peers already")
    options = parser.parse_args()
    if not options.no_install:
        install()
    names = [name for name in PEERS if PYTHON.exists() and version(name)]
    for name in (*set(PEERS).difference(names), *NOT_DRIVEN):
        print(f"{name}: not measured, since it is not installed")
    print(f"{CPU_CASES} calls × {IMAGES} images of 50 KB, {CPU_IN_FLIGHT} in flight, medians of {options.rounds}, "
          f"Python {sys.version.split()[0]}, {os.cpu_count()} cores")  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="bench-peers-") as folder, loopback() as url:
        show(measure(Bench(Path(folder), options.rounds), url, names))


if __name__ == "__main__":
    main()
