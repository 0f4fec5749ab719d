"""Two runs on the same cases: the difference, its interval, and whether it could be chance."""

from collections.abc import Iterator, Sequence
from itertools import islice
from math import ceil, erfc, sqrt
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from medthink.stats.bootstrap import bootstrap_mean
from medthink.stats.estimate import Floats, Ints, Measured, as_hits, as_pair, cluster_totals
from medthink.stats.intervals import normal_quantile


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


class SignFlipTest(msgspec.Struct, frozen=True, kw_only=True):
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


def mcnemar_limits(counts: Ints, alpha: float) -> Ints:
    """For numbers of discordant rows: the largest count on the smaller side that the exact test rejects; −1: none."""
    # Not scipy.stats, which takes longer to import than all the rest of a comparison.
    from scipy.special import bdtr, bdtrik

    # Of no rows there is no quantile, and no split is rejected.
    limits: Ints = np.nan_to_num(np.ceil(bdtrik(alpha / 2, counts, 0.5))).astype(np.int64)
    limits -= 2 * bdtr(limits, counts, 0.5) > alpha
    limits += 2 * bdtr(limits + 1, counts, 0.5) <= alpha
    return limits


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
) -> SignFlipTest:
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
        return SignFlipTest(p_value=p_value, clusters=len(sums), flips=len(totals), method="exact")
    extreme = _count_extreme(sizes, observed, flips=flips, rng=rng)
    return SignFlipTest(p_value=(1 + extreme) / (1 + flips), clusters=len(sums), flips=flips, method="random")


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


_HALVINGS = 52


