"""A run's result in the form that model repositories on the hub carry: `.eval_results/*.yaml`."""

from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

from medthink.core.errors import UsageError
from medthink.core.files import write_atomic
from medthink.scoring.scores import Scores, percent

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
            f"{scores.origin.name} is not finished: it has {scores.partial}", remedy="run its command again first"
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
        f"accuracy {percent(answers.accuracy)} on {answers.n_cases} cases ({states}); {origin.task}, "
        f"{origin.condition_label}; scorer {scores.scorer}; benchmark {origin.text_fingerprint[:12]}"
    )
