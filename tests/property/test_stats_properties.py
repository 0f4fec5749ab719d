"""Row order, seeds and symmetry: what may not change a statistic, does not."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medthink.scoring.comparable import rank_together
from medthink.stats import (
    Estimate,
    Game,
    bootstrap_mean,
    bradley_terry,
    calibration,
    cohen_kappa,
    confusion,
    corrected_clustered_rate,
    gain_over_rivals,
    gwet_ac,
    holm,
    mcnemar,
    mean_interval,
    ordered_agreement,
    paired_difference,
    panel_agreement,
    powered_rate,
    rank_runs,
    rate_interval,
    rater_agreement,
    repeated_mean,
    share_interval,
    sign_flip_test,
    wilson,
)

quick = settings(max_examples=25)


# Each takes (values, other values, 0/1 rows, other 0/1 rows, clusters, generator); any shuffle of rows is equal.
STATISTICS = {
    "bootstrap_mean": lambda x, y, a, b, c, rng: bootstrap_mean(x, clusters=c, rng=rng, resamples=50),
    "bootstrap_mean_unclustered": lambda x, y, a, b, c, rng: bootstrap_mean(x, rng=rng, resamples=50),
    "mean_interval": lambda x, y, a, b, c, rng: mean_interval(x, clusters=c),
    "rate_interval": lambda x, y, a, b, c, rng: rate_interval(a, clusters=c),
    "paired_difference": lambda x, y, a, b, c, rng: paired_difference(x, y, clusters=c, rng=rng, resamples=50),
    "sign_flip_test": lambda x, y, a, b, c, rng: sign_flip_test(x, y, clusters=c, rng=rng, flips=50),
    "mcnemar": lambda x, y, a, b, c, rng: mcnemar(a, b),
    "agreement": lambda x, y, a, b, c, rng: rater_agreement(a, b, clusters=c, rng=rng, resamples=30),
    "agreement_unclustered": lambda x, y, a, b, c, rng: rater_agreement(a, b, rng=rng, resamples=30),
    "ordered_agreement": lambda x, y, a, b, c, rng: ordered_agreement(
        a, b, categories=[0, 1, 2], clusters=c, rng=rng, resamples=30
    ),
    "panel_agreement": lambda x, y, a, b, c, rng: panel_agreement(
        np.column_stack([a, b, a]).tolist(), clusters=c, rng=rng, resamples=30
    ),
    "repeated_mean": lambda x, y, a, b, c, rng: repeated_mean(x, cases=c),
    "calibration": lambda x, y, a, b, c, rng: calibration(1 / (1 + np.exp(-x)), a, clusters=c, rng=rng, resamples=20),
    "corrected_clustered_rate": lambda x, y, a, b, c, rng: corrected_clustered_rate(
        a, b.astype(bool).tolist(), clusters=c, rng=rng, resamples=50
    ),
}


@pytest.mark.parametrize("name", STATISTICS)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32), n=st.integers(2, 40))
def test_rows_in_any_order_give_the_same_to_the_bit(name, seed, n):
    source = np.random.default_rng(seed)
    x, y = source.normal(size=(2, n))
    a, b = source.integers(0, 2, size=(2, n))
    rows = [x, y, a, b, source.integers(0, 6, size=n)]
    order = source.permutation(n)
    straight = STATISTICS[name](*rows, np.random.default_rng(seed))
    shuffled = STATISTICS[name](*(column[order] for column in rows), np.random.default_rng(seed))
    assert straight == shuffled


@quick
@given(seed=st.integers(0, 2**32), samples=st.sampled_from([1, 3]))
def test_ranks_depend_on_neither_order(seed, samples):
    source = np.random.default_rng(seed)
    scores = source.integers(0, 2, size=(5, 30, samples)).astype(float)
    cases = np.array([f"case-{k}" for k in range(30)])
    columns, rows = source.permutation(30), source.permutation(5)
    straight = rank_runs(scores, cases=cases, rng=np.random.default_rng(seed), flips=99)
    moved = rank_runs(scores[rows][:, columns], cases=cases[columns], rng=np.random.default_rng(seed), flips=99)
    assert moved.threshold == pytest.approx(straight.threshold)
    found = {one.run: (one.mean, one.rank, one.worst, one.is_leader, one.tier) for one in straight.runs}
    assert {int(rows[one.run]): (one.mean, one.rank, one.worst, one.is_leader, one.tier) for one in moved.runs} == found


@quick
@given(
    seed=st.integers(0, 2**32),
    runs=st.integers(2, 9),
    cases=st.sampled_from([2, 12, 60]),
    samples=st.sampled_from([1, 2]),
)
def test_no_statement_about_the_same_runs_contradicts_another(seed, runs, cases, samples):
    source = np.random.default_rng(seed)
    skills = source.choice([0.1, 0.3, 0.5, 0.7, 0.9], size=(runs, 1, 1))
    scores = (source.random((runs, cases, samples)) < skills).astype(float)
    ranking = rank_runs(scores, cases=range(cases), rng=source, flips=99)
    places = {one.run: one for one in ranking.runs}
    better = {}
    for pair in ranking.pairs:
        assert pair.is_different == (pair.statistic > ranking.threshold + 1e-9) == (pair.p_value <= 0.05)
        if isinstance(pair.difference, Estimate):
            assert pair.is_different == (not pair.difference.low <= 0 <= pair.difference.high)
        a, b = places[pair.a], places[pair.b]
        assert pair.is_different == (not set(a.letters) & set(b.letters))
        better[pair.a, pair.b] = pair.is_different and pair.difference.value > 0
        better[pair.b, pair.a] = pair.is_different and pair.difference.value < 0
        if a.tier != b.tier:
            assert better[pair.a, pair.b] if a.tier < b.tier else better[pair.b, pair.a]
    for one in ranking.runs:
        assert one.rank == 1 + sum(better[other, one.run] for other in places if other != one.run)
        assert one.worst == runs - sum(better[one.run, other] for other in places if other != one.run)
        assert one.is_leader == (one.rank == 1)
    triples = [(a, b, c) for a in places for b in places for c in places if len({a, b, c}) == 3]
    assert all(better[a, c] for a, b, c in triples if better[a, b] and better[b, c])
    tiers = [one.tier for one in ranking.runs]
    assert tiers == sorted(tiers)


@quick
@given(
    seed=st.integers(0, 2**32),
    runs=st.integers(2, 5),
    cases=st.sampled_from([6, 20, 60]),
    samples=st.sampled_from([1, 3]),
    accuracy=st.sampled_from([0.5, 0.9, 0.99]),
)
def test_a_further_run_never_narrows_an_interval(seed, runs, cases, samples, accuracy):
    source = np.random.default_rng(seed)
    scores = source.random((runs + 1, cases, samples)) < accuracy
    if source.random() < 0.5:
        scores[-1] = scores[0]
    few, more = (
        {(one.a, one.b): one.difference for one in rank_together(part.mean(axis=2), range(cases)).pairs}
        for part in (scores[:-1], scores)
    )
    for pair, before in few.items():
        after = more[pair]
        assert isinstance(before, Estimate) or not isinstance(after, Estimate)
        if isinstance(after, Estimate):
            assert before.low < before.high
            assert after.low <= before.low + 1e-12 and before.high <= after.high + 1e-12


def every_estimate(found):
    """All estimates in a result, however deep."""
    if isinstance(found, Estimate):
        return [found]
    if isinstance(found, msgspec.Struct):
        return every_estimate([getattr(found, name) for name in found.__struct_fields__])
    return [one for part in found for one in every_estimate(part)] if isinstance(found, list | tuple) else []


# Rows in which nothing varies between clusters, or little: alike, cancelling, nearly always right, in thirds.
NEARLY_ALIKE = {
    "alike": lambda source, n: np.full(n, source.choice([0.0, 1.0, 0.1, 1 / 3])),
    "cancelling": lambda source, n: np.tile([0.0, 1.0], n)[:n],
    "tenths": lambda source, n: np.tile([0.1, 0.2, 0.3, 0.3, 0.2, 0.1], n)[:n],
    "nearly always right": lambda source, n: (source.random(n) < 0.97).astype(float),
    "rounding": lambda source, n: source.choice([0.3, 0.1 + 0.2], n),
    "thirds": lambda source, n: source.integers(0, 4, n) / 3,
}


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32),
    kinds=st.tuples(*[st.sampled_from(sorted(NEARLY_ALIKE))] * 2),
    cases=st.integers(1, 20),
    size=st.sampled_from([1, 2, 3, 6]),
)
def test_every_interval_has_a_width(seed, kinds, cases, size):
    source = np.random.default_rng(seed)
    n = cases * size
    x, y = (NEARLY_ALIKE[kind](source, n) for kind in kinds)
    a, b = np.round(x), np.round(y)
    clusters = np.repeat(np.arange(cases), size)
    read = np.where(clusters < max(2, cases // 2), y, np.nan)
    games = [Game(int(p), int(q), float(v), int(k)) for p, q, v, k in zip(a, 2 + b, a, clusters, strict=True)]
    results = [
        *(run(x, y, a.astype(int), b.astype(int), clusters, source) for run in STATISTICS.values()),
        share_interval(x),
        share_interval(x.reshape(cases, size).mean(axis=1), samples=size),
        gain_over_rivals(x, [y, a], rng=source),
        powered_rate(x, read, clusters=clusters),
        rank_runs([x, y, a], cases=range(n), rng=source, flips=99),
        bradley_terry(games, rng=source, flips=99),
    ]
    for one in every_estimate(results):
        assert one.high - one.low > 1e-10, one
        assert one.low <= one.value <= one.high or one.method.startswith("percentile"), one


@quick
@given(seed=st.integers(0, 2**32), n=st.integers(3, 60))
def test_exchanging_the_runs_turns_the_difference_and_keeps_the_test(seed, n):
    source = np.random.default_rng(seed)
    a, b = source.integers(0, 5, size=(2, n))
    clusters = source.integers(0, 20, size=n)
    there = paired_difference(a, b, clusters=clusters, rng=np.random.default_rng(seed), resamples=100)
    back = paired_difference(b, a, clusters=clusters, rng=np.random.default_rng(seed), resamples=100)
    assert there.value == pytest.approx(-back.value, abs=1e-12)
    if isinstance(there, Estimate):
        assert (there.low, there.high) == pytest.approx((-back.high, -back.low), abs=1e-9)
    first = sign_flip_test(a, b, clusters=clusters, rng=np.random.default_rng(seed), flips=200)
    second = sign_flip_test(b, a, clusters=clusters, rng=np.random.default_rng(seed), flips=200)
    assert first == second
    assert 0 < first.p_value <= 1


@quick
@given(k=st.integers(0, 200), extra=st.integers(0, 200), level=st.floats(0.5, 0.999))
def test_wilson_is_symmetric_and_holds_its_rate(k, extra, level):
    n = k + extra
    if n == 0:
        return
    hits, misses = wilson(k, n, level=level), wilson(extra, n, level=level)
    assert 0 <= hits.low <= hits.value <= hits.high <= 1
    assert (hits.low, hits.high) == pytest.approx((1 - misses.high, 1 - misses.low), abs=1e-12)


tables = st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=3, max_size=3)


@quick
@given(table=tables, order=st.permutations(range(3)))
def test_coefficients_do_not_depend_on_who_is_first_or_on_names(table, order):
    counts = np.array(table)
    renamed = counts[np.ix_(order, order)]
    for coefficient in (cohen_kappa, gwet_ac):
        value = coefficient(counts)
        for other in (counts.T, renamed):
            assert coefficient(other) == (None if value is None else pytest.approx(value, abs=1e-12))
        assert value is None or -1 - 1e-12 <= value <= 1 + 1e-12
    reversed_scale = counts[::-1, ::-1]
    for weighting in ("linear", "quadratic"):
        value = cohen_kappa(counts, weighting=weighting)
        turned = cohen_kappa(reversed_scale, weighting=weighting)
        assert turned == (None if value is None else pytest.approx(value, abs=1e-12))


@quick
@given(labels=st.lists(st.sampled_from("abc"), min_size=2, max_size=30))
def test_full_agreement_is_one_or_undefined(labels):
    table = confusion(labels, labels, categories="abc")
    constant = len(set(labels)) == 1
    rng = np.random.default_rng(0)
    found = rater_agreement(labels, labels, categories="abc", rng=rng, resamples=10)
    alpha = panel_agreement([[x, x] for x in labels], rng=rng, resamples=10).alpha
    for value in (cohen_kappa(table), found.mcc.value, alpha.value):
        assert value == (None if constant else pytest.approx(1.0))
    assert gwet_ac(table) == pytest.approx(1.0)


@quick
@given(p_values=st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_lies_between_p_and_bonferroni_and_keeps_the_order(p_values):
    adjusted = holm(p_values)
    plain = np.array(p_values)
    assert (adjusted >= plain).all()
    assert (adjusted <= np.minimum(1.0, plain * len(plain)) + 1e-15).all()
    assert (np.diff(adjusted[np.argsort(plain, kind="stable")]) >= 0).all()
