"""Paired differences against one common threshold, with their intervals, overall and in parts of the cases."""

from collections.abc import Sequence
from math import sqrt

import msgspec
import numpy as np
import numpy.typing as npt

from medthink.stats.comparisons.paired import (
    FLIPS,
    TOLERANCE,
    critical_value,
    family_floor,
    family_p,
    flip_maxima,
    pair_statistics,
    tango_ends,
)
from medthink.stats.estimate import (
    Estimate,
    Floats,
    Ints,
    Measured,
    Undefined,
    as_column,
    as_floats,
    check_level,
    is_flat,
)

FEW_CASES = 150
"""Below this many cases the simultaneous intervals are approximate; the verdicts are not affected."""


class PartDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Run `a` minus run `b` (rows of the scores) on the cases of one `part`; adjusted for all pairs and parts."""

    a: int
    b: int
    part: int
    difference: Measured
    p_value: float
    is_different: bool


def compare_in_parts(
    scores: npt.ArrayLike,
    parts: Sequence[Sequence[int]],
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    flips: int = FLIPS,
) -> list[PartDifference]:
    """Compare all pairs of runs (runs × cases) on each part of the cases (their columns), as one family.

    The largest statistic is taken over all pairs *and* all parts, so any false statement is made in at most 1 − level
    of data sets, however the parts overlap. See `rank_runs` for the statistic.
    """
    check_level(level)
    table = as_floats(scores, name="scores")
    columns: list[Ints] = [np.asarray(part, dtype=np.int64) for part in parts]
    if not columns:
        return []
    maxima = flip_maxima(table, columns, rng=rng, flips=flips)
    threshold = max(critical_value(maxima, level), family_floor(table, columns, level))
    first, second = np.triu_indices(len(table), k=1)
    found = []
    for number, part in enumerate(columns):
        chosen = table[:, part]
        statistics = np.abs(pair_statistics(chosen)[first, second])
        differences = difference_intervals(chosen[first] - chosen[second], threshold, level=level)
        p_values = family_p(statistics, maxima, threshold=threshold, level=level)
        values = zip(first.tolist(), second.tolist(), differences, p_values.tolist(), strict=True)
        found += [
            PartDifference(
                a=a, b=b, part=number, difference=gap, p_value=p, is_different=bool(t > threshold + TOLERANCE)
            )
            for (a, b, gap, p), t in zip(values, statistics, strict=True)
        ]
    return found


def difference_intervals(gaps: Floats, threshold: float, *, level: float) -> list[Measured]:
    """Intervals for the mean of each row of case-wise differences that exclude 0 exactly when t exceeds the threshold.

    Tango's with z = threshold for a row of −1, 0 and 1, the inverted t otherwise, whatever the other rows are.
    """
    n = gaps.shape[1]
    # A statistic that equals the threshold does not exceed it: its interval reaches 0.
    z = threshold + TOLERANCE
    if not np.isfinite(z):
        return [Undefined(reason="too few flips", n=n, value=float(row.mean())) for row in gaps]
    is_plain = [bool(np.isin(row, (-1.0, 0.0, 1.0)).all()) for row in gaps]
    won, lost = (gaps > 0).sum(axis=1), (gaps < 0).sum(axis=1)
    lows, highs = tango_ends(won, lost, n, z)
    rows = zip(gaps, is_plain, lows.tolist(), highs.tolist(), strict=True)
    return [
        _interval(float(row.mean()), low, high, n=n, level=level, method="Tango score interval")
        if plain
        else _inverted_t(row, z, level=level)
        for row, plain, low, high in rows
    ]


def _inverted_t(gaps: Floats, threshold: float, *, level: float) -> Measured:
    """The differences δ with |Σ(d − δ)|/√Σ(d − δ)² ≤ threshold: d̄ ± c·√((G − 1)/(G − c²))·se."""
    n, value = len(gaps), float(gaps.mean())
    if n <= threshold**2:
        return Undefined(reason="too few cases for this many comparisons", n=n, value=value)
    if is_flat(gaps):
        return Undefined(reason="the two runs differ by the same amount on every case", n=n, value=value)
    half = threshold * sqrt((n - 1) / (n - threshold**2)) * float(gaps.std(ddof=1)) / sqrt(n)
    return _interval(value, value - half, value + half, n=n, level=level, method="inverted paired t")


def _interval(value: float, low: float, high: float, *, n: int, level: float, method: str) -> Estimate:
    about = ", approximate for this few cases" if n < FEW_CASES else ""
    return Estimate(
        value=value,
        low=low,
        high=high,
        level=level,
        n=n,
        clusters=n,
        method=f"{method}, simultaneous over all pairs{about}",
    )


def holm(p_values: npt.ArrayLike) -> Floats:
    """Holm's step-down adjusted p-values, in the order given.

    An adjusted value below α may be called significant, and the chance of any false call in the family stays below α
    however the tests depend on each other (Holm 1979). Range [p, 1]. Rivals: Bonferroni (never more powerful),
    Benjamini–Hochberg (bounds the share of false calls instead).
    """
    values = as_column(p_values, name="p_values")
    if ((values < 0) | (values > 1)).any():
        raise ValueError("p-values must lie in [0, 1]")
    order = np.argsort(values, kind="stable")
    steps = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, steps)
    return adjusted
