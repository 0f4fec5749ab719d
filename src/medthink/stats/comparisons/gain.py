"""The gain of a run over the strongest of several rivals, where the same data choose the strongest."""

from math import sqrt
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from medthink.stats.comparisons.paired import random_bits, tango_ends
from medthink.stats.estimate import (
    Estimate,
    Floats,
    Measured,
    Undefined,
    as_column,
    as_floats,
    check_level,
    is_flat,
)
from medthink.stats.intervals import student_quantile

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


_FLIPS = 5_000


class GainOverRivals(msgspec.Struct, frozen=True, kw_only=True):
    """The gain over the strongest rival, in points and as a share of the gain that was possible over that rival.

    `strongest` is the row of the rival with the highest mean; `rivals` counts all that were tried.
    """

    gain: Measured
    normalised: Measured
    strongest: int
    rivals: int


class _Ends(NamedTuple):
    """For each rival: the low end of its interval, and the high end, widened for the choice among rivals."""

    low: Floats
    high: Floats


def gain_over_rivals(
    right: npt.ArrayLike, rivals: npt.ArrayLike, *, rng: np.random.Generator, level: float = 0.95
) -> GainOverRivals:
    """Accuracy minus that of the strongest rival on the same cases: min over k of (mean(x) − mean(r_k)).

    `right` has a value in [0, 1] for each case, `rivals` one row of such values for each rival. Choosing the
    strongest on the same cases makes the estimate too small, never too large, and an interval that takes it as given
    misses at its high end. So the low end is min_k (δ_k − t·se_k), which needs no correction (a minimum is low only
    if one of its parts is); the high end is min_k (δ_k + c·se_k), c being the quantile of the largest of the rivals'
    flipped, centred statistics, and not below t. With one rival there is no choice, so c = t. For right and wrong the
    parts are Tango's intervals at z = t and c.

    Normalised: g = (x − r)/(1 − r) = 1 − (1 − x)/(1 − r), with the same rule for the strongest. For right and wrong it
    is the score interval of a paired ratio; for shares over samples, the t statistic of (1 − g)(1 − r_i) − (1 − x_i)
    inverted in g (Fieller). Undefined where the rival leaves nothing to gain.

    Count every rival that was tried, shown or not; rivals with the same answers count once.
    """
    check_level(level)
    x, table = as_column(right, name="right"), as_floats(rivals, name="rivals")
    if table.ndim != 2 or table.shape[1] != len(x) or not len(table):
        raise ValueError(
            f"rivals of shape {table.shape} need one row per rival and one column for each of the {len(x)} cases"
        )
    strongest = int(np.argmax(table.mean(axis=1)))
    distinct = np.unique(table, axis=0)
    result = GainOverRivals(
        gain=Undefined(reason="one case shows no spread", n=len(x), value=float((x - table[strongest]).mean())),
        normalised=Undefined(reason="one case shows no spread", n=len(x)),
        strongest=strongest,
        rivals=len(distinct),
    )
    if len(x) < 2:
        return result
    t = student_quantile(level, len(x) - 1)
    wide = max(t, _flipped_quantile(x - distinct, (1 + level) / 2, rng)) if len(distinct) > 1 else t
    return msgspec.structs.replace(
        result,
        gain=_gain(x, distinct, t, wide, level=level),
        normalised=_normalised(x, distinct, t, wide, level=level),
    )


def _gain(x: Floats, rivals: Floats, t: float, wide: float, *, level: float) -> Measured:
    gaps = x - rivals
    value = float(gaps.mean(axis=1).min())
    if np.isin(gaps, (-1.0, 0.0, 1.0)).all():
        won, lost = (gaps > 0).sum(axis=1), (gaps < 0).sum(axis=1)
        lows, highs = tango_ends(won, lost, len(x), [[t], [wide]])
        ends = _Ends(lows[0], highs[1])
    else:
        errors = gaps.std(axis=1, ddof=1) / sqrt(len(x))
        ends = _Ends(gaps.mean(axis=1) - t * errors, gaps.mean(axis=1) + wide * errors)
    return _estimate(value, ends, n=len(x), level=level, method=f"paired, over the strongest of {len(rivals)} rivals")


def _normalised(x: Floats, rivals: Floats, t: float, wide: float, *, level: float) -> Measured:
    missed = 1 - rivals.mean(axis=1)
    if (missed <= 0).any():
        return Undefined(reason="a rival is right on every case and leaves nothing to gain", n=len(x))
    value = float((1 - (1 - x.mean()) / missed).min())
    is_plain = bool(np.isin([x, *rivals], (0.0, 1.0)).all())
    ends = (_ratio_ends if is_plain else _fieller_ends)(1 - x, 1 - rivals, t, wide)
    if not np.isfinite(ends).all():
        return Undefined(reason="a rival leaves too little to gain for an interval", n=len(x), value=value)
    method = f"{'paired ratio' if is_plain else 'Fieller'}, over the strongest of {len(rivals)} rivals"
    return _estimate(value, ends, n=len(x), level=level, method=method)


def _ratio_ends(own: Floats, others: Floats, t: float, wide: float) -> _Ends:
    """Ends for g = 1 − mean(own)/mean(other) of wrong and right, for each other."""
    counts = ((own * others).sum(axis=1), (own * (1 - others)).sum(axis=1), ((1 - own) * others).sum(axis=1))
    lows, highs = ratio_ends(*counts, len(own), [[t], [wide]])
    return _Ends(1 - highs[0], 1 - lows[1])


def _fieller_ends(own: Floats, others: Floats, t: float, wide: float) -> _Ends:
    lows = [_fieller(own, other, t)[0] for other in others]
    return _Ends(np.array(lows), np.array([_fieller(own, other, wide)[1] for other in others]))


def _fieller(own: Floats, other: Floats, z: float) -> tuple[float, float]:
    """Ends for g = 1 − mean(own)/mean(other); infinite where the denominator may be zero."""
    (v_own, v_both), (_, v_other) = np.cov(own, other) / len(own)
    a = other.mean() ** 2 - z**2 * v_other
    b = own.mean() * other.mean() - z**2 * v_both
    c = own.mean() ** 2 - z**2 * v_own
    if a <= 0:
        return -np.inf, np.inf
    root = sqrt(max(0.0, b * b - a * c))
    return float(1 - (b + root) / a), float(1 - (b - root) / a)


def _flipped_quantile(gaps: Floats, share: float, rng: np.random.Generator) -> float:
    """The quantile of the largest of the rivals' statistics when the signs of their centred differences are random."""
    centred = gaps - gaps.mean(axis=1, keepdims=True)
    roots = np.sqrt((centred**2).sum(axis=1) * len(centred[0]) / (len(centred[0]) - 1))
    varied = np.array([not is_flat(row) for row in centred])
    scaled = centred[varied] / roots[varied][:, None]
    if not len(scaled):
        return 0.0
    # A draw assigns signs in the order given, so cases are put in a canonical order first.
    scaled = scaled[:, np.lexsort(scaled)]
    totals = scaled.sum(axis=1) - 2 * (random_bits(_FLIPS, scaled.shape[1], rng).astype(np.float32) @ scaled.T)
    return float(np.quantile(totals.max(axis=1), share))


def _estimate(value: float, ends: _Ends, *, n: int, level: float, method: str) -> Measured:
    low, high = float(ends.low.min()), float(ends.high.min())
    if is_flat(np.array([low, high])):
        return Undefined(reason="every case has the same gain", n=n, value=value)
    return Estimate(
        value=value, low=min(low, value), high=max(high, value), level=level, n=n, clusters=n, method=method
    )
