"""What the room says when there is nothing to say, and when it is asked wrongly."""

import subprocess
import sys

import msgspec
import numpy as np
import pytest

import medthink.stats as stats
from medthink.stats import (
    Estimate,
    Measured,
    Undefined,
    bootstrap_mean,
    calibration,
    cohen_kappa,
    confusion,
    corrected_clustered_rate,
    expected_calibration_error,
    gwet_ac,
    holm,
    kappa_caution,
    mcnemar,
    mcnemar_p,
    mean_interval,
    minimum_detectable_difference,
    needed_cases,
    paired_difference,
    paired_power,
    panel_agreement,
    rank_runs,
    rate_interval,
    rater_agreement,
    reciprocal,
    repeated_mean,
    share_interval,
    sign_flip_test,
    wilson,
)
from medthink.stats.bootstrap import replicate_interval
from medthink.stats.intervals import student_quantile, wilson_ends


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_every_exported_name_exists():
    assert [name for name in stats.__all__ if not hasattr(stats, name)] == []
    assert stats.__all__ == sorted(stats.__all__)


def test_importing_the_room_loads_nothing_heavy():
    code = "import sys, medthink.stats; print([m for m in ('scipy', 'sklearn', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_estimates_survive_json(rng):
    for measured in (wilson(3, 9), bootstrap_mean([1.0, 1.0], rng=rng)):
        assert msgspec.json.decode(msgspec.json.encode(measured), type=Measured) == measured


def test_no_rows_give_a_reason(rng):
    for measured in (
        wilson(0, 0),
        rate_interval([]),
        mean_interval([]),
        bootstrap_mean([], rng=rng),
        paired_difference([], [], rng=rng),
        repeated_mean([], cases=[]).mean,
        calibration([], [], rng=rng).brier,
        calibration([], [], rng=rng).error,
        rater_agreement([], [], rng=rng, categories=["a", "b"]).kappa,
    ):
        assert isinstance(measured, Undefined)
        assert measured.reason
        assert measured.value is None


def test_one_cluster_gives_the_value_without_an_interval(rng):
    for measured in (
        rate_interval([1, 0], clusters=["x", "x"]),
        bootstrap_mean([1, 0], clusters=["x", "x"], rng=rng),
        repeated_mean([1, 0], cases=["x", "x"]).mean,
    ):
        assert isinstance(measured, Undefined)
        assert measured.value == 0.5


@pytest.mark.parametrize("call", [mean_interval, rate_interval])
def test_nan_is_refused(call):
    with pytest.raises(ValueError, match="NaN"):
        call([0.0, float("nan")])


def test_wrong_shapes_and_ranges_are_refused(rng):
    bad = [
        lambda: wilson(4, 3),
        lambda: wilson(1, 3, level=95),
        lambda: rate_interval([0, 2]),
        lambda: mean_interval([[1.0]]),
        lambda: mean_interval([1.0, 2.0], clusters=[1]),
        lambda: mcnemar([1, 0], [1]),
        lambda: holm([0.1, 1.2]),
        lambda: needed_cases(difference=0.3, discordance=0.2),
        lambda: needed_cases(difference=0.1, discordance=1.2),
        lambda: paired_power(n=5, difference=0.3, discordance=0.2),
        lambda: rank_runs([[1, 0]], cases=["x", "x"], rng=rng),
        lambda: rank_runs([[1, 0]], cases=["x"], rng=rng),
        lambda: calibration([1.2], [1], rng=rng),
        lambda: calibration([0.2, 0.3], [1], rng=rng),
        lambda: expected_calibration_error([0.2], [1], bins=0),
        lambda: confusion(["a"], ["a", "b"]),
        lambda: confusion(["a"], ["c"], categories=["a", "b"]),
        lambda: confusion(["a"], ["a"], categories=["a", "a"]),
        lambda: confusion(["a", None], ["a", "b"]),
        lambda: confusion(["a", 1], ["a", "b"]),
        lambda: panel_agreement([["a", "b"], ["a"]], rng=rng),
        lambda: corrected_clustered_rate([1, 0], [True], rng=rng),
    ]
    for call in bad:
        with pytest.raises(ValueError, match=r"."):
            call()


