"""Scores from verdicts on steps: the error profile, soundness, first errors."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from medthink.judge.judgement import Judgement, UnitVerdict
from medthink.judge.rubric import ERROR_TYPES, SEVERITIES, SUPPORTS, WEIGHTS, ErrorType, Severity, Support, Weight
from medthink.judge.scores import (
    HEDGED,
    JudgeConfigScores,
    Rights,
    ScoreCell,
    ScoreTable,
    clustered_mean,
    clustered_rate,
)
from medthink.stats import Measured

SEVERE: tuple[Severity, ...] = ("significant", "dangerous")
_LAST_STEP = 5
_SOUND = (
    "An answer may be right for the wrong reasons. A rationale is sound when every step is supported: a step that "
    "cannot be verified may be invented. A rationale that hedges more than half of its steps is not sound, and an "
    "answer without a rationale is not either; unjudged rationales are excluded."
)


class StepVerdict(UnitVerdict, frozen=True, kw_only=True):
    """Whether a step is true, its weight, its errors and their severity, and the grounds.

    `critical` is decisive or contributory; `weight` is None where only that is known. Types, severity and correction
    are those of a contradicted step. The verdict of a panel has the `ballots` that it was made from, and None for
    `factual` or `critical` where they are tied.
    """

    factual: Support | None
    weight: Weight | None = None
    critical: bool | None
    error_types: tuple[ErrorType, ...] = ()
    severity: Severity | None = None
    correction: str = ""
    rests_on: tuple[str, ...]
    ballots: tuple["StepVerdict", ...] = ()

    @property
    def is_error(self) -> bool:
        """Whether the step is contradicted; one that is not described or unverifiable is counted apart."""
        return self.factual == "contradicted"

    @property
    def is_severe(self) -> bool:
        """Whether believing the step could harm the patient."""
        return self.severity in SEVERE


JudgedRows = Sequence[tuple[Judgement, tuple[StepVerdict, ...]]]


class ErrorCell(msgspec.Struct, frozen=True, kw_only=True):
    """One type of error among critical or other steps; a step may have several types.

    `of_steps` is the share of these steps that have it, `of_errors` its share among their wrong steps.
    """

    error_type: ErrorType
    critical: bool
    count: int
    of_steps: Measured
    of_errors: Measured


class FirstErrors(msgspec.Struct, frozen=True, kw_only=True):
    """The first errors of rationales: counts by step number, rationales without error, and the mean position.

    `place` is the number of the first wrong step over the number of steps, over rationales that have one.
    """

    by_step: dict[int, int]
    without: int
    place: Measured


class Soundness(msgspec.Struct, frozen=True, kw_only=True):
    """The shares of rationales whose every step is supported, without a wrong step, and without a wrong critical step.

    An answer given without a rationale counts as none of them, nor does a rationale that hedges more than half of its
    steps; unjudged rationales are excluded. `not_described`, `unverifiable` and `hedged` are shares of steps.
    """

    every_step: Measured
    no_wrong_step: Measured
    no_wrong_critical_step: Measured
    not_described: Measured
    unverifiable: Measured
    hedged: Measured


class StepScores(JudgeConfigScores, frozen=True, kw_only=True):
    """The scores of a run's reasoning from one judge.

    In `stated`, the mean over steps, a supported step counts 1, half if it is hedged, and any other 0.
    """

    steps: int
    stated: Measured
    hedged: Measured
    support: dict[str, Measured]
    errors: Measured
    critical: Measured
    critical_errors: Measured
    weights: dict[str, Measured]
    severities: dict[str, Measured]
    severe: Measured
    profile: tuple[ErrorCell, ...]
    untyped: int
    sound_if_right: Soundness
    sound_if_wrong: Soundness
    first_errors: FirstErrors


def score_steps(rows: JudgedRows, common: dict[str, Any], rights: Rights, hedged: frozenset[str]) -> StepScores:
    """The scores of one judge; `common` are the fields that all kinds share, `hedged` the ids of hedged steps."""
    every = [(row.case, step) for row, steps in rows for step in steps]
    pairs = [(case, step) for case, step in every if step.factual]
    critical = [(case, step) for case, step in pairs if step.critical]
    # On a scale every vote of a panel counts: the lower of two would make it milder than each of its judges.
    votes = [(case, vote) for case, step in every for vote in step.ballots or (step,)]
    graded = [(case, vote) for case, vote in votes if vote.severity]
    return StepScores(
        **common,
        steps=len(pairs),
        stated=clustered_mean(((case, _count(step, hedged)) for case, step in pairs), within=(0, 1)),
        hedged=clustered_rate((case, step.id in hedged) for case, step in pairs),
        support={word: clustered_rate((case, step.factual == word) for case, step in pairs) for word in SUPPORTS},
        errors=clustered_rate((case, step.is_error) for case, step in pairs),
        critical=clustered_rate((case, vote.critical) for case, vote in votes if vote.critical is not None),
        critical_errors=clustered_rate((case, step.is_error) for case, step in critical),
        weights={
            word: clustered_rate((case, vote.weight == word) for case, vote in votes if vote.weight) for word in WEIGHTS
        },
        severities={word: clustered_rate((c, vote.severity == word) for c, vote in graded) for word in SEVERITIES},
        severe=clustered_rate((case, vote.is_severe) for case, vote in votes if vote.severity or not vote.is_error),
        profile=_profile(pairs),
        untyped=sum(step.is_error and not step.error_types for _, step in pairs),
        sound_if_right=_soundness(rows, rights, hedged, wanted=True),
        sound_if_wrong=_soundness(rows, rights, hedged, wanted=False),
        first_errors=_first_errors(rows),
    )


def _count(step: StepVerdict, hedged: frozenset[str]) -> float:
    if step.factual != "supported":
        return 0.0
    return HEDGED if step.id in hedged else 1.0


def step_tables(scores: StepScores) -> tuple[ScoreTable, ...]:
    """Wrong steps, soundness, first errors, and types of error."""
    steps = {
        "Steps": ScoreCell(scores.steps),
        "Supported, hedged ones half": ScoreCell(scores.stated),
        "Wrong steps": ScoreCell(scores.errors),
        "Not described": ScoreCell(scores.support["not described"]),
        "Unverifiable": ScoreCell(scores.support["unverifiable"]),
        "Hedged": ScoreCell(scores.hedged),
        "Could harm": ScoreCell(scores.severe),
        "Critical steps": ScoreCell(scores.critical),
        "Wrong critical steps": ScoreCell(scores.critical_errors),
    }
    sound = tuple(
        {
            "Answers": ScoreCell(f"{found.every_step.n:,} {word}"),
            "Every step supported": ScoreCell(found.every_step),
            "No step contradicted": ScoreCell(found.no_wrong_step),
            "No critical step contradicted": ScoreCell(found.no_wrong_critical_step),
            "Not described": ScoreCell(found.not_described),
            "Unverifiable steps": ScoreCell(found.unverifiable),
            "Hedged steps": ScoreCell(found.hedged),
        }
        for word, found in (("right", scores.sound_if_right), ("wrong", scores.sound_if_wrong))
    )
    both = ("support", "critical")
    grades = tuple(
        {"weight or severity": ScoreCell(word), "share": ScoreCell(rate)}
        for word, rate in (
            *scores.weights.items(),
            *((f"{word} (of wrong steps)", rate) for word, rate in scores.severities.items()),
        )
    )
    return (
        ScoreTable(heading="Steps of the reasoning", aspects=both, rows=(steps,)),
        ScoreTable(heading="Right for the right reasons", aspects=both, rows=sound, note=_SOUND),
        ScoreTable(
            heading="First error of the reasoning", aspects=("support",), rows=(_first_cells(scores.first_errors),)
        ),
        ScoreTable(heading="Weight and severity", aspects=("weight", "severity"), rows=grades),
        ScoreTable(
            heading="Wrong steps by type of error",
            aspects=both,
            rows=tuple(_type_rows(scores.profile)),
            in_report=False,
        ),
    )


def step_slice_cells(scores: StepScores) -> dict[str, ScoreCell]:
    """The cells shown for a slice."""
    return {
        "Steps": ScoreCell(scores.steps),
        "Wrong steps": ScoreCell(scores.errors),
        "Not described": ScoreCell(scores.support["not described"]),
        "Unverifiable": ScoreCell(scores.support["unverifiable"]),
        "Hedged": ScoreCell(scores.hedged),
        "Could harm": ScoreCell(scores.severe),
        "Wrong critical steps": ScoreCell(scores.critical_errors),
        **{
            f"{_words(cell.error_type)} ({'critical' if cell.critical else 'other'})": ScoreCell(cell.of_steps)
            for cell in scores.profile
        },
        "Right answers, every step supported": ScoreCell(scores.sound_if_right.every_step),
        "Wrong answers, every step supported": ScoreCell(scores.sound_if_wrong.every_step),
        "First error at (share of the steps)": ScoreCell(scores.first_errors.place),
    }


def _first_cells(found: FirstErrors) -> dict[str, ScoreCell]:
    late = sum(count for step, count in found.by_step.items() if step >= _LAST_STEP)
    return {
        "No error": ScoreCell(found.without),
        **{f"Step {step}": ScoreCell(found.by_step.get(step, 0)) for step in range(1, _LAST_STEP)},
        f"Step {_LAST_STEP} or later": ScoreCell(late),
        "Mean position (share of the steps)": ScoreCell(found.place),
    }


def _type_rows(profile: Sequence[ErrorCell]) -> Iterable[dict[str, ScoreCell]]:
    """The share of wrong steps with each type, among critical steps and the others."""
    cells = {(cell.error_type, cell.critical): cell for cell in profile}
    for name in ERROR_TYPES:
        critical, other = cells[name, True].of_errors, cells[name, False].of_errors
        yield {"type": ScoreCell(_words(name)), "critical": ScoreCell(critical), "other": ScoreCell(other)}


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
                of_steps=clustered_rate((case, name in step.error_types) for case, step in group),
                of_errors=clustered_rate((case, name in step.error_types) for case, step in wrong),
            )
            for name in ERROR_TYPES
        ]
    return tuple(cells)


def _soundness(rows: JudgedRows, rights: Rights, hedged: frozenset[str], *, wanted: bool) -> Soundness:
    judged = [
        (row, steps) for row, steps in rows if row.state != "unjudged" and rights.get((row.case, row.sample)) is wanted
    ]

    def rate(spoils: Callable[[StepVerdict], bool]) -> Measured:
        """The share of rationales that no step spoils."""
        found = []
        for row, steps in judged:
            is_hedging = 2 * sum(step.id in hedged for step in steps) > len(steps)
            is_spoiled = is_hedging or any(spoils(step) for step in steps if step.factual)
            # If no other step spoils it, a tied step leaves it open whether the rationale is sound.
            if is_spoiled or not row.ties:
                found.append((row.case, bool(steps) and not is_spoiled))
        return clustered_rate(found)

    def share(holds: Callable[[StepVerdict], bool]) -> Measured:
        """The share of steps for which this holds."""
        return clustered_rate((row.case, holds(step)) for row, steps in judged for step in steps if step.factual)

    return Soundness(
        every_step=rate(lambda step: step.factual != "supported"),
        no_wrong_step=rate(lambda step: step.is_error),
        no_wrong_critical_step=rate(lambda step: step.is_error and bool(step.critical)),
        not_described=share(lambda step: step.factual == "not described"),
        unverifiable=share(lambda step: step.factual == "unverifiable"),
        hedged=share(lambda step: step.id in hedged),
    )


def _first_errors(rows: JudgedRows) -> FirstErrors:
    # With a tied step it is unknown which error comes first.
    judged = [(row.case, steps) for row, steps in rows if row.state == "ok" and not row.ties]
    firsts = [
        (case, len(steps), next((number for number, step in enumerate(steps, start=1) if step.is_error), None))
        for case, steps in judged
    ]
    found = [(case, total, number) for case, total, number in firsts if number is not None]
    return FirstErrors(
        by_step=dict(sorted(Counter(number for _, _, number in found).items())),
        without=len(firsts) - len(found),
        place=clustered_mean(((case, number / total) for case, total, number in found), within=(0, 1)),
    )


def _words(name: str) -> str:
    return name.replace("_", " ")
