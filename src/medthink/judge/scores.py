"""What judgements add up to: pure functions over the judgements of one seat, every rate with an interval over cases.

What is unjudged is left out of every rate and counted beside it (`coverage`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from medthink.cases.sections import SECTIONS
from medthink.judge.coverage import Coverage, Units, measure_coverage
from medthink.judge.judgement import Judgement, Seat
from medthink.judge.rubric import DIMENSIONS, ERROR_TYPES, SENTENCE_LABELS, SUPPORTS, Dimension, ErrorType, What
from medthink.judge.slicing import Slice, Slices, score_slices
from medthink.judge.verdicts import StepVerdict
from medthink.stats import Measured, mean_interval, rate_interval

# Whether the answer of a case's sample is right; None where there is no answer.
Rights = Mapping[tuple[int, int], bool | None]


class ErrorCell(msgspec.Struct, frozen=True, kw_only=True):
    """One type of error among critical or other steps; a step may hold several types.

    `of_steps` is the share of these steps that hold it, `of_errors` its share among their wrong steps.
    """

    error_type: ErrorType
    critical: bool
    count: int
    of_steps: Measured
    of_errors: Measured


class FirstErrors(msgspec.Struct, frozen=True, kw_only=True):
    """Where reasoning first goes wrong: counts by step number, rationales without error, and the mean place.

    `place` is the number of the first wrong step over the number of steps, over rationales that have one.
    """

    by_step: dict[int, int]
    without: int
    place: Measured


class Soundness(msgspec.Struct, frozen=True, kw_only=True):
    """The share of rationales without any wrong step, and without a wrong critical step.

    An answer given without a rationale counts as not sound; what is unjudged is left out.
    """

    every_step: Measured
    critical_steps: Measured


class StepScores(msgspec.Struct, frozen=True, kw_only=True):
    """The reasoning of a run, as one seat judges it."""

    seat: Seat
    label: str
    is_wiring_check: bool
    coverage: Coverage
    steps: int
    support: dict[str, Measured]
    errors: Measured
    critical: Measured
    critical_errors: Measured
    profile: tuple[ErrorCell, ...]
    untyped: int
    sound_if_right: Soundness
    sound_if_wrong: Soundness
    first_errors: FirstErrors
    slices: tuple[Slice["StepScores"], ...]


class Discussions(msgspec.Struct, frozen=True, kw_only=True):
    """The discussions of a run, as one seat judges them; scores of a dimension run from 0 to 2, the total to 10."""

    seat: Seat
    label: str
    is_wiring_check: bool
    coverage: Coverage
    sentences: int
    labels: dict[str, Measured]
    by_section: dict[str, dict[str, Measured]]
    missing_sections: dict[str, int]
    education: dict[Dimension, Measured]
    levels: dict[Dimension, dict[int, int]]
    total: Measured
    slices: tuple[Slice["Discussions"], ...]


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """Statements of findings and summaries, as one seat judges them."""

    seat: Seat
    label: str
    is_wiring_check: bool
    coverage: Coverage
    statements: int
    images: dict[str, Measured]
    summary: dict[str, Measured]
    slices: tuple[Slice["Findings"], ...]


def by_seat(judgements: Iterable[Judgement], what: What) -> dict[Seat, list[Judgement]]:
    """The judgements of one kind, by who made them and how, in the order of their labels."""
    groups: dict[Seat, list[Judgement]] = {}
    for one in judgements:
        if one.what == what:
            groups.setdefault(one.seat, []).append(one)
    return dict(sorted(groups.items(), key=lambda item: (item[0].label(), item[0].prompt)))


def score_steps(rows: Sequence[Judgement], units: Units, *, rights: Rights, slices: Slices) -> StepScores:
    """The error profile, soundness and first errors of one seat's judgements of steps."""
    seat = rows[0].seat
    judged = [row for row in rows if row.state == "ok"]
    pairs = [(row.case, step) for row in judged for step in row.steps]
    critical = [(case, step) for case, step in pairs if step.critical]
    return StepScores(
        seat=seat,
        label=seat.label(),
        is_wiring_check=seat.is_wiring_check,
        coverage=measure_coverage(rows, units),
        steps=len(pairs),
        support={word: _rate((case, step.factual == word) for case, step in pairs) for word in SUPPORTS},
        errors=_rate((case, step.is_error) for case, step in pairs),
        critical=_rate((case, step.critical) for case, step in pairs),
        critical_errors=_rate((case, step.is_error) for case, step in critical),
        profile=_profile(pairs),
        untyped=sum(step.is_error and not step.error_types for _, step in pairs),
        sound_if_right=_soundness(rows, rights, wanted=True),
        sound_if_wrong=_soundness(rows, rights, wanted=False),
        first_errors=_first_errors(judged),
        slices=score_slices(rows, units, slices, lambda part, own: score_steps(part, own, rights=rights, slices={})),
    )


