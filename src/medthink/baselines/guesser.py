"""Trained guessers: they rank the options from the options, the history or image features alone.

A guesser compares each right option with its wrong ones, pair by pair, and learns a weight per feature (logistic
regression on the differences). An option's share of the exponentiated scores is its probability. The letters are not
among the features, so the order of the options has no effect.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from medthink.baselines import Inputs
from medthink.baselines.baseline import BaselineChoice, ChoosingBaseline, TrainedOnce, is_usable
from medthink.baselines.option_features import Matrix, OptionEncoder
from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case, Question
from medthink.core.digest import seed_from
from medthink.core.errors import UsageError

Places = NDArray[np.integer[Any]]
_LOOSENESS = 0.3
_TOLERANCE = 1e-3


class Guess(msgspec.Struct, frozen=True):
    """A guesser's answer to a case it was not trained on."""

    case_id: int
    letter: str
    probabilities: dict[str, float]


class Guesser:
    """A trained guesser."""

    def __init__(self, encoder: OptionEncoder, weights: NDArray[np.float64]) -> None:
        self._encoder = encoder
        self._weights = weights

    def rank(self, question: Question) -> dict[str, float]:
        """The probability of each letter, in the order of the options."""
        return self.rank_all([question])[0]

    def rank_all(self, questions: Sequence[Question]) -> list[dict[str, float]]:
        """The probabilities for many questions at once, which is faster."""
        scores = self._encoder.encode(questions) @ self._weights
        ends = np.cumsum([len(question.options) for question in questions])
        return [
            dict(zip(question.options, _softmax(part), strict=True))
            for question, part in zip(questions, np.split(scores, ends[:-1]), strict=True)
        ]


def train_guesser(cases: Iterable[Case], inputs: Inputs) -> Guesser:
    """Train on every case that has its answer among its options; raise UsageError if there is none."""
    usable = [case for case in cases if is_usable(case)]
    if not usable:
        raise UsageError("a guesser has no case to learn from", remedy="give cases with their answer among the options")
    encoder = OptionEncoder(inputs, [case.question for case in usable])
    rows = encoder.encode([case.question for case in usable])
    return Guesser(encoder, _fit_weights(rows, usable, right_places(usable)))


def right_places(cases: Sequence[Case]) -> Places:
    """For each case the place of its right answer among its options."""
    return np.array([list(case.question.options).index(case.reference.answer) for case in cases])


def _fit_weights(rows: Matrix, cases: Sequence[Case], right: Places) -> NDArray[np.float64]:
    from sklearn.linear_model import LogisticRegression

    pairs = _pair_off(rows, cases, right)
    # The sign of every other difference is turned, because a classifier needs both classes; the loss is the same.
    signs = np.where(np.arange(pairs.shape[0]) % 2, -1.0, 1.0).astype(np.float32)
    pairs.data *= np.repeat(signs, np.diff(pairs.indptr))
    # A column without entries would keep its weight of 0; most of the hashed bins have none.
    filled = np.unique(pairs.indices)
    model = LogisticRegression(C=_LOOSENESS, fit_intercept=False, max_iter=2000, tol=_TOLERANCE)
    model.fit(pairs[:, filled], signs)
    weights = np.zeros(pairs.shape[1])
    weights[filled] = model.coef_[0]
    return weights


def cross_validated(
    cases: Iterable[Case], inputs: Inputs, *, folds: int = 5, seed: int = 0, groups: Sequence[int] | None = None
) -> list[Guess]:
    """For each usable case, in the order given, the guess of a guesser trained on the other folds.

    Cases of one group (look-alikes of each other) are in one fold.
    """
    usable = [case for case in cases if is_usable(case)]
    found: dict[int, Guess] = {}
    for fold in _cut(usable, inputs, folds, seed, groups):
        weights = _fit_weights(fold.lessons, fold.taught, right_places(fold.taught))
        ranked = Guesser(fold.encoder, weights).rank_all([usable[at].question for at in fold.held])
        found |= {
            at: Guess(usable[at].id, most_probable(ranks), ranks) for at, ranks in zip(fold.held, ranked, strict=True)
        }
    return [found[position] for position in range(len(usable))]


