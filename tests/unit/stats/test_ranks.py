"""All pairs of runs as one family: what is said about equal runs is false in at most 5 % of data sets."""

import numpy as np
import pytest
from scipy.stats import binom

from medthink.stats import Undefined, mcnemar_p, rank_runs
from medthink.stats.comparisons.differences import compare_in_parts
from medthink.stats.comparisons.paired import tango_ends
from medthink.stats.comparisons.ranks import letter_display, tie_groups


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def outcomes(rng, skills, cases):
    """Right and wrong of runs on cases that are hard or easy for all, and for families of runs."""
    skills = np.asarray(skills)
    hard = rng.normal(0, 1.5, size=cases)
    kin = rng.normal(0, 1, size=(4, cases))[np.arange(len(skills)) % 4]
    return (rng.random((len(skills), cases)) < 1 / (1 + np.exp(hard - kin - skills[:, None]))).astype(float)


def all_tie(scores, rng):
    """Whether every run may have every rank, so that no two are called different."""
    ranking = rank_runs(scores, cases=range(scores.shape[1]), rng=rng, flips=199, with_pairs=False)
    return all((one.rank, one.worst) == (1, len(scores)) for one in ranking.runs)


def assert_rate_at_most(count, trials, rate):
    assert count <= binom.isf(1e-4, trials, rate), f"{count} of {trials}, where at most {rate:.0%} is claimed"


def test_the_threshold_grows_with_the_runs():
    thresholds = [
        rank_runs(outcomes(np.random.default_rng(1), [0.5] * runs, 300), cases=range(300), rng=np.random.default_rng(1))
        for runs in (4, 10, 30)
    ]
    assert [one.threshold for one in thresholds] == pytest.approx([2.57, 3.15, 3.7], abs=0.1)
    assert thresholds[0].p_floor == 1 / 20_001


def test_the_interval_of_a_worked_pair():
    # 60 cases won and 28 lost of 300, among four runs: +10.7 points (2.7 to 18.8).
    low, high = tango_ends([60], [28], 300, 2.588)
    assert (low[0], high[0]) == pytest.approx((0.027, 0.188), abs=5e-4)


def test_a_clear_difference_is_seen_however_many_runs_there_are():
    # Among 33 runs, Holm over 10,000 random flips could call nothing different: its p-values cannot fall below 0.053.
    rng = np.random.default_rng(3)
    scores = (rng.random((33, 200)) < 0.5).astype(float)
    scores[0, :53], scores[1, :53] = np.repeat([1.0, 0.0], [50, 3]), np.repeat([0.0, 1.0], [50, 3])
    scores[1, 53:] = scores[0, 53:]
    assert mcnemar_p(50, 3) == pytest.approx(5.5e-12, rel=0.01)
    ranking = rank_runs(scores, cases=range(200), rng=rng)
    pair = next(one for one in ranking.pairs if (one.a, one.b) == (0, 1))
    assert (pair.won, pair.lost, pair.is_different) == (50, 3, True)
    assert pair.p_value == ranking.p_floor < 0.0001


@pytest.mark.parametrize(("runs", "cases", "repeats"), [(10, 90, 400), (30, 150, 250)])
def test_nothing_false_is_said_about_equal_runs(runs, cases, repeats):
    # Groups that began at the leader the data picked split equal runs in 16 % (10 runs) and 35 % (30 runs).
    rng = np.random.default_rng(runs)
    false = 0
    for _ in range(repeats):
        ranking = rank_runs(outcomes(rng, [0.5] * runs, cases), cases=range(cases), rng=rng, flips=199)
        said = any(pair.is_different for pair in ranking.pairs)
        assert said == any((one.rank, one.worst) != (1, runs) for one in ranking.runs)
        assert said or all(one.is_leader and one.tier == 1 for one in ranking.runs)
        false += said
    assert_rate_at_most(false, repeats, 0.055)
    assert false > 0