def score_discussions(rows: Sequence[Judgement], units: Units, *, slices: Slices) -> Discussions:
    """Sentence correctness by section and education value by dimension of one seat's judgements."""
    seat = rows[0].seat
    judged = [row for row in rows if row.state == "ok"]
    parts = {unit.id: unit.part for one in units.values() for unit in one.units}
    labelled = [(row.case, parts[one.id], one.label) for row in judged for one in row.sentences]
    scores = [(row.case, one.dimension, one.score) for row in judged for one in row.education]
    missing = Counter(part for one in units.values() for part in one.missing)
    return Discussions(
        seat=seat,
        label=seat.label(),
        is_wiring_check=seat.is_wiring_check,
        coverage=measure_coverage(rows, units),
        sentences=len(labelled),
        labels={word: _rate((case, label == word) for case, _, label in labelled) for word in SENTENCE_LABELS},
        by_section={name: _section(labelled, name) for name in SECTIONS},
        missing_sections={name: missing[name] for name in SECTIONS},
        education={name: _mean((case, score) for case, one, score in scores if one == name) for name in DIMENSIONS},
        levels={name: _count_levels(score for _, one, score in scores if one == name) for name in DIMENSIONS},
        total=_mean((row.case, _total(row)) for row in judged),
        slices=score_slices(rows, units, slices, lambda part, own: score_discussions(part, own, slices={})),
    )


def score_findings(rows: Sequence[Judgement], units: Units, *, slices: Slices) -> Findings:
    """Statement support of one seat's judgements, for single images and for the summary."""
    seat = rows[0].seat
    parts = {unit.id: unit.part for one in units.values() for unit in one.units}
    found = [(row.case, parts[one.id], one.support) for row in rows if row.state == "ok" for one in row.statements]
    return Findings(
        seat=seat,
        label=seat.label(),
        is_wiring_check=seat.is_wiring_check,
        coverage=measure_coverage(rows, units),
        statements=len(found),
        images={word: _rate((c, s == word) for c, part, s in found if part != "summary") for word in SUPPORTS},
        summary={word: _rate((c, s == word) for c, part, s in found if part == "summary") for word in SUPPORTS},
        slices=score_slices(rows, units, slices, lambda part, own: score_findings(part, own, slices={})),
    )


def _rate(pairs: Iterable[tuple[int, bool]]) -> Measured:
    """The share of hits among (case, hit) pairs, pairs of one case moving together."""
    rows = list(pairs)
    return rate_interval([hit for _, hit in rows], clusters=[case for case, _ in rows])


def _mean(pairs: Iterable[tuple[int, float]]) -> Measured:
    rows = list(pairs)
    return mean_interval([value for _, value in rows], clusters=[case for case, _ in rows])


def _profile(pairs: Sequence[tuple[int, StepVerdict]]) -> tuple[ErrorCell, ...]:
    cells = []
    for critical in (True, False):
        group = [(case, step) for case, step in pairs if step.critical == critical]
        wrong = [(case, step) for case, step in group if step.is_error]
        cells += [
            ErrorCell(
                error_type=name,
                critical=critical,
                count=sum(name in step.error_types for _, step in wrong),
                of_steps=_rate((case, name in step.error_types) for case, step in group),
                of_errors=_rate((case, name in step.error_types) for case, step in wrong),
            )
            for name in ERROR_TYPES
        ]
    return tuple(cells)


def _soundness(rows: Sequence[Judgement], rights: Rights, *, wanted: bool) -> Soundness:
    counted = [row for row in rows if row.state != "unjudged" and rights.get((row.case, row.sample)) is wanted]

    def is_sound(row: Judgement, *, only_critical: bool) -> bool:
        return bool(row.steps) and not any(step.is_error and (step.critical or not only_critical) for step in row.steps)

    return Soundness(
        every_step=_rate((row.case, is_sound(row, only_critical=False)) for row in counted),
        critical_steps=_rate((row.case, is_sound(row, only_critical=True)) for row in counted),
    )


def _first_errors(judged: Sequence[Judgement]) -> FirstErrors:
    firsts = [
        (row, next((number for number, step in enumerate(row.steps, start=1) if step.is_error), None)) for row in judged
    ]
    found = [(row, number) for row, number in firsts if number is not None]
    return FirstErrors(
        by_step=dict(sorted(Counter(number for _, number in found).items())),
        without=len(firsts) - len(found),
        place=_mean((row.case, number / len(row.steps)) for row, number in found),
    )


def _section(labelled: Sequence[tuple[int, str, str]], name: str) -> dict[str, Measured]:
    inside = [(case, label) for case, part, label in labelled if part == name]
    return {word: _rate((case, label == word) for case, label in inside) for word in SENTENCE_LABELS}


def _count_levels(scores: Iterable[int]) -> dict[int, int]:
    counts = Counter(scores)
    return {level: counts[level] for level in (0, 1, 2)}


def _total(row: Judgement) -> int:
    return sum(one.score for one in row.education)
