"""The leaderboard: every published submission of a benchmark with its rank range, tie group and gain.

Only rows with predictions for every case are ranked, in one family of comparisons. Rows with expert cues have a ranking
of their own, and so do rows that were shown only a part of each case. A rank refers to the complete board: filters and
sorting never change it.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import msgspec
import numpy as np
import sqlalchemy as sa

from medthink.audit.rivals import Guesses
from medthink.board.benchmarks import BoardBenchmark
from medthink.board.history import states_at
from medthink.board.judged_profile import JudgedProfiles
from medthink.board.rerun import Rerun
from medthink.board.results import (
    BoardResult,
    RowGain,
    ScoreCache,
    ScoredSubmission,
    convert_or_none,
    find_gains,
    make_result,
    read_rivals,
)
from medthink.board.submissions import (
    EVER_SCORED,
    Preview,
    SubmissionRecord,
    list_submissions,
    read_scores,
)
from medthink.core.clock import now_utc
from medthink.core.digest import digest_value
from medthink.scoring.comparable import is_whole, rank_together
from medthink.scoring.scores import Scores
from medthink.stats.comparisons.paired import pair_squares
from medthink.stats.comparisons.ranks import RankedRun
from medthink.stats.estimate import Measured, Undefined
from medthink.stats.intervals import wilson
from medthink.stats.power import minimum_detectable_difference
from medthink.store import tables
from medthink.store.engine import Store, insert_if_missing

RANKING_VERSION = 5
RankingKind = Literal["unaided", "cued", "partial"]
RANKINGS: tuple[RankingKind, ...] = get_args(RankingKind)
# Discordance varies from pair to pair: the resolution is given for the middle four fifths of the pairs.
_SPREAD = (0.1, 0.9)


class BoardRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the leaderboard.

    `rank`…`worst` contains the true rank among the rows of the same kind; rank, group and letters are None or empty
    for a row that is not ranked: withdrawn, or alone. `by_team` and `by_family` count all submissions that were ever
    scored for them.
    """

    submission: SubmissionRecord
    result: BoardResult
    kind: RankingKind
    rank: int | None = None
    worst: int | None = None
    tier: int | None = None
    group: int | None = None
    letters: tuple[str, ...] = ()
    gain: RowGain | None = None
    judged: JudgedProfiles | None = None
    rerun: Rerun | None = None
    by_team: int = 1
    by_family: int = 1

    @property
    def scores(self) -> Scores:
        """The scores, without their case-by-case values."""
        return self.result.scores

    def comparable(self) -> Scores:
        """The scores with their cases, under the submission's number, its model, and the kind that it was ranked as."""
        kind = "expert-cued" if self.kind == "cued" else "unaided"
        scores = self.result.with_cases(f"{self.submission.id}")
        origin = msgspec.structs.replace(scores.origin, model=self.submission.model, kind=kind)
        return msgspec.structs.replace(scores, origin=origin)

    @property
    def is_leader(self) -> bool:
        """Whether no row is shown to be better."""
        return self.rank == 1

    @property
    def is_withdrawn(self) -> bool:
        """Whether the row was taken off the ranking."""
        return self.submission.status == "withdrawn"


class RivalRow(msgspec.Struct, frozen=True, kw_only=True):
    """A guesser that sees no images, as a row next to the ranking."""

    name: str
    source: str
    accuracy: Measured


class Leaderboard(msgspec.Struct, frozen=True, kw_only=True):
    """The ranked rows of a benchmark, best first, those of other kinds separately, and withdrawn ones.

    `resolution` is the minimum detectable difference at 80 % power, for pairs of models that agree much and little,
    among as many models as are ranked; None if it cannot be computed. `thresholds` are the values that the statistic of
    a pair must exceed in each ranking.
    """

    benchmark: BoardBenchmark
    as_of: str
    rows: tuple[BoardRow, ...]
    cued: tuple[BoardRow, ...]
    withdrawn: tuple[BoardRow, ...]
    partial: tuple[BoardRow, ...] = ()
    rivals: tuple[RivalRow, ...] = ()
    resolution: tuple[float, float] | None = None
    thresholds: dict[RankingKind, float] = {}

    def ranking(self, kind: RankingKind) -> tuple[BoardRow, ...]:
        """The rows of one ranking."""
        return {"unaided": self.rows, "cued": self.cued, "partial": self.partial}[kind]

    def every_row(self) -> tuple[BoardRow, ...]:
        """All rows of every ranking, and withdrawn ones."""
        return (*self.rows, *self.cued, *self.partial, *self.withdrawn)


class _KeptRanking(msgspec.Struct, frozen=True, kw_only=True):
    """A stored ranking."""

    runs: tuple[RankedRun, ...]
    threshold: float
    resolution: tuple[float, float] | None


