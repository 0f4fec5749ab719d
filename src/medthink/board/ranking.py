"""The leaderboard: every published submission of a benchmark with its rank range and tie group.

Only rows with predictions for every case are ranked, in one family of comparisons. Runs with expert cues have a ranking
of their own. A rank belongs to the whole board: filters and sorts never change it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
import sqlalchemy as sa

from medthink.board import tables
from medthink.board.benchmarks import BoardBenchmark
from medthink.board.records import EVER_SCORED, SubmissionRecord, list_submissions
from medthink.board.store import BoardStore
from medthink.board.teams import insert_once
from medthink.core.clock import now_utc
from medthink.core.digest import digest_value, seed_from
from medthink.scoring.scores import Scores, from_plain
from medthink.stats.ranks import Ranking, rank_runs

RANKING_VERSION = 1


class ScoreShelf:
    """Scores that were read before, so that a board of hundreds of rows is not read anew for each page."""

    def __init__(self, store: BoardStore) -> None:
        self._store = store
        self._kept: dict[tuple[int, str, str], Scores] = {}

    def read(self, submissions: Iterable[int]) -> dict[int, Scores]:
        """The newest scores of these submissions, by number; those without any are left out."""
        wanted = self._newest(set(submissions))
        # A copy that is put in place whole: several threads may read at once.
        kept = {key: self._kept[key] for key in wanted if key in self._kept}
        kept |= self._load([key for key in wanted if key not in kept])
        self._kept = self._kept | kept
        return {key[0]: scores for key, scores in kept.items()}

    def _newest(self, numbers: set[int]) -> list[tuple[int, str, str]]:
        table = tables.scores
        query = sa.select(table.c.submission_id, table.c.scorer, table.c.made_at).order_by(table.c.made_at)
        with self._store.read() as connection:
            found = {row.submission_id: row for row in connection.execute(query) if row.submission_id in numbers}
        return [(row.submission_id, row.scorer, row.made_at) for row in found.values()]

    def _load(self, keys: Sequence[tuple[int, str, str]]) -> dict[tuple[int, str, str], Scores]:
        table = tables.scores
        found = {}
        with self._store.read() as connection:
            for key in keys:
                same = (table.c.submission_id == key[0], table.c.scorer == key[1])
                found[key] = from_plain(connection.execute(sa.select(table.c.scores).where(*same)).scalar_one())
        return found


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


def make_leaderboard(
    store: BoardStore,
    benchmark: BoardBenchmark,
    as_of: str | None = None,
    *,
    shelf: ScoreShelf | None = None,
    most: int | None = None,
) -> Leaderboard:
    """The leaderboard as it stands, or as it stood at a time (`2026-01-31`, or to the second).

    `shelf` keeps scores that were read before. A ranking of more than `most` rows is not made here but by a worker;
    until then its rows have no ranks.
    """
    until = _end_of(as_of or now_utc())
    ever = list_submissions(store, benchmark_id=benchmark.id, statuses=EVER_SCORED)
    known = _with_counts(_rows(shelf or ScoreShelf(store), [one for one in ever if _is_out(one, until)]), ever)
    standing = [row for row in known if not _is_withdrawn(row, until)]
    plain = [row for row in standing if not row.submission.about.is_expert_cued]
    cued = [row for row in standing if row.submission.about.is_expert_cued]
    return Leaderboard(
        benchmark=benchmark,
        as_of=until,
        rows=rank_rows(store, benchmark, plain, most=most),
        cued=rank_rows(store, benchmark, cued, most=most),
        withdrawn=tuple(row for row in known if _is_withdrawn(row, until)),
    )


def list_standing(store: BoardStore, benchmark: BoardBenchmark) -> list[BoardRow]:
    """The rows that are published now, without their ranks."""
    published = list_submissions(store, benchmark_id=benchmark.id, statuses=("published",))
    return _rows(ScoreShelf(store), published)


def _is_out(one: SubmissionRecord, until: str) -> bool:
    return one.published_at is not None and one.published_at <= until


def _is_withdrawn(row: BoardRow, until: str) -> bool:
    return (row.submission.withdrawn_at or "9") <= until


def _rows(shelf: ScoreShelf, submissions: Sequence[SubmissionRecord]) -> list[BoardRow]:
    scores = shelf.read(one.id for one in submissions)
    rows = [BoardRow(submission=one, scores=scores[one.id]) for one in submissions if one.id in scores]
    return [row for row in rows if row.scores.cases]


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


def rank_rows(
    store: BoardStore, benchmark: BoardBenchmark, rows: Sequence[BoardRow], *, most: int | None = None
) -> tuple[BoardRow, ...]:
    """The rows with their places, best first; a single row has none, nor have more than `most` that are new."""
    if len(rows) < 2:
        return tuple(rows)
    ranking = _kept_ranking(store, benchmark, rows, most)
    if ranking is None:
        return tuple(sorted(rows, key=_accuracy, reverse=True))
    return tuple(
        msgspec.structs.replace(
            rows[place.run], rank=place.rank, worst=place.worst, tier=place.tier, letters=place.letters
        )
        for place in ranking.runs
    )  # fmt: skip


def _accuracy(row: BoardRow) -> float:
    answers = row.scores.answers
    return (answers.accuracy.value or 0.0) if answers else 0.0


def _kept_ranking(
    store: BoardStore, benchmark: BoardBenchmark, rows: Sequence[BoardRow], most: int | None
) -> Ranking | None:
    """The ranking of these scores, made now if it was never made and the rows are not too many for that."""
    rights = [[case.right for case in row.scores.cases] for row in rows]
    digest = digest_value([RANKING_VERSION, benchmark.text_fingerprint, rights])
    table = tables.rankings
    with store.read() as connection:
        found = connection.execute(sa.select(table.c.ranking).where(table.c.digest == digest)).scalar()
    if found is not None:
        return msgspec.convert(found, Ranking)
    if most is not None and len(rows) > most:
        return None
    ids = [case.case for case in rows[0].scores.cases]
    rng = np.random.default_rng(seed_from("board", benchmark.text_fingerprint))
    made = rank_runs(np.array(rights), cases=ids, rng=rng)
    # The pages need the places; pairs are compared anew where two models are looked at.
    kept = msgspec.structs.replace(made, pairs=())
    row = {"digest": digest, "made_at": now_utc(), "ranking": msgspec.to_builtins(kept)}
    with store.write() as connection:
        connection.execute(insert_once(connection, table, row))
    return kept


def _end_of(time: str) -> str:
    """A day's last second, or the time itself."""
    return f"{time}T23:59:59Z" if len(time) == 10 else time
