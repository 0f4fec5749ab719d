"""What `medthink run` costs beside the calls themselves: CPU, throughput, memory, resuming.

Every figure is of a whole process, from start to end, ledger included, against a server on loopback in a process of
its own (`loopback.py`). The bare client (`bench_client.py`) reads, encodes and posts the same images by aiohttp alone.

    python bench/bench_run.py [start] [cpu] [throughput] [memory] [resume] [look]        all six when none is named

`look --million` makes a run of a million calls, which takes some five minutes of CPU and 5 GB of disk.
"""

import argparse
import math
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from loopback import loopback
from made_cases import write_cases, write_pictures
from spending import Spending, spend

BARE = Path(__file__).parent / "bench_client.py"
IMAGES = 8
CPU_CASES, MORE_CASES, CPU_IN_FLIGHT = 200, 1200, 32
LATENCY_S, IN_FLIGHT = 0.05, 64
MEMORY_IN_FLIGHT = 256
WHOLE = 720
ALL_CASES, ALL_IMAGES = 8067, 6.6
LOOK_CASES = 840
# Ten calls to a case and sample.
LOOK_SAMPLES, MILLION_SAMPLES = (1, 10), (10, 120)


class Line(NamedTuple):
    """One line of the table; `is_met` is None where there is no target."""

    what: str
    figure: str
    target: str = ""
    is_met: bool | None = None


class Bench:
    """A folder with pictures, benchmarks made when they are first needed, and runs that are thrown away."""

    def __init__(self, root: Path, rounds: int, *, has_million: bool = False) -> None:
        self.root = root
        self.rounds = rounds
        self.has_million = has_million
        write_pictures(root / "pictures")

    def benchmark(self, cases: int, images: float = IMAGES) -> Path:
        path = self.root / f"cases-{cases}x{images}"
        if not path.exists():
            write_cases(path, self.root / "pictures", cases=cases, images=images)
        return path

    def settle(self, *sizes: int) -> float:
        """Make the benchmarks; returns how long to wait, since what was written a moment ago is not remembered."""
        for cases in sizes:
            self.benchmark(cases)
        return 3.0

    def run(self, url: str, *flags: str, **job: Any) -> Spending:
        """`medthink run` from nothing."""
        shutil.rmtree(self.root / "run", ignore_errors=True)
        return self.run_again(url, *flags, **job)

    def run_again(
        self, url: str, *flags: str, cases: int, in_flight: int, images: float = IMAGES, task: str = "answer"
    ) -> Spending:
        """`medthink run` on whatever the last one left."""
        words = ["run", self.benchmark(cases, images), "--model", "server/m", "--base-url", url, "--task", task]
        words += ["--concurrency", in_flight, "--out", self.root / "run", *flags]
        return spend([sys.executable, "-m", "medthink", *words])

    def bare(
        self, url: str, *, calls: int, in_flight: int, images: int = IMAGES, client: str = "bare-joined"
    ) -> Spending:
        """A bare client with as many calls."""
        port = url.rpartition(":")[2].partition("/")[0]
        words = ["--client", client, "--port", port, "--folder", self.root / "pictures", "--calls", calls]
        return spend([sys.executable, BARE, *words, "--images", images, "--concurrency", in_flight])


def measure_start(bench: Bench) -> list[Line]:
    """From the start of the process to the first call, on a large benchmark: the first time, and once it is known."""
    job = {"cases": ALL_CASES, "images": ALL_IMAGES, "in_flight": 1}
    what = f"first call, {ALL_CASES:,} cases × {ALL_IMAGES} images"
    bench.benchmark(ALL_CASES, ALL_IMAGES)
    time.sleep(3)  # what was written a moment ago is not remembered
    lines = []
    for name, most_s in ((what, 3.0), ("  the second time", 1.5)):
        with loopback() as server:
            began = time.time()
            spent = bench.run(server.url, "--limit", "1", **job)
        first_s = server.first_at - began
        told = f"{first_s:.1f} s; all: {spent.cpu_s:.1f} CPU s, {spent.peak_mb:.0f} MB"
        lines.append(Line(name, told, f"< {most_s:g} s", first_s < most_s))
    return lines


