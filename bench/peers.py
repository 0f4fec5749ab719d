"""The job of `bench_run.py cpu` by other harnesses: 200 calls × 8 images of 50 KB, against the same server.

Each is installed apart, in `.venv-peers`, because they bring a hundred packages or more (two of them torch, some GB).
Whoever cannot be installed is said to be missing. All take turns in one run, whole processes, import included.

    python bench/peers.py [--rounds 3] [--only inspect_ai] [--no-install]
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
from typing import NamedTuple

from bench_run import CPU_CASES, CPU_IN_FLIGHT, IMAGES, Bench
from loopback import loopback
from spending import Spending, spend

HERE = Path(__file__).parent
VENVS = HERE.parent / ".venv-peers"


class Peer(NamedTuple):
    """A harness: what to install, itself first; the script that does the job; how many times our CPU it should take."""

    name: str
    packages: tuple[str, ...]
    script: str
    target: float

    @property
    def python(self) -> Path:
        return VENVS / self.name / "bin" / "python"

    def version(self) -> str | None:
        """The installed version, or None."""
        if not self.python.exists():
            return None
        code = f"from importlib.metadata import version; print(version({self.packages[0]!r}))"
        found = subprocess.run([self.python, "-c", code], capture_output=True, text=True, check=False)
        return found.stdout.strip() or None

    def install(self) -> None:
        """Make its environment once; a failure leaves it without the package."""
        if not self.python.exists():
            venv.create(VENVS / self.name, with_pip=True)
        print(f"installing {self.name} …", flush=True)
        subprocess.run([self.python, "-m", "pip", "install", "--quiet", *self.packages], check=False)


PEERS = (
    Peer("inspect_ai", ("inspect_ai", "openai"), "peer_inspect.py", 8.0),
    Peer("lmms_eval", ("lmms_eval",), "peer_lmms.py", 12.0),
    # VLMEvalKit as it is published for pip; the torch named here also exists without CUDA, some GB smaller.
    Peer("vlmeval", ("ms-vlmeval", "torch==2.13.0"), "peer_vlmeval.py", 12.0),
)


def measure(bench: Bench, url: str, peers: list[Peer]) -> dict[str, list[Spending]]:
    """Everybody in turn, forwards and backwards."""
    table = bench.benchmark(CPU_CASES) / "test.jsonl"

    def turn_of(peer: Peer) -> Callable[[], Spending]:
        def take_turn() -> Spending:
            shutil.rmtree(bench.root / "logs", ignore_errors=True)
            return spend([peer.python, HERE / peer.script, url, table, CPU_IN_FLIGHT, bench.root / "logs"])

        return take_turn

    turns: dict[str, Callable[[], Spending]] = {
        "bare aiohttp": lambda: bench.bare(url, calls=CPU_CASES, in_flight=CPU_IN_FLIGHT),
        "medthink": lambda: bench.run(url, cases=CPU_CASES, in_flight=CPU_IN_FLIGHT),
    } | {peer.name: turn_of(peer) for peer in peers}
    results: dict[str, list[Spending]] = {name: [] for name in turns}
    for number in range(bench.rounds):
        for name in turns if number % 2 == 0 else reversed(turns):
            results[name].append(turns[name]())
    return results


def show(results: dict[str, list[Spending]], peers: list[Peer]) -> None:
    """One line each, with the multiple of our own CPU."""
    middle = {name: Spending(*map(statistics.median, zip(*rounds, strict=True))) for name, rounds in results.items()}
    ours = middle["medthink"].cpu_s
    known = {peer.name: peer for peer in peers}
    print(f"{'':<24}{'CPU s':>8}{'wall s':>8}{'peak MB':>9}{'× ours':>8}  target")
    for name, one in middle.items():
        label, target = name, ""
        if peer := known.get(name):
            label = f"{name} {peer.version()}"
            target = f"≥ {peer.target:g} ×: {'met' if one.cpu_s >= peer.target * ours else 'MISSED'}"
        print(f"{label:<24}{one.cpu_s:>8.2f}{one.wall_s:>8.2f}{one.peak_mb:>9.0f}{one.cpu_s / ours:>8.1f}  {target}")


def main() -> None:
    parser = argparse.ArgumentParser(description="the same job by other harnesses")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=[peer.name for peer in PEERS], help="one of them")
    parser.add_argument("--no-install", action="store_true", help="measure what is in .venv-peers already")
    options = parser.parse_args()
    wanted = [peer for peer in PEERS if options.only in (None, peer.name)]
    for peer in wanted:
        if not options.no_install and peer.version() is None:
            peer.install()
    present = [peer for peer in wanted if peer.version()]
    for peer in wanted:
        if peer not in present:
            print(f"{peer.name}: not measured, since it is not installed")
    print(f"{CPU_CASES} calls × {IMAGES} images of 50 KB, {CPU_IN_FLIGHT} in flight, medians of {options.rounds}, "
          f"Python {sys.version.split()[0]}, {os.cpu_count()} cores")  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="bench-peers-") as folder, loopback() as server:
        show(measure(Bench(Path(folder), options.rounds), server.url, present), present)


if __name__ == "__main__":
    main()
