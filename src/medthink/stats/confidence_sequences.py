"""Confidence sequences: a run is monitored case by case and may stop early; the intervals are valid at every look.

An interval meant for a single look is not valid if it is looked at repeatedly. The sequences here are valid at all
looks together, with probability 1 − α, provided that cases come in a *random order* and none is skipped. Two claims are
kept apart:

- *these* N cases: the result of the finished run; sampling without replacement, so the sequence closes at N;
- *such* cases: the population that the cases were drawn from.
"""

from math import lgamma, log
from typing import Literal

import numpy as np
import numpy.typing as npt

from medthink.stats.estimate import Floats, check_level

WatchClaim = Literal["these", "such"]

_FRACTIONS = np.array([0.03, 0.05, 0.08, 0.12, 0.17, 0.23, 0.3, 0.4, 0.5, 0.6, 0.75, 0.9])
_GRID = 401


class RateSequence:
    """An interval for a rate of right answers, valid after every case.

    *These*: the counts M of right answers among all N that the prior–posterior ratio does not exclude, under a uniform
    prior (Waudby-Smith and Ramdas 2020). *Such*: the rates that the same ratio for independent draws does not exclude.
    """

    def __init__(self, n: int, *, claim: WatchClaim = "these", alpha: float = 0.05) -> None:
        check_level(1 - alpha)
        self._n, self._claim, self._bar = n, claim, -log(alpha)
        self.low, self.high, self.seen, self.right = 0.0, 1.0, 0, 0
        self._rates: Floats = np.linspace(0, 1, n + 1) if claim == "these" else np.linspace(0, 1, 2001)[1:-1]

    def see(self, is_right: bool) -> None:
        """Add the next case of the random order."""
        self.seen += 1
        self.right += is_right
        if self.seen > self._n and self._claim == "these":
            raise ValueError(f"more than the {self._n} cases that the sequence was made for")
        kept = self._rates[self._log_ratio() < self._bar]
        if len(kept):
            step = 0.0 if self._claim == "these" else 1 / 2000
            self.low = max(self.low, float(kept[0]) - step)
            self.high = min(self.high, float(kept[-1]) + step)

    def _log_ratio(self) -> Floats:
        """log of B(1 + s, 1 + t − s) over the likelihood of each candidate; infinite where it is impossible."""
        s, wrong = self.right, self.seen - self.right
        beta = lgamma(1 + s) + lgamma(1 + wrong) - lgamma(2 + self.seen)
        if self._claim == "such":
            result: Floats = beta - s * np.log(self._rates) - wrong * np.log1p(-self._rates)
            return result
        counts = np.arange(self._n + 1)
        likelihood = _log_falling(counts, s) + _log_falling(self._n - counts, wrong)
        likelihood -= _log_falling(np.array([self._n]), self.seen)[0]
        return beta - likelihood