class _RankedRows(NamedTuple):
    """The rows of one ranking in its order, and the ranking if there is one."""

    rows: tuple[BoardRow, ...]
    kept: _KeptRanking | None


def make_leaderboard(
    store: Store,
    benchmark: BoardBenchmark,
    as_of: str | None = None,
    *,
    shelf: ScoreCache | None = None,
    most: int | None = None,
) -> Leaderboard:
    """The current leaderboard, or the one as of a time (`2026-01-31`, or to the second).

    `shelf` caches scores read before. A ranking of more than `most` rows is left to a worker; until it is done its rows
    have no ranks.
    """
    time = as_of or now_utc()
    until = f"{time}T23:59:59Z" if len(time) == len("2026-01-31") else time
    rivals = read_rivals(store, benchmark.id, until)
    known = _read_rows(store, benchmark, until, shelf or ScoreCache(store), rivals)
    gone = [row for row in known if row.is_withdrawn]
    kinds = {kind: [row for row in known if row.kind == kind and not row.is_withdrawn] for kind in RANKINGS}
    ranked = {kind: _rank(store, benchmark, rows, most) for kind, rows in kinds.items()}
    return Leaderboard(
        benchmark=benchmark,
        as_of=until,
        rows=ranked["unaided"].rows,
        cued=ranked["cued"].rows,
        partial=ranked["partial"].rows,
        withdrawn=tuple(gone),
        rivals=_rival_rows(rivals, known),
        resolution=ranked["unaided"].kept.resolution if ranked["unaided"].kept else None,
        thresholds={kind: found.kept.threshold for kind, found in ranked.items() if found.kept},
    )


def list_published(store: Store, benchmark: BoardBenchmark) -> list[BoardRow]:
    """The currently published rows, without ranks."""
    published = list_submissions(store, benchmark_id=benchmark.id, statuses=("published",))
    read = ScoreCache(store).read(one.id for one in published)
    return [make_board_row(one, read[one.id]) for one in published if one.id in read and read[one.id].cases]


def make_board_row(submission: SubmissionRecord, result: BoardResult) -> BoardRow:
    """A row before it is ranked."""
    return BoardRow(submission=submission, result=result, kind=row_kind(submission, result.scores))


def rank_rows(store: Store, benchmark: BoardBenchmark, rows: Sequence[BoardRow]) -> tuple[BoardRow, ...]:
    """The ranked rows, best first; a single row has no rank."""
    return _rank(store, benchmark, rows, None).rows


def row_kind(submission: SubmissionRecord, scores: Scores) -> RankingKind:
    """The ranking that a submission belongs to: by its condition if traces confirm it, else by its own statement."""
    if submission.about.is_expert_cued or scores.origin.kind == "expert-cued":
        return "cued"
    return "unaided" if is_whole(scores) else "partial"


def family_of(submission: SubmissionRecord) -> str:
    """The family that a submission names, or its model."""
    return submission.about.family or submission.model


def _read_rows(
    store: Store, benchmark: BoardBenchmark, until: str, shelf: ScoreCache, rivals: list[Guesses]
) -> list[BoardRow]:
    states = states_at(store, benchmark.id, until)
    ever = [
        states[one.id].of(one)
        for one in list_submissions(store, benchmark_id=benchmark.id, statuses=EVER_SCORED)
        if one.id in states and states[one.id].was_scored
    ]
    out = [one for one in ever if one.published_at is not None]
    read = shelf.read((one.id for one in out), until)
    scored = [ScoredSubmission(one, read[one.id]) for one in out if one.id in read and read[one.id].cases]
    gains = find_gains(store, benchmark, scored, rivals)
    teams, families = Counter(one.team for one in ever), Counter(family_of(one) for one in ever)
    return [
        msgspec.structs.replace(
            make_board_row(one, result),
            gain=gains.get(one.id),
            judged=convert_or_none(states[one.id].measures.get("judged"), JudgedProfiles),
            rerun=convert_or_none(states[one.id].measures.get("rerun"), Rerun),
            by_team=max(1, teams[one.team]),
            by_family=max(1, families[family_of(one)]),
        )
        for one, result in scored
    ]


def _rank(store: Store, benchmark: BoardBenchmark, rows: Sequence[BoardRow], most: int | None) -> _RankedRows:
    """The ranked rows, best first; a single row has no rank."""
    if len(rows) < 2:
        return _RankedRows(tuple(rows), None)
    kept = _kept_ranking(store, benchmark, rows, most)
    if kept is None:
        return _RankedRows(tuple(sorted(rows, key=lambda row: -sum(row.result.rights))), None)
    placed = tuple(
        msgspec.structs.replace(
            rows[place.run],
            rank=place.rank,
            worst=place.worst,
            tier=place.tier,
            group=place.group,
            letters=place.letters,
        )
        for place in kept.runs
    )
    return _RankedRows(placed, kept)