def measure_cpu(bench: Bench) -> list[Line]:
    """CPU of 200 calls with 8 images and of one call more, ours and bare taking turns.

    Ours is measured as the first time, when every image is hashed, and as any other, when its digest is remembered.
    Ratios are taken within a round, whose processes follow each other, so that a machine that is busier or slower in
    one round than in another moves both sides; the median of the rounds is shown with its middle half.
    """
    with loopback() as server:
        time.sleep(bench.settle(CPU_CASES, MORE_CASES))
        rounds = [measure_round(bench, server.url, is_reversed=turn % 2 == 1) for turn in range(bench.rounds)]
    bare_s = statistics.median(one["bare"].whole_s for one in rounds)
    lines = [Line(f"{CPU_CASES} calls × {IMAGES} images, bare aiohttp", f"{bare_s:.2f} CPU s")]
    for name, words in (("first", "the first time"), ("again", "digests remembered")):
        whole = statistics.median(one[name].whole_s for one in rounds)
        ms, bare_ms = (1000 * statistics.median(one[which].more_s for one in rounds) for which in (name, "bare"))
        times = statistics.median(one[name].whole_s / one["bare"].whole_s for one in rounds)
        ratios = [one[name].more_s / one["bare"].more_s for one in rounds]
        ratio, told = statistics.median(ratios), f"{ms:.2f} ms, bare {bare_ms:.2f} ms: {middle_half(ratios)}"
        lines += [
            Line(f"  medthink run, {words}", f"{whole:.2f} CPU s: {times:.2f} ×", "≤ 2 ×", times <= 2),
            Line(f"  one case more, {words}", told, "≤ 1.5 ×", ratio <= 1.5),
        ]
    return lines


class Cost(NamedTuple):
    """CPU of 200 calls, from start to end, and of one call more."""

    whole_s: float
    more_s: float


def measure_round(bench: Bench, url: str, *, is_reversed: bool) -> dict[str, Cost]:
    """What the three take in one round; they take turns at each size, in alternating order."""
    cpu: dict[tuple[str, int], float] = {}
    steps = [(name, cases) for cases in (CPU_CASES, MORE_CASES) for name in ("first", "bare", "again")]
    for name, cases in reversed(steps) if is_reversed else steps:
        flags = ["--rehash"] if name == "first" else []
        if name == "bare":
            spent = bench.bare(url, calls=cases, in_flight=CPU_IN_FLIGHT)
        else:
            spent = bench.run(url, *flags, cases=cases, in_flight=CPU_IN_FLIGHT)
        cpu[name, cases] = spent.cpu_s
    return {
        name: Cost(cpu[name, CPU_CASES], (cpu[name, MORE_CASES] - cpu[name, CPU_CASES]) / (MORE_CASES - CPU_CASES))
        for name in ("first", "bare", "again")
    }


def middle_half(ratios: list[float]) -> str:
    """The median with the quartiles around it."""
    if len(ratios) < 2:
        return f"{ratios[0]:.2f} ×"
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return f"{middle:.2f} × ({low:.2f} to {high:.2f})"


def measure_throughput(bench: Bench) -> list[Line]:
    """Share of the ideal, which is as many calls as are in flight in every latency; the bare client beside it."""
    return [
        *compare_throughput(bench, LATENCY_S, images=0, calls=12800),
        *compare_throughput(bench, LATENCY_S, images=IMAGES, calls=3200),
        *compare_throughput(bench, 10 * LATENCY_S, images=IMAGES, calls=1600),
    ]


def compare_throughput(bench: Bench, latency_s: float, *, images: int, calls: int) -> list[Line]:
    """The rate in the middle of a run, when all places are taken, as the server sees it; and of the whole process.

    Beside it what a bare client reaches, and one that sends what is ready: the most that aiohttp can on this machine.
    """
    job = {"in_flight": IN_FLIGHT, "images": images}
    ideal = IN_FLIGHT / latency_s
    with loopback(latency_s) as ours:
        wall_s = bench.run(ours.url, cases=calls, **job).wall_s
    with loopback(latency_s) as bare:
        bench.bare(bare.url, calls=calls, **job)
    with loopback(latency_s) as ready:
        bench.bare(ready.url, calls=calls, client="ready", **job)
    share = ours.calls_a_second / ideal
    what = f"{IN_FLIGHT} in flight, {latency_s * 1000:.0f} ms, {images} images, {calls} calls"
    return [
        Line(what, f"{share:.0%} of {ideal:.0f} calls a second", "≥ 95 %", share >= 0.95),
        Line("  from the start of the process to its end", f"{calls / wall_s / ideal:.0%}"),
        Line("  bare aiohttp, reading and encoding", f"{bare.calls_a_second / ideal:.0%}"),
        Line("  bare aiohttp, one body made beforehand", f"{ready.calls_a_second / ideal:.0%}"),
    ]


