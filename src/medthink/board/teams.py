"""The teams that submit."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from medthink.board import tables
from medthink.core.clock import now_utc
from medthink.core.errors import UsageError

_LONGEST = 200


def find_team(connection: Connection, name: str) -> int | None:
    """The number of the team of this name, ignoring case."""
    table = tables.teams
    same = sa.func.lower(table.c.name) == sa.func.lower(name.strip())
    return connection.execute(sa.select(table.c.id).where(same).order_by(table.c.id)).scalar()


def enter_team(connection: Connection, name: str) -> int:
    """The number of the team of this name, added if missing."""
    name = " ".join(name.split())
    if not name or len(name) > _LONGEST:
        raise UsageError("the team's name is missing or too long", remedy=f"use 1 to {_LONGEST} characters")
    found = find_team(connection, name)
    if found is not None:
        return found
    # If two add the same team at once, one of them writes and both find it.
    connection.execute(insert_once(connection, tables.teams, {"name": name, "added_at": now_utc()}))
    entered = find_team(connection, name)
    assert entered is not None
    return entered


def lock_team(connection: Connection, team_id: int) -> None:
    """Let no other writer count this team's submissions until the transaction ends."""
    connection.execute(sa.select(tables.teams.c.id).where(tables.teams.c.id == team_id).with_for_update())


def insert_once(connection: Connection, table: sa.Table, values: dict[str, Any]) -> Any:
    """An insert that leaves an existing row unchanged."""
    from sqlalchemy.dialects import postgresql, sqlite

    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    return dialect.insert(table).values(values).on_conflict_do_nothing()
