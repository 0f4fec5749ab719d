"""Score a run, or predictions made elsewhere."""

from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace

from medthink import __version__
from medthink.cases.sections import has_headings
from medthink.core.digest import seed_from
from medthink.core.jsonio import read_json, write_json
from medthink.metrics.usage import CallUsage, UsageSummary, summarise_usage, total
from medthink.runs.index import PREDICTIONS_FILE, is_unsettled
from medthink.runs.lock import is_held
from medthink.runs.records import Records
from medthink.scoring.answering import score_answers, score_cases, score_slices
from medthink.scoring.material import SUBMISSION, Material, load_run
from medthink.scoring.pairs import discussion_pairs, finding_pairs, section_pairs, summary_pairs
from medthink.scoring.radcliq import RadCliQOptions
from medthink.scoring.scores import FORMAT, SCORER_VERSION, Origin, Scores, TextScores, from_plain, to_plain
from medthink.scoring.texts import score_coverage, score_texts

SCORES_FILE = "scores.json"


def score_run(path: Path, data: Path | None = None, *, radcliq: RadCliQOptions | None = None) -> Scores:
    """Score a run and leave `scores.json` in its folder."""
    return score_loaded(path, load_run(path, data), radcliq=radcliq)


def score_loaded(path: Path, material: Material, *, radcliq: RadCliQOptions | None = None) -> Scores:
    """Score a run that is already open, and leave `scores.json` in its folder."""
    plain = to_plain(score(material, usage=_usage(path), radcliq=radcliq))
    write_json(path / SCORES_FILE, plain)
    # Rounded as when read back, because stored and fresh scores meet in one comparison.
    return from_plain(plain)


def kept_scores(path: Path, material: Material) -> Scores:
    """The scores in a run's folder, recomputed if they are older than its predictions or from another scorer.

    A submission file stores no scores: they are computed each time.
    """
    if material.manifest is None:
        return from_plain(to_plain(score(material)))
    return _read_scores(path, material) or score_loaded(path, material)


def _read_scores(path: Path, material: Material) -> Scores | None:
    place = path / SCORES_FILE
    if is_unsettled(path) or not place.is_file():
        return None
    made_from = [path / PREDICTIONS_FILE, path / "run.json"]
    if any(source.stat().st_mtime_ns > place.stat().st_mtime_ns for source in made_from):
        return None
    found = read_json(place)
    is_same_scorer = isinstance(found, dict) and (found.get("format"), found.get("scorer"), found.get("package")) == (
        FORMAT, SCORER_VERSION, __version__,
    )  # fmt: skip
    if not is_same_scorer:
        return None
    try:
        scores = from_plain(found)
    except msgspec.ValidationError:
        return None
    if scores.origin.text_fingerprint != material.text_fingerprint:
        return None
    # The folder may have been moved or copied since.
    return replace(scores, origin=replace(scores.origin, name=material.name))


def score(material: Material, *, usage: UsageSummary | None = None, radcliq: RadCliQOptions | None = None) -> Scores:
    """All scores of these predictions that need no model."""
    cases = score_cases(material) if material.has_letters else ()
    return Scores(
        package=__version__,
        origin=_origin(material),
        answers=score_answers(material) if material.has_letters else None,
        steps=_score_steps(material, radcliq),
        slices=score_slices(material.cases, cases),
        usage=usage,
        notes=_notes(material, radcliq),
        cases=cases,
        partial=material.partial,
    )


def score_letters(material: Material) -> Scores:
    """Only the letters, without the texts: enough to compare runs."""
    return Scores(
        package=__version__,
        origin=_origin(material),
        answers=score_answers(material),
        steps=(),
        slices=(),
        usage=None,
        notes=(),
        cases=score_cases(material),
        partial=material.partial,
    )


def _score_steps(material: Material, radcliq: RadCliQOptions | None) -> tuple[TextScores, ...]:
    # The same references give the same draws, whichever model wrote the texts and in whatever order.
    rng = np.random.default_rng(seed_from("scoring", material.text_fingerprint))
    if material.task == "discussion":
        return (_score_discussions(material, rng=rng),)
    steps = []
    if _wrote(material, "findings"):
        steps.append(score_texts("findings", finding_pairs(material), rng=rng, radcliq=radcliq))
    if _wrote(material, "summary"):
        steps.append(score_texts("summary", summary_pairs(material), rng=rng, radcliq=radcliq))
    return tuple(steps)


