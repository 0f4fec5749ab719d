"""What a team sees before it publishes: where its submission would rank, and what changed since its last one."""

import msgspec

from medthink.board.benchmarks import BoardBenchmark
from medthink.board.gains import ScoredSubmission, find_gains
from medthink.board.ranking import list_standing, make_row, rank_rows
from medthink.board.records import EVER_SCORED, Preview, SubmissionRecord, list_submissions, read_scores
from medthink.board.results import make_result
from medthink.board.rivals import read_rivals
from medthink.board.store import BoardStore
from medthink.scoring.scores import Scores
from medthink.scoring.together import rank_together


def make_preview(store: BoardStore, benchmark: BoardBenchmark, submission: SubmissionRecord, scores: Scores) -> Preview:
    """Rank a submission among the published ones, and compare it with the team's last one."""
    result = make_result(scores)
    own = make_row(submission, result)
    standing = list_standing(store, benchmark)
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
    store: BoardStore, benchmark: BoardBenchmark, submission: SubmissionRecord, scores: Scores, placed: Preview
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


def _last_of_team(
    store: BoardStore, benchmark: BoardBenchmark, submission: SubmissionRecord
) -> SubmissionRecord | None:
    """The team's previous submission of the same kind (with or without cues)."""
    own = list_submissions(store, benchmark_id=benchmark.id, team=submission.team, statuses=EVER_SCORED)
    cued = submission.about.is_expert_cued
    before = [one for one in own if one.id < submission.id and one.about.is_expert_cued == cued]
    return before[-1] if before else None
