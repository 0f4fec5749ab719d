"""How long `check` takes against merely parsing the same JSON Lines, by the standard library and by our strict reader.

Run: python bench/bench_check.py [CASES]
The rows have the released sizes (about 11 KB a row, 6.6 images a case) and are written as Python's json writes them,
with the dashes and quotes of typeset English in a third of the short texts and most of the long ones; the image files
exist but are empty, since without --images nothing opens them.
"""

import json
import math
import random
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import MODALITIES
from medthink.cases.check import check_benchmark
from medthink.cases.icd import who_tree
from medthink.core.jsonio import read_jsonl

CASES = 8_067
TEST_SHARE = 720 / 8_067
ROUNDS = 9
SIGNS = "–’“”é×ü°"
WORDS_A_SIGN = 350


def make_benchmark(root: Path, cases: int) -> None:
    """Random text of the released size and shape."""
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 11))) for _ in range(20_000)]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    text = rng.choices(words, weights, k=2_000_000)
    categories = [code for code in who_tree().get_all_codes() if who_tree().is_category(code)]
    rows = [make_row(number, rng, text, rng.choice(categories)) for number in range(1, cases + 1)]
    split = round(cases * TEST_SHARE)
    write_rows(root / "train.jsonl", rows[split:])
    write_rows(root / "test.jsonl", rows[:split])
    for row in rows:
        (root / f"images/case{int(row['title'].split()[-1]):05d}").mkdir(parents=True)
        for name, value in row.items():
            if name.endswith("_path"):
                (root / value).touch()


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def make_row(number: int, rng: random.Random, text: list[str], category: str) -> dict[str, Any]:
    def passage(length: int) -> str:
        start = rng.randrange(len(text) - length)
        return typeset(text[start : start + length], rng)

    *_, block, chapter = [category, *who_tree().get_ancestors(category)]
    images = min(49, 1 + int(rng.expovariate(1 / 6.1)))
    letter = rng.choice("ABCDE")
    options = {each: f"{passage(rng.randint(1, 6))} {each}{number}" for each in "ABCDE"}
    title = who_tree().get_description
    row: dict[str, Any] = {
        "title": f"Case number {number}",
        "CLINICAL_HISTORY": typeset(text[number * 80 : number * 80 + 80], rng),
        "IMAGING_FINDINGS": passage(150),
        "discussion": passage(800),
        "options": options,
        "correct_answer": letter,
        "correct_answer_text": options[letter],
        "ICD Chapter": f"Chapter {chapter} - {title(chapter)}",
        "ICD Block": f"{block} - {title(block)}",
        "ICD Category": f"{category} - {title(category)}",
        "is_longitudinal": False,
        "timepoint_count": 1,
        "interval_text": "",
        "image_count": images,
    }
    for slot in range(1, 50):
        id_ = f"{number}-{slot}" if slot <= images else None
        row[f"image_{slot:02d}_id"] = id_
        row[f"image_{slot:02d}_path"] = f"images/case{number:05d}/{id_}.jpg" if id_ else ""
        row[f"image_{slot:02d}_caption"] = passage(35) if id_ else None
        row[f"image_{slot:02d}_modality"] = rng.choice(MODALITIES) if id_ else None
        row[f"image_{slot:02d}_sub_modality"] = "Conventional MRI" if id_ else None
    return {name: value for name, value in row.items() if value not in (None, "") or name == "interval_text"}


def typeset(words: list[str], rng: random.Random) -> str:
    """The words with three signs beyond ASCII, the more likely the longer the text is."""
    if rng.random() < math.exp(-len(words) / WORDS_A_SIGN):
        return " ".join(words)
    signed = list(words)
    for _ in range(3):
        signed[rng.randrange(len(words))] += rng.choice(SIGNS)
    return " ".join(signed)


def best_of(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The fastest of a few rounds each, taking turns, in seconds of processor time."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, work in ways.items():
            start = time.process_time()
            work()
            times[name].append(time.process_time() - start)
    return {name: min(rounds) for name, rounds in times.items()}


def drop(rows: Iterable[object]) -> None:
    """Take every row and keep none."""
    deque(rows, maxlen=0)


def main() -> None:
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else CASES
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_benchmark(root, cases)
        files = [root / "train.jsonl", root / "test.jsonl"]
        benchmark = Benchmark.open(root)
        report = check_benchmark(benchmark)
        assert not report.errors, report.counts
        measured = best_of(
            {
                "json, rows kept": lambda: [json.loads(line) for file in files for line in file.open("rb")],
                "json, rows dropped": lambda: drop(json.loads(line) for file in files for line in file.open("rb")),
                "strict parse (core.jsonio)": lambda: drop(row for file in files for row in read_jsonl(file)),
                "iterate the cases": lambda: drop(benchmark),
                "check": lambda: check_benchmark(benchmark),
            }
        )
        megabytes = sum(file.stat().st_size for file in files) / 1e6
    bases = list(measured)[:3]
    print(f"{report.cases:,} cases, {report.images:,} images, {megabytes:.0f} MB of JSON Lines")
    print(f"{'':<28}{'seconds':>9}{'× kept':>9}{'× dropped':>11}{'× strict':>10}")
    for name, seconds in measured.items():
        ratios = [seconds / measured[base] for base in bases]
        print(f"{name:<28}{seconds:>9.2f}{ratios[0]:>9.2f}{ratios[1]:>11.2f}{ratios[2]:>10.2f}")


if __name__ == "__main__":
    main()