def _score_discussions(material: Material, *, rng: np.random.Generator) -> TextScores:
    """Whole texts, and sections where the reference has headings."""
    whole = score_texts("discussion", discussion_pairs(material), rng=rng)
    sections = score_texts("discussion", section_pairs(material), rng=rng)
    coverage = score_coverage(material, rng=rng)
    return replace(
        whole,
        metrics=(*coverage.metrics, *(metric for metric in whole.metrics if not metric.not_computed)),
        case_values=coverage.case_values | whole.case_values,
        by_group=sections.by_group,
        group_states=sections.states,
    )


def _wrote(material: Material, step: str) -> bool:
    """Whether the model wrote this step itself about the case's own images."""
    if material.manifest is None:
        return any(one.prediction_twi is not None for one in material.predictions)
    condition = material.manifest.condition
    return getattr(condition, step) == "self" and not condition.swap_images


def _notes(material: Material, radcliq: RadCliQOptions | None) -> tuple[str, ...]:
    notes = []
    if material.partial is not None:
        notes.append(f"Partial: {material.partial}. Every score covers only these; the others may be harder or easier.")
    if not material.has_options:
        notes.append("The options were hidden: free-text diagnoses have no letter and are not scored here.")
    if material.manifest is not None and material.manifest.condition.swap_images:
        notes.append("The images were another case's: findings and summary are not scored against this case's.")
    if material.manifest is not None and not material.manifest.condition.is_unaided:
        notes.append("Expert cues were shown: not to be ranked with unaided runs.")
    if material.task == "discussion":
        notes += _discussion_notes(material)
    elif material.task == "recall":
        notes.append("Recall has no score: use medthink probe --contamination.")
    elif radcliq is not None:
        notes.append("RadCliQ was fitted on chest radiographs: elsewhere it is out of domain; read it by modality.")
    return tuple(notes)


def _discussion_notes(material: Material) -> list[str]:
    """Which expert discussions are compared only as whole texts."""
    references = [material.cases[number].reference.discussion for number in {one.case for one in material.predictions}]
    plain = sum(bool(text.strip()) and not has_headings(text) for text in references)
    if not plain:
        return []
    return [
        f"{plain:,} of {len(references):,} reference discussions have no section headings: they are compared as "
        "whole texts, and count neither in section coverage nor in the scores by section."
    ]


def _origin(material: Material) -> Origin:
    manifest = material.manifest
    split = next(iter(material.cases.values())).split if material.cases else ""
    if manifest is None:
        return Origin(
            name=material.name,
            model=material.name,
            task=SUBMISSION,
            kind="submitted",
            condition=None,
            condition_label="as submitted",
            split=split,
            selection=None,
            fingerprint=None,
            text_fingerprint=material.text_fingerprint,
            prompts={},
            reported_models=(),
        )
    return Origin(
        name=material.name,
        model=manifest.model,
        task=manifest.task,
        kind=manifest.condition.kind,
        condition=msgspec.to_builtins(manifest.condition),
        condition_label=manifest.condition.label(),
        split=split,
        selection=msgspec.to_builtins(manifest.selection),
        fingerprint=manifest.fingerprint,
        text_fingerprint=material.text_fingerprint,
        prompts=manifest.prompts,
        reported_models=manifest.progress.reported_models if manifest.progress else (),
    )


def _usage(path: Path) -> UsageSummary:
    records = Records.open(path)
    try:
        answered = summarise_usage(
            CallUsage(
                input_tokens=call.usage.input if call.usage else None,
                output_tokens=call.usage.output if call.usage else None,
                reasoning_tokens=call.usage.reasoning if call.usage else None,
                latency_s=call.latency_s,
                attempts=call.attempts,
            )
            for call in records.finished_calls()
        )
        # A call that failed has no reply to count, but may have been paid for.
        lost = records.totals().lost_replies(is_running=is_held(path))
        return replace(answered, cost_usd=total(records.costs()), unseen_replies=lost)
    finally:
        records.close()