def test_an_all_right_rate_still_has_an_interval():
    everywhere = rate_interval([1] * 40, clusters=np.repeat(np.arange(10), 4))
    assert isinstance(everywhere, Estimate)
    # Ten cases, not forty rows, are what was seen.
    assert 0.55 < everywhere.low < 0.75 < everywhere.high == 1.0


def test_constant_raters_have_no_kappa_rather_than_a_zero(rng):
    one_constant = [[50, 0], [10, 0]]
    both_constant = [[60, 0], [0, 0]]
    for table in (one_constant, both_constant):
        assert cohen_kappa(table) is None
        assert cohen_kappa(table, weighting="quadratic") is None
        assert gwet_ac(table) is not None
    assert gwet_ac(both_constant) == 1.0
    assert gwet_ac([[5]]) is None
    assert isinstance(panel_agreement([["a", "a"], ["a", "a"]], rng=rng).alpha, Undefined)
    result = rater_agreement(["a"] * 9, ["a"] * 9, categories=["a", "b"], rng=rng)
    assert [type(m) for m in (result.kappa, result.mcc, result.alpha)] == [Undefined] * 3
    assert isinstance(result.percent, Estimate)


@pytest.mark.parametrize(("cases", "has_interval"), [(2, False), (3, False), (7, False), (8, True)])
def test_a_handful_of_cases_gives_a_value_without_a_bootstrap_interval(cases, has_interval, rng):
    labels = np.tile([True, False, True, False, True, False], cases)
    other = labels.copy()
    other[::5] = ~other[::5]
    found = rater_agreement(labels, other, clusters=np.repeat(np.arange(cases), 6), rng=rng)
    for one in (found.kappa, found.ac1, found.alpha, found.mcc):
        assert one.value is not None and isinstance(one, Estimate) == has_interval
        if not has_interval:
            assert one.reason == f"an interval needs 8 clusters, not {cases}"


def test_kappa_that_is_mostly_undefined_when_resampled_has_no_interval(rng):
    a = ["no"] * 30
    b = ["no"] * 29 + ["yes"]
    kappa = rater_agreement(["yes", *a[1:]], b, rng=rng).kappa
    assert isinstance(kappa, Undefined)
    assert kappa.value == pytest.approx(-1 / 29, abs=1e-9)
    assert "resamples" in kappa.reason


def two_raters(prevalence, accuracy=0.9):
    """Expected table of two independent raters, each right with `accuracy`."""
    right, wrong = accuracy, 1 - accuracy
    both = np.array([[right * right, right * wrong], [right * wrong, wrong * wrong]])
    return prevalence * both + (1 - prevalence) * both[::-1, ::-1]


@pytest.mark.parametrize(
    ("prevalence", "kappa", "ac1", "misleads"),
    [
        (0.50, 0.64, 0.64, False),
        (0.80, 0.53, 0.71, True),
        (0.95, 0.25, 0.76, True),
    ],
)
def test_kappa_is_flagged_where_prevalence_misleads(prevalence, kappa, ac1, misleads):
    table = two_raters(prevalence)
    assert cohen_kappa(table) == pytest.approx(kappa, abs=0.005)
    assert gwet_ac(table) == pytest.approx(ac1, abs=0.005)
    caution = kappa_caution(table)
    assert (caution is not None) == misleads
    if caution is not None:
        assert f"{caution.prevalence * 100:.0f} %" in caution.reason
        assert caution.kappa == cohen_kappa(table)


def test_a_skewed_table_with_true_agreement_is_not_flagged():
    assert kappa_caution([[88, 0], [0, 12]]) is None
    assert kappa_caution([[14, 1], [1, 4]]) is not None, "κ is 0.11 below AC1 at a prevalence of 75 %"
    assert kappa_caution([[0, 0], [0, 0]]) is None


