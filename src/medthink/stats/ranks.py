"""Ranks of many runs on the same cases, as ranges, with ties said to be ties."""

from collections.abc import Sequence
from statistics import NormalDist

import msgspec
import numpy as np
import numpy.typing as npt

from medthink.stats.bootstrap import replicate_interval, resample_totals
from medthink.stats.clusters import Floats, Ints, as_floats
from medthink.stats.estimate import Measured, check_level
from medthink.stats.student import student_quantile

Bools = npt.NDArray[np.bool_]


class RankedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run's place among the others.

    `rank` is 1 + the number of runs significantly better; `rank`…`worst` is the range that holds the
    true rank at the level asked; `spread_low`…`spread_high` is where the resampled ranks fall; runs of one
    `group` cannot be told from the best of the group.
    """

    run: int
    mean: Measured
    rank: int
    worst: int
    spread_low: int
    spread_high: int
    group: int


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """The runs, best mean first (`run` is the row they came from), and how they were compared."""

    runs: tuple[RankedRun, ...]
    cases: int
    level: float
    resamples: int
    method: str


def rank_runs(
    scores: npt.ArrayLike,
    *,
    cases: Sequence[str | int],
    rng: np.random.Generator,
    level: float = 0.95,
    resamples: int = 10_000,
) -> Ranking:
    """Rank runs (runs × cases, or runs × cases × samples, higher is better) by a paired bootstrap over cases.

    All runs see the same drawn cases. For each run, its studentised differences from all others are
    compared with the bootstrap quantile of their largest deviation (max-t), so the statement "these are
    better, those are worse" holds at `level` for all its comparisons together. The range 1 + (number
    better) … R − (number worse) then holds the true rank with at least that probability, ties included
    (Mogstad, Romano, Shaikh and Wilhelm 2024). Rival: percentiles of the resampled ranks (`spread`), what
    most boards print; they describe the jitter of the table, but miss the true rank when runs are close.

    For few cases the quantile is widened as Student's is, and two runs are told apart only if they differ on
    so many cases that an exact test could tell them apart too (six at 95 %).

    Samples are averaged per case first. The result does not depend on the order of cases.
    """
    check_level(level)
    means = _case_matrix(scores, cases)
    replicates = resample_totals(means.T, resamples=resamples, rng=rng) / means.shape[1]
    better, worse = _tell_apart(means, replicates, level)
    ranks = _ranks(replicates)
    spread_low = np.quantile(ranks, (1 - level) / 2, axis=0, method="lower")
    spread_high = np.quantile(ranks, (1 + level) / 2, axis=0, method="higher")
    order = np.lexsort([np.arange(len(means)), -means.mean(axis=1)])
    groups = _groups(order, worse)
    runs = tuple(
        RankedRun(
            run=int(i),
            mean=_run_mean(means[i], replicates[:, i], level),
            rank=1 + int(better[:, i].sum()),
            worst=len(means) - int(worse[:, i].sum()),
            spread_low=int(spread_low[i]),
            spread_high=int(spread_high[i]),
            group=groups[int(i)],
        )
        for i in order
    )
    method = "paired bootstrap over cases, max-t over each run's comparisons"
    return Ranking(runs=runs, cases=means.shape[1], level=level, resamples=resamples, method=method)


def _case_matrix(scores: npt.ArrayLike, cases: Sequence[str | int]) -> Floats:
    table = as_floats(scores, name="scores")
    if table.ndim == 3:
        table = table.mean(axis=2)
    labels = np.asarray(cases)
    if table.ndim != 2 or labels.shape != table.shape[1:]:
        raise ValueError(f"scores of shape {table.shape} need one label per case, got {labels.shape}")
    if len(np.unique(labels)) != len(labels) or len(labels) < 2:
        raise ValueError("cases must be two or more, each named once")
    return np.ascontiguousarray(table[:, np.argsort(labels)])


def _run_mean(means: Floats, replicates: Floats, level: float) -> Measured:
    value, n = float(means.mean()), len(means)
    return replicate_interval(value, replicates, n=n, groups=n, level=level, method="percentile bootstrap")


def _standard_errors(means: Floats) -> Floats:
    """Standard errors of all paired differences of means (runs × runs)."""
    covariance = np.atleast_2d(np.cov(means))
    variances = np.diag(covariance)
    squares = variances[:, None] + variances[None, :] - 2 * covariance
    # Two equal runs differ by rounding only; a true variance is never this small beside its parts.
    squares[squares < 1e-12 * (variances[:, None] + variances[None, :])] = 0
    errors: Floats = np.sqrt(squares / means.shape[1])
    return errors


def _tell_apart(means: Floats, replicates: Floats, level: float) -> tuple[Bools, Bools]:
    """Whether run j is significantly better, and significantly worse, than run i: both at [j, i].

    Each column is one family with its own critical value, so [j, i] and [i, j] may differ at the margin.
    """
    errors, centre = _standard_errors(means), means.mean(axis=1)
    deviations = (replicates - centre).T
    better, worse = np.zeros((2, len(means), len(means)), dtype=bool)
    for i in range(len(means)):
        scale = np.where(errors[i] > 0, errors[i], np.inf)[:, None]
        largest = np.abs((deviations - deviations[i]) / scale).max(axis=0)
        # Where two runs differ by the same amount on every case there is no spread: any gap is beyond it.
        margin = np.maximum(_widened(float(np.quantile(largest, level)), means.shape[1]) * errors[i], 1e-9)
        # With every difference on one side, k cases give an exact sign test a p-value of 2^(1 − k) and no less.
        enough = 0.5 ** ((means != means[i]).sum(axis=1) - 1) <= 1 - level
        better[:, i] = enough & (centre - centre[i] > margin)
        worse[:, i] = enough & (centre[i] - centre > margin)
    return better, worse


def _widened(quantile: float, cases: int) -> float:
    """The bootstrap's quantile of studentised deviations as Student's distribution has it for so few cases."""
    # A tail too small to leave its mark on 1 − 2·tail would be no tail at all.
    tail = max(1e-12, NormalDist().cdf(-quantile * (cases / (cases - 1)) ** 0.5))
    return student_quantile(1 - 2 * tail, cases - 1) if tail < 0.5 else quantile


def _groups(order: Ints, worse: Bools) -> dict[int, int]:
    """Group number of each run: a group runs from its best down to the first that is significantly worse."""
    groups: dict[int, int] = {}
    leader, number = int(order[0]), 1
    for run in order.tolist():
        if worse[run, leader]:
            leader, number = run, number + 1
        groups[run] = number
    return groups


def _ranks(replicates: Floats) -> Ints:
    """Rank in each resample: 1 + the number of runs with a greater mean, equal up to rounding being equal."""
    rounded = np.round(replicates, 12)
    order = np.argsort(-rounded, axis=1)
    ordered = np.take_along_axis(rounded, order, axis=1)
    first = np.ones_like(ordered, dtype=bool)
    first[:, 1:] = ordered[:, 1:] < ordered[:, :-1]
    places = np.where(first, np.arange(1, ordered.shape[1] + 1), 0)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.maximum.accumulate(places, axis=1), axis=1)
    return ranks