def tango_ends(only_a: npt.ArrayLike, only_b: npt.ArrayLike, n: int, z: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Ends of Tango's (1998) interval for rate A − rate B, from the cases that A alone, or B alone, got right.

    The set of differences δ that the score test |z(δ)| ≤ z does not reject. At δ = 0 its statistic is McNemar's
    (b − c)/√(b + c), so it excludes 0 exactly when that exceeds z. Inside [−1, 1], and never of zero width.
    Takes arrays, one element a pair.
    """
    b, c, limit = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (only_a, only_b, z)))
    inner = np.stack([(b - c) / n] * 2)
    outer = np.stack([np.full_like(inner[0], -1.0), np.full_like(inner[0], 1.0)])
    side = np.array([1.0, -1.0]).reshape(2, *[1] * b.ndim)
    for _ in range(_HALVINGS):
        halfway = (outer + inner) / 2
        is_out = side * _score(halfway, b, c, n) > limit
        outer, inner = np.where(is_out, halfway, outer), np.where(is_out, inner, halfway)
    return outer[0], outer[1]


def _score(delta: Floats, b: Floats, c: Floats, n: int) -> Floats:
    """z(δ), decreasing in δ; q is the maximum-likelihood share of cases that B alone gets right, given δ."""
    linear = -b - c + (2 * n - b + c) * delta
    constant = -c * delta * (1 - delta)
    q = (np.sqrt(np.maximum(linear**2 - 8 * n * constant, 0.0)) - linear) / (4 * n)
    variance = n * (2 * q + delta * (1 - delta))
    distance = b - c - n * delta
    root = np.sqrt(np.maximum(variance, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        result: Floats = np.where(root > 0, distance / root, np.sign(distance) * np.inf)
    return np.where(distance == 0, 0.0, result)


FLIPS = 20_000
TOLERANCE = 1e-9
"""Statistics that differ by less are equal: they are discrete, and only rounding separates them."""

# Signs are drawn in blocks of about this many, to bound memory.
_BLOCK_SIGNS = 1 << 24


def pair_squares(scores: Floats) -> Floats:
    """Sums of squared differences between all rows (runs × runs); 0 where two rows are equal."""
    products = scores @ scores.T
    own = np.diag(products)
    squares = own[:, None] + own[None, :] - 2 * products
    # Equal rows leave rounding only; the square of a true difference is never this small beside its parts.
    squares[squares < 1e-11 * (own[:, None] + own[None, :])] = 0
    return np.maximum(squares, 0.0)


def pair_statistics(scores: Floats) -> Floats:
    """T/√m for all pairs of rows: sum of differences over the root of the sum of their squares (0 if equal)."""
    totals = scores.sum(axis=1)
    result: Floats = (totals[:, None] - totals[None, :]) * _inverse_roots(pair_squares(scores))
    return result


def flip_maxima(scores: Floats, parts: Sequence[Ints], *, rng: np.random.Generator, flips: int = FLIPS) -> Floats:
    """For each flip, the largest |T|/√m over all pairs of rows and all `parts` (each a choice of columns).

    `scores` are runs × cases. m does not change under flips, so nothing is studentised again.
    """
    runs, cases = scores.shape
    scales = [_inverse_roots(pair_squares(scores[:, part])) for part in parts]
    maxima = np.zeros(flips)
    block = max(1, _BLOCK_SIGNS // max(1, cases))
    for start in range(0, flips, block):
        rows = min(block, flips - start)
        heads = random_bits(rows, cases, rng)
        largest = maxima[start : start + rows]
        for part, scale in zip(parts, scales, strict=True):
            chosen = scores[:, part]
            totals = chosen.sum(axis=1)[:, None] - 2 * (chosen @ heads[:, part].T.astype(np.float64))
            for a in range(runs - 1):
                gaps = np.abs(totals[a + 1 :] - totals[a]) * scale[a, a + 1 :, None]
                np.maximum(largest, gaps.max(axis=0), out=largest)
    return maxima


def critical_value(maxima: Floats, level: float) -> float:
    """The value that a statistic must exceed: the ⌈level·(B + 1)⌉-th smallest maximum, or infinity."""
    place = ceil(level * (len(maxima) + 1) - 1e-9)
    return float(np.sort(maxima)[place - 1]) if place <= len(maxima) else float("inf")


def family_floor(scores: Floats, parts: Sequence[Ints], level: float) -> float:
    """What the threshold of a family never falls below: what each of its pairs would have to exceed alone.

    That is the normal quantile, and for pairs of right and wrong the z between the last split of their discordant cases
    that the exact McNemar test accepts and the first it rejects. Without it, runs that are much alike, or right nearly
    everywhere, would lower the quantile of the largest statistic and narrow intervals.
    """
    plain = scores[np.isin(scores, (0.0, 1.0)).all(axis=1)]
    upper = np.triu_indices(len(plain), k=1)
    counts = [np.rint(pair_squares(plain[:, part])[upper]).astype(np.int64) for part in parts]
    discordant = np.unique(np.concatenate(counts)) if counts else np.zeros(0, dtype=np.int64)
    discordant = discordant[discordant > 0]
    if not len(discordant):
        return normal_quantile(level)
    accepted = mcnemar_limits(discordant, 1 - level) + 1
    last = (discordant - 2 * accepted) / np.sqrt(discordant)
    return max(normal_quantile(level), float(last.max()))


def family_p(statistics: Floats, maxima: Floats, *, threshold: float, level: float) -> Floats:
    """Adjusted p-values of |statistics| that are at most 1 − level exactly where the threshold is exceeded.

    The share of flips, or the p-value of the pair alone by the normal distribution if that is larger.
    """
    alone = np.vectorize(lambda t: erfc(t / sqrt(2)), otypes=[np.float64])(np.abs(statistics))
    larger = np.maximum(adjusted_p(statistics, maxima), alone)
    # Next to the threshold the share of random flips may be on the wrong side of the exact test.
    least = np.where(np.abs(statistics) > threshold + TOLERANCE, 0.0, np.nextafter(1 - level, 1.0))
    result: Floats = np.maximum(larger, least)
    return result


def adjusted_p(statistics: Floats, maxima: Floats) -> Floats:
    """(1 + flips at least as extreme) / (1 + flips), for each |statistic|: adjusted for the whole family."""
    below = np.searchsorted(np.sort(maxima), np.abs(statistics) - TOLERANCE, side="left")
    result: Floats = (1 + len(maxima) - below) / (1 + len(maxima))
    return result


def _inverse_roots(squares: Floats) -> Floats:
    result: Floats = np.where(squares > 0, 1 / np.sqrt(np.where(squares > 0, squares, 1.0)), 0.0)
    return result


def random_bits(rows: int, columns: int, rng: np.random.Generator) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """Zeros and ones with equal chance (rows × columns)."""
    width = -(-columns // 8)
    drawn = np.frombuffer(rng.bytes(rows * width), dtype=np.uint8).reshape(rows, width)
    return np.unpackbits(drawn, axis=1, count=columns)
