"""A run as a submission: one line per case in the card's format, with traces so that others can check it."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import yaml
from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

from medthink.board.checking import SubmissionTrace, TracedReply
from medthink.cases.case import Case
from medthink.core.errors import UsageError
from medthink.core.files import write_atomic
from medthink.core.jsonio import write_jsonl
from medthink.runs.ledger.queries import LedgerQueries
from medthink.runs.manifest import Manifest
from medthink.scoring.inputs import ScoringInput, load_run, refuse_partial
from medthink.scoring.scores import Scores, rate_text
from medthink.workflow.prediction import Prediction, TwiSteps


def pack_run(run: Path, out: Path, data: Path | None = None) -> int:
    """Write a run as a submission with traces; returns the number of lines."""
    material = refuse_partial(load_run(run, data))
    if material.manifest is None or not material.has_letters:
        raise UsageError(f"{run} has no letters to submit", remedy="submit a run of the task answer or twi")
    lines = list(_lines(run, material, material.manifest))
    write_jsonl(out, lines)
    return len(lines)


def _lines(run: Path, material: ScoringInput, manifest: Manifest) -> Iterator[dict[str, Any]]:
    calls = _calls_by_case(run)
    public: Manifest | None = msgspec.structs.replace(manifest, benchmark="", benchmark_absolute="", base_urls=())
    for one in material.predictions:
        # A case's calls go with its first sample, the manifest with the first line.
        trail = SubmissionTrace(manifest=public, calls=calls.pop(one.case, ()))
        yield _line(one, material.cases[one.case], trail, has_samples=manifest.condition.samples > 1)
        public = None


def _line(one: Prediction, case: Case, trail: SubmissionTrace, *, has_samples: bool) -> dict[str, Any]:
    line: dict[str, Any] = {"title": case.title}
    if has_samples:
        line["sample"] = one.sample
    steps = None if one.prediction_twi is None else _spread_findings(one.prediction_twi, one.slots, case)
    return line | {
        "prediction": one.prediction,
        "prediction_rationale": one.prediction_rationale,
        "prediction_twi": None if steps is None else msgspec.to_builtins(steps),
        "state": one.state,
        "trace": msgspec.to_builtins(trail),
    }


def _spread_findings(steps: TwiSteps, slots: tuple[int, ...], case: Case) -> TwiSteps:
    """The findings in the order of the case's images, null for those that were not shown."""
    if steps.step1_per_image_findings is None:
        return steps
    by_slot = dict(zip(slots, steps.step1_per_image_findings, strict=False))
    findings = tuple(by_slot.get(image.slot) for image in case.question.images)
    return msgspec.structs.replace(steps, step1_per_image_findings=findings)


def _calls_by_case(run: Path) -> dict[int, tuple[TracedReply, ...]]:
    records = LedgerQueries.open(run)
    try:
        return {
            case: tuple(
                TracedReply(asked=call.asked, reply=call.reply, cost_usd=call.cost_usd, ended_at=call.ended_at)
                for call in calls
            )
            for case, calls in groupby(records.answered_calls(), key=lambda call: call.case)
        }
    finally:
        records.close()


DATASET = "bio-nlp-umass/MedThinkVQA"


def write_hub_results(scores: Scores, out: Path, *, dataset: str = DATASET, date: str, revision: str | None) -> None:
    """Write the YAML; it has no field for intervals or counts, so the notes carry them."""
    entry = EvalResultEntry(
        dataset_id=dataset,
        task_id=scores.origin.split or "test",
        value=_accuracy(scores),
        dataset_revision=revision,
        date=date,
        notes=_notes(scores),
    )
    content: list[dict[str, Any]] = eval_result_entries_to_yaml([entry])
    write_atomic(out, [yaml.safe_dump(content, sort_keys=False, allow_unicode=True).encode()])


def _accuracy(scores: Scores) -> float:
    if scores.partial is not None:
        raise UsageError(
            f"{scores.origin.name} is not finished: it has {scores.partial}",
            remedy="run its command again until it is finished",
        )
    if scores.answers is None or scores.answers.accuracy.value is None:
        raise UsageError(
            f"{scores.origin.name} has no accuracy to report", remedy="use a run of the task answer or twi"
        )
    return round(100 * scores.answers.accuracy.value, 2)


def _notes(scores: Scores) -> str:
    answers, origin = scores.answers, scores.origin
    assert answers is not None
    states = ", ".join(f"{count} {state}" for state, count in answers.states.items() if count)
    return (
        f"accuracy {rate_text(answers.accuracy)} on {answers.n_cases} cases ({states}); {origin.task}, "
        f"{origin.condition_label}; scorer {scores.scorer}; benchmark {origin.text_fingerprint[:12]}"
    )
