"""Strengths from pairwise comparisons: the Bradley–Terry model, with ranks as ranges."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from medthink.stats.estimate import Estimate, Floats, Measured, Undefined, check_level

_STEPS = 200


class Game(NamedTuple):
    """One comparison of `a` with `b` in a case: 1 if `a` won, 0 if `b` did, a half for a tie."""

    a: int
    b: int
    score: float
    case: int


class Strength(NamedTuple):
    """The share of wins against an average contestant, and the resulting range of ranks."""

    beats_average: Measured
    rank: int
    worst_rank: int


def bradley_terry(
    games: Sequence[Game],
    contestants: int,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    resamples: int = 500,
) -> list[Strength]:
    """The strength of every contestant, with intervals from the bootstrap over cases.

    P(i beats j) = s_i / (s_i + s_j), a tie counting half a win for each (Bradley and Terry 1952; fitted by
    minorisation, Hunter 2004). Half a tie is added to every pair that met, so that a contestant who won everything has
    a finite strength. `beats_average` is s_i / (s_i + geometric mean); ranks run over the same bootstrap.
    """
    check_level(level)
    if not games or contestants < 2:
        return [Strength(Undefined(reason="no comparisons", n=0), 1, max(1, contestants)) for _ in range(contestants)]
    cases = sorted({game.case for game in games})
    per_case = np.zeros((len(cases), contestants, contestants))
    places = {case: place for place, case in enumerate(cases)}
    for game in games:
        per_case[places[game.case], game.a, game.b] += game.score
        per_case[places[game.case], game.b, game.a] += 1 - game.score
    value = _fit(per_case.sum(axis=0))
    draws = np.array([_fit(per_case[rng.integers(0, len(cases), len(cases))].sum(axis=0)) for _ in range(resamples)])
    ranks = 1 + (draws[:, None, :] > draws[:, :, None]).sum(axis=2)
    tail = (1 - level) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], axis=0)
    best, worst = (np.quantile(ranks, share, axis=0, method="nearest") for share in (tail, 1 - tail))
    return [
        Strength(
            Estimate(
                value=float(value[k]),
                low=float(low[k]),
                high=float(high[k]),
                level=level,
                n=len(games),
                clusters=len(cases),
                method="Bradley–Terry, bootstrap over cases",
            ),
            int(best[k]),
            int(worst[k]),
        )
        for k in range(contestants)
    ]


def _fit(wins: Floats) -> Floats:
    """The share of wins against an average contestant, by minorisation and maximisation."""
    met = (wins + wins.T) > 0
    wins = wins + 0.5 * met
    total = wins + wins.T
    strength = np.ones(len(wins))
    for _ in range(_STEPS):
        divided = np.where(met, total / (strength[:, None] + strength[None, :]), 0).sum(axis=1)
        strength = np.where(divided > 0, wins.sum(axis=1) / np.maximum(divided, 1e-12), strength)
        strength = strength / np.exp(np.log(strength).mean())
    share: Floats = strength / (strength + 1)
    return share
