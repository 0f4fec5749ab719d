"""Memory for what is arbitrary: exact by brute force, silent without memory, and seen where it says it would be."""

from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import binom

from medthink.stats.memorisation import labels_recalled, order_favoured, order_gained, places_recalled

ALPHA = 0.0025


def test_places_are_judged_by_every_arrangement():
    named, actual = [(0, 1, 3), (2, 2, 4)], [(0, 3, 1), (2, 4, 0)]
    hits = 1 + 1
    rows = [list(permutations(place)) for place in actual]
    counts = [
        sum(g == a for guess, order in zip(named, orders, strict=True) for g, a in zip(guess, order, strict=True))
        for orders in product(*rows)
    ]
    found = places_recalled(named, actual, alpha=0.05)
    assert found.p_value == pytest.approx(np.mean(np.array(counts) >= hits))
    assert (found.found, found.expected) == (pytest.approx(2 / 6), pytest.approx(np.mean(counts) / 6))


def guess_places(rng, n, remembered=0):
    actual = [rng.permutation(5)[:4].tolist() for _ in range(n)]
    named = [actual[k] if k < remembered else rng.permutation(5)[:4].tolist() for k in range(n)]
    return named, actual


def test_memory_of_places_is_seen_as_often_as_stated_and_luck_is_not():
    rng = np.random.default_rng(1)
    silent = [places_recalled(*guess_places(rng, 100), alpha=ALPHA) for _ in range(150)]
    assert sum(one.p_value <= 0.05 for one in silent) <= binom.ppf(0.9999, 150, 0.05)
    share = np.mean([one.detectable for one in silent])
    seen = [
        places_recalled(*guess_places(rng, 100, round(share * 100)), alpha=ALPHA).p_value <= ALPHA for _ in range(60)
    ]
    assert np.mean(seen) > 0.65


def test_labels_that_follow_the_years_give_no_false_alarm():
    # Content tells the half-year, and so the label within a tenth of its neighbours' reach: no memory of the case.
    rng = np.random.default_rng(2)
    labels = np.sort(rng.choice(9_000, 100, replace=False))
    false = sum(
        labels_recalled((labels + rng.integers(-500, 501, 100)).tolist(), labels.tolist(), alpha=ALPHA, rng=rng).p_value
        <= 0.05
        for _ in range(40)
    )
    assert false <= binom.ppf(0.9999, 40, 0.05)


@pytest.mark.parametrize(("reach", "cases"), [(1, 60), (10, 60), (40, 60), (40, 180), (500, 180)])
def test_a_model_that_dates_finely_and_remembers_nothing_raises_no_alarm(reach, cases):
    rng = np.random.default_rng(reach)
    false = 0
    for _ in range(25):
        labels = np.sort(rng.choice(18_000, cases, replace=False)) + reach
        named = (labels + rng.integers(-reach, reach + 1, cases)).tolist()
        false += labels_recalled(named, labels.tolist(), alpha=ALPHA, rng=rng).p_value <= 0.01
    assert false <= binom.ppf(0.9999, 25, 0.01)


def test_memory_is_seen_beside_fine_dating():
    rng = np.random.default_rng(5)
    labels = np.sort(rng.choice(18_000, 180, replace=False)) + 40
    named = labels + rng.integers(-40, 41, 180)
    named[:36] = labels[:36]
    found = labels_recalled(named.tolist(), labels.tolist(), alpha=ALPHA, rng=rng)
    assert found.p_value < 0.001
    assert 10 <= found.spread <= 30


def test_labels_that_are_known_are_seen():
    rng = np.random.default_rng(3)
    labels = rng.choice(20_000, 100, replace=False)
    nothing = labels_recalled([None] * 100, labels.tolist(), alpha=ALPHA, rng=rng)
    assert (nothing.found, nothing.expected, nothing.p_value) == (0, 0, 1)
    seen = []
    for _ in range(40):
        is_known = rng.random(100) < nothing.detectable
        named = [int(label) if known else 7 for label, known in zip(labels, is_known, strict=True)]
        seen.append(labels_recalled(named, labels.tolist(), alpha=ALPHA, rng=rng).p_value <= ALPHA)
    assert np.mean(seen) > 0.65


def test_a_favoured_order_is_mcnemar_s_exact_test_on_one_side():
    published, other = [1] * 12 + [0] * 3 + [1] * 10, [0] * 12 + [1] * 3 + [1] * 10
    found = order_favoured(published, other, alpha=0.05)
    assert found.p_value == pytest.approx(binom.sf(11, 15, 0.5))
    assert (found.found, found.expected) == (pytest.approx(22 / 25), pytest.approx(13 / 25))
    assert order_favoured([], [], alpha=0.05).p_value == 1


def answers(rng, n, *, liking=0.0, remembered=0.0):
    """Right answers in two orders; the right option stands under A more often in the published one."""
    published, other = rng.choice(5, n, p=[0.3, 0.25, 0.2, 0.15, 0.1]), rng.integers(0, 5, n)
    hard = rng.random(n)

    def right(places):
        return 0.6 * hard + 0.4 * rng.random(n) < np.where(places == 0, 0.5 + liking, 0.5 - liking / 4)

    known = rng.random(n) < remembered
    letters = [["ABCDE"[place] for place in places] for places in (published, other)]
    return right(published) | known, letters[0], right(other), letters[1]


@pytest.mark.parametrize("liking", [0.0, 0.3])
def test_a_liking_for_a_letter_is_not_taken_for_memory(liking):
    rng = np.random.default_rng(4)
    drawn = [answers(rng, 150, liking=liking) for _ in range(300)]
    false = sum(order_gained(*one, alpha=ALPHA).p_value <= 0.05 for one in drawn)
    assert false <= binom.ppf(0.9999, 300, 0.05)
    if liking:  # unweighted, the same answers would be called memory far too often
        naive = [np.mean(one[0]) - np.mean(one[2]) for one in drawn]
        assert np.mean(naive) > 0.02


def test_answers_that_are_better_in_the_published_order_are_seen():
    rng = np.random.default_rng(5)
    reach = np.mean([order_gained(*answers(rng, 150), alpha=ALPHA).detectable for _ in range(30)])
    seen = [order_gained(*answers(rng, 150, remembered=2 * reach), alpha=ALPHA).p_value <= ALPHA for _ in range(100)]
    assert np.mean(seen) > 0.7
    assert order_gained([1, 0], ["A", "B"], [1, 0], ["A", "A"], alpha=ALPHA) is None
