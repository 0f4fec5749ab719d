"""The tables of the reading room, kept in the store of the board.

Times are UTC texts, which sort as they are. `mark_events` only grows: everything ever saved stays there, even if a
later save replaced it.
"""

from typing import TypeVar

import msgspec
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Integer,
    MetaData,
    RowMapping,
    String,
    Table,
    UniqueConstraint,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

studies = Table(
    "studies",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("token", String(32), nullable=False, unique=True),
    Column("name", String(200), nullable=False),
    Column("plan", JSON, nullable=False),
    Column("key", JSON, nullable=False),
    Column("made_by", String(200), nullable=False),
    Column("made_at", String(20), nullable=False),
    Column("closed_at", String(20)),
)

# `name` is that of the account that reads; `alias` is the pseudonym used where names are not shown.
study_readers = Table(
    "study_readers",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("study_id", Integer, ForeignKey("studies.id"), nullable=False, index=True),
    Column("name", String(100), nullable=False),
    Column("alias", String(20), nullable=False),
    Column("is_adjudicator", Boolean, nullable=False),
    Column("training", JSON, nullable=False),
    Column("trained_at", String(20)),
    Column("revoked_at", String(20)),
    UniqueConstraint("study_id", "name"),
)

# `frozen` has the two readings that an adjudicator sees, and is null for every other sitting.
sittings = Table(
    "sittings",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("study_id", Integer, ForeignKey("studies.id"), nullable=False, index=True),
    Column("reader_id", Integer, ForeignKey("study_readers.id"), nullable=False, index=True),
    Column("place", Integer, nullable=False),
    Column("code", String(40), nullable=False),
    Column("case_id", Integer, nullable=False),
    Column("units", Integer, nullable=False),
    Column("content", JSON, nullable=False),
    Column("frozen", JSON),
    Column("opened_at", String(20)),
    Column("letter", String(1)),
    Column("confidence", Integer),
    Column("case_seconds", Float),
    Column("committed_at", String(20)),
    Column("submitted_at", String(20)),
    Column("holder", String(40)),
    Column("held_until", String(20)),
    UniqueConstraint("study_id", "code"),
)

marks = Table(
    "marks",
    metadata,
    Column("sitting_id", Integer, ForeignKey("sittings.id"), primary_key=True),
    Column("item", String(40), primary_key=True),
    Column("version", Integer, nullable=False),
    Column("cells", JSON, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("saved_at", String(20), nullable=False),
)

mark_events = Table(
    "mark_events",
    metadata,
    Column("sitting_id", Integer, ForeignKey("sittings.id"), primary_key=True),
    Column("key", String(64), primary_key=True),
    Column("item", String(40), nullable=False),
    Column("version", Integer, nullable=False),
    Column("cells", JSON, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("saved_at", String(20), nullable=False),
)

Record = TypeVar("Record", bound=msgspec.Struct)


def read_row(row: RowMapping, kind: type[Record]) -> Record:
    """A row as a struct with fields named like its columns; a field whose column was not read keeps its default."""
    return msgspec.convert({name: row[name] for name in kind.__struct_fields__ if name in row}, kind)