def _kept_ranking(
    store: Store, benchmark: BoardBenchmark, rows: Sequence[BoardRow], most: int | None
) -> _KeptRanking | None:
    """The ranking of these scores, computed now if it is missing and there are not too many rows."""
    rights = [row.result.rights for row in rows]
    digest = digest_value([RANKING_VERSION, benchmark.text_fingerprint, rights])
    table = tables.rankings
    with store.read() as connection:
        found = connection.execute(sa.select(table.c.ranking).where(table.c.digest == digest)).scalar()
    if found is not None:
        return msgspec.convert(found, _KeptRanking)
    if most is not None and len(rows) > most:
        return None
    made = _make_ranking(np.array(rights), rows[0].result.cases)
    row = {"digest": digest, "made_at": now_utc(), "ranking": msgspec.to_builtins(made)}
    with store.write() as connection:
        connection.execute(insert_if_missing(connection, table, row))
    return made


def _make_ranking(
    matrix: np.ndarray[tuple[int, int], np.dtype[np.float64]], cases: Sequence[int]
) -> _KeptRanking:  # fmt: skip
    # Pairs are compared again when two models are viewed.
    made = rank_together(matrix, cases, with_pairs=False)
    above = pair_squares(matrix)[np.triu_indices(len(matrix), k=1)] / len(cases)
    ends = [_resolve(len(cases), float(np.quantile(above, share)), made.power_z) for share in _SPREAD]
    low, high = ends
    resolution = None if low is None or high is None else (low, high)
    return _KeptRanking(runs=made.runs, threshold=made.threshold, resolution=resolution)


def _resolve(n: int, discordance: float, threshold: float | None) -> float | None:
    if discordance <= 0:
        return None
    found = minimum_detectable_difference(n=n, discordance=min(1.0, float(f"{discordance:.4g}")), threshold=threshold)
    return None if isinstance(found, Undefined) else found.difference


def _rival_rows(rivals: Sequence[Guesses], rows: Sequence[BoardRow]) -> tuple[RivalRow, ...]:
    """The guessers on the cases of the board, the strongest first."""
    if not rows:
        return ()
    result = rows[0].result
    made = []
    for rival in rivals:
        right = sum(rival.letters.get(case) == gold for case, gold in zip(result.cases, result.golds, strict=True))
        made.append((right, RivalRow(name=rival.name, source=rival.source, accuracy=wilson(right, len(result.cases)))))
    return tuple(row for _, row in sorted(made, key=lambda pair: (-pair[0], pair[1].name)))


def preview_rank(store: Store, benchmark: BoardBenchmark, submission: SubmissionRecord, scores: Scores) -> Preview:
    """Rank a submission among the published ones, and compare it with the team's last one."""
    result = make_result(scores)
    own = make_board_row(submission, result)
    standing = list_published(store, benchmark)
    rows = rank_rows(store, benchmark, [*(row for row in standing if row.kind == own.kind), own])
    mine = next(row for row in rows if row.submission.id == submission.id)
    beside = [ScoredSubmission(row.submission, row.result) for row in standing]
    scored = [ScoredSubmission(submission, result)]
    found = find_gains(store, benchmark, scored, read_rivals(store, benchmark.id), beside=beside)
    gain = found.get(submission.id)
    placed = Preview(
        rank=mine.rank,
        worst=mine.worst,
        among=len(rows),
        letters=mine.letters,
        gain=gain.gain if gain else None,
        rival=gain.rival if gain else "",
    )
    return _beside_last(store, benchmark, submission, scores, placed)


def _beside_last(
    store: Store, benchmark: BoardBenchmark, submission: SubmissionRecord, scores: Scores, placed: Preview
) -> Preview:
    last = _last_of_team(store, benchmark, submission)
    before = read_scores(store, last.id) if last else None
    ids = [case.case for case in scores.cases]
    if last is None or before is None or [case.case for case in before.cases] != ids:
        return placed
    pair = rank_together([[case.right for case in one.cases] for one in (scores, before)], ids).pairs[0]
    return msgspec.structs.replace(
        placed,
        last_token=last.token,
        last_model=last.model,
        difference=pair.difference,
        is_different=pair.is_different,
    )


def _last_of_team(store: Store, benchmark: BoardBenchmark, submission: SubmissionRecord) -> SubmissionRecord | None:
    """The team's previous submission of the same kind (with or without cues)."""
    own = list_submissions(store, benchmark_id=benchmark.id, team=submission.team, statuses=EVER_SCORED)
    cued = submission.about.is_expert_cued
    before = [one for one in own if one.id < submission.id and one.about.is_expert_cued == cued]
    return before[-1] if before else None
