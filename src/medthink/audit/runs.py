"""Audit of a run: its gain over guessing, and whether it keeps its answers if only the form changes.

The definitions, with their assumptions, are on one page: docs/audit.md.
"""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from medthink.audit.gain import (
    RivalAnswers,
    changed_fields,
    gain_over_strongest,
    gain_rng,
    guesser_answers,
    image_free_name,
)
from medthink.audit.rivals import Guesses
from medthink.cases.case import ALL_LETTERS
from medthink.scoring.comparable import rank_together
from medthink.scoring.scores import AnswerScores, Scores, samples_per_case
from medthink.stats.chance import chi_square_tail
from medthink.stats.estimate import Measured
from medthink.stats.intervals import share_interval, wilson

# Fields of a condition whose change should not affect the answer.
_FORM_FIELDS = ("option_order", "image_order")
_FEWEST_WRONG = 5
"""With fewer wrong answers expected at some letter, the test of a position bias is not valid."""


class RivalResult(msgspec.Struct, frozen=True, kw_only=True):
    """The run compared with a rival that lacks the decisive input: a guesser, or its own run without images.

    `gain` is the run's accuracy minus the rival's on the same cases; `on_misses` is the run's accuracy on the cases the
    rival gets wrong, where only reading the images helps. `run` names the run without images, and is empty for a
    guesser.
    """

    name: str
    run: str
    accuracy: Measured
    gain: Measured
    on_misses: Measured


class Consistency(msgspec.Struct, frozen=True, kw_only=True):
    """The share of answers that stay the same if only the form of the question changes."""

    what: str
    same_answer: Measured
    difference: Measured


class PlaceBias(msgspec.Struct, frozen=True, kw_only=True):
    """The letters chosen, as shown; a small p-value means that the wrong ones are not spread evenly: position matters.

    What the key explains is left out: where it is uneven, the choices of a good reader are uneven too.
    """

    chosen: dict[str, int]
    p_value: float


