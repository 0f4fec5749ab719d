"""What people answer in the case explorer: one answer for each reader and case, kept before anything is revealed.

A reader is a random code in a cookie, or an account. The time when a case was first opened is stored here, so that
response times are measured by the server. An answer cannot be changed.
"""

import time

import msgspec
import sqlalchemy as sa

from medthink.board import tables
from medthink.board.store import BoardStore
from medthink.board.teams import insert_once


class HumanAnswer(msgspec.Struct, frozen=True):
    """One reader's answer; `letter` is None where the case was revealed without one."""

    reader: str
    case: int
    letter: str | None
    confidence: int | None
    seconds: float


class HumanAnswers:
    """The answers in a board's store."""

    def __init__(self, store: BoardStore) -> None:
        self._store = store

    def open_case(self, reader: str, benchmark: str, case_id: int) -> None:
        """Record when the reader first saw the case."""
        row = {"reader": reader, "benchmark": benchmark, "case_id": case_id, "at": time.time()}
        with self._store.write() as connection:
            connection.execute(insert_once(connection, tables.openings, row))

    def commit(self, reader: str, benchmark: str, case_id: int, letter: str | None, confidence: int | None) -> None:
        """Store the reader's answer, or that there is none; the first one counts."""
        now, table = time.time(), tables.openings
        key = {"reader": reader, "benchmark": benchmark, "case_id": case_id}
        same = sa.and_(*(table.c[name] == value for name, value in key.items()))
        with self._store.write() as connection:
            opened_at = connection.execute(sa.select(table.c.at).where(same)).scalar()
            seconds = 0.0 if opened_at is None else now - opened_at
            row = key | {"letter": letter, "confidence": confidence, "seconds": seconds, "at": now}
            connection.execute(insert_once(connection, tables.answers, row))

    def of_reader(self, reader: str, benchmark: str) -> dict[int, HumanAnswer]:
        """Everything that this reader committed, by case."""
        return {one.case: one for one in self._read(benchmark, tables.answers.c.reader == reader)}

    def of_all(self, benchmark: str) -> list[HumanAnswer]:
        """Every answer for a benchmark, except those without a letter."""
        return self._read(benchmark, tables.answers.c.letter.is_not(None))

    def _read(self, benchmark: str, where: sa.ColumnElement[bool]) -> list[HumanAnswer]:
        table = tables.answers
        columns = (table.c.reader, table.c.case_id, table.c.letter, table.c.confidence, table.c.seconds)
        query = sa.select(*columns).where(table.c.benchmark == benchmark, where).order_by(table.c.at)
        with self._store.read() as connection:
            return [HumanAnswer(*row) for row in connection.execute(query)]