def test_raters_may_leave_rows_out(rng):
    rows = [["a", "a", None], ["b", None, "b"], ["a", "b", "b"], [None, None, "a"], ["b", "b", "b"]]
    panel = panel_agreement(rows, rng=rng)
    assert panel.percent.value == pytest.approx((1 + 1 + 1 / 3 + 1) / 4)
    assert panel.prevalence == pytest.approx(((1 + 0 + 1 / 3 + 1 + 0) / 5, (0 + 1 + 2 / 3 + 0 + 1) / 5))
    lonely = panel_agreement([["a", None], [None, "b"]], rng=rng)
    assert isinstance(lonely.percent, Undefined)
    assert isinstance(lonely.alpha, Undefined)


def test_a_useless_judge_corrects_nothing(rng):
    assert isinstance(corrected_clustered_rate([1, 0, 1], [None, None, None], rng=rng), Undefined)
    assert corrected_clustered_rate([1, 0, 1, 0], [False, True, False, True], rng=rng).value is None
    # A few rows known to be wrong give a rate that is biased, and often clipped to 0.
    few = corrected_clustered_rate([1] * 4 + [0] * 96, [True] * 4 + [False] * 96, rng=rng)
    assert few.value is None and "fewer than 5 rows" in few.reason
    enough = corrected_clustered_rate([1] * 5 + [0] * 95, [True] * 5 + [False] * 95, rng=rng)
    assert enough.value == pytest.approx(0.05)


def test_a_rate_below_what_the_judge_s_own_errors_give_is_none(rng):
    judged = [1, 0, 1, 0] * 10 + [0] * 200
    truth = [True, False, False, False] * 10 + [None] * 200
    corrected = corrected_clustered_rate(judged, truth, rng=rng)
    assert corrected.value == 0.0


def test_the_board_resolves_about_five_points():
    low = minimum_detectable_difference(n=720, discordance=0.2)
    high = minimum_detectable_difference(n=720, discordance=0.4)
    assert low.difference == pytest.approx(0.0477, abs=2e-4)
    assert high.difference == pytest.approx(0.0672, abs=2e-4)


def test_what_can_be_seen_shrinks_with_the_number_of_runs():
    found = [minimum_detectable_difference(n=720, discordance=0.3, threshold=c) for c in (None, 3.15, 3.7, 4.05)]
    assert [one.difference for one in found] == pytest.approx([0.058, 0.081, 0.092, 0.099], abs=6e-4)
    assert minimum_detectable_difference(n=90, discordance=0.3, threshold=3.15).difference == pytest.approx(
        0.219, abs=1e-3
    )


@pytest.mark.parametrize("threshold", [None, 3.15])
@pytest.mark.parametrize(("n", "discordance"), [(90, 0.3), (200, 0.2), (720, 0.3)])
def test_the_stated_power_is_the_true_power(n, discordance, threshold):
    # Connor's formula, for the test without correction, gave 75.7 to 78.2 % in place of 80 % here.
    found = minimum_detectable_difference(n=n, discordance=discordance, threshold=threshold)
    rng = np.random.default_rng(2)
    shares = [(discordance + found.difference) / 2, (discordance - found.difference) / 2, 1 - discordance]
    won, lost, _ = rng.multinomial(n, shares, size=6_000).T
    if threshold is None:
        p_values = {pair: mcnemar_p(*pair) for pair in set(zip(won.tolist(), lost.tolist(), strict=True))}
        seen = [p_values[pair] <= 0.05 for pair in zip(won.tolist(), lost.tolist(), strict=True)]
    else:
        seen = np.abs(won - lost) > threshold * np.sqrt(won + lost)
    assert np.mean(seen) == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize(("difference", "discordance"), [(0.05, 0.2), (0.1, 0.35), (0.2, 0.3), (0.3, 0.3), (0.2, 1.0)])
def test_from_the_needed_cases_on_the_power_is_kept(difference, discordance):
    plan = needed_cases(difference=-difference, discordance=discordance)
    powers = [
        paired_power(n=n, difference=difference, discordance=discordance) for n in range(plan.n - 1, plan.n + 150)
    ]
    assert powers[0] < 0.8 <= min(powers[1:])
    back = minimum_detectable_difference(n=plan.n, discordance=discordance)
    assert back.difference == pytest.approx(difference, rel=0.03)


