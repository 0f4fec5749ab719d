"""Further measures of a submission besides its scores, one row per kind; a new measure replaces the old one."""

from typing import Any, Literal, TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from medthink.board import tables
from medthink.board.store import BoardStore
from medthink.core.clock import now_utc

MeasureKind = Literal["gain", "judged", "rerun"]
_Measure = TypeVar("_Measure", bound=msgspec.Struct)


def keep_measure(connection: Connection, submission_id: int, kind: MeasureKind, measure: msgspec.Struct) -> None:
    """Store a measure of a submission."""
    table = tables.measures
    same = (table.c.submission_id == submission_id, table.c.kind == kind)
    connection.execute(table.delete().where(*same))
    row = {"submission_id": submission_id, "kind": kind, "made_at": now_utc(), "body": msgspec.to_builtins(measure)}
    connection.execute(table.insert().values(row))


def read_measures(store: BoardStore, kind: MeasureKind, shape: type[_Measure]) -> dict[int, _Measure]:
    """The measures of one kind, by submission; one written by another release in another form is ignored."""
    table = tables.measures
    with store.read() as connection:
        rows = connection.execute(sa.select(table.c.submission_id, table.c.body).where(table.c.kind == kind)).all()
    found = ((number, _convert(body, shape)) for number, body in rows)
    return {number: measure for number, measure in found if measure is not None}


def _convert(body: Any, shape: type[_Measure]) -> _Measure | None:
    try:
        return msgspec.convert(body, shape)
    except msgspec.ValidationError:
        return None
