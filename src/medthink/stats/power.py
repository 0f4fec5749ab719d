"""What a paired comparison of two rates can see, before or after it is made."""

from math import ceil
from statistics import NormalDist

import msgspec
import numpy as np

from medthink.stats.estimate import Undefined, check_level
from medthink.stats.intervals import normal_quantile


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """A paired comparison of `n` cases finds a true `difference` with `power`, given the discordance."""

    difference: float
    n: int
    discordance: float
    power: float
    alpha: float


def _check(discordance: float, power: float, alpha: float) -> None:
    check_level(power)
    check_level(1 - alpha)
    if not 0 < discordance <= 1:
        raise ValueError(f"discordance must lie in (0, 1], not {discordance}")


def needed_cases(*, difference: float, discordance: float, power: float = 0.8, alpha: float = 0.05) -> Resolution:
    """Cases needed to find a difference of two rates by a two-sided paired test.

    n = (z_{1−α/2} √ψ + z_{power} √(ψ − δ²))² / δ², with ψ the discordance (share of cases on which just one
    of the two is right) and δ the difference of the rates, 0 < |δ| ≤ ψ (Connor 1987). It describes the χ²
    form of McNemar's test; the exact form needs a few per cent more (`paired_power` gives its true power).
    """
    _check(discordance, power, alpha)
    size = abs(difference)
    if not 0 < size <= discordance:
        raise ValueError(f"difference {difference} must be non-zero and at most the discordance {discordance}")
    n = ceil(_cases(size, discordance, power, alpha))
    return Resolution(difference=size, n=n, discordance=discordance, power=power, alpha=alpha)


def _cases(size: float, discordance: float, power: float, alpha: float) -> float:
    null = normal_quantile(1 - alpha) * discordance**0.5
    alternative = NormalDist().inv_cdf(power) * max(0.0, discordance - size**2) ** 0.5
    return float((null + alternative) ** 2 / size**2)


def minimum_detectable_difference(
    *, n: int, discordance: float, largest: float | None = None, power: float = 0.8, alpha: float = 0.05
) -> Resolution | Undefined:
    """The smallest difference of two rates that `n` paired cases find with the given power.

    The inverse of `needed_cases` in δ. Undefined when even the `largest` difference that the discordance
    allows (all discordant cases on one side) would be missed too often. With shares over samples in place of
    right and wrong, give the mean squared difference as discordance and the mean absolute one as `largest`.
    """
    _check(discordance, power, alpha)
    low, high = 0.0, discordance if largest is None else largest
    if n < 1 or _cases(high, discordance, power, alpha) > n:
        return Undefined(reason="too few cases for any difference at this discordance", n=n)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _cases(middle, discordance, power, alpha) <= n else (middle, high)
    return Resolution(difference=high, n=n, discordance=discordance, power=power, alpha=alpha)


def paired_power(*, n: int, difference: float, discordance: float, alpha: float = 0.05) -> float:
    """The exact chance that the exact McNemar test at level α finds this difference in `n` cases.

    Sums over the number of discordant cases (binomial n, ψ) and their split (binomial, share (ψ + δ)/2ψ).
    """
    from scipy.special import bdtr, bdtrc
    from scipy.stats import binom

    _check(discordance, 0.5, alpha)
    if abs(difference) > discordance:
        raise ValueError(f"difference {difference} exceeds the discordance {discordance}")
    share = (discordance + difference) / (2 * discordance)
    discordant = np.arange(n + 1)
    # The largest minority count k at which 2·P(X ≤ k) ≤ α; −1 where no split is significant.
    limit = binom.ppf(alpha / 2, discordant, 0.5).astype(np.int64)
    limit -= 2 * bdtr(limit, discordant, 0.5) > alpha
    found = np.zeros(n + 1)
    able = limit >= 0
    k, m = limit[able], discordant[able]
    found[able] = bdtr(k, m, share) + bdtrc(m - k - 1, m, share)
    return float((binom.pmf(discordant, n, discordance) * found).sum())
