"""The score interval of a paired difference of two rates, which agrees with McNemar's test."""

import numpy as np
import numpy.typing as npt

from medthink.stats.clusters import Floats

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
