"""Answer accuracy over outcomes: every outcome has a state, and only `ok` holds an answer.

The headline counts everything that is not `ok` as wrong, so nothing leaves the denominator; `accuracy_answered` leaves
those out, and is printed next to it with both counts. With several outcomes per case, the case is the unit: its own
mean, how far its outcomes agree, and their majority.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

import msgspec

from medthink.metrics.aggregate import mean_of

State = Literal["ok", "unparsed", "refused", "truncated", "failed"]
STATES: tuple[State, ...] = get_args(State)


class GradedAnswer(NamedTuple):
    """The outcome of one attempt at a case: its state, the letter chosen (only when `ok`), and the right letter."""

    state: State
    letter: str | None
    gold: str

    @property
    def is_right(self) -> bool:
        """Whether an answer was given and is the right one."""
        return self.state == "ok" and self.letter == self.gold


class Accuracy(msgspec.Struct, frozen=True):
    """Accuracy over outcomes, with the counts behind it."""

    n: int
    right: int
    states: dict[State, int]

    @property
    def accuracy(self) -> float | None:
        """The headline: right over all; unknown without outcomes."""
        return self.right / self.n if self.n else None

    @property
    def accuracy_answered(self) -> float | None:
        """Right over `ok`; unknown when nothing was answered."""
        answered = self.states["ok"]
        return self.right / answered if answered else None


class RepeatedAccuracy(msgspec.Struct, frozen=True):
    """Accuracy where every case was attempted one or several times; the case is the unit."""

    n_cases: int
    n_outcomes: int
    mean: float | None
    consistency: float | None
    majority_right: int
    majority_tied: int

    @property
    def majority_accuracy(self) -> float | None:
        """Cases whose majority answer is right, over all cases; a tie decides nothing and counts as wrong."""
        return self.majority_right / self.n_cases if self.n_cases else None


def count_answers(outcomes: Iterable[GradedAnswer]) -> Accuracy:
    """Count the outcomes by state, and those that are right."""
    listed = list(outcomes)
    states = Counter(outcome.state for outcome in listed)
    return Accuracy(
        n=len(listed),
        right=sum(outcome.is_right for outcome in listed),
        states={state: states[state] for state in STATES},
    )


def case_accuracies(cases: Mapping[str, Sequence[GradedAnswer]]) -> dict[str, float]:
    """The share of right outcomes of each case: the values a case-clustered interval is made from."""
    return {key: sum(o.is_right for o in outcomes) / len(outcomes) for key, outcomes in cases.items() if outcomes}


def summarise_repeats(cases: Mapping[str, Sequence[GradedAnswer]]) -> RepeatedAccuracy:
    """Mean over cases of the case's mean, its consistency, and its majority vote."""
    attempted = [outcomes for outcomes in cases.values() if outcomes]
    votes = [majority(outcomes) for outcomes in attempted]
    right = sum(vote == outcomes[0].gold for vote, outcomes in zip(votes, attempted, strict=True))
    return RepeatedAccuracy(
        n_cases=len(attempted),
        n_outcomes=sum(map(len, attempted)),
        mean=mean_of(case_accuracies(cases).values()).value,
        consistency=mean_of(map(agreement, attempted)).value,
        majority_right=right,
        majority_tied=sum(vote is None for vote in votes),
    )


def agreement(outcomes: Sequence[GradedAnswer]) -> float | None:
    """The share of pairs of outcomes that gave the same answer; unknown for a single outcome.

    Two outcomes without an answer do not agree with each other: they carry no information.
    """
    pairs = math.comb(len(outcomes), 2)
    if not pairs:
        return None
    letters = Counter(o.letter for o in outcomes if o.state == "ok")
    return sum(math.comb(count, 2) for count in letters.values()) / pairs


def majority(outcomes: Sequence[GradedAnswer]) -> str | None:
    """The answer most outcomes gave; None if there is a tie or no answer."""
    return most_frequent(o.letter for o in outcomes if o.state == "ok")


def most_frequent(letters: Iterable[str | None]) -> str | None:
    """The letter given most often; None if there is a tie or no letter."""
    counts = Counter(letters).most_common(2)
    is_tied = len(counts) == 2 and counts[0][1] == counts[1][1]
    return counts[0][0] if counts and not is_tied else None
