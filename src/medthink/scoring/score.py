"""Score a run, or predictions made elsewhere."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace

from medthink import __version__
from medthink.cases.case import Case
from medthink.cases.sections import has_headings
from medthink.cases.slices import SMALL, group_by_slice, slice_cases, sort_slices
from medthink.core.digest import seed_from
from medthink.core.jsonio import read_json, write_json
from medthink.metrics.answers import (
    CallUsage,
    GradedAnswer,
    UsageSummary,
    count_answers,
    summarise_repeats,
    summarise_usage,
    total,
)
from medthink.runs.ledger.lock import is_locked
from medthink.runs.ledger.queries import LedgerQueries
from medthink.runs.run import PREDICTIONS_FILE, is_settled
from medthink.scoring.inputs import (
    SUBMISSION,
    ScoringInput,
    load_run,
)
from medthink.scoring.radcliq import RadCliQOptions
from medthink.scoring.scores import (
    FORMAT,
    SCORER_VERSION,
    AnswerScores,
    CaseScore,
    ScoredSource,
    Scores,
    SliceScore,
    TextScores,
    from_plain,
    to_plain,
)
from medthink.scoring.texts import score_coverage, score_texts
from medthink.stats.estimate import Floats, Measured
from medthink.stats.intervals import rate_interval, wilson
from medthink.stats.repeats import repeated_mean
from medthink.workflow.written_text import Pairing, WrittenText


def outcomes_by_case(material: ScoringInput) -> dict[int, list[GradedAnswer]]:
    """Every case's outcomes in the order of its samples."""
    grouped: dict[int, list[GradedAnswer]] = {case_id: [] for case_id in sorted(material.cases)}
    for one in material.predictions:
        gold = material.cases[one.case].reference.answer
        grouped[one.case].append(GradedAnswer(one.state, one.prediction, gold))
    return grouped


def score_answers(material: ScoringInput) -> AnswerScores:
    """The headline accuracy and the numbers next to it."""
    grouped = outcomes_by_case(material)
    outcomes = [outcome for listed in grouped.values() for outcome in listed]
    counted = count_answers(outcomes)
    clusters = [case_id for case_id, listed in grouped.items() for _ in listed]
    hits = np.array([outcome.is_right for outcome in outcomes], dtype=float)
    answered = np.array([outcome.state == "ok" for outcome in outcomes])
    shown = _confusion_shown(material)
    scores = AnswerScores(
        n_cases=len(grouped),
        n_predictions=counted.n,
        states={str(state): count for state, count in counted.states.items()},
        lenient=sum(one.parse_mode == "lenient" for one in material.predictions),
        accuracy=rate_interval(hits, clusters=clusters),
        accuracy_answered=rate_interval(hits[answered], clusters=np.array(clusters)[answered]),
        chosen=dict(sorted(sum((Counter(row) for row in shown.values()), Counter[str]()).items())),
        confusion=_count_pairs((outcome.gold, outcome.letter or outcome.state) for outcome in outcomes),
        confusion_shown=shown,
    )
    return _with_repeats(scores, grouped, hits, clusters) if counted.n > len(grouped) else scores


def score_cases(material: ScoringInput) -> tuple[CaseScore, ...]:
    """The cases one by one, for comparisons and boards."""
    return tuple(
        CaseScore(
            case=case_id,
            right=sum(outcome.is_right for outcome in listed) / len(listed),
            states=tuple(outcome.state for outcome in listed),
            letters=tuple(outcome.letter for outcome in listed),
            gold=material.cases[case_id].reference.answer,
        )
        for case_id, listed in outcomes_by_case(material).items()
    )


def score_slices(cases: dict[int, Case], scored: tuple[CaseScore, ...]) -> tuple[SliceScore, ...]:
    """Accuracy in every slice, the samples of a case being one cluster as in the headline."""
    members = group_by_slice(((one.case, one) for one in scored), slice_cases(cases.values()))
    return tuple(
        SliceScore(by=by, value=value, n=len(part), accuracy=_rate(part), is_small=len(part) < SMALL)
        for (by, value), part in sort_slices(members).items()
    )


def _rate(part: list[CaseScore]) -> Measured:
    # Only an answer that is ok has a letter.
    rows = [(one.case, letter == one.gold) for one in part for letter in one.letters]
    return rate_interval([hit for _, hit in rows], clusters=[case for case, _ in rows])


def _with_repeats(
    scores: AnswerScores, grouped: dict[int, list[GradedAnswer]], hits: Floats, clusters: list[int]
) -> AnswerScores:
    summary = summarise_repeats({str(case_id): listed for case_id, listed in grouped.items()})
    return replace(
        scores,
        # Student's interval, from `repeated_mean`, can leave 0 to 100 % if there are few cases.
        repeats=replace(repeated_mean(hits, cases=clusters), mean=scores.accuracy),
        consistency=summary.consistency,
        majority=wilson(summary.majority_right, summary.n_cases),
    )


def _confusion_shown(material: ScoringInput) -> dict[str, dict[str, int]]:
    """The right letters by those chosen, both as shown, if known: they reveal a position bias."""
    keys = {case_id: material.letter_shown(case_id) for case_id in material.cases}
    chosen = ((keys[one.case], one.letter_shown or one.prediction) for one in material.predictions if one.state == "ok")
    return _count_pairs((key, letter) for key, letter in chosen if letter)


def _count_pairs(pairs: Iterable[tuple[str, str]]) -> dict[str, dict[str, int]]:
    table: dict[str, Counter[str]] = {}
    for row, column in pairs:
        table.setdefault(row, Counter())[column] += 1
    return {row: dict(sorted(counts.items())) for row, counts in sorted(table.items())}


SCORES_FILE = "scores.json"


