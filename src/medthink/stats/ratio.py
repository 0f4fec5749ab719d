"""The score interval of a ratio of two rates on the same cases."""

import numpy as np
import numpy.typing as npt

from medthink.stats.clusters import Floats

_HALVINGS = 44
_FARTHEST = 40.0
"""The search stops at ratios of e^40."""


def ratio_ends(
    both: npt.ArrayLike, only_a: npt.ArrayLike, only_b: npt.ArrayLike, n: int, z: npt.ArrayLike
) -> tuple[Floats, Floats]:
    """Ends of the interval for rate A / rate B from counts of cases: both, A alone, B alone, of n.

    The set of ratios θ that the score test of Nam and Blackwelder (2002), with the variance under the ratio tried, does
    not reject (Tang, Tang and Chan 2003). It agrees with McNemar's test at θ = 1, is 0 at its low end where A has no
    case, and needs a case of B. Takes arrays, one element a pair. Rival: Fieller's, whose variance is the one observed;
    it misses too often on the side of the rate that is near 0.
    """
    counts = [np.asarray(x, dtype=np.float64) for x in (both, only_a, only_b, z)]
    shared, a, b, limit = np.broadcast_arrays(*counts)
    if not (shared + b).all():
        raise ValueError("rate B is 0, so there is no ratio")
    with np.errstate(divide="ignore"):
        middle = np.maximum(np.log((shared + a) / (shared + b)), -_FARTHEST)
    inner = np.stack([middle, middle])
    outer = np.stack([np.full_like(middle, -_FARTHEST), np.full_like(middle, _FARTHEST)])
    side = np.array([1.0, -1.0]).reshape(2, *[1] * middle.ndim)
    for _ in range(_HALVINGS):
        halfway = (outer + inner) / 2
        is_out = side * _score(np.exp(halfway), shared, a, b, n) > limit
        outer, inner = np.where(is_out, halfway, outer), np.where(is_out, inner, halfway)
    return np.where(shared + a > 0, np.exp(outer[0]), 0.0), np.exp(outer[1])


def _score(ratio: Floats, both: Floats, a: Floats, b: Floats, n: int) -> Floats:
    """z(θ) = (A − θB)/√(nθd), decreasing in θ; d is the most likely share of discordant cases, given θ."""
    weight = _multiplier(ratio, both, a, b)
    p_both = both / (n * np.maximum(1 + weight * (1 - ratio), 1e-300))
    p_a, p_b = _share(a, 1 + weight, n), _share(b, 1 - weight * ratio, n)
    # An empty cell may need some of the probability mass; then it takes what the ratio requires.
    missing = p_both * (1 - ratio) + p_a - ratio * p_b
    p_a = np.where((a == 0) & (missing < 0), -missing, p_a)
    p_b = np.where((b == 0) & (missing > 0), missing / ratio, p_b)
    distance = both + a - ratio * (both + b)
    variance = n * ratio * (p_a + p_b)
    with np.errstate(divide="ignore", invalid="ignore"):
        result: Floats = np.where(variance > 0, distance / np.sqrt(variance), np.sign(distance) * np.inf)
    return np.where(distance == 0, 0.0, result)


def _multiplier(ratio: Floats, both: Floats, a: Floats, b: Floats) -> Floats:
    """λ of the likelihood under p_both(1 − θ) + p_a − θp_b = 0: each share is its count/n(1 + λ·its factor)."""
    square = -(1 - ratio) * ratio * (both + a + b)
    linear = both * (1 - ratio) ** 2 + a * (1 - 2 * ratio) - ratio * b * (2 - ratio)
    constant = both * (1 - ratio) + a - ratio * b
    root = np.sqrt(np.maximum(linear**2 - 4 * square * constant, 0.0))
    below = root - linear
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(below != 0, 2 * constant / below, 0.0)
    return np.clip(found, -1.0, 1 / ratio)


def _share(count: Floats, factor: Floats, n: int) -> Floats:
    return np.where(count > 0, count / (n * np.maximum(factor, 1e-300)), 0.0)
