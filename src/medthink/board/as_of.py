"""The board's state at a past time, read from the history."""

import sqlalchemy as sa

from medthink.board import tables
from medthink.board.benchmarks import BoardBenchmark
from medthink.board.provenance import LEVELS, Provenance
from medthink.board.store import BoardStore


def provenance_at(store: BoardStore, until: str) -> dict[int, Provenance]:
    """The level of submissions at a time, if it was changed later; all others had their current level."""
    table = tables.events
    query = sa.select(table.c.submission_id, table.c.detail).where(table.c.what == "provenance", table.c.at > until)
    levels: dict[int, Provenance] = {}
    with store.read() as connection:
        for number, detail in connection.execute(query.order_by(table.c.id)):
            before = next((level for level in LEVELS if level == detail.get("was")), None)
            # The first change after that time says what it replaced.
            if before is not None:
                levels.setdefault(number, before)
    return levels


def last_change(store: BoardStore, benchmark: BoardBenchmark) -> str:
    """When anything about a benchmark's submissions last changed, or when the benchmark was entered."""
    events, submissions = tables.events, tables.submissions
    query = sa.select(sa.func.max(events.c.at)).join(submissions, submissions.c.id == events.c.submission_id)
    with store.read() as connection:
        found = connection.execute(query.where(submissions.c.benchmark_id == benchmark.id)).scalar()
    return max(str(found or ""), benchmark.added_at)
