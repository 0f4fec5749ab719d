"""How long `medthink view` takes to open a folder of 200 runs of 720 cases, and its pages.

    python bench/bench_view.py [RUNS] [CASES]

The runs are made without a model, one prediction a case with findings for 8 images, as a session leaves them. The first
page is asked for right after the start, so that reading all predictions and the benchmark is part of its time; the line
above it is the whole start of the process until that page has come.
"""

import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import msgspec

from medthink.cases.benchmark import Benchmark
from medthink.core.jsonio import write_jsonl
from medthink.phantoms.writer import make_phantom_row
from medthink.runs.ledger.ledger import Ledger
from medthink.runs.manifest import Manifest, Progress, write_manifest
from medthink.runs.selection import Selection
from medthink.workflow.condition import Condition
from medthink.workflow.prediction import Prediction, TwiSteps

RUNS, CASES = 200, 720
ROUNDS = 5
WORDS = "A well defined mass with contrast enhancement in the upper lobe, which displaces the vessels. " * 4


def make_folder(root: Path, runs: int, cases: int) -> Path:
    """A benchmark of texts and so many finished runs over it."""
    write_jsonl(root / "bench" / "test.jsonl", [make_phantom_row(1, number, False) for number in range(1, cases + 1)])
    split = Benchmark.open(root / "bench")["test"]
    numbers = [case.id for case in split]
    fingerprint = split.text_fingerprint()
    for place in range(runs):
        run = root / "runs" / f"run-{place:03d}"
        write_jsonl(run / "predictions.jsonl", (msgspec.to_builtins(predict(number, place)) for number in numbers))
        Ledger(run / "ledger.sqlite").close()
        write_manifest(run, make_manifest(root, fingerprint, place, cases))
    return root / "runs"


def predict(number: int, place: int) -> Prediction:
    """A prediction of about 5 KB."""
    letter = "ABCDE"[(number * 7 + number % (place % 9 + 2)) % 5]
    steps = TwiSteps(tuple([WORDS] * 8), WORDS, WORDS)
    return Prediction(
        case=number, split="test", sample=0, state="ok", prediction=letter, prediction_rationale=WORDS,
        prediction_twi=steps, parse_mode="strict", slots=tuple(range(1, 9)), cost_usd=0.01,
    )  # fmt: skip


def make_manifest(root: Path, fingerprint: str, place: int, cases: int) -> Manifest:
    """The manifest of a finished run."""
    condition = Condition(findings="self", summary="self", seed=place // 20)
    progress = Progress(
        cases=cases, states={"ok": cases}, calls={}, attempts=0, cost_usd=7.2, reported_models=(), first_call_at=None,
        last_call_at=None, is_complete=True,
    )  # fmt: skip
    return Manifest(
        benchmark=str(root / "bench"), fingerprint="–", text_fingerprint=fingerprint, selection=Selection(split="test"),
        task="twi", model=f"made/up-{place % 20}", condition=condition, condition_label=condition.label(), prompts={},
        created_at="2026-01-01T00:00:00Z", progress=progress,
    )  # fmt: skip


def fetch(address: str) -> tuple[float, str]:
    """How long a page takes, and its text."""
    begin = time.perf_counter()
    with urllib.request.urlopen(address, timeout=60) as answer:
        text = answer.read().decode()
    return time.perf_counter() - begin, text


def main() -> None:
    """Start the viewer on the folder, ask for its pages, print the best of a few times."""
    runs, cases = (int(word) for word in (sys.argv[1:3] if len(sys.argv) > 2 else (RUNS, CASES)))
    with tempfile.TemporaryDirectory() as root:
        folder = make_folder(Path(root), runs, cases)
        begin = time.perf_counter()
        command = [sys.executable, "-m", "medthink", "view", "--no-browser", str(folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"HOME": root}) as viewer:
            assert viewer.stdout is not None
            address = viewer.stdout.readline().split()[3]
            first, text = wait_for(address)
            started = time.perf_counter() - begin
            slug = text.split('href="/runs/')[1].split('"')[0]
            other = text.split('href="/runs/')[-1].split('"')[0]
            pages = {
                "start until the first page": started,
                "all runs, first": first,
                "all runs, again": best(address),
                "one run": best(f"{address}runs/{slug}"),
                "one case": best(f"{address}runs/{slug}/cases/7"),
                "two runs, first": fetch(f"{address}versus/{slug}/{other}")[0],
                "two runs, again": best(f"{address}versus/{slug}/{other}"),
            }
            viewer.send_signal(2)
    print(f"{runs} runs of {cases} cases")
    for name, seconds in pages.items():
        print(f"{name:<28}{seconds:>8.2f} s")


def wait_for(address: str) -> tuple[float, str]:
    """The first answer."""
    for _ in range(200):
        try:
            return fetch(address)
        except OSError:
            time.sleep(0.02)
    raise SystemExit("the viewer did not start")


def best(address: str) -> float:
    """The best of a few times."""
    return min(fetch(address)[0] for _ in range(ROUNDS))


if __name__ == "__main__":
    main()
