"""Intervals in closed form: Wilson for rates, clustered standard errors for means."""

from functools import lru_cache
from math import atan, exp, lgamma, log1p, pi, sin, sqrt
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from medthink.stats.estimate import (
    ClusterTotals,
    Estimate,
    Measured,
    Undefined,
    as_column,
    as_hits,
    check_level,
    cluster_totals,
    is_flat,
)

_MOST_STEPS = 200


@lru_cache
def student_quantile(level: float, degrees: int) -> float:
    """The t that leaves (1 − level)/2 in each tail of Student's distribution."""
    check_level(level)
    if degrees < 1:
        raise ValueError(f"degrees of freedom must be 1 or more, not {degrees}")
    # The central mass is concave in t, so Newton's steps from the normal quantile climb and never overshoot: one that
    # does not climb is rounding.
    t = NormalDist().inv_cdf((1 + level) / 2)
    for _ in range(_MOST_STEPS):
        step = (level - _central_mass(t, degrees)) / (2 * _density(t, degrees))
        t += step
        if step < 1e-14 * t:
            break
    return t


def student_p_value(t: float, degrees: int) -> float:
    """The chance of a value at least as far from 0 as t."""
    return max(0.0, 1 - _central_mass(abs(t), degrees))


def _central_mass(t: float, degrees: int) -> float:
    """P(−t < T < t), by the finite series in the angle whose tangent is t/√degrees (Abramowitz and Stegun 26.7.3–4)."""
    angle = atan(t / sqrt(degrees))
    cosine_squared = degrees / (degrees + t * t)
    is_odd = degrees % 2
    term = sqrt(cosine_squared) if is_odd else 1.0
    total = 0.0 if degrees == 1 else term
    for k in range(2 + is_odd, degrees, 2):
        term *= cosine_squared * (k - 1) / k
        total += term
    return 2 / pi * (angle + sin(angle) * total) if is_odd else sin(angle) * total


def _density(t: float, degrees: int) -> float:
    scale = exp(lgamma((degrees + 1) / 2) - lgamma(degrees / 2)) / sqrt(degrees * pi)
    return scale * exp(-(degrees + 1) / 2 * log1p(t * t / degrees))


def normal_quantile(level: float) -> float:
    """The z that leaves (1 − level)/2 in each tail of the normal distribution."""
    check_level(level)
    return NormalDist().inv_cdf((1 + level) / 2)


def wilson_ends(rate: float, n: float, z: float) -> tuple[float, float]:
    """Ends of the score interval of a rate seen in `n` (possibly effective, fractional) trials."""
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * ((rate * (1 - rate) + z * z / (4 * n)) / n) ** 0.5
    # At the ends of the range the formula gives 0 and 1 exactly, except for rounding.
    low = 0.0 if rate == 0 else max(0.0, centre - half)
    high = 1.0 if rate == 1 else min(1.0, centre + half)
    return low, high


def wilson(successes: int, n: int, *, level: float = 0.95) -> Measured:
    """Wilson's score interval for `successes` in `n` independent trials.

    The set of rates that a two-sided score test would not reject; inside [0, 1], sensible at 0 and n, and
    close to nominal coverage from n of about 10 on (Wilson 1927; Brown, Cai and DasGupta 2001). Rivals:
    Wald (p ± z·se; far too short near 0 and 1), Clopper–Pearson (never below nominal, hence wide).
    """
    check_level(level)
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes in {n} trials")
    return rate_of(successes, n, level=level)


def rate_of(total: float, n: int, *, level: float = 0.95) -> Measured:
    """Wilson's interval for a sum of shares in [0, 1] over `n` cases; for shares other than 0 and 1 it is too wide."""
    check_level(level)
    if n == 0:
        return Undefined(reason="no rows", n=0)
    low, high = wilson_ends(total / n, n, normal_quantile(level))
    return Estimate(value=total / n, low=low, high=high, level=level, n=n, clusters=n, method="Wilson score")


def newcombe(a: Measured, b: Measured) -> Measured:
    """Rate a minus rate b on different cases, from the Wilson intervals of both (Newcombe 1998, method 10)."""
    if isinstance(a, Undefined) or isinstance(b, Undefined):
        return Undefined(reason="one of the rates has no interval", n=a.n + b.n)
    value = a.value - b.value
    return Estimate(
        value=value,
        low=value - ((a.value - a.low) ** 2 + (b.high - b.value) ** 2) ** 0.5,
        high=value + ((a.high - a.value) ** 2 + (b.value - b.low) ** 2) ** 0.5,
        level=a.level,
        n=a.n + b.n,
        clusters=a.n + b.n,
        method="Newcombe, from two Wilson intervals",
    )


def exact_upper_bound(errors: int, n: int, *, level: float = 0.95) -> float:
    """The largest rate at which this few errors in `n` independent trials still have probability 1 − level.

    The one-sided bound of Clopper and Pearson (1934): never below nominal coverage. Without an error it is
    1 − (1 − level)^(1/n), about 3/n at 95 %. Range: 0 to 1, and 1 where nothing was tried.
    """
    check_level(level)
    if not 0 <= errors <= n:
        raise ValueError(f"{errors} errors in {n} trials")
    if errors == n:
        return 1.0
    from scipy.stats import beta

    return float(beta.ppf(level, errors + 1, n - errors))


