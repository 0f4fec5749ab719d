"""The score interval of a paired ratio, against its definition worked out by brute force."""

import numpy as np
import pytest
from scipy.optimize import brentq

from medthink.stats.comparisons.gain import ratio_ends


def score(ratio, both, a, b, n):
    """Nam and Blackwelder's statistic, its constrained likelihood maximised by a search for the multiplier."""
    factors = {"both": 1 - ratio, "a": 1.0, "b": -ratio}
    counts = {"both": both, "a": a, "b": b}

    def slope(weight):
        return sum(counts[k] * factors[k] / (1 + weight * factors[k]) for k in counts if counts[k])

    low, high = -1 + 1e-12, (1 - 1e-12) / ratio
    weight = -1.0 if slope(low) <= 0 else 1 / ratio if slope(high) >= 0 else brentq(slope, low, high, xtol=1e-14)
    shares = {k: counts[k] / (n * (1 + weight * factors[k])) if counts[k] else 0.0 for k in counts}
    left = sum(shares[k] * factors[k] for k in counts)
    if weight == -1.0:
        shares["a"] -= left
    elif weight == 1 / ratio:
        shares["b"] += left / ratio
    return (both + a - ratio * (both + b)) / np.sqrt(n * ratio * (shares["a"] + shares["b"]))


@pytest.mark.parametrize("counts", [(20, 15, 30, 90), (0, 3, 12, 40), (5, 0, 7, 30), (4, 9, 0, 30), (1, 40, 3, 720)])
def test_the_ends_are_where_the_score_reaches_its_limit(counts):
    (low,), (high,) = ratio_ends(*([count] for count in counts[:3]), counts[3], 1.96)
    assert score(low, *counts) == pytest.approx(1.96, abs=1e-6)
    assert score(high, *counts) == pytest.approx(-1.96, abs=1e-6)
    assert low < (counts[0] + counts[1]) / (counts[0] + counts[2]) < high


def test_it_leaves_one_out_exactly_when_mcnemar_does():
    rng = np.random.default_rng(1)
    both, a, b = (rng.integers(0, 60, size=400) + 1 for _ in range(3))
    low, high = ratio_ends(both, a, b, 200, 1.96)
    is_different = np.abs(a - b) / np.sqrt(a + b) > 1.96
    assert (((low > 1) | (high < 1)) == is_different).all()


def test_a_rate_of_zero_has_an_interval_above_and_none_below():
    (low,), (high,) = ratio_ends([0], [0], [20], 50, 1.96)
    assert low == 0 < high < 0.5
    with pytest.raises(ValueError, match="no ratio"):
        ratio_ends([0], [4], [0], 50, 1.96)
