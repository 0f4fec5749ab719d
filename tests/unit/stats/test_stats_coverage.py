"""Every interval holds the truth as often as it says: simulate, count, compare with the binomial.

Seeds are fixed, so nothing flakes. A count fails when it would be a 1-in-10,000 event even if the true coverage
were off by the slack given, which is the known error of the method at that size and no more.
"""

import numpy as np
import pytest
from scipy.stats import binom

from medthink.stats import (
    Estimate,
    Undefined,
    bootstrap_mean,
    calibration,
    corrected_clustered_rate,
    mean_interval,
    ordered_agreement,
    paired_difference,
    panel_agreement,
    rate_interval,
    rater_agreement,
    reciprocal,
    repeated_mean,
    sign_flip_test,
    wilson,
)


def assert_covers(inside, *, below, above=1.0, what="the interval"):
    """The share of True in `inside` is plausible for a true coverage between `below` and `above`."""
    hits, trials = int(np.sum(inside)), len(inside)
    said = f"{what} covered {hits / trials:.3f} of {trials}, where {below} to {above} is claimed"
    assert hits >= binom.ppf(1e-4, trials, below), said
    assert hits <= binom.isf(1e-4, trials, above), said


def holds(measured, truth):
    assert isinstance(measured, Estimate)
    return measured.low <= truth <= measured.high


def clustered_rows(rng, *, cases, spread, rows=(1, 7)):
    """Rows in cases of varying size around a truth of zero, a case's rows moving together."""
    clusters = np.repeat(np.arange(cases), rng.integers(*rows, size=cases))
    return spread * rng.normal(size=cases)[clusters] + rng.normal(size=len(clusters)), clusters


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("n", [20, 100, 720])
def test_wilson_exactly(n, level):
    # No chance here: the coverage at a rate is a sum over all counts.
    rates = np.linspace(0.05, 0.95, 181)
    intervals = [wilson(k, n, level=level) for k in range(n + 1)]
    low, high = (np.array([getattr(e, end) for e in intervals]) for end in ("low", "high"))
    inside = (low[:, None] <= rates) & (rates <= high[:, None])
    coverage = (binom.pmf(np.arange(n + 1)[:, None], n, rates) * inside).sum(axis=0)
    assert coverage.mean() == pytest.approx(level, abs=0.008)
    # Counts are whole, so the coverage at single rates swings around the level, less for larger n.
    assert coverage.min() > level - {20: 0.09, 100: 0.06, 720: 0.03}[n]


@pytest.mark.parametrize("rate", [0.1, 0.6])
def test_rate_of_clustered_rows(rate):
    rng = np.random.default_rng(3)
    inside, naive = [], []
    for _ in range(1_500):
        skills = rng.beta(rate * 2, (1 - rate) * 2, size=60)
        hits = (rng.random((60, 6)) < skills[:, None]).astype(int).ravel()
        inside.append(holds(rate_interval(hits, clusters=np.repeat(np.arange(60), 6)), rate))
        naive.append(holds(rate_interval(hits), rate))
    assert_covers(inside, below=0.93, above=0.97)
    assert np.mean(naive) < 0.85


def test_mean_of_clustered_rows():
    rng = np.random.default_rng(4)
    inside, naive = [], []
    for _ in range(1_500):
        values, clusters = clustered_rows(rng, cases=25, spread=1.0)
        inside.append(holds(mean_interval(values, clusters=clusters), 0.0))
        naive.append(holds(mean_interval(values), 0.0))
    assert_covers(inside, below=0.935, above=0.96)
    assert np.mean(naive) < 0.85


@pytest.mark.parametrize(("cases", "below"), [(8, 0.93), (100, 0.935)])
def test_bootstrap_of_the_mean_of_clustered_rows(cases, below):
    rng = np.random.default_rng(5)
    inside = []
    for _ in range(1_000):
        values, clusters = clustered_rows(rng, cases=cases, spread=1.0)
        inside.append(holds(bootstrap_mean(values, clusters=clusters, rng=rng, resamples=500), 0.0))
    assert_covers(inside, below=below, above=0.96)


def test_bootstrap_of_a_skewed_mean_and_its_reciprocal():
    rng = np.random.default_rng(6)
    estimates = [bootstrap_mean(rng.exponential(2.0, size=100), rng=rng, resamples=500) for _ in range(1_000)]
    assert_covers([holds(e, 2.0) for e in estimates], below=0.92, above=0.96)
    assert_covers([holds(reciprocal(e), 0.5) for e in estimates], below=0.92, above=0.96)


def test_paired_difference_of_correlated_outcomes():
    rng = np.random.default_rng(8)
    inside = []
    for _ in range(800):
        hard = rng.random(150)
        a, b = (rng.random((2, 150)) < np.array([[0.2], [0.1]]) + 0.7 * hard).astype(int)
        inside.append(holds(paired_difference(a, b, rng=rng, resamples=300), 0.1))
    assert_covers(inside, below=0.935, above=0.96)


def test_sign_flip_rejects_a_true_null_at_its_level_when_rows_cluster():
    rng = np.random.default_rng(9)
    rejected = []
    for _ in range(1_000):
        differences, clusters = clustered_rows(rng, cases=20, spread=1.0)
        test = sign_flip_test(differences, np.zeros(len(differences)), clusters=clusters, rng=rng, flips=500)
        rejected.append(test.p_value <= 0.05)
    assert_covers(~np.array(rejected), below=0.945, above=0.96)


