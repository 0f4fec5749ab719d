"""Prediction-powered means are those of ppi-python, which brings numba and is not installed here.

The values are frozen from ppi-python 0.2.3 in an environment of its own: `ppi_mean_pointestimate(y, f, u, lam=lam)` and
`ppi_mean_ci(y, f, u, alpha=0.05, lam=lam)`. It divides by n, where we divide by n − 1, and takes z where we take t.
"""

from statistics import NormalDist

import numpy as np
import pytest

from medthink.stats.raters.correction import _Part, _part, _together

READ = np.array([0.0, 1, 1, 0, 1, 0, 1, 1])
SAME = np.array([0.1, 0.9, 0.8, 0.2, 0.7, 0.4, 0.5, 0.95])
REST = np.array([0.4, 0.6, 0.9, 0.1, 0.75, 0.3])


@pytest.mark.parametrize(
    ("weight", "value", "low", "high"),
    [
        (0.0, 0.625, 0.2895261, 0.9604739),
        (0.5, 0.59479167, 0.32154717, 0.86803616),
        (1.0, 0.56458333, 0.27854509, 0.85062158),
    ],
)
def test_means_and_errors_are_those_of_ppi_python(weight, value, low, high):
    theirs, same, rest = (_part(part, np.arange(len(part))) for part in (READ, SAME, REST))
    assert _together(theirs, same, rest, weight, t=2.0, level=0.95).value == pytest.approx(value, abs=1e-8)
    left = _Part(8, 0.0, theirs.residuals - weight * same.residuals).variance
    error = (left * 7 / 8 + weight**2 * rest.variance * 5 / 6) ** 0.5
    assert 2 * NormalDist().inv_cdf(0.975) * error == pytest.approx(high - low, abs=2e-8)
