"""Power of a paired comparison of two rates, before or after it is made: exact for the test actually performed."""

from functools import lru_cache
from math import ceil, sqrt
from statistics import NormalDist

import msgspec
import numpy as np

from medthink.stats.comparisons.paired import mcnemar_limits
from medthink.stats.estimate import Floats, Ints, Undefined, check_level
from medthink.stats.intervals import normal_quantile

_HALVINGS = 40
_MOST_STEPS = 400


class Resolution(msgspec.Struct, frozen=True, kw_only=True):
    """A paired comparison of `n` cases finds a true `difference` with `power`, given the discordance.

    `threshold` is the z that its statistic must exceed among all runs compared; None means one pair, tested by the
    exact McNemar test at `alpha`.
    """

    difference: float
    n: int
    discordance: float
    power: float
    alpha: float
    threshold: float | None = None


def paired_power(
    *, n: int, difference: float, discordance: float, alpha: float = 0.05, threshold: float | None = None
) -> float:
    """The exact chance to find this difference of two rates in `n` cases.

    Sums over the number of discordant cases (binomial n, ψ) and their split (binomial, share (ψ + δ)/2ψ). Found: by
    the exact McNemar test at α, or, given a `threshold` from `rank_runs`, when |b − c|/√(b + c) exceeds it.
    """
    _check(discordance, 0.5, alpha)
    if abs(difference) > discordance:
        raise ValueError(f"difference {difference} exceeds the discordance {discordance}")
    return _Splits(n, discordance, alpha, threshold).power(abs(difference))


@lru_cache(maxsize=4096)
def minimum_detectable_difference(
    *,
    n: int,
    discordance: float,
    largest: float | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    threshold: float | None = None,
) -> Resolution | Undefined:
    """The smallest difference of two rates that `n` paired cases find with the given power, by the exact power.

    Undefined when even the `largest` difference that the discordance allows (all discordant cases on one side) would
    be missed too often. With shares over samples in place of right and wrong, give the mean squared difference as
    discordance and the mean absolute one as `largest`: cases then count by the typical size of their difference.
    """
    _check(discordance, power, alpha)
    most = discordance if largest is None else largest
    size, share = discordance / most, min(1.0, most**2 / discordance)
    splits = _Splits(n, share, alpha, threshold) if n >= 1 else None
    if splits is None or splits.power(share) < power:
        return Undefined(reason="too few cases for any difference at this discordance", n=n)
    low, high = 0.0, share
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if splits.power(middle) >= power else (middle, high)
    return Resolution(
        difference=high * size, n=n, discordance=discordance, power=power, alpha=alpha, threshold=threshold
    )


def needed_cases(
    *, difference: float, discordance: float, power: float = 0.8, alpha: float = 0.05, threshold: float | None = None
) -> Resolution:
    """The number of cases from which a difference of two rates is found with at least the given power.

    Power grows with n in a saw-tooth, as counts are whole: the n here is the first after the last that falls short.
    The search starts from Connor's (1987) formula for the χ² test, which gives a number that is a few per cent too
    small.
    """
    _check(discordance, power, alpha)
    size = abs(difference)
    if not 0 < size <= discordance:
        raise ValueError(f"difference {difference} must be non-zero and at most the discordance {discordance}")
    z = normal_quantile(1 - alpha) if threshold is None else threshold
    spread = NormalDist().inv_cdf(power) * max(0.0, discordance - size**2) ** 0.5
    guess = ceil((z * discordance**0.5 + spread) ** 2 / size**2)
    # Whole counts cost about 2/δ cases, and the teeth are about √n wide.
    reach = 100 + ceil(4 / size) + 6 * ceil(sqrt(guess))
    step = max(1, 2 * reach // _MOST_STEPS)
    n = guess + reach
    while n > 1 and _Splits(n - step, discordance, alpha, threshold).power(size) >= power:
        n -= step
    return Resolution(difference=size, n=n, discordance=discordance, power=power, alpha=alpha, threshold=threshold)


def detectable_rate(*, n: int, chance: float, alpha: float, power: float = 0.8) -> float | None:
    """The smallest true rate above `chance` that a one-sided exact binomial test of `n` rows detects with this power.

    None if not even a rate of 1 would be detected.
    """
    from scipy.stats import binom

    check_level(power)
    check_level(1 - alpha)
    least = int(binom.isf(alpha, n, chance)) + 1
    return None if least > n else rate_for_hits(least, n=n, power=power, above=chance)


def rate_for_hits(least: int, *, n: int, power: float, above: float = 0.0) -> float:
    """The smallest rate `above` another at which `n` independent rows have at least so many hits with this power."""
    from scipy.stats import binom

    low, high = above, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if binom.sf(least - 1, n, middle) >= power else (middle, high)
    return high


def _check(discordance: float, power: float, alpha: float) -> None:
    check_level(power)
    check_level(1 - alpha)
    if not 0 < discordance <= 1:
        raise ValueError(f"discordance must lie in (0, 1], not {discordance}")


class _Splits:
    """The likely numbers of discordant cases among n, and which splits of each the test rejects."""

    def __init__(self, n: int, discordance: float, alpha: float, threshold: float | None) -> None:
        reach = 10 * sqrt(n * discordance * (1 - discordance)) + 10
        first, last = max(0, int(n * discordance - reach)), min(n, ceil(n * discordance + reach))
        counts = np.arange(first, last + 1)
        limits = mcnemar_limits(counts, alpha) if threshold is None else _score_limits(counts, threshold)
        able = limits >= 0
        self._discordance = discordance
        self._counts, self._limits = counts[able], limits[able]
        self._chances = _binomial_chances(counts[able], n, discordance)

    def power(self, difference: float) -> float:
        """The chance that the split is rejected when the rates differ by so much."""
        from scipy.special import bdtr, bdtrc

        share = (self._discordance + difference) / (2 * self._discordance)
        k, m = self._limits, self._counts
        found = bdtr(k, m, share) + bdtrc(m - k - 1, m, share)
        return float((self._chances * found).sum())


def _binomial_chances(counts: Ints, n: int, share: float) -> Floats:
    """The probability of each count; scipy.stats, which has it too, takes longer to import than a whole comparison."""
    from scipy.special import gammaln, xlog1py, xlogy

    ways = gammaln(n + 1) - gammaln(counts + 1) - gammaln(n - counts + 1)
    chances: Floats = np.exp(ways + xlogy(counts, share) + xlog1py(n - counts, -share))
    return chances


def _score_limits(counts: Ints, threshold: float) -> Ints:
    """The largest minority count k at which (m − 2k)/√m exceeds the threshold; −1 where none does."""
    limits: Ints = np.ceil((counts - threshold * np.sqrt(counts)) / 2 - 1e-9).astype(np.int64) - 1
    return np.maximum(limits, -1)
