"""Strengths from pairwise comparisons: the Bradley–Terry model, with ranks as ranges from one family of tests."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from medthink.stats.comparisons.paired import FLIPS, TOLERANCE, critical_value, random_bits
from medthink.stats.estimate import Estimate, Floats, Measured, Undefined, check_level
from medthink.stats.intervals import normal_quantile, student_quantile

_STEPS = 500
_HALVINGS = 25
_CLOSE = 1e-10
_FARTHEST = 20.0
"""The logarithm of a strength of which no interval goes beyond: 1 − 1/e^20 is certain."""
_CLOSE_ENOUGH = 1e-6
"""Steps of Newton's method are squared from one to the next."""


class Game(NamedTuple):
    """One comparison of `a` with `b` in a case: 1 if `a` won, 0 if `b` did, a half for a tie."""

    a: int
    b: int
    score: float
    case: int


class Strength(NamedTuple):
    """How often a contestant beats an average one of its part, its range of ranks there, and how often it was met."""

    contestant: int
    beats_average: Measured
    rank: int
    worst_rank: int
    games: int


def bradley_terry(
    games: Sequence[Game], *, rng: np.random.Generator, level: float = 0.95, flips: int = FLIPS
) -> list[list[Strength]]:
    """The strengths in each connected part of the contests, strongest first; the largest part first.

    P(i beats j) = s_i / (s_i + s_j), a tie counting half a win for each (Bradley and Terry 1952; fitted by
    minorisation, Hunter 2004). Half a tie is added to every pair that met, so that one who won everything has a finite
    strength. `beats_average` is s_i / (s_i + geometric mean). Its interval holds the strengths whose profile deviance
    is at most t², or more where the sandwich error over cases is larger than the model's. Rival: Student's interval on
    the log scale, which covers 82 % where one of two wins nearly always.

    Ranks do not rest on the model. Two contestants are separated if their own games say so: t = |Σd|/√Σd² over the
    cases, d being the score minus a half, must exceed the quantile of the largest t when the signs of whole cases are
    random, as in `rank_runs`. A range is 1 + (shown to be better) … n − (shown to be worse). Contestants that no chain
    of games connects are never ranked together. Rival: percentiles of resampled ranks, which call two or three cases
    proof.
    """
    check_level(level)
    return [_measure_part(members, games, rng=rng, level=level, flips=flips) for members in _connected(games)]


def _connected(games: Iterable[Game]) -> list[list[int]]:
    """The contestants that games connect, largest part first."""
    parts: list[set[int]] = []
    for game in games:
        touched = [part for part in parts if game.a in part or game.b in part]
        parts = [part for part in parts if part not in touched]
        parts.append({game.a, game.b}.union(*touched))
    return sorted((sorted(part) for part in parts), key=lambda part: (-len(part), part))


def _measure_part(
    members: list[int], games: Sequence[Game], *, rng: np.random.Generator, level: float, flips: int
) -> list[Strength]:
    """Every contestant of one part."""
    place = {contestant: k for k, contestant in enumerate(members)}
    own = [game for game in games if game.a in place]
    cases = {case: k for k, case in enumerate(sorted({game.case for game in own}))}
    wins = np.zeros((len(cases), len(members), len(members)))
    for game in own:
        wins[cases[game.case], place[game.a], place[game.b]] += game.score
        wins[cases[game.case], place[game.b], place[game.a]] += 1 - game.score
    logs = _fit(wins.sum(axis=0))
    better = _shown_better(wins, rng=rng, level=level, flips=flips)
    met = [sum(contestant in game[:2] for game in own) for contestant in members]
    measured = _measure_strengths(wins, logs, level=level, n=len(own))
    found = [
        Strength(
            contestant=contestant,
            beats_average=measured[k],
            rank=1 + int(better[:, k].sum()),
            worst_rank=len(members) - int(better[k].sum()),
            games=met[k],
        )
        for k, contestant in enumerate(members)
    ]
    return sorted(found, key=lambda one: (one.rank, one.worst_rank, -logs[place[one.contestant]], one.contestant))


def _shown_better(wins: Floats, *, rng: np.random.Generator, level: float, flips: int) -> npt.NDArray[np.bool_]:
    """`[a, b]`: the games of a and b show that a is better, in one family of all pairs that met."""
    first, second = np.triu_indices(wins.shape[1], k=1)
    gaps = (wins - wins.transpose(0, 2, 1))[:, first, second]
    roots = np.sqrt((gaps**2).sum(axis=0))
    scaled = np.where(roots > 0, gaps / np.where(roots > 0, roots, 1.0), 0.0)
    signs = 1.0 - 2.0 * random_bits(flips, len(gaps), rng)
    maxima = np.abs(signs @ scaled).max(axis=1)
    threshold = max(critical_value(maxima, level), normal_quantile(level)) + TOLERANCE
    totals = scaled.sum(axis=0)
    better = np.zeros(wins.shape[1:], dtype=bool)
    better[first, second], better[second, first] = totals > threshold, totals < -threshold
    return better