def rate_interval(hits: npt.ArrayLike, *, clusters: npt.ArrayLike | None = None, level: float = 0.95) -> Measured:
    """Interval for a rate of 0/1 rows: Wilson, or Wilson at the effective sample size when rows cluster.

    With clusters the number of trials is replaced by p(1 − p)/se², se being the clustered standard error,
    never more than the rows, and z by Student's t on G − 1 degrees of freedom (in the manner of Korn and
    Graubard 1998). If every cluster has the same rate the clustered error is zero and meaningless; then each
    cluster counts as one trial, the most conservative choice. Unlike the bootstrap it is valid at 0 % and 100 %.
    """
    rows = as_hits(hits)
    totals = cluster_totals(rows[:, None], clusters)
    n, groups = len(rows), len(totals.sizes)
    if groups == n:
        return wilson(int(rows.sum()), n, level=level)
    if groups < 2:
        return Undefined(reason="one cluster shows no spread", n=n, value=float(rows.mean()))
    rate = float(totals.sums.sum()) / n
    effective = groups if is_even(totals) else min(n, rate * (1 - rate) / totals_error(totals) ** 2)
    low, high = wilson_ends(rate, effective, student_quantile(level, groups - 1))
    return Estimate(
        value=rate,
        low=low,
        high=high,
        level=level,
        n=n,
        clusters=groups,
        method="Wilson score at the effective sample size of clustered rows",
    )


def share_interval(shares: npt.ArrayLike, *, samples: int = 1, level: float = 0.95) -> Measured:
    """Interval for a mean of shares, such as the share of each case's `samples` that are right. Range: [0, 1].

    `rate_interval` for one sample a case. Otherwise Wilson's at the sample size at which a rate would have this
    standard error, with Student's quantile: what `rate_interval` gives for the samples clustered by case. Rival:
    Student's interval (`mean_interval`), which reaches below 0 % and above 100 %.
    """
    rows = as_column(shares, name="shares")
    cases = len(rows)
    if samples == 1 and np.isin(rows, (0.0, 1.0)).all():
        return rate_interval(rows, level=level)
    if cases and (rows.min() < 0 or rows.max() > 1):
        raise ValueError("shares lie between 0 and 1")
    if cases < 2:
        reason = "one case shows no spread" if cases else "no rows"
        return Undefined(reason=reason, n=cases, value=float(rows.mean()) if cases else None)
    rate, variance = float(np.sort(rows).mean()), float(np.sort(rows).var(ddof=1)) / cases
    effective = cases if is_flat(rows) else rate * (1 - rate) / variance
    low, high = wilson_ends(
        rate, min(effective, cases * samples) if samples > 1 else effective, student_quantile(level, cases - 1)
    )
    return Estimate(
        value=rate,
        low=low,
        high=high,
        level=level,
        n=cases,
        clusters=cases,
        method="Wilson score at the effective sample size of shares",
    )


def is_even(totals: ClusterTotals, *, scale: float = 1.0) -> bool:
    """Whether all clusters have the same mean, of a single column of totals: they show no spread.

    `scale` is the size of the rows.
    """
    return is_flat(totals.sums[:, 0] / totals.sizes, scale=scale)


def totals_error(totals: ClusterTotals) -> float:
    """Standard error of the row mean when rows of one cluster are correlated, from a single column's cluster totals.

    sqrt(G/(G−1) · Σ_c (Σ_i r_ic)²) / n, r being the residuals from the mean: the sandwich estimator of a
    regression on a constant, as statsmodels computes it (Liang and Zeger 1986; Miller 2024 for model
    evaluations). Without the factor G/(G−1) it is too small when clusters are few. One row per cluster
    gives the textbook s/√n.
    """
    groups, n = len(totals.sizes), totals.sizes.sum()
    residuals = totals.sums[:, 0] - totals.sizes * (totals.sums.sum() / n)
    return float(np.sqrt((residuals**2).sum() * groups / (groups - 1)) / n)


def mean_interval(values: npt.ArrayLike, *, clusters: npt.ArrayLike | None = None, level: float = 0.95) -> Measured:
    """Student interval around the mean of the rows, with the clustered standard error and G − 1 degrees.

    Range: that of the values, but the ends are not clipped to it. Assumes the mean of G clusters is close
    to normal; for strongly skewed values or few clusters use the bootstrap, for 0/1 rows `rate_interval`.
    """
    check_level(level)
    rows = as_column(values)
    if not len(rows):
        return Undefined(reason="no rows", n=0)
    totals = cluster_totals(rows[:, None], clusters)
    groups, value = len(totals.sizes), float(totals.sums.sum() / len(rows))
    if groups < 2:
        return Undefined(reason="one cluster shows no spread", n=len(rows), value=value)
    if is_even(totals, scale=float(np.abs(rows).max())):
        alike = "every row has the same value" if groups == len(rows) else "every cluster has the same mean"
        return Undefined(reason=alike, n=len(rows), value=value)
    half = student_quantile(level, groups - 1) * totals_error(totals)
    return Estimate(
        value=value,
        low=value - half,
        high=value + half,
        level=level,
        n=len(rows),
        clusters=groups,
        method="Student t with clustered standard error" if groups < len(rows) else "Student t",
    )


def finite_upper_bound(found: int, *, sample: int, whole: int, alpha: float) -> float:
    """The largest share of a population that can have a property, if `found` of `sample` random members have it.

    The largest number of such members M with P(X ≤ found) ≥ α, X being hypergeometric, as a share of the population:
    an exact upper limit at confidence 1 − α, whatever the share. Equal to found/sample when the sample is the
    population. Rival: Clopper–Pearson, which is the same for an infinite population and wider here.
    """
    from scipy.stats import hypergeom

    check_level(1 - alpha)
    if not 0 <= found <= sample <= whole or sample < 1:
        raise ValueError(f"{found} of {sample} drawn from {whole}")
    low, high = found, found + whole - sample
    while low < high:
        middle = (low + high + 1) // 2
        is_possible = hypergeom.cdf(found, whole, middle, sample) >= alpha
        low, high = (middle, high) if is_possible else (low, middle - 1)
    return low / whole
