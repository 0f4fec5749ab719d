"""The true rate behind an imperfect judge: its reported rate, corrected for its known errors."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from medthink.stats.bootstrap import ClusterReplicates
from medthink.stats.estimate import (
    Estimate,
    Floats,
    Measured,
    Undefined,
    as_column,
    as_hits,
    check_level,
    cluster_codes,
    cluster_totals,
    is_flat,
)
from medthink.stats.intervals import student_p_value, student_quantile, wilson_ends

LEAST_VALIDATED = 5
"""Fewer rows known to be wrong, or known to be right, say too little of a judge's errors to correct its rate."""

TOO_FEW = f"fewer than {LEAST_VALIDATED} rows known to be wrong, or known to be right"
NO_INFORMATION = "the validated rows lack one of the classes, or the judge is no better than chance on them"


def corrected_clustered_rate(
    judged: npt.ArrayLike,
    truth: Sequence[bool | None],
    *,
    rng: np.random.Generator,
    clusters: npt.ArrayLike | None = None,
    level: float = 0.95,
    resamples: int = 10_000,
) -> Measured:
    """The Rogan–Gladen rate of judged 0/1 rows, some of which have a known truth (None: not validated).

    Clusters are drawn whole, judged and validated rows together, so that dependence within a case and
    the overlap of both sets are in the interval. Clipped to [0, 1]. Undefined with fewer than five validated rows of
    either class.
    """
    reported = as_hits(judged, name="judged")
    known = np.array([value is not None for value in truth], dtype=bool)
    actual = as_hits([value or 0 for value in truth], name="truth")
    if known.shape != reported.shape:
        raise ValueError(f"{len(reported)} judged rows but {len(known)} truth values; they must match row by row")
    positive, negative = known & (actual == 1), known & (actual == 0)
    if min(positive.sum(), negative.sum()) < LEAST_VALIDATED:
        return Undefined(reason=TOO_FEW, n=len(reported))
    columns = [reported, np.ones(len(reported)), positive * reported, positive, negative * (1 - reported), negative]
    totals = cluster_totals(np.column_stack(columns), clusters)
    drawn = ClusterReplicates(totals.sums, len(reported), rng=rng, level=level, resamples=resamples)
    return drawn.measure(_rogan_gladen, NO_INFORMATION)


def _rogan_gladen(sums: Floats) -> Floats:
    hits, n, true_positives, positives, true_negatives, negatives = np.moveaxis(sums, -1, 0)
    sensitivity = true_positives / np.maximum(positives, 1)
    specificity = true_negatives / np.maximum(negatives, 1)
    youden = sensitivity + specificity - 1
    defined = (positives > 0) & (negatives > 0) & (youden > 0)
    rate = (hits / np.maximum(n, 1) + specificity - 1) / np.where(defined, youden, 1.0)
    return np.where(defined, np.clip(rate, 0.0, 1.0), np.nan)


PICKED = 0.01
"""Below this p-value the cases read are treated as selected, not drawn at random."""


class PoweredRate(msgspec.Struct, frozen=True, kw_only=True):
    """The rate readers would give on all cases, estimated from readers and judge together, and from each alone.

    `weight` is how much of the judge is used (0: readers alone, 1: all of it). `read` and `unread` count cases.
    `p_random` is small if the judge's rates differ between the cases read and the others, so that they were probably
    not drawn at random. The rate depends on that, and is withheld below 1 %.
    """

    together: Measured
    readers: Measured
    judge: float | None
    weight: float
    read: int
    unread: int
    p_random: float | None = None


class _Part(NamedTuple):
    """Rows of one part of the cases: their number, mean, and each case's residual sum."""

    rows: int
    mean: float
    residuals: Floats

    @property
    def variance(self) -> float:
        return _covariance(self, self)

    @property
    def is_flat(self) -> bool:
        """Whether all cases have the same rate."""
        return is_flat(self.residuals, scale=self.rows)