def _measure_strengths(wins: Floats, logs: Floats, *, level: float, n: int) -> list[Measured]:
    """The share of wins against an average contestant, with Student's interval of its logarithmic odds."""
    values, cases = (1 / (1 + np.exp(-logs))).tolist(), len(wins)
    if cases < 2:
        return [Undefined(reason="one case shows no spread", n=n, value=value) for value in values]
    lows, highs = _profile_ends(wins, logs, student_quantile(level, cases - 1))
    ends = (1 / (1 + np.exp(-end)) for end in (lows, highs))
    return [
        Estimate(
            value=value,
            low=low,
            high=high,
            level=level,
            n=n,
            clusters=cases,
            method="Bradley–Terry, profile deviance over cases",
        )
        for value, low, high in zip(values, *(end.tolist() for end in ends), strict=True)
    ]


def _profile_ends(wins: Floats, logs: Floats, t: float) -> tuple[Floats, Floats]:
    """For each logarithmic strength, the least and the largest that the deviance over cases does not reject."""
    model, sandwich = _variances(wins, logs)
    limits, steps = t**2 * np.maximum(1.0, sandwich / model), t * np.sqrt(np.maximum(model, sandwich))
    total = _with_half_ties(wins.sum(axis=0))
    lows, highs = (
        [_profile_end(total, logs, place, limits[place], side * steps[place]) for place in range(len(logs))]
        for side in (-1, 1)
    )
    return np.array(lows), np.array(highs)


def _profile_end(total: Floats, logs: Floats, place: int, limit: float, step: float) -> float:
    """Where the deviance reaches the limit, in the direction of the step."""
    best = _log_likelihood(total, logs)

    def is_out(value: float) -> bool:
        return 2 * (best - _log_likelihood(total, _fit_given(total, logs, place, value))) > limit

    inner, outer = logs[place], logs[place] + step
    while abs(outer) < _FARTHEST and not is_out(outer):
        inner, outer = outer, outer + step
    if abs(outer) >= _FARTHEST:
        return float(np.copysign(_FARTHEST, step))
    for _ in range(_HALVINGS):
        halfway = (inner + outer) / 2
        inner, outer = (inner, halfway) if is_out(halfway) else (halfway, outer)
    return float((inner + outer) / 2)


def _fit_given(total: Floats, start: Floats, place: int, value: float) -> Floats:
    """The most likely logarithms, of mean 0, if the one at `place` has this value; by Newton's method."""
    others = np.arange(len(start)) != place
    logs = start.copy()
    logs[place] = value
    logs[others] -= logs.sum() / others.sum()
    for _ in range(_STEPS):
        chance, information = _information(total, logs)
        slope = (total - (total + total.T) * chance).sum(axis=1)[others]
        toward = np.linalg.solve(information[np.ix_(others, others)], np.column_stack([slope, np.ones(len(slope))]))
        # The part of the step that keeps the mean, and no leap beyond what its parabola is good for.
        change = toward[:, 0] - toward[:, 1] * toward[:, 0].sum() / toward[:, 1].sum()
        largest = float(np.abs(change).max())
        logs[others] += change / max(1.0, largest)
        if largest < _CLOSE_ENOUGH:
            break
    return logs


def _log_likelihood(total: Floats, logs: Floats) -> float:
    return -float((total * np.logaddexp(0.0, logs[None, :] - logs[:, None])).sum())


def _information(total: Floats, logs: Floats) -> tuple[Floats, Floats]:
    """The chance that each beats each other, and the matrix of information on the logarithms."""
    chance: Floats = 1 / (1 + np.exp(logs[None, :] - logs[:, None]))
    # Not 1 − chance, which would be 0 for a chance next to 1.
    weight = (total + total.T) * chance * chance.T
    return chance, np.diag(weight.sum(axis=1)) - weight


def _variances(wins: Floats, logs: Floats) -> tuple[Floats, Floats]:
    """The variances of the logarithmic strengths, by the model and by the sandwich over cases."""
    cases = len(wins)
    chance, information = _information(_with_half_ties(wins.sum(axis=0)), logs)
    inverse = np.linalg.pinv(information)
    residuals = (wins - (wins + wins.transpose(0, 2, 1)) * chance).sum(axis=2)
    residuals -= residuals.mean(axis=0)
    sandwich = inverse @ (residuals.T @ residuals) @ inverse * cases / (cases - 1)
    return np.diag(inverse), np.diag(sandwich)


def _with_half_ties(wins: Floats) -> Floats:
    """The wins with half a tie more for every pair that met."""
    result: Floats = wins + 0.5 * ((wins + wins.T) > 0)
    return result


def _fit(wins: Floats) -> Floats:
    """The logarithms of the strengths, of mean 0, by minorisation and maximisation."""
    wins = _with_half_ties(wins)
    total = wins + wins.T
    strength = np.ones(len(wins))
    for _ in range(_STEPS):
        before = strength
        strength = wins.sum(axis=1) / (total / (before[:, None] + before[None, :])).sum(axis=1)
        strength = strength / np.exp(np.log(strength).mean())
        if np.abs(np.log(strength / before)).max() < _CLOSE:
            break
    logs: Floats = np.log(strength)
    return logs
