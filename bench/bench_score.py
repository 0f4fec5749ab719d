"""How long `medthink score` takes on a 720-case `twi` run of about 7,300 calls: all offline metrics, 10,000 resamples.

    python bench/bench_score.py [CASES]

The texts are phantom captions; the run's findings and summaries are those of other cases, so that nothing matches by
construction. The whole process is timed, start included.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.core.jsonio import encode_json, write_jsonl
from medthink.models.request import Reply, Usage
from medthink.phantoms.writer import make_phantom_row
from medthink.runs.ledger.ledger import Call, Ledger, intent_row, reply_row
from medthink.runs.ledger.schema import write_records
from medthink.runs.manifest import Manifest, Progress, write_manifest
from medthink.runs.selection import Selection
from medthink.workflow.condition import Condition
from medthink.workflow.prediction import Prediction, TwiSteps

CASES = 720
ROUNDS = 3
CONDITION = Condition(findings="self", summary="self")


def make_run(root: Path, cases: int) -> Path:
    """A benchmark of texts, and a run over it that never asked anybody."""
    write_jsonl(root / "bench" / "test.jsonl", [make_phantom_row(1, number, False) for number in range(1, cases + 1)])
    split = Benchmark.open(root / "bench")["test"]
    listed = list(split)
    run = root / "run"
    run.mkdir()
    predictions = [predict(case, listed[(place + 7) % cases]) for place, case in enumerate(listed)]
    write_jsonl(run / "predictions.jsonl", map(msgspec.to_builtins, predictions))
    write_manifest(run, make_manifest(root, split, cases))
    write_calls(run, sum(len(case.question.images) + 2 for case in listed))
    return run


def predict(case: Case, other: Case) -> Prediction:
    """What another case's expert wrote, as if a model had."""
    captions = [image.caption for image in other.reference.images]
    findings = tuple(captions[place % len(captions)] for place in range(len(case.question.images)))
    return Prediction(
        case=case.id, split="test", sample=0, state="ok", prediction="ABCDE"[case.id % 5], prediction_rationale="…",
        prediction_twi=TwiSteps(findings, other.reference.findings, "…"), parse_mode="strict",
        slots=tuple(image.slot for image in case.question.images),
    )  # fmt: skip


def make_manifest(root: Path, split: Benchmark, cases: int) -> Manifest:
    """The manifest of a finished run."""
    progress = Progress(
        cases=cases, states={"ok": cases}, calls={}, attempts=0, cost_usd=None, reported_models=(), first_call_at=None,
        last_call_at=None, is_complete=True,
    )  # fmt: skip
    return Manifest(
        benchmark=str(root / "bench"), fingerprint="–", text_fingerprint=split.text_fingerprint(),
        selection=Selection(split="test"), task="twi", model="made/up", condition=CONDITION,
        condition_label=CONDITION.label(), prompts={}, created_at="2026-01-01T00:00:00Z", progress=progress,
    )  # fmt: skip


def write_calls(run: Path, calls: int) -> None:
    """A ledger with so many answered calls."""
    reply = Reply(text="x" * 300, usage=Usage(900, 0, 90, 0), latency_s=1.0)
    ledger = Ledger(run / "ledger.sqlite")
    asked = (Call(str(n), str(n), 1, "findings", b"{}" * 500) for n in range(calls))
    with ledger.connection as connection:
        for call in asked:
            rows = {"intent": [intent_row(call, 0.0)], "reply": [reply_row(call.key, reply)]}
            write_records(connection, {kind: list(map(encode_json, made)) for kind, made in rows.items()})
    ledger.close()


def main() -> None:
    """Time the command a few times, print the best and what it did."""
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else CASES
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(Path(folder), cases)
        command = [sys.executable, "-m", "medthink", "score", str(run)]
        times = []
        for _ in range(ROUNDS):
            begin = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            times.append(time.perf_counter() - begin)
        images = sum(len(case.question.images) for case in Benchmark.open(Path(folder) / "bench"))
    print(f"{'cases':>8}{'findings':>10}{'seconds':>10}{'target':>8}")
    print(f"{cases:>8,}{images:>10,}{min(times):>10.2f}{3.0:>8.1f}")


if __name__ == "__main__":
    main()
