"""Repeated samples per case: how much uncertainty comes from the cases, and how much from the model's randomness."""

import msgspec
import numpy as np
import numpy.typing as npt

from medthink.stats.estimate import (
    Estimate,
    Floats,
    Measured,
    Undefined,
    as_column,
    check_level,
    cluster_totals,
    is_flat,
)
from medthink.stats.intervals import student_quantile


class Repeats(msgspec.Struct, frozen=True, kw_only=True):
    """Mean over cases of the mean over samples, with its variance components.

    `within_variance` is that of samples of one case, `between_variance` that of the cases' true means.
    `error_total` is the standard error when other cases might have been drawn; `error_sampling` the part
    that asking again on the same cases would change; `rerun_sd` the spread of the mean of whole runs with
    one sample per case. None if the data do not determine it.
    """

    mean: Measured
    cases: int
    samples: int
    within_variance: float | None
    between_variance: float | None
    error_total: float | None
    error_sampling: float | None
    rerun_sd: float | None


def repeated_mean(values: npt.ArrayLike, *, cases: npt.ArrayLike, level: float = 0.95) -> Repeats:
    """Mean of case means over repeated samples, with standard errors that account for the repetition.

    Cases weigh equally however many samples each has. The variance of case means s² already holds both
    parts, σ²_between + σ²_within·mean(1/k), so s/√G is the whole standard error; treating all G·k rows as
    independent would make it too small by up to √k. σ²_within pools the unbiased variances of cases with
    two or more samples; σ²_between is the rest, not below zero (one-way random effects; Miller 2024).
    """
    check_level(level)
    rows = as_column(values)
    if not len(rows):
        return _bare(Undefined(reason="no rows", n=0), cases=0)
    totals = cluster_totals(rows[:, None], cases)
    means, sizes = totals.sums[:, 0] / totals.sizes, totals.sizes
    mean, groups = float(means.mean()), len(means)
    within = _within_variance(rows, cases)
    if groups < 2:
        return _bare(Undefined(reason="one case shows no spread", n=len(rows), value=mean), cases=groups)
    variance, share = float(means.var(ddof=1)), float((1 / sizes).mean())
    error = float(np.sqrt(variance / groups))
    return Repeats(
        mean=_student(means, error, n=len(rows), level=level),
        cases=groups,
        samples=len(rows),
        within_variance=within,
        between_variance=None if within is None else max(0.0, variance - within * share),
        error_total=error,
        error_sampling=None if within is None else float(np.sqrt(within * share / groups)),
        rerun_sd=None if within is None else float(np.sqrt(within / groups)),
    )


def _bare(mean: Undefined, *, cases: int) -> Repeats:
    return Repeats(
        mean=mean,
        cases=cases,
        samples=mean.n,
        within_variance=None,
        between_variance=None,
        error_total=None,
        error_sampling=None,
        rerun_sd=None,
    )


def _student(means: Floats, error: float, *, n: int, level: float) -> Measured:
    mean, groups = float(means.mean()), len(means)
    if is_flat(means):
        return Undefined(reason="every case has the same mean", n=n, value=mean)
    half = student_quantile(level, groups - 1) * error
    return Estimate(
        value=mean,
        low=mean - half,
        high=mean + half,
        level=level,
        n=n,
        clusters=groups,
        method="Student t on case means",
    )


def _within_variance(rows: Floats, cases: npt.ArrayLike) -> float | None:
    codes = np.unique(np.asarray(cases), return_inverse=True)[1]
    order = np.lexsort([rows, codes])
    rows, codes = rows[order], codes[order]
    sizes = np.bincount(codes)
    means = np.bincount(codes, rows) / sizes
    squares = np.bincount(codes, (rows - means[codes]) ** 2)
    several = sizes >= 2
    if not several.any():
        return None
    # Every case counts the same, as it does in the mean.
    return float((squares[several] / (sizes[several] - 1)).mean())
