"""Sign flips shared by many comparisons: the null distribution of their largest statistic.

Exchanging two runs on a case flips the sign of their difference there. One set of random signs, the same for all runs,
keeps the dependence between all comparisons, so the largest statistic over all of them has the right distribution.
"""

from collections.abc import Sequence
from math import ceil

import numpy as np

from medthink.stats.clusters import Floats, Ints

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