def measure_memory(bench: Bench) -> list[Line]:
    """Peak memory with 256 calls of 8 images in flight, for a benchmark and for one ten times as large."""
    lines, peaks = [], []
    with loopback(LATENCY_S) as server:
        for cases in (WHOLE, 10 * WHOLE):
            peak = bench.run(server.url, cases=cases, in_flight=MEMORY_IN_FLIGHT).peak_mb
            peaks.append(peak)
            lines.append(Line(f"{cases} cases, {MEMORY_IN_FLIGHT} in flight", f"{peak:.0f} MB", "< 250 MB", peak < 250))
    growth = peaks[1] / peaks[0]
    return [*lines, Line("  ten times the cases", f"{growth:.2f} × the memory", "flat", growth < 1.1)]


def measure_resume(bench: Bench) -> list[Line]:
    """Running a finished `twi` run of 720 cases again."""
    with loopback() as server:
        job = {"cases": WHOLE, "in_flight": CPU_IN_FLIGHT, "task": "twi"}
        first = bench.run(server.url, **job)
        again = [bench.run_again(server.url, **job) for _ in range(bench.rounds)]
    calls = WHOLE * (IMAGES + 2)
    wall_s = statistics.median(one.wall_s for one in again)
    return [
        Line(f"twi, {WHOLE} cases, {calls} calls", f"{first.wall_s:.1f} s, {first.cpu_s:.1f} CPU s"),
        Line("  the same command again", f"{wall_s:.2f} s, {median_cpu(again):.2f} CPU s", "< 3 s", wall_s < 3),
    ]


def measure_look(bench: Bench) -> list[Line]:
    """Looking at a finished run, and at one about ten times as large: the exponent is of CPU over calls."""
    lines, before = [], {}
    sizes = MILLION_SAMPLES if bench.has_million else LOOK_SAMPLES
    for samples in sizes:
        run = bench.root / f"look-{samples}"
        asked = ["run", bench.benchmark(LOOK_CASES), "--model", "baseline/random", "--task", "twi", "--out", run]
        asked += ["--samples", samples, "--quiet"]
        made = spend([sys.executable, "-m", "medthink", *asked])
        calls = LOOK_CASES * samples * (IMAGES + 2)
        lines.append(Line(f"{calls:,} calls of a baseline, twi", f"{made.cpu_s:.0f} CPU s, {made.peak_mb:.0f} MB"))
        looks = {"the same command again": asked, "status": ["status", run], "show RUN": ["show", run]}
        for name, words in {**looks, "show RUN CASE": ["show", run, 5]}.items():
            spent = spend([sys.executable, "-m", "medthink", *words])
            told, is_met = f"{spent.cpu_s:.2f} CPU s, {spent.peak_mb:.0f} MB", spent.cpu_s < 2 and spent.peak_mb < 100
            lines.append(Line(f"  {name}", told, "< 2 s", is_met))
            if name in before:
                power = math.log(spent.cpu_s / before[name]) / math.log(sizes[1] / sizes[0])
                lines.append(Line("    exponent", f"{power:.2f}", "≤ 1.05", power <= 1.05))
            before[name] = spent.cpu_s
    return lines


PARTS = {
    "start": measure_start,
    "cpu": measure_cpu,
    "throughput": measure_throughput,
    "memory": measure_memory,
    "resume": measure_resume,
    "look": measure_look,
}


def median_cpu(rounds: list[Spending]) -> float:
    return statistics.median(one.cpu_s for one in rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description="what medthink run costs beside the calls")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--million", action="store_true", help="look: with a run of a million calls")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, medians of {options.rounds}; images of 50 KB")
    with tempfile.TemporaryDirectory(prefix="bench-run-") as folder:
        os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
        bench = Bench(Path(folder), options.rounds, has_million=options.million)
        for name in options.parts or PARTS:
            for line in PARTS[name](bench):
                verdict = {True: "met", False: "MISSED", None: ""}[line.is_met]
                print(f"{line.what:<52} {line.figure:>34} {line.target:>9}  {verdict}", flush=True)


if __name__ == "__main__":
    main()
