"""Chance of hit counts that are no binomial, against enumeration and simulation."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, chi2

from medthink.stats.chance import chi_square_tail, hits_p_value, largest_count_p_value


@pytest.mark.parametrize(("cases", "letters"), [(6, 3), (5, 4), (7, 2)])
def test_the_largest_count_is_exact(cases: int, letters: int) -> None:
    counts = Counter(max(Counter(keys).values()) for keys in product(range(letters), repeat=cases))
    for largest in range(1, cases + 1):
        share = sum(count for most, count in counts.items() if most >= largest) / letters**cases
        assert largest_count_p_value(largest, cases, letters) == pytest.approx(share, abs=1e-12)


def test_far_out_the_largest_count_keeps_its_digits() -> None:
    assert largest_count_p_value(120, 180, 5) == pytest.approx(5 * binom.sf(119, 180, 0.2), rel=1e-9)
    assert 0 < largest_count_p_value(180, 180, 5) < 1e-100
    drawn = np.random.default_rng(0).multinomial(7347, [0.2] * 5, size=20_000).max(axis=1)
    assert largest_count_p_value(1500, 7347, 5) == pytest.approx((drawn >= 1500).mean(), abs=0.015)


def test_hits_of_a_wide_spread_are_no_alarm_where_a_binomial_says_so() -> None:
    rng = np.random.default_rng(0)
    wide = rng.normal(36, 7.6, size=60).round().astype(int).tolist()
    narrow = rng.binomial(180, 0.2, size=60).tolist()
    assert binom.sf(53, 180, 0.2) < 0.001
    assert hits_p_value(54, wide, 180, 0.2) > 0.005
    assert hits_p_value(54, narrow, 180, 0.2) < 0.005
    assert hits_p_value(36, narrow, 180, 0.2) > 0.3


def test_hits_are_as_often_below_each_level_as_it_says() -> None:
    rng = np.random.default_rng(1)
    values = [
        hits_p_value(int(rng.binomial(90, 0.2)), rng.binomial(90, 0.2, size=60).tolist(), 90, 0.2) for _ in range(4000)
    ]
    assert np.mean(np.array(values) < 0.0025) <= 0.004
    assert np.mean(np.array(values) < 0.05) == pytest.approx(0.04, abs=0.015)


@pytest.mark.parametrize("freedom", range(1, 10))
def test_the_upper_tail_of_chi_square(freedom: int) -> None:
    for statistic in (0.0, 0.3, 4.0, 25.0):
        assert chi_square_tail(statistic, freedom) == pytest.approx(chi2.sf(statistic, freedom), rel=1e-12)