def powered_rate(
    judged: npt.ArrayLike, truth: npt.ArrayLike, *, clusters: npt.ArrayLike, level: float = 0.95
) -> PoweredRate:
    """PPI++ (Angelopoulos, Duchi and Zrnic 2023) for a rate, with rows in cases.

    `judged` has the judge's label of every row in [0, 1], `truth` the readers' (NaN: not read), `clusters` the row's
    case. θ = Ȳ + λ(F̄_unread − F̄_read), λ chosen to minimise the standard error and held within 0 and 1; where the
    interval would be wider than the readers' alone, the judge is left out. The standard error treats a case's rows as
    one and counts two more cases on which readers and judge differ: a judge that was right on the few rows read is not
    perfect. The interval is Wilson's at the size at which a rate would have this error, with Student's quantile, so it
    lives in [0, 1]; θ ± t·se begins below 0 and misses too often where the rate is a few per cent. Unbiased whatever
    the judge's faults, **if the cases read were drawn at random**; hard cases first would bias it. In a case that was
    read, rows without a reader's label are left out. Rival: `corrected_clustered_rate`, for a judge validated
    elsewhere.
    """
    check_level(level)
    label, actual = _as_shares(judged, name="judged"), np.asarray(truth, dtype=np.float64)
    if actual.shape != label.shape:
        raise ValueError(f"{len(label)} rows are judged and {len(actual)} have a readers' label or NaN")
    codes = cluster_codes(clusters, len(label))
    known = ~np.isnan(actual)
    _as_shares(actual[known], name="truth")
    is_read = np.isin(codes, codes[known])
    theirs, same = _part(actual[known], codes[known]), _part(label[known], codes[known])
    rest = _part(label[~is_read], codes[~is_read])
    result = PoweredRate(
        together=(nothing := Undefined(reason="fewer than two cases were read", n=int(known.sum()))),
        readers=nothing,
        judge=_mean(label),
        weight=0.0,
        read=len(theirs.residuals),
        unread=len(rest.residuals),
    )
    if result.read < 2:
        return result
    weight, p_random = _weight(theirs, same, rest), _p_random(same, rest)
    t = student_quantile(level, result.read - 1)
    readers = _together(theirs, same, rest, 0.0, t=t, level=level)
    combined = _together(theirs, same, rest, weight, t=t, level=level)
    if combined.high - combined.low > readers.high - readers.low:
        combined, weight = readers, 0.0
    together: Measured = combined
    if p_random is not None and p_random < PICKED:
        together = Undefined(reason=f"the cases read do not look randomly drawn (p = {p_random:.2g})", n=theirs.rows)
    return msgspec.structs.replace(result, together=together, readers=readers, weight=weight, p_random=p_random)


def _together(theirs: _Part, same: _Part, rest: _Part, weight: float, *, t: float, level: float) -> Estimate:
    shift = weight * (rest.mean - same.mean) if weight else 0.0
    value = min(1.0, max(0.0, theirs.mean + shift))
    rows, cases = theirs.rows + (rest.rows if weight else 0), len(theirs.residuals)
    low, high = wilson_ends(value, _effective_rows(theirs, same, rest, weight, value=value), t)
    return Estimate(
        value=value,
        low=low,
        high=high,
        level=level,
        n=rows,
        clusters=cases + (len(rest.residuals) if weight else 0),
        method="prediction-powered (PPI++), clustered by case" if weight else "readers alone, clustered by case",
    )


def _effective_rows(theirs: _Part, same: _Part, rest: _Part, weight: float, *, value: float) -> float:
    """The independent rows whose rate would have the standard error of this one, with two more cases that differ."""
    left = _Part(theirs.rows, 0.0, theirs.residuals - weight * same.residuals)
    cases, rows = len(theirs.residuals), theirs.rows
    if not weight and theirs.is_flat:
        return cases  # readers gave every case the same rate: each case counts as one row
    squares = left.residuals**2
    # The square of a typical difference, where there is any; at least one row's.
    typical = float((squares**2).sum() / squares.sum()) if squares.any() else 0.0
    two_more = max(1.0, 2 * typical) * cases / (cases - 1) / rows**2
    error_squared = left.variance + two_more + (weight**2 * rest.variance if weight else 0.0)
    # A rate of 0 or 1 is taken as half a row away from it.
    inside = min(1 - 0.5 / rows, max(0.5 / rows, value))
    return min(rows + (rest.rows if weight else 0), inside * (1 - inside) / error_squared)


def _as_shares(values: npt.ArrayLike, *, name: str) -> Floats:
    shares = as_column(values, name=name)
    if len(shares) and (shares.min() < 0 or shares.max() > 1):
        raise ValueError(f"{name} must lie between 0 and 1")
    return shares


def _weight(theirs: _Part, same: _Part, rest: _Part) -> float:
    if len(rest.residuals) < 2 or (same.is_flat and rest.is_flat):
        return 0.0
    return min(1.0, max(0.0, _covariance(theirs, same) / (same.variance + rest.variance)))


def _p_random(same: _Part, rest: _Part) -> float | None:
    """Two-sided test of whether the judge's mean on the cases read differs from its mean on the others."""
    if len(rest.residuals) < 2 or (same.is_flat and rest.is_flat):
        return None
    error = (same.variance + rest.variance) ** 0.5
    return student_p_value((same.mean - rest.mean) / error, len(same.residuals) - 1)


def _part(values: Floats, codes: npt.NDArray[np.int64]) -> _Part:
    if not len(values):
        return _Part(0, 0.0, np.zeros(0))
    cases = np.unique(codes, return_inverse=True)[1]
    mean = float(np.sort(values).mean())
    sums = np.bincount(cases, values) - mean * np.bincount(cases)
    return _Part(len(values), mean, sums)


def _covariance(a: _Part, b: _Part) -> float:
    """Of two row means over the same cases: g/(g − 1) · Σ r_a r_b / rows²."""
    groups = len(a.residuals)
    return float((a.residuals * b.residuals).sum()) * groups / (groups - 1) / a.rows**2


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None
