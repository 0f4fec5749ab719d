"""Agreement coefficients and calibration against scikit-learn, krippendorff and worked examples."""

import krippendorff
import numpy as np
import pytest

from lazily import Lazily
from medthink.stats import (
    calibration,
    cohen_kappa,
    confusion,
    expected_calibration_error,
    gwet_ac,
    ordered_agreement,
    panel_agreement,
    rater_agreement,
)

theirs = Lazily("sklearn.metrics")
sklearn_calibration = Lazily("sklearn.calibration")


def _raters(seed, k=4, n=80):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, k, size=n)
    return a, np.where(rng.random(n) < 0.6, a, rng.integers(0, k, size=n))


@pytest.mark.parametrize("seed", range(6))
def test_coefficients_are_those_of_scikit_learn(seed):
    a, b = _raters(seed, k=2 + seed % 3)
    table = confusion(a, b)
    assert table.tolist() == theirs.confusion_matrix(a, b).tolist()
    assert cohen_kappa(table) == pytest.approx(theirs.cohen_kappa_score(a, b), abs=1e-12)
    found = rater_agreement(a, b, rng=np.random.default_rng(0), resamples=20)
    assert found.mcc.value == pytest.approx(theirs.matthews_corrcoef(a, b), abs=1e-12)
    for weighting in ("linear", "quadratic"):
        ours = cohen_kappa(table, weighting=weighting)
        assert ours == pytest.approx(theirs.cohen_kappa_score(a, b, weights=weighting), abs=1e-12)


def test_each_weighted_coefficient_stands_under_its_own_name():
    a, b = _raters(3, k=3)
    table = confusion(a, b)
    found = ordered_agreement(a, b, categories=[0, 1, 2], rng=np.random.default_rng(0), resamples=50)
    for weighting in ("linear", "quadratic"):
        assert getattr(found, f"kappa_{weighting}").value == cohen_kappa(table, weighting=weighting)
        assert getattr(found, f"ac2_{weighting}").value == gwet_ac(table, weighting=weighting)


@pytest.mark.parametrize("scale", ["nominal", "ordinal"])
@pytest.mark.parametrize("seed", range(6))
def test_alpha_is_that_of_krippendorff_with_gaps(seed, scale):
    rng = np.random.default_rng(seed)
    a, b = _raters(seed)
    ratings = np.column_stack([a, b, rng.integers(0, 4, size=len(a))]).astype(float)
    ratings[rng.random(ratings.shape) < 0.3] = np.nan
    theirs = krippendorff.alpha(reliability_data=ratings.T, level_of_measurement=scale)
    rows = [[None if np.isnan(x) else int(x) for x in row] for row in ratings]
    panel = panel_agreement(rows, scale=scale, rng=rng, resamples=50)
    assert panel.alpha.value == pytest.approx(theirs, abs=1e-12)


def test_alpha_of_the_textbook_example():
    # Krippendorff's four observers and twelve units, with gaps.
    observers = [
        "1 2 3 3 2 1 4 1 2 . . .",
        "1 2 3 3 2 2 4 1 2 5 . 3",
        ". 3 3 3 2 3 4 2 2 5 1 .",
        "1 2 3 3 2 4 4 1 2 5 1 .",
    ]
    rows = list(zip(*([None if x == "." else int(x) for x in row.split()] for row in observers), strict=True))
    panel = panel_agreement(rows, rng=np.random.default_rng(0), resamples=20)
    assert panel.alpha.value == pytest.approx(0.7434, abs=1e-4)


def test_ac1_of_worked_examples():
    # By hand: p_o = 0.94, π = (0.95, 0.05), p_e = 2·0.95·0.05.
    assert gwet_ac([[92, 3], [3, 2]]) == pytest.approx((0.94 - 2 * 0.95 * 0.05) / (1 - 2 * 0.95 * 0.05))
    table = np.array([[10, 4, 1], [2, 12, 3], [0, 2, 16]])
    shares = (table.sum(axis=0) + table.sum(axis=1)) / 100
    chance = (shares * (1 - shares)).sum() / 2
    assert gwet_ac(table) == pytest.approx((0.76 - chance) / (1 - chance), rel=1e-12)
    weights = 1 - np.array([[0, 1, 4], [1, 0, 1], [4, 1, 0]]) / 4
    chance *= weights.sum() / 3
    observed = (table * weights).sum() / 50
    assert gwet_ac(table, weighting="quadratic") == pytest.approx((observed - chance) / (1 - chance), rel=1e-12)


def test_a_panel_of_two_without_gaps_is_a_pair():
    a, b = _raters(3)
    panel = panel_agreement(list(zip(a.tolist(), b.tolist(), strict=True)), rng=np.random.default_rng(0))
    assert panel.ac1.value == pytest.approx(gwet_ac(confusion(a, b)), abs=1e-12)
    assert panel.percent.value == pytest.approx((a == b).mean(), abs=1e-12)


def test_calibration_is_that_of_scikit_learn():
    rng = np.random.default_rng(1)
    stated = rng.random(400)
    correct = rng.random(400) < stated**2
    result = calibration(stated, correct, rng=rng, resamples=20)
    assert result.brier.value == pytest.approx(theirs.brier_score_loss(correct, stated), abs=1e-12)
    accuracy, confidence = sklearn_calibration.calibration_curve(correct, stated, n_bins=10)
    assert [row.accuracy.value for row in result.bins] == pytest.approx(accuracy.tolist(), abs=1e-12)
    assert [row.confidence for row in result.bins] == pytest.approx(confidence.tolist(), abs=1e-12)
    shares = np.array([row.n for row in result.bins]) / 400
    expected = (shares * np.abs(accuracy - confidence)).sum()
    assert expected_calibration_error(stated, correct) == pytest.approx(expected, abs=1e-12)
