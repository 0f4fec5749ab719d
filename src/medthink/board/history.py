"""The history of submissions: every change with its time and author, and what the board showed at any time."""

from typing import Any, get_args

import msgspec
import sqlalchemy as sa

from medthink.board.benchmarks import BoardBenchmark
from medthink.board.submissions import LEVELS, Provenance, Status, SubmissionRecord
from medthink.store import tables
from medthink.store.engine import Store

_STATES: dict[str, Status] = {status: status for status in get_args(Status)}
_LEVELS: dict[str, Provenance] = {level: level for level in LEVELS}


def history(store: Store, submission_id: int | None = None) -> list[dict[str, Any]]:
    """Every change, oldest first; of one submission, or of all."""
    query = sa.select(tables.events).order_by(tables.events.c.id)
    if submission_id is not None:
        query = query.where(tables.events.c.submission_id == submission_id)
    with store.read() as connection:
        return [dict(row) for row in connection.execute(query).mappings()]


def last_change(store: Store, benchmark: BoardBenchmark) -> str:
    """The time of the last change to a benchmark's rows, or when the benchmark was added."""
    events, submissions, rivals = tables.events, tables.submissions, tables.rivals
    changed = sa.select(sa.func.max(events.c.at)).join(submissions, submissions.c.id == events.c.submission_id)
    trained = sa.select(sa.func.max(rivals.c.made_at)).where(rivals.c.benchmark_id == benchmark.id)
    with store.read() as connection:
        found = connection.execute(changed.where(submissions.c.benchmark_id == benchmark.id)).scalar()
        made = connection.execute(trained).scalar()
    return max(str(found or ""), str(made or ""), benchmark.added_at)


class PastState(msgspec.Struct):
    """What was public of a submission at a time; `measures` are the last re-run and judgements until then."""

    was_scored: bool = False
    status: Status = "received"
    published_at: str | None = None
    withdrawn_at: str | None = None
    reason: str = ""
    level: Provenance | None = None
    annotation: str = ""
    flag: str = ""
    measures: dict[str, Any] = {}

    def follow(self, at: str, what: str, detail: dict[str, Any]) -> None:
        """Apply the next event."""
        if what in _STATES:
            self.status, self.reason = _STATES[what], str(detail.get("why", ""))
            self.was_scored |= what == "scored"
            self.published_at = at if what == "published" else self.published_at
            self.withdrawn_at = at if what == "withdrawn" else None
        self.level = _LEVELS.get(str(detail.get("level", "")), self.level)
        match what:
            case "annotated":
                self.annotation = str(detail.get("annotation", ""))
            case "flagged":
                self.flag = str(detail.get("flag", ""))
            case "rerun" | "judged":
                self.measures[what] = detail

    def of(self, submission: SubmissionRecord) -> SubmissionRecord:
        """The submission as it was."""
        return msgspec.structs.replace(
            submission,
            status=self.status,
            published_at=self.published_at,
            withdrawn_at=self.withdrawn_at,
            reason=self.reason,
            provenance=self.level or submission.provenance,
            annotation=self.annotation,
            flag=self.flag,
        )


def states_at(store: Store, benchmark_id: int, until: str) -> dict[int, PastState]:
    """The state of every submission of a benchmark at a time, from the events until then."""
    events, submissions = tables.events, tables.submissions
    query = (
        sa.select(events.c.submission_id, events.c.at, events.c.what, events.c.detail)
        .join(submissions, submissions.c.id == events.c.submission_id)
        .where(submissions.c.benchmark_id == benchmark_id, events.c.at <= until)
        .order_by(events.c.id)
    )
    states: dict[int, PastState] = {}
    with store.read() as connection:
        for number, at, what, detail in connection.execute(query):
            states.setdefault(number, PastState()).follow(at, what, detail)
    return states