def test_shares_over_samples_count_by_their_size():
    binary = minimum_detectable_difference(n=400, discordance=0.5)
    halved = minimum_detectable_difference(n=400, discordance=0.125, largest=0.25)
    assert halved.difference == pytest.approx(binary.difference / 2)


def test_power_under_the_null_is_at_most_the_level():
    powers = [paired_power(n=n, difference=0.0, discordance=0.3) for n in (1, 10, 100, 720)]
    assert max(powers) <= 0.05
    assert powers[-1] > 0.03


def test_too_few_cases_detect_nothing():
    assert isinstance(minimum_detectable_difference(n=5, discordance=0.1), Undefined)


def test_holm_keeps_the_order_given():
    assert holm([0.01, 0.5, 0.03]).tolist() == pytest.approx([0.03, 0.5, 0.06])
    assert holm([]).tolist() == []


def test_single_samples_show_no_variance_within():
    result = repeated_mean([1.0, 0.0, 0.5], cases=["x", "y", "z"])
    assert result.within_variance is None
    assert result.error_sampling is None
    assert isinstance(result.mean, Estimate)


def test_cases_weigh_equally_whatever_their_samples():
    result = repeated_mean([1.0, 1.0, 1.0, 0.0], cases=["x", "x", "x", "y"])
    assert result.mean.value == 0.5
    assert result.within_variance == 0.0


def test_confidence_on_an_edge_belongs_below():
    table = calibration([0.0, 0.1, 0.7, 1.0], [0, 0, 1, 1], rng=np.random.default_rng(0), resamples=10).bins
    assert [row.n for row in table] == [2, 0, 0, 0, 0, 0, 1, 0, 0, 1]
    assert table[1].confidence is None
    assert isinstance(table[1].accuracy, Undefined)


def test_reciprocal_refuses_an_interval_around_zero():
    spanning = mean_interval([-1.0, 1.0, 0.5])
    assert isinstance(reciprocal(spanning), Undefined)
    flipped = reciprocal(mean_interval([1.9, 2.0, 2.1]))
    assert flipped.low < flipped.value == 0.5 < flipped.high


def test_a_few_undefined_resamples_are_left_out_and_many_leave_no_interval():
    replicates = np.arange(100.0)
    replicates[:5] = np.nan
    few = replicate_interval(50.0, replicates, n=9, groups=9, level=0.9, method="m")
    assert isinstance(few, Estimate)
    assert few.method == "m, 100 resamples, 5 of 100 resamples undefined and left out"
    replicates[5] = np.nan
    many = replicate_interval(50.0, replicates, n=9, groups=9, level=0.9, method="m")
    assert many == Undefined(reason="undefined in 6 of 100 resamples", n=9, value=50.0)


def test_clusters_that_balance_out_are_no_more_than_their_rows():
    hits = [1, 0] * 10 + [1, 1]
    found = rate_interval(hits, clusters=[row // 2 for row in range(22)])
    assert (found.low, found.high) == pytest.approx(wilson_ends(12 / 22, 22, student_quantile(0.95, 10)))


def test_a_random_sign_flip_counts_what_was_seen_and_is_never_certain(rng):
    found = sign_flip_test(np.ones(60), np.zeros(60), rng=rng, flips=999)
    assert (found.method, found.p_value) == ("random", 1 / 1000)


def test_shares_by_case_have_the_interval_of_their_clustered_samples():
    drawn = np.random.default_rng(4).integers(0, 2, size=(30, 3))
    alike = np.tile([0, 1, 1], (30, 1))
    for samples in (drawn, alike, np.ones((30, 3)), drawn[:, [0, 0, 0]]):
        ours = share_interval(samples.mean(axis=1), samples=3)
        whole = rate_interval(samples.ravel(), clusters=np.repeat(np.arange(30), 3))
        assert (ours.value, ours.low, ours.high) == pytest.approx((whole.value, whole.low, whole.high), abs=1e-12)
    assert share_interval([0, 1, 1]) == rate_interval([0, 1, 1])
    assert share_interval([]) == Undefined(reason="no rows", n=0)
    with pytest.raises(ValueError, match="between 0 and 1"):
        share_interval([0.5, 1.5])
