"""Intervals and bootstraps against statsmodels and scipy."""

import numpy as np
import pytest
from scipy import stats as scipy_stats

from lazily import Lazily
from medthink.stats import (
    Estimate,
    bootstrap_mean,
    mean_interval,
    paired_difference,
    repeated_mean,
    wilson,
)
from medthink.stats.bootstrap import expanded_tail
from medthink.stats.estimate import cluster_totals
from medthink.stats.intervals import student_quantile, totals_error

sm = Lazily("statsmodels.api")
proportion = Lazily("statsmodels.stats.proportion")


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.99, 0.999])
def test_student_s_quantile_is_that_of_scipy(level):
    for degrees in (1, 2, 3, 4, 5, 19, 20, 99, 719, 720, 10_000):
        assert student_quantile(level, degrees) == pytest.approx(scipy_stats.t.ppf((1 + level) / 2, degrees), rel=1e-11)


@pytest.mark.parametrize("n", [1, 7, 100, 720])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_wilson_is_that_of_statsmodels_and_scipy(n, level):
    for successes in {0, 1, n // 3, n - 1, n}:
        ours = wilson(successes, n, level=level)
        theirs = proportion.proportion_confint(successes, n, alpha=1 - level, method="wilson")
        assert (ours.low, ours.high) == pytest.approx(theirs, abs=1e-12)
        ci = scipy_stats.binomtest(successes, n).proportion_ci(level, method="wilson")
        assert (ours.low, ours.high) == pytest.approx((ci.low, ci.high), abs=1e-12)


def _clustered(seed):
    rng = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(40), rng.integers(1, 9, size=40))
    return rng.normal(size=40)[clusters] + rng.normal(size=len(clusters)), clusters


@pytest.mark.parametrize("seed", range(5))
def test_clustered_error_is_the_sandwich_of_statsmodels(seed):
    values, clusters = _clustered(seed)
    fit = sm.OLS(values, np.ones(len(values))).fit(cov_type="cluster", cov_kwds={"groups": clusters})
    assert totals_error(cluster_totals(values[:, None], clusters)) == pytest.approx(fit.bse[0], rel=1e-12)


def test_clustered_error_without_clusters_is_the_textbook_error():
    values, _ = _clustered(0)
    assert totals_error(cluster_totals(values[:, None], None)) == pytest.approx(scipy_stats.sem(values), rel=1e-12)


def test_mean_interval_without_clusters_is_students():
    values, _ = _clustered(1)
    ci = scipy_stats.ttest_1samp(values, 0).confidence_interval(0.95)
    ours = mean_interval(values)
    assert (ours.low, ours.high) == pytest.approx((ci.low, ci.high), rel=1e-12)


def _scipy_percentiles(data, statistic, *, level, paired=False, resamples=20_000):
    result = scipy_stats.bootstrap(
        data,
        statistic,
        paired=paired,
        vectorized=False,
        n_resamples=resamples,
        confidence_level=level,
        method="percentile",
        rng=np.random.default_rng(3),
    )
    return result.confidence_interval.low, result.confidence_interval.high


def test_bootstrap_mean_is_the_percentile_bootstrap_of_scipy():
    rng = np.random.default_rng(2)
    values = rng.exponential(size=50)
    ours = bootstrap_mean(values, rng=rng, resamples=20_000)
    theirs = _scipy_percentiles((values,), np.mean, level=1 - 2 * expanded_tail(0.95, 50))
    assert (ours.low, ours.high) == pytest.approx(theirs, abs=0.012)


@pytest.mark.parametrize("groups", [3, 5, 20, 720])
def test_the_expanded_tail_is_as_far_out_as_student_s_interval(groups):
    """The bootstrap's own spread is short by √((G − 1)/G), so that much further out the tail must lie."""
    tail = expanded_tail(0.95, groups)
    reached = -scipy_stats.norm.ppf(tail) * ((groups - 1) / groups) ** 0.5
    assert reached == pytest.approx(scipy_stats.t.ppf(0.975, groups - 1), rel=1e-6)


def test_paired_difference_is_the_paired_bootstrap_of_scipy():
    rng = np.random.default_rng(4)
    a = rng.normal(size=60)
    b = a + rng.normal(0.3, 0.5, size=60)
    ours = paired_difference(a, b, rng=rng, resamples=20_000)
    level = 1 - 2 * expanded_tail(0.95, 60)
    theirs = _scipy_percentiles((a, b), lambda x, y: np.mean(x - y), level=level, paired=True)
    assert (ours.low, ours.high) == pytest.approx(theirs, abs=0.008)


def test_clusters_make_the_bootstrap_as_wide_as_the_sandwich():
    values, clusters = _clustered(7)
    bootstrapped = bootstrap_mean(values, clusters=clusters, rng=np.random.default_rng(8))
    closed = mean_interval(values, clusters=clusters)
    assert isinstance(bootstrapped, Estimate)
    assert isinstance(closed, Estimate)
    assert bootstrapped.high - bootstrapped.low == pytest.approx(closed.high - closed.low, rel=0.08)


def test_repeats_take_variance_apart_like_the_analysis_of_variance():
    rng = np.random.default_rng(9)
    cases = np.repeat(np.arange(30), 4)
    values = rng.normal(size=30)[cases] + rng.normal(0, 2, size=120)
    fit = sm.OLS(values, np.eye(30)[cases]).fit()
    means = values.reshape(30, 4).mean(axis=1)
    ours = repeated_mean(values, cases=cases)
    assert ours.within_variance == pytest.approx(fit.mse_resid, rel=1e-10)
    assert ours.between_variance == pytest.approx(means.var(ddof=1) - fit.mse_resid / 4, rel=1e-10)
    assert ours.error_total == pytest.approx(scipy_stats.sem(means), rel=1e-12)