def test_rank_ranges_cover_together_and_differences_are_found():
    rng = np.random.default_rng(5)
    skills = np.repeat([0.0, 1.2, 2.4], [4, 3, 3])
    best = [1 + int((skills > s).sum()) for s in skills]
    last = [int((skills >= s).sum()) for s in skills]
    missed, found = 0, []
    for _ in range(200):
        ranking = rank_runs(outcomes(rng, skills, 300), cases=range(300), rng=rng, flips=199)
        missed += not all(one.rank <= best[one.run] and last[one.run] <= one.worst for one in ranking.runs)
        found += [pair.is_different for pair in ranking.pairs if skills[pair.a] != skills[pair.b]]
    assert_rate_at_most(missed, 200, 0.05)
    assert np.mean(found) > 0.8


def test_intervals_of_all_pairs_cover_together():
    rng = np.random.default_rng(6)
    skills = np.linspace(0, 1.5, 8)
    truth = outcomes(np.random.default_rng(0), skills, 400_000).mean(axis=1)
    missed = 0
    for _ in range(200):
        ranking = rank_runs(outcomes(rng, skills, 200), cases=range(200), rng=rng, flips=199)
        missed += not all(
            one.difference.low <= truth[one.a] - truth[one.b] <= one.difference.high for one in ranking.pairs
        )
    assert_rate_at_most(missed, 200, 0.07)


@pytest.mark.parametrize("cases", [2, 5, 10, 20])
def test_nothing_false_is_said_on_a_handful_of_cases(cases):
    rng = np.random.default_rng(20)
    false = 0
    for _ in range(200):
        scores = (rng.random((8, cases)) < 0.5).astype(float)
        false += not all_tie(scores, rng)
    assert_rate_at_most(false, 200, 0.05)


def test_runs_far_apart_have_a_rank_and_a_tier_each(rng):
    scores = (rng.random((3, 400)) < np.array([[0.2], [0.9], [0.5]])).astype(float)
    ranking = rank_runs(scores, cases=range(400), rng=rng, flips=499)
    assert [row.run for row in ranking.runs] == [1, 2, 0]
    assert [(row.rank, row.worst, row.tier) for row in ranking.runs] == [(1, 1, 1), (2, 2, 2), (3, 3, 3)]
    assert [row.is_leader for row in ranking.runs] == [True, False, False]
    assert [row.letters for row in ranking.runs] == [("a",), ("b",), ("c",)]


def test_runs_that_are_alike_tie_and_runs_that_share_nothing_do_not(rng):
    row = (rng.random(300) < 0.5).astype(float)
    ranking = rank_runs([row, row, 0 * row, 1 + 0 * row], cases=range(300), rng=rng, flips=499)
    assert [(r.rank, r.worst, r.tier) for r in ranking.runs] == [(1, 1, 1), (2, 3, 2), (2, 3, 2), (4, 4, 3)]
    same = next(pair for pair in ranking.pairs if (pair.a, pair.b) == (0, 1))
    assert (same.statistic, same.p_value, same.difference.value) == (0, 1, 0)
    assert same.difference.low < 0 < same.difference.high


def test_two_runs_get_the_exact_test(rng):
    a, b = np.zeros((2, 60))
    a[:5] = 1
    assert not rank_runs([a, b], cases=range(60), rng=rng).pairs[0].is_different
    a[:6] = 1
    ranking = rank_runs([a, b], cases=range(60), rng=rng)
    assert ranking.pairs[0].is_different
    assert ranking.pairs[0].p_value == mcnemar_p(6, 0)
    assert (ranking.p_floor, ranking.method) == (0.0, "exact McNemar test")


def test_a_difference_of_the_same_size_on_every_case_has_no_interval(rng):
    ranking = rank_runs([[0.5] * 40, [0.2] * 40], cases=range(40), rng=rng, flips=499)
    assert isinstance(ranking.pairs[0].difference, Undefined)
    assert ranking.pairs[0].is_different


def test_samples_are_averaged_per_case_before_ranking():
    samples = np.random.default_rng(5).integers(0, 2, size=(4, 60, 3))
    ours = rank_runs(samples, cases=range(60), rng=np.random.default_rng(1), flips=199)
    flat = rank_runs(samples.mean(axis=2), cases=range(60), rng=np.random.default_rng(1), flips=199)
    assert ours == flat


