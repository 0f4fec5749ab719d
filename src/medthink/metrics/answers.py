"""Answer accuracy over outcomes: every outcome has a state, and only `ok` has an answer.

The headline counts everything that is not `ok` as wrong, so nothing leaves the denominator; `accuracy_answered` leaves
those out, and is printed next to it with both counts. With several outcomes per case, the case is the unit: its own
mean, how far its outcomes agree, and their majority.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

import msgspec


class Mean(msgspec.Struct, frozen=True):
    """A mean over the known values, and how many were unknown."""

    value: float | None
    n: int
    unknown: int


def mean_of_known(values: Iterable[float | None]) -> Mean:
    """The mean of the known values; none when nothing is known."""
    listed = list(values)
    known = [value for value in listed if value is not None]
    return Mean(math.fsum(known) / len(known) if known else None, len(known), len(listed) - len(known))


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
        """Cases whose majority answer is right, over all cases; a tie counts as wrong."""
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
    votes = [majority_answer(outcomes) for outcomes in attempted]
    right = sum(vote == outcomes[0].gold for vote, outcomes in zip(votes, attempted, strict=True))
    return RepeatedAccuracy(
        n_cases=len(attempted),
        n_outcomes=sum(map(len, attempted)),
        mean=mean_of_known(case_accuracies(cases).values()).value,
        consistency=mean_of_known(map(answer_agreement, attempted)).value,
        majority_right=right,
        majority_tied=sum(vote is None for vote in votes),
    )


def answer_agreement(outcomes: Sequence[GradedAnswer]) -> float | None:
    """The share of pairs of outcomes that gave the same answer; unknown for a single outcome.

    Two outcomes without an answer do not agree with each other: they carry no information.
    """
    pairs = math.comb(len(outcomes), 2)
    if not pairs:
        return None
    letters = Counter(o.letter for o in outcomes if o.state == "ok")
    return sum(math.comb(count, 2) for count in letters.values()) / pairs


def majority_answer(outcomes: Sequence[GradedAnswer]) -> str | None:
    """The answer most outcomes gave; None if there is a tie or no answer."""
    return most_frequent(o.letter for o in outcomes if o.state == "ok")


def most_frequent(letters: Iterable[str | None]) -> str | None:
    """The letter given most often; None if there is a tie or no letter."""
    counts = Counter(letters).most_common(2)
    is_tied = len(counts) == 2 and counts[0][1] == counts[1][1]
    return counts[0][0] if counts and not is_tied else None


class CallUsage(msgspec.Struct, frozen=True):
    """What one call used; unknown values are None."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    latency_s: float | None = None
    attempts: int = 1


class Total(msgspec.Struct, frozen=True):
    """A sum: `value` only when every part is known, `known` over the parts that are."""

    value: float | None
    known: float
    unknown: int

    def per(self, cases: int) -> float | None:
        """The sum divided by so many cases; None if part of it is unknown."""
        return None if self.value is None or not cases else self.value / cases


class UsageSummary(msgspec.Struct, frozen=True):
    """The usage of many calls.

    `uncounted_replies` never arrived or count no tokens, and may have been billed: the cost includes the most
    that they may cost by the price list. `saved_usd` is what providers' caches have saved, at the prices of the cost.
    """

    calls: int
    attempts: int
    input_tokens: Total
    output_tokens: Total
    reasoning_tokens: Total
    cost_usd: Total
    latency_s: Mean
    latency_p50_s: float | None
    latency_p95_s: float | None
    output_tokens_per_s: float | None
    uncounted_replies: int = 0
    saved_usd: float | None = None


def summarise_usage(calls: Iterable[CallUsage]) -> UsageSummary:
    """Sums, means, latency quantiles and throughput over calls."""
    listed = list(calls)
    latencies = sorted(call.latency_s for call in listed if call.latency_s is not None)
    return UsageSummary(
        calls=len(listed),
        attempts=sum(call.attempts for call in listed),
        input_tokens=total(call.input_tokens for call in listed),
        output_tokens=total(call.output_tokens for call in listed),
        reasoning_tokens=total(call.reasoning_tokens for call in listed),
        cost_usd=total(call.cost_usd for call in listed),
        latency_s=mean_of_known(call.latency_s for call in listed),
        latency_p50_s=quantile(latencies, 0.5),
        latency_p95_s=quantile(latencies, 0.95),
        output_tokens_per_s=tokens_per_second(listed),
    )


def total(values: Iterable[float | None]) -> Total:
    """The sum, unknown if any part is; no parts sum to 0."""
    listed = list(values)
    known = [value for value in listed if value is not None]
    unknown = len(listed) - len(known)
    sum_known = math.fsum(known)
    return Total(None if unknown else sum_known, sum_known, unknown)


def tokens_per_second(calls: Sequence[CallUsage]) -> float | None:
    """Output tokens over time, of the calls where both are known."""
    timed = [(c.output_tokens, c.latency_s) for c in calls if c.output_tokens is not None and c.latency_s is not None]
    seconds = math.fsum(latency for _, latency in timed)
    return sum(tokens for tokens, _ in timed) / seconds if seconds > 0 else None


def quantile(ordered: Sequence[float], share: float) -> float | None:
    """The quantile of ascending values, interpolated between neighbours."""
    if not ordered:
        return None
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
