"""Reading a benchmark's text: ours against `datasets` on the same parquet, and peak memory as the benchmark grows.

Run: python bench/bench_load.py. Every measurement is a process of its own; ratios come from alternating rounds.
"""

import argparse
import json
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CASES = 8067
GROWTH = 10
WORDS = [f"{stem}{end}" for stem in ("lesion", "enhanc", "fibros", "nod", "cyst", "vasc") for end in "aeiousmt"]

OURS = """
from medthink import Benchmark
import resource, sys, time
benchmark = Benchmark.open(sys.argv[1])
next(iter(benchmark))
start = time.perf_counter()
count = letters = 0
for case in benchmark:
    count += 1
    letters += len(case.question.history) + sum(len(image.caption) for image in case.reference.images)
"""
THEIRS = """
import resource, sys, time
from datasets import disable_progress_bars, load_dataset
disable_progress_bars()
table = load_dataset("parquet", data_files={"train": sys.argv[1]}, split="train", cache_dir=sys.argv[2])
next(iter(table))
start = time.perf_counter()
count = letters = 0
for row in table:
    count += 1
    letters += len(row["CLINICAL_HISTORY"])
    letters += sum(len(row[f"image_{slot:02d}_caption"]) for slot in range(1, row["image_count"] + 1))
"""
REPORT = """
import json
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"seconds": seconds, "peak_mb": peak, "count": count, "letters": letters}))
"""


def text(rng: random.Random, words: int) -> str:
    """Words to about this number, as long as the real ones."""
    return " ".join(rng.choices(WORDS, k=max(1, round(rng.gauss(words, words / 4)))))


def rows(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Rows with texts as long as the real ones, 6.6 images a case, and all 49 slots named."""
    rng = random.Random(seed)
    parts = ("id", "path", "caption", "modality", "sub_modality")
    empty = {f"image_{slot:02d}_{part}": "" for slot in range(1, 50) for part in parts}
    for number in range(1, count + 1):
        images = min(49, 1 + int(rng.expovariate(1 / 6.1)))
        row: dict[str, Any] = {"title": f"Case number {number}", "CLINICAL_HISTORY": text(rng, 40)}
        row |= {"IMAGING_FINDINGS": text(rng, 120), "discussion": text(rng, 450), "interval_text": ""}
        row |= {"options": {letter: text(rng, 3) for letter in "ABCDE"}, "correct_answer": "A"}
        row |= {"correct_answer_text": "x", "ICD Chapter": "Chapter II - Neoplasms", "ICD Block": "C00-C14 - Lip"}
        row |= {"ICD Category": "C00 - Lip", "is_longitudinal": False, "timepoint_count": 1, "image_count": images}
        for slot in range(1, images + 1):
            name = f"image_{slot:02d}"
            row |= {f"{name}_id": f"{number}_{slot}", f"{name}_path": f"images/case{number:05d}/{number}_{slot}.jpg"}
            row |= {f"{name}_caption": text(rng, 30), f"{name}_modality": "CT", f"{name}_sub_modality": "HRCT"}
        yield empty | row


def make(folder: Path, count: int) -> None:
    """A benchmark of this size in both forms."""
    from medthink.cases.benchmark import Benchmark
    from medthink.cases.files.export import export_benchmark
    from medthink.core.jsonio import write_jsonl

    write_jsonl(folder / "jsonl/train.jsonl", rows(count, seed=1))
    export_benchmark(Benchmark.open(folder / "jsonl"), folder / "parquet", format="parquet")


def make_apart(folder: Path, count: int) -> Path:
    """The same in a process of its own: a child's peak memory starts at its parent's, which must stay small."""
    maker = multiprocessing.get_context("spawn").Process(target=make, args=(folder, count))
    maker.start()
    maker.join()
    if maker.exitcode:
        raise RuntimeError("the benchmark could not be made")
    return folder


def measure(script: str, *words: object) -> dict[str, Any]:
    """Run a script in a process of its own and take its report."""
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    command = [sys.executable, "-c", script + REPORT, *map(str, words)]
    done = subprocess.run(command, check=True, capture_output=True, env=environment)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def main() -> None:
    """Measure and print the table; leave with 1 where a promise is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        small = make_apart(Path(name) / "small", options.cases)
        large = make_apart(Path(name) / "large", options.cases * GROWTH)
        readers = {
            "datasets, parquet": (THEIRS, small / "parquet/train.parquet", Path(name) / "cache"),
            "medthink, parquet": (OURS, small / "parquet/train.parquet"),
            "medthink, jsonl": (OURS, small / "jsonl/train.jsonl"),
        }
        measure(*readers["datasets, parquet"])  # fills its cache, which is not counted
        runs: dict[str, list[dict[str, Any]]] = {reader: [] for reader in readers}
        for _ in range(options.rounds):
            for reader, call in readers.items():
                runs[reader].append(measure(*call))
        grown = {"medthink, parquet": measure(OURS, large / "parquet/train.parquet")}
        grown["medthink, jsonl"] = measure(OURS, large / "jsonl/train.jsonl")
    sys.exit(report(runs, grown, options.cases))


def report(runs: dict[str, list[dict[str, Any]]], grown: dict[str, dict[str, Any]], cases: int) -> int:
    """Print the table; 1 where a promise is not kept."""
    assert len({(run["count"], run["letters"]) for each in runs.values() for run in each}) == 1
    baseline = statistics.median(run["seconds"] for run in runs["datasets, parquet"])
    kept = True
    print(f"{'reader':<20}{'seconds':>9}{'× faster':>10}{'peak MB':>9}{f'peak MB ×{GROWTH}':>13}{'growth':>8}")
    for reader, each in runs.items():
        seconds = statistics.median(run["seconds"] for run in each)
        peak = statistics.median(run["peak_mb"] for run in each)
        line = f"{reader:<20}{seconds:>9.2f}{baseline / seconds:>10.1f}{peak:>9.0f}"
        if reader in grown:
            growth = grown[reader]["peak_mb"] / peak - 1
            line += f"{grown[reader]['peak_mb']:>13.0f}{growth:>8.1%}"
            kept &= baseline / seconds >= 10 and growth <= 0.10
        print(line)
    print(f"{cases:,} cases; promised: at least 10 × faster than datasets, peak memory at most 10 % more at ×{GROWTH}")
    return 0 if kept else 1


if __name__ == "__main__":
    main()