def test_three_samples_a_case_keep_the_error_rate():
    rng = np.random.default_rng(8)
    false = 0
    for _ in range(250):
        chances = 1 / (1 + np.exp(rng.normal(0, 1.5, size=(100, 1))))
        scores = rng.random((10, 100, 3)) < chances
        false += not all_tie(scores.astype(float), rng)
    assert_rate_at_most(false, 250, 0.055)


def test_letters_are_left_out_where_they_would_be_too_many():
    pairs = 9
    apart = np.zeros((2 * pairs, 2 * pairs), dtype=bool)
    for k in range(pairs):
        apart[2 * k, 2 * k + 1] = apart[2 * k + 1, 2 * k] = True
    assert set(letter_display(apart, range(2 * pairs)).values()) == {()}
    assert len(set().union(*letter_display(apart[:8, :8], range(8)).values())) == 16


def test_slices_are_one_family_over_all_pairs_and_slices():
    rng = np.random.default_rng(9)
    parts = [list(range(k, k + 60)) for k in range(0, 150, 28)]
    false = 0
    for _ in range(200):
        found = compare_in_parts(outcomes(rng, [0.5] * 3, 200), parts, rng=rng, flips=199)
        assert len(found) == 3 * len(parts)
        assert all(one.is_different == (one.p_value <= 0.05) for one in found)
        false += any(one.is_different for one in found)
    assert_rate_at_most(false, 200, 0.05)
    assert compare_in_parts(np.zeros((2, 4)), [], rng=rng) == []


def test_a_group_holds_what_is_not_apart_from_its_first_run():
    apart = np.zeros((5, 5), dtype=bool)
    for a, b in ((0, 2), (0, 3), (0, 4), (1, 4), (2, 4)):
        apart[a, b] = apart[b, a] = True
    assert tie_groups(apart, [0, 1, 2, 3, 4]) == {0: 1, 1: 1, 2: 2, 3: 2, 4: 3}
    assert tie_groups(apart[:0, :0], []) == {}


def test_places_are_the_same_without_the_pairs(rng):
    scores = outcomes(rng, [0.0, 0.4, 1.5], 200)
    whole, bare = (
        rank_runs(scores, cases=range(200), rng=np.random.default_rng(1), flips=199, with_pairs=wanted)
        for wanted in (True, False)
    )
    assert (bare.runs, bare.threshold, bare.pairs) == (whole.runs, whole.threshold, ())
    assert len(whole.pairs) == 3


def test_a_further_run_that_is_like_another_narrows_no_interval(rng):
    # Six discordant of 90: +6.7 (+2.3 to +13.8) with two runs was (+3.5 to +12.3) once a third like the second joined.
    a, b = np.zeros((2, 90))
    a[:6] = 1
    pairs = [rank_runs(runs, cases=range(90), rng=rng).pairs[0] for runs in ([a, b], [a, b, b], [a, b, b, b])]
    for pair in pairs:
        assert (pair.difference.low, pair.difference.high) == pytest.approx((0.0226, 0.1383), abs=2e-3)
        assert pair.is_different and pair.p_value <= 0.05
    same = rank_runs([a, a, a], cases=range(90), rng=rng).pairs[0]
    assert same.difference.low < -0.03 and same.difference.high > 0.03 and not same.is_different


@pytest.mark.parametrize("accuracy", [0.95, 0.99, 0.999])
def test_intervals_of_a_family_cover_where_runs_are_right_nearly_everywhere(accuracy):
    rng, missed = np.random.default_rng(21), 0
    rates = np.linspace(accuracy - (1 - accuracy), min(1, accuracy + (1 - accuracy) / 2), 6)
    for _ in range(150):
        scores = (rng.random((6, 120)) < rates[:, None]).astype(float)
        ranking = rank_runs(scores, cases=range(120), rng=rng, flips=199)
        missed += not all(
            one.difference.low <= rates[one.a] - rates[one.b] <= one.difference.high for one in ranking.pairs
        )
    assert_rate_at_most(missed, 150, 0.07)