@pytest.mark.parametrize("within", [0.3, 3.0])
def test_repeated_samples(within):
    rng = np.random.default_rng(10)
    cases = np.repeat(np.arange(30), 4)
    results = []
    for _ in range(1_500):
        values = rng.normal(size=30)[cases] + within * rng.normal(size=120)
        results.append(repeated_mean(values, cases=cases))
    assert_covers([holds(r.mean, 0.0) for r in results], below=0.94, above=0.96)
    assert np.mean([r.within_variance for r in results]) == pytest.approx(within**2, rel=0.02)
    spread = np.std([r.mean.value for r in results])
    assert np.mean([r.error_total for r in results]) == pytest.approx(spread, rel=0.06)


def test_error_of_asking_again_on_the_same_cases():
    rng = np.random.default_rng(11)
    cases, skills = np.repeat(np.arange(40), 3), rng.random(40)
    results = [repeated_mean((rng.random(120) < skills[cases]).astype(float), cases=cases) for _ in range(1_500)]
    spread = np.std([r.mean.value for r in results])
    assert np.mean([r.error_sampling for r in results]) == pytest.approx(spread, rel=0.06)
    assert np.mean([r.rerun_sd for r in results]) == pytest.approx(spread * 3**0.5, rel=0.06)


def judged_steps(rng, *, cases, categories=3):
    """Two raters on clustered steps: a case is hard or easy for both, and has its own leading category."""
    clusters = np.repeat(np.arange(cases), rng.integers(2, 8, size=cases))
    n = len(clusters)
    leading = rng.integers(0, categories, size=cases)[clusters]
    truth = np.where(rng.random(n) < 0.5, leading, rng.integers(0, categories, size=n))
    noise = rng.choice([0.1, 0.5], size=cases)[clusters]
    raters = [np.where(rng.random(n) < noise, rng.integers(0, categories, size=n), truth) for _ in range(3)]
    return raters, clusters


def test_agreement_of_two_and_of_many():
    rng = np.random.default_rng(12)
    big, _ = judged_steps(np.random.default_rng(13), cases=20_000)
    quick = {"rng": rng, "resamples": 200}
    pair_truth = rater_agreement(big[0], big[1], rng=rng, resamples=2)
    order_truth = ordered_agreement(big[0], big[1], categories=[0, 1, 2], rng=rng, resamples=2)
    panel_truth = panel_agreement(np.column_stack(big).tolist(), rng=rng, resamples=2)
    inside: dict[str, list[bool]] = {}
    for _ in range(400):
        (a, b, c), clusters = judged_steps(rng, cases=60)
        pair = rater_agreement(a, b, clusters=clusters, **quick)
        order = ordered_agreement(a, b, categories=[0, 1, 2], clusters=clusters, **quick)
        panel = panel_agreement(np.column_stack([a, b, c]).tolist(), clusters=clusters, **quick)
        for truth, found, names in [
            (pair_truth, pair, ("percent", "kappa", "mcc", "ac1", "alpha")),
            (order_truth, order, ("kappa_linear", "kappa_quadratic", "ac2_linear", "ac2_quadratic", "alpha_ordinal")),
            (panel_truth, panel, ("percent", "ac1", "alpha")),
        ]:
            for name in names:
                kept = inside.setdefault(f"{type(found).__name__}.{name}", [])
                kept.append(holds(getattr(found, name), getattr(truth, name).value))
    for name, kept in inside.items():
        assert_covers(kept, below=0.925, above=0.965, what=name)


def test_rate_behind_an_imperfect_judge_of_clustered_steps():
    rng = np.random.default_rng(15)
    inside = []
    for _ in range(500):
        skills = rng.beta(3, 2, size=150)
        clusters = np.repeat(np.arange(150), 4)
        truth = rng.random(600) < skills[clusters]
        judged = np.where(truth, rng.random(600) < 0.85, rng.random(600) < 0.15)
        validated = clusters % 3 == 0
        known = [bool(t) if v else None for t, v in zip(truth, validated, strict=True)]
        inside.append(holds(corrected_clustered_rate(judged, known, clusters=clusters, rng=rng, resamples=300), 0.6))
    assert_covers(inside, below=0.93, above=0.965)


def test_calibration_alarm_is_raised_at_its_level_only():
    rng = np.random.default_rng(16)
    quiet, brier, even = [], [], []
    for _ in range(400):
        stated = rng.beta(3, 2, size=150)
        result = calibration(stated, rng.random(150) < stated, rng=rng, resamples=150)
        quiet.append(result.error.p_value > 0.05)
        brier.append(holds(result.brier, 3 * 2 / (5 * 6)))
        even.append(holds(result.overconfidence, 0.0))
    assert_covers(quiet, below=0.94, above=0.965)
    assert_covers(brier, below=0.935, above=0.965)
    assert_covers(even, below=0.935, above=0.965)


def test_calibration_alarm_is_raised_for_the_overconfident():
    rng = np.random.default_rng(17)
    stated = rng.beta(6, 2, size=400)
    result = calibration(stated, rng.random(400) < stated - 0.15, rng=rng, resamples=500)
    assert result.error.p_value < 0.01
    assert result.error.value > result.error.limit > result.error.if_calibrated
    assert holds(result.overconfidence, 0.15)


def test_what_cannot_be_covered_is_not_claimed():
    rng = np.random.default_rng(19)
    assert isinstance(bootstrap_mean([0.4], rng=rng), Undefined)
    assert isinstance(bootstrap_mean([0.4, 0.4, 0.4], rng=rng), Undefined)
    assert isinstance(mean_interval([1.0, 2.0], clusters=["x", "x"]), Undefined)
