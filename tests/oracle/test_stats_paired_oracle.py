"""Paired tests, Holm and power against statsmodels and scipy."""

import numpy as np
import pytest
from scipy import stats as scipy_stats

from lazily import Lazily
from medthink.stats import holm, mcnemar, mcnemar_p, paired_power, sign_flip_test

tables = Lazily("statsmodels.stats.contingency_tables")
multitest = Lazily("statsmodels.stats.multitest")


@pytest.mark.parametrize(("b", "c"), [(10, 2), (0, 0), (0, 5), (7, 7), (60, 91), (1, 0), (300, 300)])
def test_mcnemar_is_exact(b, c):
    theirs = tables.mcnemar([[5, b], [c, 9]], exact=True).pvalue if b + c else 1.0
    assert mcnemar_p(b, c) == pytest.approx(theirs, rel=1e-10)


def test_mcnemar_counts_the_discordant_rows():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, size=(2, 200))
    ours = mcnemar(a, b)
    table = [[int(((a == i) & (b == j)).sum()) for j in (1, 0)] for i in (1, 0)]
    assert ours.p_value == pytest.approx(tables.mcnemar(table, exact=True).pvalue, rel=1e-10)
    assert (ours.only_a, ours.only_b) == (table[0][1], table[1][0])
    assert ours.discordance == pytest.approx((a != b).mean())


def _permutation(differences, resamples):
    return scipy_stats.permutation_test(
        (differences,),
        lambda x: np.mean(x),
        permutation_type="samples",
        vectorized=False,
        n_resamples=resamples,
        rng=np.random.default_rng(1),
    ).pvalue


def test_few_clusters_are_flipped_in_every_way():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 10)) + np.array([[0.6], [0]])
    ours = sign_flip_test(a, b, rng=rng)
    assert ours.method == "exact"
    assert ours.p_value == pytest.approx(_permutation(a - b, np.inf), rel=1e-12)


def test_many_clusters_are_flipped_at_random():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 60)) + np.array([[0.25], [0]])
    ours = sign_flip_test(a, b, rng=rng, flips=20_000)
    assert ours.method == "random"
    assert ours.p_value == pytest.approx(_permutation(a - b, 20_000), abs=0.015)


def test_sign_flip_of_independent_binary_rows_is_the_exact_mcnemar_test():
    a = np.array([1] * 9 + [0] * 2 + [1] * 30)
    b = np.array([0] * 9 + [1] * 2 + [1] * 30)
    flipped = sign_flip_test(a, b, rng=np.random.default_rng(0))
    assert flipped.p_value == pytest.approx(mcnemar(a, b).p_value, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_holm_is_that_of_statsmodels(seed):
    p_values = np.random.default_rng(seed).random(12) ** 3
    assert holm(p_values) == pytest.approx(multitest.multipletests(p_values, method="holm")[1], rel=1e-12)


def test_paired_power_is_what_simulation_finds():
    rng = np.random.default_rng(4)
    n, difference, discordance = 150, 0.1, 0.3
    shares = [(discordance + difference) / 2, (discordance - difference) / 2, 1 - discordance]
    draws = rng.multinomial(n, shares, size=4_000)
    found = np.mean([mcnemar_p(int(b), int(c)) <= 0.05 for b, c, _ in draws])
    power = paired_power(n=n, difference=difference, discordance=discordance)
    assert power == pytest.approx(found, abs=4 * (0.25 / 4_000) ** 0.5)
