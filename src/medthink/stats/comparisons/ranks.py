"""All runs against all others on the same cases: verdicts, p-values, intervals, rank ranges and tiers, from one test.

Everything here follows from one threshold: two runs are *separated* when their statistic exceeds it. So a verdict, its
interval, a rank range, a letter and a tier cannot contradict each other.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from medthink.stats.comparisons.differences import difference_intervals
from medthink.stats.comparisons.paired import (
    FLIPS,
    TOLERANCE,
    critical_value,
    family_floor,
    family_p,
    flip_maxima,
    mcnemar_p,
    pair_statistics,
)
from medthink.stats.estimate import Floats, Measured, as_floats, check_level
from medthink.stats.intervals import mean_interval, rate_interval

Bools = npt.NDArray[np.bool_]
MOST_LETTERS = 200


def letter_display(apart: Bools, order: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """The compact letter display (Piepho 2004): two runs share a letter exactly when they are not `apart`.

    One letter for each maximal set of runs of which no two are apart, in the `order` of the runs. If there would be
    more than 200, no run has any.
    """
    together = {i: {j for j in order if j != i and not apart[i, j]} for i in order}
    cliques = list(islice(_cliques(together, [], set(order), set()), MOST_LETTERS + 1))
    if len(cliques) > MOST_LETTERS:
        return dict.fromkeys(order, ())
    place = {run: k for k, run in enumerate(order)}
    listed = sorted(sorted(place[run] for run in clique) for clique in cliques)
    return {run: tuple(_letter(k) for k, clique in enumerate(listed) if place[run] in clique) for run in order}


def tiers_of(apart: Bools, order: Sequence[int]) -> dict[int, int]:
    """The finest tiers: every run of a higher one is `apart` from every run of a lower one.

    They are the connected parts of the graph of runs that are not apart, numbered in the `order` of the runs.
    """
    tiers: dict[int, int] = {}
    for first in order:
        if first in tiers:
            continue
        number, waiting = len(set(tiers.values())) + 1, [first]
        while waiting:
            run = waiting.pop()
            if run not in tiers:
                tiers[run] = number
                waiting += [other for other in order if other not in tiers and not apart[run, other]]
    return tiers


def tie_groups(apart: Bools, order: Sequence[int]) -> dict[int, int]:
    """Groups for a table in the `order` of the runs: each begins with the next run that is `apart` from the last start.

    No run of a group is apart from its first run. Runs of two groups may still not be apart.
    """
    groups: dict[int, int] = {}
    first = number = 0
    for run in order:
        if not groups or apart[first, run]:
            first, number = run, number + 1
        groups[run] = number
    return groups


def _cliques(together: dict[int, set[int]], inside: list[int], open_: set[int], done: set[int]) -> Iterator[list[int]]:
    """The largest sets of runs that are all together (Bron and Kerbosch 1973, with a pivot)."""
    if not open_ and not done:
        yield inside
        return
    pivot = max(open_ | done, key=lambda run: len(together[run] & open_))
    for run in sorted(open_ - together[pivot]):
        yield from _cliques(together, [*inside, run], open_ & together[run], done & together[run])
        open_, done = open_ - {run}, done | {run}


def _letter(number: int) -> str:
    """a … z, aa, ab …"""
    letters = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("a") + rest) + letters
    return letters


class RankedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run's rank among the others.

    `rank`…`worst` contains the true rank: 1 + the runs shown to be better … all runs − those shown to be worse. A
    *leader* is a run that none is shown to be better than. Two runs share a letter exactly when they are not
    separated (no letters where they would be too many). Every run of a higher `tier` (1 is the highest) is separated
    from every run of a lower one; within a tier no claim is made. No run in a `group` is separated from its first.
    """

    run: int
    mean: Measured
    rank: int
    worst: int
    is_leader: bool
    letters: tuple[str, ...]
    tier: int
    group: int


class RankedPair(msgspec.Struct, frozen=True, kw_only=True):
    """Run `a` against run `b` (rows of the scores): difference a − b, and whether the two are separated.

    `statistic` is |Σd|/√Σd², McNemar's z for right and wrong; `p_value` is adjusted for all pairs; `won` and `lost`
    count the cases on which a is above b and below it. `discordance` is the mean of d².
    """

    a: int
    b: int
    won: int
    lost: int
    discordance: float
    statistic: float
    p_value: float
    is_different: bool
    difference: Measured


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """The runs, best mean first (`run` is the row they came from), all pairs of them, and the one threshold.

    `threshold` is what a pair's statistic must exceed; the intervals of differences have it as their z. `power_z` is
    what the power of a pair is computed with: the same, or None for two runs that got the exact test. A `p_value` equal
    to `p_floor` means "this or less"; two runs of right and wrong answers get an exact test, and a floor of 0.
    """

    runs: tuple[RankedRun, ...]
    pairs: tuple[RankedPair, ...]
    cases: int
    level: float
    threshold: float
    power_z: float | None
    flips: int
    p_floor: float
    method: str


class _Test(NamedTuple):
    """Signed statistics and adjusted p-values (runs × runs), with the threshold they were compared with."""

    statistics: Floats
    p_values: Floats
    threshold: float
    flips: int


