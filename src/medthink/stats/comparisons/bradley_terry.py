"""Strengths from pairwise comparisons: the Bradley–Terry model, with ranks as ranges from one family of tests."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from medthink.stats.comparisons.paired import FLIPS, TOLERANCE, critical_value, random_bits
from medthink.stats.estimate import Estimate, Floats, Measured, Undefined, check_level
from medthink.stats.intervals import normal_quantile, student_quantile

_STEPS = 500
_CLOSE = 1e-10


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
    strength. `beats_average` is s_i / (s_i + geometric mean). Its interval is Student's on the log scale with the
    larger of two errors: the model's, and the sandwich over cases, which alone is far too small with few of them.

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
    half = student_quantile(level, cases - 1) * _errors(wins, logs)
    ends = (1 / (1 + np.exp(-end)) for end in (logs - half, logs + half))
    return [
        Estimate(
            value=value,
            low=low,
            high=high,
            level=level,
            n=n,
            clusters=cases,
            method="Bradley–Terry, Student on the log scale over cases",
        )
        for value, low, high in zip(values, *(end.tolist() for end in ends), strict=True)
    ]


def _errors(wins: Floats, logs: Floats) -> Floats:
    """The standard errors of the logarithmic strengths: the model's or the sandwich's, whichever is larger."""
    total, cases = _with_half_ties(wins.sum(axis=0)), len(wins)
    chance = 1 / (1 + np.exp(logs[None, :] - logs[:, None]))
    weight = (total + total.T) * chance * (1 - chance)
    inverse = np.linalg.pinv(np.diag(weight.sum(axis=1)) - weight)
    residuals = (wins - (wins + wins.transpose(0, 2, 1)) * chance).sum(axis=2)
    residuals -= residuals.mean(axis=0)
    sandwich = inverse @ (residuals.T @ residuals) @ inverse * cases / (cases - 1)
    errors: Floats = np.sqrt(np.maximum(np.diag(inverse), np.diag(sandwich)))
    return errors


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