class RunAudit(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an audit of a run; `diagnostic_gain` is over the strongest rival.

    `normalised_gain` is its share of the possible gain over that rival, (accuracy − rival)/(1 − rival). Where
    `has_own_blind` is false no image-free run of the same model was among the rivals: the gain is only over guessers,
    and a model without images may have one too.
    """

    run: str
    accuracy: Measured
    strongest_rival: str
    strongest_run: str
    strongest_accuracy: Measured
    diagnostic_gain: Measured
    normalised_gain: Measured
    has_own_blind: bool
    rivals: tuple[RivalResult, ...]
    consistency: tuple[Consistency, ...]
    place_bias: PlaceBias | None

    @property
    def strongest(self) -> RivalResult:
        """The strongest rival."""
        chosen = (self.strongest_rival, self.strongest_run)
        return next(rival for rival in self.rivals if (rival.name, rival.run) == chosen)


def audit_run(scores: Scores, guesses: Sequence[Guesses], others: Sequence[Scores]) -> RunAudit:
    """Compare a run with guessers, and with its own model's other runs on the same cases."""
    assert scores.answers is not None
    rng = gain_rng(scores.origin.text_fingerprint)
    own = [other for other in others if is_variant(scores, other)]
    against = [guesser_answers(guess, [(case.case, case.gold) for case in scores.cases]) for guess in guesses]
    against += _blind_runs(scores, own)
    over = gain_over_strongest(_rights(scores), against, rng=rng)
    return RunAudit(
        run=scores.origin.name,
        accuracy=scores.answers.accuracy,
        strongest_rival=over.rival.name,
        strongest_run=over.rival.run,
        strongest_accuracy=over.rival.accuracy,
        diagnostic_gain=over.gain,
        normalised_gain=over.normalised,
        has_own_blind=over.has_own_blind,
        rivals=tuple(_set_against(scores, rival, rng) for rival in against),
        consistency=tuple(_consistency(scores, other) for other in own if _changed_form(scores, other)),
        place_bias=_place_bias(scores.answers),
    )


def gain_caution(audit: RunAudit) -> str:
    """The caveat of the gain if no image-free run of the same model was among the rivals; else ""."""
    if audit.has_own_blind:
        return ""
    return (
        "no image-free run of this model was given, so this is the gain over guessers only: a model that uses the "
        "history well can show it without seeing any image"
    )


def _rights(scores: Scores) -> tuple[float, ...]:
    return tuple(case.right for case in scores.cases)


def _blind_runs(scores: Scores, own: Sequence[Scores]) -> Iterator[RivalAnswers]:
    for other in own:
        name = image_free_name(scores.origin.condition, other.origin.condition)
        if name is not None:
            yield RivalAnswers(name, _rights(other), run=other.origin.name, samples=samples_per_case(other))


def _set_against(scores: Scores, rival: RivalAnswers, rng: np.random.Generator) -> RivalResult:
    rights = _rights(scores)
    missed = [mine for mine, theirs in zip(rights, rival.rights, strict=True) if theirs < 1]
    return RivalResult(
        name=rival.name,
        run=rival.run,
        accuracy=rival.accuracy,
        gain=gain_over_strongest(rights, [rival], rng=rng).gain,
        on_misses=share_interval(missed, samples=samples_per_case(scores)),
    )


def is_variant(scores: Scores, other: Scores) -> bool:
    """Whether it is another run of the same model and task on the same cases."""
    mine, theirs = scores.origin, other.origin
    return (
        mine.name != theirs.name
        and (mine.model, mine.task, mine.text_fingerprint) == (theirs.model, theirs.task, theirs.text_fingerprint)
        and [case.case for case in scores.cases] == [case.case for case in other.cases]
    )


def _changed_form(scores: Scores, other: Scores) -> str:
    """The one field of form that the other run changes, or ""."""
    changes = changed_fields(scores.origin.condition, other.origin.condition)
    return next((field for field in _FORM_FIELDS if set(changes) == {field}), "")


def _consistency(scores: Scores, other: Scores) -> Consistency:
    field = _changed_form(scores, other)
    same = [
        a.letters[0] == b.letters[0] and a.letters[0] is not None
        for a, b in zip(scores.cases, other.cases, strict=True)
    ]
    ids = [case.case for case in scores.cases]
    return Consistency(
        what=f"{field} {(other.origin.condition or {})[field]}",
        same_answer=wilson(sum(same), len(same)),
        difference=rank_together([_rights(scores), _rights(other)], ids).pairs[0].difference,
    )


def _place_bias(answers: AnswerScores) -> PlaceBias | None:
    """A χ² test of the wrong answers: given the right letter, each of the others is as likely.

    The samples of a case, which may all be the same, count as one answer together.
    """
    # A benchmark of four or six options has right answers, or answers given, up to its own last letter.
    last = max({*answers.confusion, *answers.confusion_shown, *answers.chosen})
    shown = [letter for letter in ALL_LETTERS if letter <= last]
    weight, others = answers.n_cases / answers.n_predictions, len(shown) - 1
    expected, gaps, spread = np.zeros(len(shown)), np.zeros(len(shown)), np.zeros((len(shown), len(shown)))
    for place, key in enumerate(shown):
        row = answers.confusion_shown.get(key, {})
        wrong = weight * np.array([row.get(letter, 0) if letter != key else 0 for letter in shown])
        shares = np.where(np.arange(len(shown)) == place, 0.0, 1 / others)
        expected += wrong.sum() * shares
        gaps += wrong - wrong.sum() * shares
        spread += wrong.sum() * (np.diag(shares) - np.outer(shares, shares))
    if others < 2 or expected.min() < _FEWEST_WRONG:
        return None
    statistic = float(gaps @ np.linalg.pinv(spread) @ gaps)
    return PlaceBias(chosen=answers.chosen, p_value=chi_square_tail(statistic, others))
