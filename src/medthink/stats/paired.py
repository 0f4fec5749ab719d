"""Two runs on the same cases: the difference, its interval, and whether it could be chance."""

from collections.abc import Iterator
from itertools import islice, takewhile
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from medthink.stats.bootstrap import bootstrap_mean
from medthink.stats.clusters import Floats, as_hits, as_pair, cluster_totals
from medthink.stats.estimate import Measured


class McNemar(msgspec.Struct, frozen=True, kw_only=True):
    """Exact McNemar test: rows won by `a` alone, by `b` alone, and the two-sided p-value."""

    only_a: int
    only_b: int
    n: int
    p_value: float

    @property
    def discordance(self) -> float:
        """Share of rows on which exactly one of the two is right."""
        return (self.only_a + self.only_b) / self.n if self.n else 0.0


class SignFlip(msgspec.Struct, frozen=True, kw_only=True):
    """Sign-flip test: two-sided p-value, over all flips (`exact`) or a random draw of them."""

    p_value: float
    clusters: int
    flips: int
    method: Literal["exact", "random"]


def mcnemar_p(only_a: int, only_b: int) -> float:
    """Two-sided exact p-value for a split of the discordant rows, 1 if there are none."""
    trials = only_a + only_b
    tail = next(islice(_binomial_tails(trials), min(only_a, only_b), None))
    return min(1.0, 2 * tail / (1 << trials))


def mcnemar_limit(trials: int, alpha: float) -> int:
    """The largest count on the smaller side at which the exact test rejects, given the discordant rows; −1: none."""
    above, below = float(alpha).as_integer_ratio()
    rejected = takewhile(lambda tail: 2 * tail * below <= above << trials, _binomial_tails(trials))
    return sum(1 for _ in rejected) - 1


def _binomial_tails(trials: int) -> Iterator[int]:
    """The number of ways to choose at most k of `trials`, for k = 0, 1, …"""
    ways = total = 1
    for k in range(trials + 1):
        yield total
        ways = ways * (trials - k) // (k + 1)
        total += ways


def mcnemar(a: npt.ArrayLike, b: npt.ArrayLike) -> McNemar:
    """Exact McNemar test that two sets of 0/1 outcomes on the same independent rows have the same rate.

    Among rows where just one is right, each side is equally likely under the null: a binomial test with
    p = 1/2 on the discordant rows (McNemar 1947). Twice the smaller tail, at most 1. Assumes independent
    rows; for clustered rows use `sign_flip_test`. Rivals: the χ² and mid-p forms, sharper but not exact.
    """
    first, second = as_hits(a, name="a"), as_hits(b, name="b")
    as_pair(first, second)
    only_a, only_b = int((first > second).sum()), int((second > first).sum())
    return McNemar(only_a=only_a, only_b=only_b, n=len(first), p_value=mcnemar_p(only_a, only_b))


def paired_difference(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    clusters: npt.ArrayLike | None = None,
    level: float = 0.95,
    resamples: int = 10_000,
) -> Measured:
    """Mean of a − b with a bootstrap interval that draws whole clusters, both runs together.

    Pairing removes what makes a case hard for both, so it is sharper than comparing two intervals.
    """
    first, second = as_pair(a, b)
    return bootstrap_mean(first - second, rng=rng, clusters=clusters, level=level, resamples=resamples)


def sign_flip_test(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    clusters: npt.ArrayLike | None = None,
    flips: int = 10_000,
) -> SignFlip:
    """Test that a and b differ only by chance, by exchanging them within whole clusters.

    Under the null each cluster's summed difference is as likely to have the other sign. p is the share
    of sign patterns whose total is at least as far from zero; all 2^G patterns if they are no more than
    `flips`, else `flips` random ones, counting the observed one too so that p is never 0 and the test
    never exceeds its level (Phipson and Smyth 2010).
    """
    first, second = as_pair(a, b)
    sums = cluster_totals((first - second)[:, None], clusters).sums[:, 0]
    # A sign is exchangeable, so sizes alone matter: sorting them makes p the same for (a, b) and (b, a).
    sizes = np.sort(np.abs(sums[sums != 0]))
    observed = abs(float(sums.sum())) * (1 - 1e-9)
    if 2 ** len(sizes) <= flips:
        totals = _all_flips(sizes)
        p_value = float((np.abs(totals) >= observed).mean())
        return SignFlip(p_value=p_value, clusters=len(sums), flips=len(totals), method="exact")
    extreme = _count_extreme(sizes, observed, flips=flips, rng=rng)
    return SignFlip(p_value=(1 + extreme) / (1 + flips), clusters=len(sums), flips=flips, method="random")


def _all_flips(sizes: Floats) -> Floats:
    totals = np.zeros(1)
    for size in sizes:
        totals = np.concatenate([totals + size, totals - size])
    return totals


def _count_extreme(sizes: Floats, observed: float, *, flips: int, rng: np.random.Generator) -> int:
    extreme, block = 0, max(1, (1 << 20) // len(sizes))
    for start in range(0, flips, block):
        rows = min(block, flips - start)
        heads = rng.integers(0, 2, size=(rows, len(sizes)), dtype=np.int8)
        totals = 2 * (heads @ sizes) - sizes.sum()
        extreme += int((np.abs(totals) >= observed).sum())
    return extreme