def score_run(path: Path, data: Path | None = None, *, radcliq: RadCliQOptions | None = None) -> Scores:
    """Score a run and leave `scores.json` in its folder."""
    return score_loaded(path, load_run(path, data), radcliq=radcliq)


def score_loaded(path: Path, material: ScoringInput, *, radcliq: RadCliQOptions | None = None) -> Scores:
    """Score a run that is already open, and leave `scores.json` in its folder."""
    plain = to_plain(score(material, usage=_usage(path), radcliq=radcliq))
    write_json(path / SCORES_FILE, plain)
    # Rounded as when read back, because stored and fresh scores meet in one comparison.
    return from_plain(plain)


def cached_scores(path: Path, material: ScoringInput) -> Scores:
    """The scores in a run's folder, recomputed if they are older than its predictions or from another scorer.

    A submission file stores no scores: they are computed each time.
    """
    if material.manifest is None:
        return from_plain(to_plain(score(material)))
    return _read_scores(path, material) or score_loaded(path, material)


def _read_scores(path: Path, material: ScoringInput) -> Scores | None:
    place = path / SCORES_FILE
    if not is_settled(path) or is_locked(path) or not place.is_file():
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


def score(
    material: ScoringInput, *, usage: UsageSummary | None = None, radcliq: RadCliQOptions | None = None
) -> Scores:
    """All scores of these predictions that need no model."""
    letters = score_letters(material)
    return replace(
        letters,
        steps=_score_steps(material, radcliq),
        slices=score_slices(material.cases, letters.cases),
        usage=usage,
        notes=_notes(material, radcliq),
    )


def score_letters(material: ScoringInput) -> Scores:
    """Only the letters, without the texts: enough to compare runs. A run that was asked for none has no cases."""
    return Scores(
        package=__version__,
        origin=_origin(material),
        answers=score_answers(material) if material.has_letters else None,
        steps=(),
        slices=(),
        usage=None,
        notes=(),
        cases=score_cases(material) if material.has_letters else (),
        partial=material.partial,
    )


def _score_steps(material: ScoringInput, radcliq: RadCliQOptions | None) -> tuple[TextScores, ...]:
    # The same references give the same draws, whichever model wrote the texts and in whatever order.
    rng = np.random.default_rng(seed_from("scoring", material.text_fingerprint))
    return tuple(
        score_texts(text.name, material.pairs(text.pairs), rng=rng, radcliq=radcliq)
        if text.sections is None
        else _score_sectioned(material, text, text.sections, rng=rng)
        for text in material.texts
    )


def _score_sectioned(
    material: ScoringInput, text: WrittenText, sections_of: Pairing, *, rng: np.random.Generator
) -> TextScores:
    """Whole texts, and sections where the reference has headings."""
    whole = score_texts(text.name, material.pairs(text.pairs), rng=rng)
    sections = score_texts(text.name, material.pairs(sections_of), rng=rng)
    coverage = score_coverage(material, rng=rng)
    return replace(
        whole,
        metrics=(*coverage.metrics, *(metric for metric in whole.metrics if not metric.not_computed)),
        case_values=coverage.case_values | whole.case_values,
        by_group=sections.by_group,
        group_states=sections.states,
    )


def _notes(material: ScoringInput, radcliq: RadCliQOptions | None) -> tuple[str, ...]:
    notes = []
    if material.partial is not None:
        notes.append(f"Partial: {material.partial}. Every score covers only these; the others may be harder or easier.")
    if not material.has_options:
        notes.append("The options were hidden: free-text diagnoses have no letter and are not scored here.")
    if material.manifest is not None and material.manifest.condition.swap_images:
        notes.append("The images were another case's: findings and summary are not scored against this case's.")
    if material.manifest is not None and not material.manifest.condition.is_unaided:
        notes.append("Expert cues were shown: not to be ranked with unaided runs.")
    if any(text.sections for text in material.texts):
        notes += _heading_notes(material)
    elif note := material.note:
        notes.append(note)
    elif radcliq is not None:
        notes.append(
            "RadCliQ was fitted on chest radiographs: for other modalities it is out of domain; look at it "
            "per modality."
        )
    return tuple(notes)


def _heading_notes(material: ScoringInput) -> list[str]:
    """Which expert discussions are compared only as whole texts."""
    references = [material.cases[number].reference.discussion for number in {one.case for one in material.predictions}]
    plain = sum(bool(text.strip()) and not has_headings(text) for text in references)
    if not plain:
        return []
    return [
        f"{plain:,} of {len(references):,} reference discussions have no section headings: they are compared as "
        "whole texts, and count neither in section coverage nor in the scores by section."
    ]


def _origin(material: ScoringInput) -> ScoredSource:
    manifest = material.manifest
    split = next(iter(material.cases.values())).split if material.cases else ""
    if manifest is None:
        return ScoredSource(
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
    return ScoredSource(
        name=material.name,
        model=manifest.model,
        task=manifest.task,
        kind=manifest.condition.kind,
        condition=msgspec.to_builtins(manifest.condition),
        condition_label=manifest.label(),
        split=split,
        selection=msgspec.to_builtins(manifest.selection),
        fingerprint=manifest.fingerprint,
        text_fingerprint=material.text_fingerprint,
        prompts=manifest.prompts,
        reported_models=manifest.progress.reported_models if manifest.progress else (),
    )


def _usage(path: Path) -> UsageSummary:
    records = LedgerQueries.open(path)
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
        is_running = is_locked(path)
        uncounted = records.totals(is_running=is_running).spent.uncounted
        return replace(
            answered,
            cost_usd=total(records.costs(is_running=is_running)),
            uncounted_replies=uncounted,
            saved_usd=records.saved_usd(),
        )
    finally:
        records.close()