class MeanSequence:
    """An interval for the mean of values in [low, high], such as paired differences in [−1, 1], valid after every case.

    Bets on each candidate mean with the wealth of many stakes averaged; a candidate is out when the wealth against it,
    on either side, reaches 2/α (Waudby-Smith and Ramdas 2024: *these* without replacement, *such* with). Candidates lie
    on a grid; the interval extends to the next one on each side.
    """

    def __init__(
        self, n: int, *, bounds: tuple[float, float] = (-1.0, 1.0), claim: WatchClaim = "these", alpha: float = 0.05
    ) -> None:
        check_level(1 - alpha)
        self._n, self._bounds, self._claim, self._bar = n, bounds, claim, log(2 / alpha)
        self.low, self.high, self.seen = bounds[0], bounds[1], 0
        self._means: Floats = np.linspace(0, 1, _GRID)
        self._total = 0.0
        self._up = np.zeros((len(_FRACTIONS), _GRID))
        self._down = np.zeros((len(_FRACTIONS), _GRID))
        self._is_out = np.zeros(_GRID, dtype=bool)

    @property
    def is_signed(self) -> bool:
        """Whether the values may be negative, as differences are."""
        return self._bounds[0] < 0

    def see(self, value: float) -> None:
        """Add the next case of the random order."""
        if self.seen >= self._n:
            raise ValueError(f"more than the {self._n} cases that the sequence was made for")
        least, most = self._bounds
        y = (value - least) / (most - least)
        # What the cases still to come would average, were the candidate true.
        left = (self._n * self._means - self._total) / (self._n - self.seen)
        rest = left if self._claim == "these" else self._means
        inside = (rest > 0) & (rest < 1)
        safe = np.where(inside, rest, 0.5)
        stakes = _FRACTIONS[:, None]
        self._up += np.where(inside, np.log1p(stakes * (y / safe - 1)), 0.0)
        self._down += np.where(inside, np.log1p(stakes * ((1 - y) / (1 - safe) - 1)), 0.0)
        self.seen, self._total = self.seen + 1, self._total + y
        self._is_out |= (_log_mean(self._up) >= self._bar) | (_log_mean(self._down) >= self._bar)
        self._is_out |= self._is_impossible()
        self._narrow(least, most)

    def _is_impossible(self) -> npt.NDArray[np.bool_]:
        """The candidates that the values seen exclude whatever comes."""
        if self._claim == "such":
            # A mean at a bound needs every value there.
            above, below = self._total > 1e-9, self._total < self.seen - 1e-9
            at_bound: npt.NDArray[np.bool_] = ((self._means == 0) & above) | ((self._means == 1) & below)
            return at_bound
        reach, total = self._n - self.seen + 1e-9, self._n * self._means
        beyond: npt.NDArray[np.bool_] = (total < self._total - 1e-9) | (total > self._total + reach)
        return beyond

    def _narrow(self, least: float, most: float) -> None:
        kept = np.flatnonzero(~self._is_out)
        if self.seen == self._n and self._claim == "these":
            self.low = self.high = least + (most - least) * self._total / self._n
        elif len(kept):
            first, last = max(kept[0] - 1, 0), min(kept[-1] + 1, _GRID - 1)
            # A candidate that is out bounds those between it and the first that is kept.
            self.low = max(self.low, least + (most - least) * float(self._means[first]))
            self.high = min(self.high, least + (most - least) * float(self._means[last]))


class SignSequence:
    """Which of two runs is better on *such* cases: a bet on the discordant cases alone.

    The evidence 2^(W + L) · B(1 + W, 1 + L) is a fair bettor's wealth when neither is better; it reaches 1/α with a
    chance of at most α, however often one looks. Differences are −1, 0 or 1: of fractions, the signs do not tell which
    mean is higher, and `MeanSequence` watches them.
    """

    def __init__(self, *, alpha: float = 0.05) -> None:
        check_level(1 - alpha)
        self._bar = -log(alpha)
        self.won, self.lost, self.seen = 0, 0, 0
        self.log_evidence = 0.0
        self.verdict = 0

    def see(self, difference: float) -> None:
        """Take in the next case: 1 where the first run alone is right."""
        if difference not in (-1, 0, 1):
            raise ValueError(f"a difference of {difference}: fractions are watched by MeanSequence")
        self.seen += 1
        self.won += difference > 0
        self.lost += difference < 0
        both = self.won + self.lost
        self.log_evidence = both * log(2) + lgamma(1 + self.won) + lgamma(1 + self.lost) - lgamma(2 + both)
        if not self.verdict and self.log_evidence >= self._bar:
            self.verdict = 1 if self.won > self.lost else -1


def _log_falling(values: np.ndarray[tuple[int], np.dtype[np.int64]], k: int) -> Floats:
    """log of x(x − 1)…(x − k + 1) for each x; −inf where it is 0."""
    from scipy.special import gammaln

    possible = values >= k
    held = np.where(possible, values, k)
    result: Floats = np.where(possible, gammaln(held + 1) - gammaln(held - k + 1), -np.inf)
    return result


def _log_mean(logs: Floats) -> Floats:
    top = logs.max(axis=0)
    result: Floats = top + np.log(np.exp(logs - top).mean(axis=0))
    return result
