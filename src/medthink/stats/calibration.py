"""Calibration: how well stated confidences match the share of right answers."""

import msgspec
import numpy as np
import numpy.typing as npt

from medthink.stats.estimate import Floats, Ints, Measured, Undefined, as_column, as_hits, canonical_order, check_level
from medthink.stats.intervals import mean_interval, rate_interval


class ReliabilityBin(msgspec.Struct, frozen=True, kw_only=True):
    """Rows whose confidence lies in (low, high]; `confidence` is their mean, None in an empty bin."""

    low: float
    high: float
    n: int
    confidence: float | None
    accuracy: Measured


class CalibrationError(msgspec.Struct, frozen=True, kw_only=True):
    """Expected calibration error, with the value that perfect calibration would give at these confidences.

    `if_calibrated` is its mean and `limit` its upper quantile there; `p_value` how often it is as large.
    """

    value: float
    if_calibrated: float
    limit: float
    p_value: float
    level: float


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """Brier score, mean confidence minus accuracy, calibration error, and the reliability table."""

    n: int
    brier: Measured
    overconfidence: Measured
    error: CalibrationError | Undefined
    bins: tuple[ReliabilityBin, ...]


def expected_calibration_error(confidences: npt.ArrayLike, correct: npt.ArrayLike, *, bins: int = 10) -> float | None:
    """Mean over rows of |accuracy − mean confidence| of their bin, in [0, 1]; None without rows.

    Bins of equal width, closed above, zero in the first (Naeini, Cooper and Hauskrecht 2015; Guo et al. 2017).
    Being a sum of absolute values it is biased upwards, more so for few rows and many bins: read it together with
    `CalibrationError.if_calibrated`. Rivals: bins of equal count, the L2 form, the maximum over bins.
    """
    stated, hits = _checked(confidences, correct)
    if not len(stated):
        return None
    order = np.lexsort([hits, stated])
    gaps = np.bincount(_bin_codes(stated, bins)[order], (hits - stated)[order], minlength=bins)
    return float(np.abs(gaps).sum() / len(stated))


def calibration(
    confidences: npt.ArrayLike,
    correct: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    clusters: npt.ArrayLike | None = None,
    bins: int = 10,
    level: float = 0.95,
    resamples: int = 2_000,
) -> Calibration:
    """Calibration of stated confidences in [0, 1] against outcomes 0/1.

    The calibration error has no valid bootstrap interval (resampling adds its bias again), so it is compared with its
    distribution under perfect calibration (consistency resampling, Bröcker and Smith 2007). Rows of one cluster share
    one draw there: the strongest dependence, hence conservative.
    """
    check_level(level)
    stated, hits = _checked(confidences, correct)
    return Calibration(
        n=len(stated),
        brier=mean_interval((stated - hits) ** 2, clusters=clusters, level=level),
        overconfidence=mean_interval(stated - hits, clusters=clusters, level=level),
        error=_error(stated, hits, clusters, rng=rng, bins=bins, level=level, resamples=resamples),
        bins=_reliability(stated, hits, clusters, bins=bins, level=level),
    )


def _checked(confidences: npt.ArrayLike, correct: npt.ArrayLike) -> tuple[Floats, Floats]:
    stated, hits = as_column(confidences, name="confidences"), as_hits(correct, name="correct")
    if len(stated) != len(hits):
        raise ValueError(f"{len(stated)} confidences for {len(hits)} outcomes")
    if ((stated < 0) | (stated > 1)).any():
        raise ValueError("confidences must lie in [0, 1]")
    return stated, hits


def _edges(bins: int) -> Floats:
    # Quotients, not multiples of a step: 0.7 must be the edge that a stated 0.7 equals.
    return np.arange(bins + 1) / bins


def _bin_codes(stated: Floats, bins: int) -> Ints:
    if bins < 1:
        raise ValueError("at least one bin is needed")
    return np.maximum(np.searchsorted(_edges(bins), stated, side="left") - 1, 0)


def _error(
    stated: Floats,
    hits: Floats,
    clusters: npt.ArrayLike | None,
    *,
    rng: np.random.Generator,
    bins: int,
    level: float,
    resamples: int,
) -> CalibrationError | Undefined:
    value = expected_calibration_error(stated, hits, bins=bins)
    if value is None:
        return Undefined(reason="no rows", n=0)
    order, codes = canonical_order(np.column_stack([stated, hits]), clusters)
    ordered = stated[order]
    members = np.eye(bins)[_bin_codes(ordered, bins)]
    expected = ordered @ members
    draws = np.empty(resamples)
    for k in range(resamples):
        outcomes = (rng.random(codes[-1] + 1)[codes] < ordered).astype(np.float64)
        draws[k] = np.abs(outcomes @ members - expected).sum() / len(ordered)
    return CalibrationError(
        value=value,
        if_calibrated=float(draws.mean()),
        limit=float(np.quantile(draws, level)),
        p_value=float((1 + (draws >= value * (1 - 1e-9)).sum()) / (1 + resamples)),
        level=level,
    )


def _reliability(
    stated: Floats, hits: Floats, clusters: npt.ArrayLike | None, *, bins: int, level: float
) -> tuple[ReliabilityBin, ...]:
    codes, edges = _bin_codes(stated, bins), _edges(bins)
    labels = None if clusters is None else np.asarray(clusters)
    rows = []
    for k in range(bins):
        inside = codes == k
        rows.append(
            ReliabilityBin(
                low=float(edges[k]),
                high=float(edges[k + 1]),
                n=int(inside.sum()),
                confidence=float(np.sort(stated[inside]).mean()) if inside.any() else None,
                accuracy=rate_interval(hits[inside], clusters=None if labels is None else labels[inside], level=level),
            )
        )
    return tuple(rows)