def rank_runs(
    scores: npt.ArrayLike,
    *,
    cases: Sequence[str | int],
    rng: np.random.Generator,
    level: float = 0.95,
    flips: int = FLIPS,
    with_pairs: bool = True,
) -> Ranking:
    """Compare all runs (runs × cases, or runs × cases × samples, higher is better) in one family.

    For each pair t = |Σd|/√Σd² over the cases' differences d (McNemar's z for right and wrong). Random signs, the
    same for all runs, give the distribution of the largest t when runs are exchangeable; its quantile c is the one
    threshold (single-step max-t of Westfall and Young 1993, by sign flips), never below what a pair alone would need
    (`family_floor`). At `level`, no two equal runs are called different, the range 1 + (better) … R − (worse) holds
    every run's true rank (Mogstad, Romano, Shaikh and Wilhelm 2024), and the leaders include every truly best run. If A
    is separated from B and B from C, A is from C (Minkowski's inequality), so tiers never interleave. Two runs of right
    and wrong answers get the exact McNemar test.

    Intervals belong to the verdicts: Tango's with z = c for right and wrong, the inverted t otherwise; they exclude 0
    exactly when the runs are separated. Rivals: bootstrap max-t, which fails at about 90 cases with many runs; Holm
    over exact tests, valid but without intervals or consistency; percentiles of resampled ranks, no confidence set.

    Samples are averaged per case first. Neither the order of cases nor that of runs changes the result. Hundreds of
    runs have tens of thousands of pairs; `with_pairs` unset leaves them out, and nothing else changes.
    """
    check_level(level)
    means = _case_matrix(scores, cases)
    is_binary = bool(np.isin(means, (0.0, 1.0)).all())
    is_exact = is_binary and len(means) == 2
    test = _exact_test(means, level) if is_exact else _flip_test(means, level, rng=rng, flips=flips)
    separated = test.statistics > test.threshold + TOLERANCE
    return Ranking(
        runs=_ranked_runs(means, separated, level=level, is_binary=is_binary),
        pairs=_ranked_pairs(means, test, separated, level=level) if with_pairs else (),
        cases=means.shape[1],
        level=level,
        threshold=test.threshold,
        power_z=None if is_exact else test.threshold,
        flips=test.flips,
        p_floor=0.0 if is_exact else 1 / (1 + test.flips),
        method="exact McNemar test" if is_exact else "sign flips, largest statistic over all pairs",
    )


def _case_matrix(scores: npt.ArrayLike, cases: Sequence[str | int]) -> Floats:
    table = as_floats(scores, name="scores")
    if table.ndim == 3:
        table = table.mean(axis=2)
    labels = np.asarray(cases)
    if table.ndim != 2 or labels.shape != table.shape[1:]:
        raise ValueError(f"scores of shape {table.shape} need one label per case, got {labels.shape}")
    if len(np.unique(labels)) != len(labels) or not len(labels):
        raise ValueError("there must be at least one case, each named once")
    return np.ascontiguousarray(table[:, np.argsort(labels)])


def _flip_test(means: Floats, level: float, *, rng: np.random.Generator, flips: int) -> _Test:
    everything = [np.arange(means.shape[1])]
    maxima = flip_maxima(means, everything, rng=rng, flips=flips)
    statistics = pair_statistics(means)
    threshold = max(critical_value(maxima, level), family_floor(means, everything, level))
    return _Test(statistics, family_p(statistics, maxima, threshold=threshold, level=level), threshold, flips)


def _exact_test(means: Floats, level: float) -> _Test:
    """The exact McNemar test of two runs, with the threshold on z that rejects just when it does."""
    p = mcnemar_p(int((means[0] > means[1]).sum()), int((means[1] > means[0]).sum()))
    threshold = family_floor(means, [np.arange(means.shape[1])], level)
    return _Test(pair_statistics(means), np.array([[1.0, p], [p, 1.0]]), threshold, 0)


def _ranked_runs(means: Floats, separated: Bools, *, level: float, is_binary: bool) -> tuple[RankedRun, ...]:
    """`separated[a, b]`: a is shown to be better than b."""
    # Rounding must not decide between equals: they keep the order in which they came.
    order = [int(i) for i in np.lexsort([np.arange(len(means)), -np.round(means.mean(axis=1), 9)])]
    apart = separated | separated.T
    letters, tiers, groups = letter_display(apart, order), tiers_of(apart, order), tie_groups(apart, order)
    return tuple(
        RankedRun(
            run=i,
            mean=rate_interval(means[i], level=level) if is_binary else mean_interval(means[i], level=level),
            rank=1 + int(separated[:, i].sum()),
            worst=len(means) - int(separated[i].sum()),
            is_leader=not separated[:, i].any(),
            letters=letters[i],
            tier=tiers[i],
            group=groups[i],
        )
        for i in order
    )


def _ranked_pairs(means: Floats, test: _Test, separated: Bools, *, level: float) -> tuple[RankedPair, ...]:
    first, second = np.triu_indices(len(means), k=1)
    gaps = means[first] - means[second]
    won, lost = (gaps > 0).sum(axis=1), (gaps < 0).sum(axis=1)
    differences = difference_intervals(gaps, test.threshold, level=level)
    return tuple(
        RankedPair(
            a=int(a),
            b=int(b),
            won=int(won[k]),
            lost=int(lost[k]),
            discordance=float((gaps[k] ** 2).mean()),
            statistic=abs(float(test.statistics[a, b])),
            p_value=float(test.p_values[a, b]),
            is_different=bool(separated[a, b] or separated[b, a]),
            difference=differences[k],
        )
        for k, (a, b) in enumerate(zip(first, second, strict=True))
    )


def pareto_set(costs: Sequence[float], values: Sequence[float]) -> list[int]:
    """The indices of the Pareto-optimal choices, cheapest first: none is beaten on one axis at no loss on the other.

    Choices equal in both are all included. Uncertainty is ignored: show the intervals next to a set made from
    estimates.
    """
    order = sorted(range(len(costs)), key=lambda i: (costs[i], -values[i]))
    found: list[int] = []
    for i in order:
        last = found[-1] if found else None
        if last is None or values[i] > values[last] or (values[i], costs[i]) == (values[last], costs[last]):
            found.append(i)
    return found
