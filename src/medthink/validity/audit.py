"""Audit of a run: what it adds over guessing, and whether it keeps its answers when only the form changes.

The definitions, with their assumptions, are on one page: docs/validity.md.
"""

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from medthink.core.digest import seed_from
from medthink.scoring.scores import AnswerScores, Scores
from medthink.stats.bootstrap import bootstrap_mean
from medthink.stats.clusters import Floats
from medthink.stats.estimate import Measured
from medthink.stats.gain import gain_over_rivals
from medthink.stats.intervals import wilson
from medthink.stats.paired import paired_difference
from medthink.validity.guesses import Guesses

Fields = dict[str, Any]
"""A condition's fields by name."""

IMAGE_FREE_RUNS = frozenset({"own run without images", "own run, options only"})
"""The runs of the same model that saw no image."""

# Fields of a condition whose change should not affect the answer.
_FORM_FIELDS = ("option_order", "image_order")


class Rival(msgspec.Struct, frozen=True, kw_only=True):
    """The run against something that lacks the decisive input: a guesser, or its own blind condition.

    `gain` is the run's accuracy minus the rival's on the same cases; `on_misses` is the run's accuracy on the cases the
    rival gets wrong, where only reading the images helps.
    """

    name: str
    accuracy: Measured
    gain: Measured
    on_misses: Measured


class Consistency(msgspec.Struct, frozen=True, kw_only=True):
    """How often the run gives the same answer when only the form of the question changes."""

    what: str
    same_answer: Measured
    difference: Measured


class PlaceBias(msgspec.Struct, frozen=True, kw_only=True):
    """The letters chosen, as shown, against an even spread; a small p-value means that position matters."""

    chosen: dict[str, int]
    p_value: float


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """What an audit of a run found; `diagnostic_gain` is over the strongest rival.

    `normalised_gain` is its share of what that rival left to gain, (accuracy − rival)/(1 − rival). Where
    `has_own_blind` is false no image-free run of the same model was among the rivals: the gain is only over guessers,
    and a model without images may have one too.
    """

    run: str
    accuracy: Measured
    strongest_rival: str
    strongest_accuracy: Measured
    diagnostic_gain: Measured
    normalised_gain: Measured
    has_own_blind: bool
    rivals: tuple[Rival, ...]
    consistency: tuple[Consistency, ...]
    place_bias: PlaceBias | None


def audit_run(scores: Scores, guesses: Sequence[Guesses], others: Sequence[Scores]) -> Audit:
    """Compare a run with guessers, and with its own model's other runs on the same cases."""
    assert scores.answers is not None
    rng = np.random.default_rng(seed_from("audit", scores.origin.text_fingerprint))
    right = _rights(scores)
    own = [other for other in others if is_variant(scores, other)]
    blind = {name: _rights(other) for other in own if (name := blind_name(_fields(scores), _fields(other))) is not None}
    named = {guess.name: _guessed_rights(scores, guess) for guess in guesses} | blind
    over_all = gain_over_rivals(right, list(named.values()), rng=rng)
    rivals = [_set_against(name, right, rival, rng) for name, rival in named.items()]
    return Audit(
        run=scores.origin.name,
        accuracy=scores.answers.accuracy,
        strongest_rival=rivals[over_all.strongest].name,
        strongest_accuracy=rivals[over_all.strongest].accuracy,
        diagnostic_gain=over_all.gain,
        normalised_gain=over_all.normalised,
        has_own_blind=not IMAGE_FREE_RUNS.isdisjoint(blind),
        rivals=tuple(rivals),
        consistency=tuple(_consistency(scores, other, rng) for other in own if _changed_form(scores, other)),
        place_bias=_place_bias(scores.answers),
    )


def gain_caution(audit: Audit) -> str:
    """The caveat of the gain if no image-free run of the same model was among the rivals; else ""."""
    if audit.has_own_blind:
        return ""
    return (
        "no image-free run of this model was given, so this is gain over guessers: a model that reads the history well "
        "has it even without images"
    )


def _rights(scores: Scores) -> Floats:
    return np.array([case.right for case in scores.cases])


def _guessed_rights(scores: Scores, guesses: Guesses) -> Floats:
    """A case the guesser could not be asked about (a defective one) counts as wrong."""
    return np.array([float(guesses.letters.get(case.case) == case.gold) for case in scores.cases])


def _set_against(name: str, right: Floats, rival: Floats, rng: np.random.Generator) -> Rival:
    return Rival(
        name=name,
        accuracy=_rate(rival),
        gain=gain_over_rivals(right, [rival], rng=rng).gain,
        on_misses=_rate(right[rival < 1]),
    )


def _rate(rights: Floats) -> Measured:
    """Wilson for right or wrong, a bootstrap for shares over several samples."""
    if np.isin(rights, (0.0, 1.0)).all():
        return wilson(int(rights.sum()), len(rights))
    return bootstrap_mean(rights, rng=np.random.default_rng(seed_from("rate", len(rights))))


def is_variant(scores: Scores, other: Scores) -> bool:
    """Whether it is another run of the same model and task on the same cases."""
    mine, theirs = scores.origin, other.origin
    return (
        mine.name != theirs.name
        and (mine.model, mine.task, mine.text_fingerprint) == (theirs.model, theirs.task, theirs.text_fingerprint)
        and [case.case for case in scores.cases] == [case.case for case in other.cases]
    )


def _fields(scores: Scores) -> Fields:
    return scores.origin.condition or {}


def _changed_fields(mine: Fields, other: Fields) -> Fields:
    return {field: value for field, value in other.items() if mine.get(field) != value}


def blind_name(mine: Fields, other: Fields) -> str | None:
    """Which blind condition of a run the other condition is, if it is one and differs in nothing else."""
    match _changed_fields(mine, other):
        case {"image_share": 0.0, **rest} if not rest:
            return "own run without images"
        case {"swap_images": True, **rest} if not rest:
            return "own run with another case's images"
        case {"image_share": 0.0, "show_history": False, **rest} if not rest:
            return "own run, options only"
    return None


def _changed_form(scores: Scores, other: Scores) -> str:
    """The one field of form that the other run changes, or ""."""
    changes = _changed_fields(_fields(scores), _fields(other))
    return next((field for field in _FORM_FIELDS if set(changes) == {field}), "")


def _consistency(scores: Scores, other: Scores, rng: np.random.Generator) -> Consistency:
    field = _changed_form(scores, other)
    same = [
        a.letters[0] == b.letters[0] and a.letters[0] is not None
        for a, b in zip(scores.cases, other.cases, strict=True)
    ]
    ids = [case.case for case in scores.cases]
    return Consistency(
        what=f"{field} {_fields(other)[field]}",
        same_answer=wilson(sum(same), len(same)),
        difference=paired_difference(_rights(scores), _rights(other), rng=rng, clusters=ids),
    )


def _place_bias(answers: AnswerScores) -> PlaceBias | None:
    """A χ² test; the samples of a case, which may all be the same, count as one answer together."""
    counts = [answers.chosen.get(letter, 0) * answers.n_cases / answers.n_predictions for letter in "ABCDE"]
    expected = sum(counts) / len(counts)
    if expected < 5:  # the test is not valid
        return None
    statistic = sum((count - expected) ** 2 for count in counts) / expected
    # The upper tail of χ² with four degrees of freedom.
    return PlaceBias(chosen=answers.chosen, p_value=math.exp(-statistic / 2) * (1 + statistic / 2))
