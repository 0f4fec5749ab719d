"""The leaderboard: every published submission of a benchmark with its rank range and tie group.

Only rows with predictions for every case are ranked, in one family of comparisons. Runs with expert cues have a ranking
of their own. A rank belongs to the whole board: filters and sorts never change it.
"""

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np
import sqlalchemy as sa

from medthink.board import tables
from medthink.board.benchmarks import BoardBenchmark
from medthink.board.store import BoardStore
from medthink.board.submissions import SubmissionRecord, list_submissions, read_scores
from medthink.core.clock import now_utc
from medthink.core.digest import digest_value, seed_from
from medthink.scoring.scores import Scores
from medthink.stats.ranks import Ranking, rank_runs

RANKING_VERSION = 1


class BoardRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the leaderboard.

    `rank`…`worst` is where the truth lies among the rows of the same kind; all four are None for a row that is not
    ranked: withdrawn, or alone. `by_team` and `by_family` count all submissions that were ever scored for them.
    """

    submission: SubmissionRecord
    scores: Scores
    rank: int | None = None
    worst: int | None = None
    tier: int | None = None
    letters: tuple[str, ...] = ()
    by_team: int = 1
    by_family: int = 1

    @property
    def is_leader(self) -> bool:
        """Whether no row is shown to be better."""
        return self.rank == 1

    @property
    def is_withdrawn(self) -> bool:
        """Whether the row was taken off the ranking."""
        return self.submission.status == "withdrawn"


class Leaderboard(msgspec.Struct, frozen=True, kw_only=True):
    """The ranked rows of a benchmark, best first, those with expert cues apart, and what was withdrawn."""

    benchmark: BoardBenchmark
    as_of: str
    rows: tuple[BoardRow, ...]
    cued: tuple[BoardRow, ...]
    withdrawn: tuple[BoardRow, ...]


def make_leaderboard(store: BoardStore, benchmark: BoardBenchmark, as_of: str | None = None) -> Leaderboard:
    """The leaderboard as it stands, or as it stood at a time (`2026-01-31`, or to the second)."""
    until = _end_of(as_of or now_utc())
    rows = [_row(store, one) for one in _ever_scored(store, benchmark) if _is_out(one, until)]
    known = _with_counts([row for row in rows if row is not None], _ever_scored(store, benchmark))
    standing = [row for row in known if not (row.submission.withdrawn_at or "9") <= until]
    return Leaderboard(
        benchmark=benchmark,
        as_of=until,
        rows=_rank(store, benchmark, [row for row in standing if not row.submission.about.is_expert_cued]),
        cued=_rank(store, benchmark, [row for row in standing if row.submission.about.is_expert_cued]),
        withdrawn=tuple(row for row in known if row not in standing),
    )


def _ever_scored(store: BoardStore, benchmark: BoardBenchmark) -> list[SubmissionRecord]:
    return list_submissions(
        store, benchmark_id=benchmark.id, statuses=("scored", "lapsed", "published", "withdrawn")
    )  # fmt: skip


def _is_out(one: SubmissionRecord, until: str) -> bool:
    return one.published_at is not None and one.published_at <= until


def _row(store: BoardStore, submission: SubmissionRecord) -> BoardRow | None:
    scores = read_scores(store, submission.id)
    return None if scores is None or not scores.cases else BoardRow(submission=submission, scores=scores)


def _with_counts(rows: Sequence[BoardRow], ever: Sequence[SubmissionRecord]) -> list[BoardRow]:
    teams = Counter(one.team for one in ever)
    families = Counter(family_of(one) for one in ever)
    return [
        msgspec.structs.replace(
            row, by_team=teams[row.submission.team], by_family=families[family_of(row.submission)]
        )
        for row in rows
    ]  # fmt: skip


def family_of(submission: SubmissionRecord) -> str:
    """The family that a submission names, or its model."""
    return submission.about.family or submission.model


def _rank(store: BoardStore, benchmark: BoardBenchmark, rows: Sequence[BoardRow]) -> tuple[BoardRow, ...]:
    """The rows with their places, best first; a single row has none."""
    if len(rows) < 2:
        return tuple(rows)
    ranking = _kept_ranking(store, benchmark, rows)
    return tuple(
        msgspec.structs.replace(
            rows[place.run], rank=place.rank, worst=place.worst, tier=place.tier, letters=place.letters
        )
        for place in ranking.runs
    )  # fmt: skip


def _kept_ranking(store: BoardStore, benchmark: BoardBenchmark, rows: Sequence[BoardRow]) -> Ranking:
    """The ranking of these scores, made now if it was never made."""
    rights = [[case.right for case in row.scores.cases] for row in rows]
    digest = digest_value([RANKING_VERSION, benchmark.text_fingerprint, rights])
    table = tables.rankings
    with store.read() as connection:
        found = connection.execute(sa.select(table.c.ranking).where(table.c.digest == digest)).scalar()
    if found is not None:
        return msgspec.convert(found, Ranking)
    ids = [case.case for case in rows[0].scores.cases]
    rng = np.random.default_rng(seed_from("board", benchmark.text_fingerprint))
    made = rank_runs(np.array(rights), cases=ids, rng=rng)
    # The pages need the places; pairs are compared anew where two models are looked at.
    kept = msgspec.structs.replace(made, pairs=())
    with store.write() as connection:
        connection.execute(table.delete().where(table.c.digest == digest))
        row = {"digest": digest, "made_at": now_utc(), "ranking": msgspec.to_builtins(kept)}
        connection.execute(table.insert().values(row))
    return kept


def _end_of(time: str) -> str:
    """A day's last second, or the time itself."""
    return f"{time}T23:59:59Z" if len(time) == 10 else time
