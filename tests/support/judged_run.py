"""A run with rationales of one's own choosing, made without any model."""

import json
from pathlib import Path
from typing import Any

import msgspec

from ledger_rows import replace_predictions
from medthink.runs.manifest import RunSpec
from medthink.runs.session import run_session
from small_benchmark import write_benchmark

RATIONALE = "The lesion is large. The margin is WRONG here. So the diagnosis follows."
SUMMARY = {
    "step1_per_image_findings": None,
    "step2_integrated_summary": "A mass.",
    "step3_differential_reasoning": None,
}
SECTIONS = (
    "background", "clinical_perspective", "imaging_perspective", "clinical_significance", "outcome", "teaching_points",
)  # fmt: skip


def make_run(
    root: Path, *, cases: int = 3, rationales: list[str] | None = None, model: str = "baseline/random"
) -> Path:
    """A run of `answer`; its rationales are replaced by the ones given."""
    bench = root / "bench"
    if not bench.exists():
        write_benchmark(bench, cases=cases, images=1)
    run = root / "run"
    run_session(RunSpec(benchmark=bench, model=model, out=run))
    texts = rationales or [RATIONALE] * cases
    rewrite(run, [{"prediction_rationale": text} for text in texts])
    return run


def make_discussions(root: Path, *, cases: int = 2, sections: dict[str, str] | None = None) -> Path:
    """A run with discussions, told apart from one of `answer` by its manifest."""
    run = make_run(root, cases=cases)
    texts = sections or {name: f"The {name} is so. It is WRONG too." for name in SECTIONS}
    rewrite(run, [{"discussion": texts} for _ in range(cases)])
    manifest = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(manifest | {"task": "discussion"}))
    return run


def rewrite(run: Path, changes: list[dict[str, Any]]) -> None:
    """Change the predictions of a run, line by line."""
    path = run / "predictions.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    merged = [row | change for row, change in zip(rows, changes, strict=True)]
    replace_predictions(run, b"".join(msgspec.json.encode(row) + b"\n" for row in merged))
