"""Runs ranked by preference: a Bradley–Terry model over the pairs that one judge compared."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from medthink.core.digest import seed_from
from medthink.core.markup import Table
from medthink.judge.kinds.preference import other_number
from medthink.report.tables import rank_range
from medthink.runs.run import Run
from medthink.stats import Game, bradley_terry
from medthink.stats.words import share

if TYPE_CHECKING:
    from medthink.report.judged import Judged

_COLUMNS = ("Judge", "Run", "Rank", "Beats an average run", "Pairs")


def ranks_table(judged: "Sequence[Judged]") -> Table:
    """Every judge's ranking of the runs that it compared with each other; ranks are ranges."""
    rows = [row for judge in _judges(judged) for row in _rank(judge, judged)]
    return Table(_COLUMNS, tuple(rows), frozenset({2, 3, 4}), frozenset({0}))


def _judges(judged: "Sequence[Judged]") -> list[str]:
    return sorted({one.label for run in judged for one in run.scores["preference"] if one.contests})


def _rank(judge: str, judged: "Sequence[Judged]") -> Iterator[tuple[str, ...]]:
    names: dict[int, str] = {}
    pairs: list[tuple[int, int, float, int]] = []
    own = {other_number(Run.open(run.entry.path).manifest.digest()): run for run in judged}
    for number, run in own.items():
        for one in (one for one in run.scores["preference"] if one.label == judge):
            for other, contest in one.contests.items():
                names |= {number: run.entry.label, other: own[other].entry.label if other in own else contest.against}
                pairs += [(number, other, score, case) for case, score in contest.scores.items()]
    order = {number: place for place, number in enumerate(names)}
    games = [Game(order[a], order[b], score, case) for a, b, score, case in pairs]
    strengths = bradley_terry(games, len(order), rng=np.random.default_rng(seed_from("preference", judge)))
    ranked = sorted(zip(names, strengths, strict=True), key=lambda pair: (pair[1].rank, pair[1].worst_rank))
    for number, strength in ranked:
        met = sum(number in pair[:2] for pair in pairs)
        rank = rank_range(strength.rank, strength.worst_rank)
        yield (judge, names[number], rank, share(strength.beats_average), f"{met:,}")
