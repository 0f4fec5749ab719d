"""Sequences hold at every look: simulate, watch every case, count how often the truth is ever outside."""

import numpy as np
import pytest
from scipy.stats import binom

from medthink.stats import MeanSequence, RateSequence, SignSequence, mcnemar_p


def ever_outside(sequence, values, truth):
    is_out = False
    for value in values:
        sequence.see(value)
        is_out |= not sequence.low - 1e-9 <= truth <= sequence.high + 1e-9
    return is_out


def assert_rare(count, trials, rate=0.05):
    assert count <= binom.isf(1e-4, trials, rate), f"{count} of {trials}"


@pytest.mark.parametrize("rate", [0.3, 0.9])
def test_a_rate_of_these_cases_is_covered_at_every_look_and_exact_at_the_end(rate):
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(120):
        hits = np.arange(100) < rate * 100
        rng.shuffle(hits)
        sequence = RateSequence(100)
        is_out = ever_outside(sequence, hits.tolist(), rate)
        missed += is_out
        assert is_out or sequence.low == pytest.approx(sequence.high) == pytest.approx(rate)
    assert_rare(missed, 120)


def test_a_rate_of_such_cases_is_covered_at_every_look():
    rng = np.random.default_rng(2)
    missed = sum(
        ever_outside(RateSequence(150, claim="such"), (rng.random(150) < 0.6).tolist(), 0.6) for _ in range(100)
    )
    assert_rare(missed, 100)


def test_half_widths_are_those_of_the_page():
    hits = np.random.default_rng(3).permutation(np.arange(720) < 432)
    widths = []
    sequence = RateSequence(720)
    for k, hit in enumerate(hits.tolist(), start=1):
        sequence.see(hit)
        if k in (90, 360):
            widths.append((sequence.high - sequence.low) / 2)
    assert widths == pytest.approx([0.15, 0.063], abs=0.02)


def test_a_difference_of_these_cases_is_covered_and_equal_runs_are_not_told_apart():
    rng = np.random.default_rng(4)
    missed = false = 0
    for _ in range(100):
        gaps = rng.permutation(np.repeat([-1.0, 0.0, 1.0], [15, 70, 15]))
        sequence = MeanSequence(100)
        missed += ever_outside(sequence, gaps.tolist(), 0.0)
        false += not sequence.low <= 0 <= sequence.high
    assert_rare(missed, 100)
    assert_rare(false, 100)


def test_peeking_at_mcnemar_is_wrong_where_the_sequences_are_not():
    rng = np.random.default_rng(5)
    peeked = bet = 0
    for _ in range(150):
        signs = rng.choice([-1, 1], size=100)
        sequence, seen = SignSequence(), False
        for k, sign in enumerate(signs.tolist(), start=1):
            sequence.see(sign)
            seen |= k % 10 == 0 and mcnemar_p(sequence.won, sequence.lost) <= 0.05
        peeked, bet = peeked + seen, bet + (sequence.verdict != 0)
    assert_rare(bet, 150)
    assert peeked > 0.1 * 150


def test_a_large_gap_is_known_early():
    rng = np.random.default_rng(6)
    used = []
    for _ in range(8):
        gaps = rng.permutation(np.repeat([-1.0, 0.0, 1.0], [36, 504, 180]))
        sequence, sign = MeanSequence(720), SignSequence()
        for gap in gaps.tolist():
            sequence.see(gap)
            sign.see(gap)
            if sequence.low > 0:
                break
        used.append(sequence.seen / 720)
        assert sign.won > sign.lost
    assert np.mean(used) < 0.2


def test_more_cases_than_there_are_is_refused():
    for sequence in (MeanSequence(1), RateSequence(1)):
        sequence.see(1)
        with pytest.raises(ValueError, match="more than the 1 cases"):
            sequence.see(1)


def test_fractions_may_be_watched_too():
    values = np.random.default_rng(7).integers(0, 4, size=60) / 3
    sequence = MeanSequence(60, bounds=(0.0, 1.0))
    assert not ever_outside(sequence, values.tolist(), values.mean())
    assert sequence.low == sequence.high == pytest.approx(values.mean())


def test_a_bet_on_signs_refuses_fractions_for_which_the_sign_is_not_the_difference():
    with pytest.raises(ValueError, match="MeanSequence"):
        SignSequence().see(0.2)


def test_the_mean_of_such_differences_is_covered_at_every_look_and_follows_the_mean_not_the_signs():
    rng = np.random.default_rng(8)
    missed = wrong = 0
    for _ in range(60):
        values = np.where(rng.random(200) < 0.62, 0.2, -0.8)
        sequence = MeanSequence(200, claim="such")
        missed += ever_outside(sequence, values.tolist(), 0.62 * 0.2 - 0.38 * 0.8)
        wrong += sequence.low > 0
    assert_rare(missed, 60)
    assert wrong == 0 and sequence.high < 0
