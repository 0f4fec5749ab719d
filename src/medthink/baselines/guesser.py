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
Weights = NDArray[np.floating[Any]]
_LOOSENESS = 0.3
_TOLERANCE = 1e-3
_MOST_STEPS = 2000
_PART = 512


class Guess(msgspec.Struct, frozen=True):
    """A guesser's answer to a case it was not trained on."""

    case_id: int
    letter: str
    probabilities: dict[str, float]


class Guesser:
    """A trained guesser."""

    def __init__(self, encoder: OptionEncoder, weights: Weights) -> None:
        self._encoder = encoder
        self._weights = weights

    def rank(self, question: Question) -> dict[str, float]:
        """The probability of each letter, in the order of the options."""
        return self.rank_all([question])[0]

    def rank_all(self, questions: Sequence[Question]) -> list[dict[str, float]]:
        """The probabilities for many questions at once, which is faster."""
        scores = _score(_encode(self._encoder, questions), self._weights)
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
    rows = _encode(encoder, [case.question for case in usable])
    return Guesser(encoder, _fit_weights(rows, usable, right_places(usable)))


def _encode(encoder: OptionEncoder, questions: Sequence[Question]) -> list[Matrix]:
    """The options' features in parts, which are never copied into one: that would take twice the memory."""
    return [encoder.encode(questions[start : start + _PART]) for start in range(0, len(questions), _PART)]


def _score(rows: Sequence[Matrix], weights: Weights) -> Weights:
    return np.concatenate([part @ weights for part in rows])


def right_places(cases: Sequence[Case]) -> Places:
    """For each case the place of its right answer among its options."""
    return np.array([list(case.question.options).index(case.reference.answer) for case in cases])


def _fit_weights(rows: Sequence[Matrix], cases: Sequence[Case], right: Places) -> Weights:
    """Logistic regression on the right option's row minus each wrong one's, with a penalty on large weights."""
    from scipy.optimize import minimize
    from scipy.special import expit

    better, worse = _pair_off(cases, right)
    width = rows[0].shape[1]
    filled, rows = _drop_empty_columns(rows)
    ends = np.cumsum([0, *(part.shape[0] for part in rows)])
    penalty = 1 / (_LOOSENESS * len(better))

    def loss(weights: Weights) -> tuple[float, NDArray[np.float64]]:
        scores = _score(rows, weights.astype(np.float32)).astype(np.float64)
        leads = scores[better] - scores[worse]
        pulls = expit(-leads) / len(leads)
        by_row = np.bincount(worse, pulls, len(scores)) - np.bincount(better, pulls, len(scores))
        parts = zip(rows, pairwise(ends), strict=True)
        slope = sum(part.T @ by_row[low:high].astype(np.float32) for part, (low, high) in parts)
        value = float(np.logaddexp(0, -leads).mean() + penalty / 2 * (weights @ weights))
        return value, np.asarray(slope, dtype=np.float64) + penalty * weights

    options = {"maxiter": _MOST_STEPS, "gtol": _TOLERANCE, "ftol": 64 * np.finfo(float).eps, "maxls": 50}
    fitted = minimize(loss, np.zeros(len(filled)), jac=True, method="L-BFGS-B", options=options)
    # A column without entries keeps its weight of 0.
    weights = np.zeros(width, dtype=np.float32)
    weights[filled] = fitted.x
    return weights


def _drop_empty_columns(rows: Sequence[Matrix]) -> tuple[Places, Sequence[Matrix]]:
    """The columns with entries, and the rows with these alone: few cases fill few of the hashed bins."""
    filled = np.unique(np.concatenate([np.unique(part.indices) for part in rows]))
    width = rows[0].shape[1]
    if len(filled) > width / 2:
        # Not worth the memory.
        return np.arange(width), rows
    narrow = []
    for part in rows:
        columns = np.searchsorted(filled, part.indices).astype(part.indices.dtype)
        narrow.append(type(part)((part.data, columns, part.indptr), shape=(part.shape[0], len(filled))))
    return filled, narrow


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
        asked = _encode(fold.encoder, [cases[at].question for at in fold.held])
        starts = np.cumsum([0, *(len(cases[at].question.options) for at in fold.held)])
        for place, right in enumerate(drawn):
            scores = _score(asked, _fit_weights(fold.lessons, fold.taught, right[inside]))
            picks = [int(np.argmax(scores[low:high])) for low, high in pairwise(starts)]
            hits[place] += int((right[fold.held] == picks).sum())
    return hits


class _Fold(NamedTuple):
    """The cases held out, by position, and the features of the others."""

    held: list[int]
    taught: list[Case]
    encoder: OptionEncoder
    lessons: list[Matrix]


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
        yield _Fold(held, taught, encoder, _encode(encoder, [case.question for case in taught]))


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


def _pair_off(cases: Sequence[Case], places: Places) -> tuple[Places, Places]:
    """The rows of the right option and of a wrong one, for every wrong one."""
    right, wrong, start = [], [], 0
    for case, at in zip(cases, places, strict=True):
        options = len(case.question.options)
        others = [start + position for position in range(options) if position != at]
        right += [start + int(at)] * len(others)
        wrong += others
        start += options
    return np.array(right), np.array(wrong)


def _softmax(scores: Weights) -> list[float]:
    powers = np.exp(scores - scores.max(initial=0))
    return [float(share) for share in powers / powers.sum()]