def hits_by_chance(cases: Sequence[Case], inputs: Inputs, *, rounds: int, folds: int = 5) -> NDArray[np.int_]:
    """How often cross-validated guessers are right where the right answers are drawn at random, round by round.

    The features do not depend on the right answers, so they are computed once for all rounds.
    """
    rng = np.random.default_rng(seed_from("answers by chance", inputs, *(case.id for case in cases)))
    drawn = rng.integers(0, [len(case.question.options) for case in cases], size=(rounds, len(cases)))
    hits = np.zeros(rounds, dtype=int)
    for fold in _cut(cases, inputs, folds, 0, None):
        inside = np.setdiff1d(np.arange(len(cases)), fold.held)
        asked = fold.encoder.encode([cases[at].question for at in fold.held])
        starts = np.cumsum([0, *(len(cases[at].question.options) for at in fold.held)])
        for place, right in enumerate(drawn):
            scores = asked @ _fit_weights(fold.lessons, fold.taught, right[inside])
            picks = [int(np.argmax(scores[low:high])) for low, high in pairwise(starts)]
            hits[place] += int((right[fold.held] == picks).sum())
    return hits


class _Fold(NamedTuple):
    """The cases held out, by position, and the features of the others."""

    held: list[int]
    taught: list[Case]
    encoder: OptionEncoder
    lessons: Matrix


def _cut(
    usable: Sequence[Case], inputs: Inputs, folds: int, seed: int, groups: Sequence[int] | None
) -> Iterator[_Fold]:
    """The folds, one after the other: the features of all at once would not fit into memory."""
    members: dict[int, list[int]] = {}
    for position, group in enumerate(range(len(usable)) if groups is None else groups):
        members.setdefault(group, []).append(position)
    if not 2 <= folds <= len(members):
        raise UsageError(f"{folds} folds over {len(members)} usable cases", remedy="give 2 folds up to one per case")
    order = sorted(members.values(), key=lambda own: seed_from(seed, usable[own[0]].id, own[0]))
    for fold in range(folds):
        held = [position for own in order[fold::folds] for position in own]
        out = set(held)
        taught = [case for position, case in enumerate(usable) if position not in out]
        encoder = OptionEncoder(inputs, [case.question for case in taught])
        yield _Fold(held, taught, encoder, encoder.encode([case.question for case in taught]))


def most_probable(probabilities: dict[str, float]) -> str:
    """The most probable letter; in a tie, the one shown first."""
    return max(probabilities, key=probabilities.__getitem__)


def probabilities_text(probabilities: dict[str, float]) -> str:
    """The probabilities as a phrase, the highest first."""
    ranked = sorted(probabilities.items(), key=lambda pair: -pair[1])
    return ", ".join(f"{letter} {probability:.2f}" for letter, probability in ranked)


def guesser_baseline(inputs: str, benchmark: Benchmark) -> ChoosingBaseline:
    """The guesser as a baseline."""
    seen = cast("Inputs", inputs)
    name = f"guesser:{seen}"
    lessons = TrainedOnce(benchmark, name, lambda cases: train_guesser(cases, seen))

    def choose(question: Question, sample: int) -> BaselineChoice:  # noqa: ARG001
        probabilities = lessons.recall(question).rank(question)
        words = {"options": "the options alone", "question": "history and options", "images": "images and options"}
        source = words.get(seen, "history, images and options")
        return BaselineChoice(
            most_probable(probabilities), f"A guess from {source}. Probabilities: {probabilities_text(probabilities)}."
        )

    return ChoosingBaseline(name, choose)


def _pair_off(rows: Matrix, cases: Sequence[Case], places: Places) -> Matrix:
    """The right option's row minus each wrong one's."""
    right, wrong, start = [], [], 0
    for case, at in zip(cases, places, strict=True):
        options = len(case.question.options)
        others = [start + position for position in range(options) if position != at]
        right += [start + int(at)] * len(others)
        wrong += others
        start += options
    return (rows[right] - rows[wrong]).tocsr()


def _softmax(scores: NDArray[np.float64]) -> list[float]:
    powers = np.exp(scores - scores.max(initial=0))
    return [float(share) for share in powers / powers.sum()]
