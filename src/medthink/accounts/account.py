"""Accounts: people in the store, with their names, roles and teams."""

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from medthink.accounts.passwords import hash_password, is_password
from medthink.accounts.roles import GivenRole, Role, includes
from medthink.core.clock import now_utc
from medthink.core.errors import Declined, UsageError
from medthink.core.names import is_person_name, name_key, read_name
from medthink.store import tables
from medthink.store.engine import Store, insert_if_missing, record_event


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """A person's account, without the password."""

    id: int
    name: str
    shown_name: str
    team: str | None
    roles: tuple[GivenRole, ...]
    added_at: str
    disabled_at: str | None
    has_password: bool

    def may(self, role: Role) -> bool:
        """Whether this person has the rights of a role."""
        return self.disabled_at is None and includes(self.roles, role)


_LONGEST_TEAM, _LONGEST_SHOWN = 200, 100


def find_team(connection: Connection, name: str) -> int | None:
    """The number of the team of this name, however it is spelled."""
    table = tables.teams
    return connection.execute(sa.select(table.c.id).where(table.c.key == name_key(name))).scalar()


def ensure_team(connection: Connection, name: str, *, is_new: bool = False) -> int:
    """The number of the team of this name, added if missing; with `is_new`, UsageError if it exists."""
    name = read_name(name, what="team's name", longest=_LONGEST_TEAM)
    row = {"name": name, "key": name_key(name), "added_at": now_utc()}
    # If two add the same team at once, one of them writes it and the other waits for that.
    added = None if not is_new and find_team(connection, name) else _insert_team(connection, row)
    if added is not None:
        return added
    if is_new:
        raise UsageError(
            f"there is already a team {name}", remedy="ask one of its members or a maintainer to invite you"
        )
    found = find_team(connection, name)
    assert found is not None
    return found


def _insert_team(connection: Connection, row: dict[str, Any]) -> int | None:
    """The number of the added team; None if it exists."""
    insert = insert_if_missing(connection, tables.teams, row).returning(tables.teams.c.id)
    added: int | None = connection.execute(insert).scalar()
    return added


def lock_team(connection: Connection, team_id: int) -> None:
    """Lock the team, so that no other writer counts its submissions before the transaction ends."""
    connection.execute(sa.select(tables.teams.c.id).where(tables.teams.c.id == team_id).with_for_update())


class NewAccount(msgspec.Struct, frozen=True, kw_only=True):
    """What is needed to create an account; without a password the person signs in by a link or a provider."""

    name: str
    roles: tuple[GivenRole, ...]
    shown_name: str = ""
    team: str = ""
    password: str | None = None


def add_account(store: Store, new: NewAccount, *, actor: str, is_team_new: bool = False) -> Account:
    """Create an account; UsageError if the name is taken, or if a team that must be new exists."""
    kept = None if new.password is None else hash_password(new.password, name=new.name)
    with store.write() as connection:
        return insert_account(connection, new, kept, actor=actor, is_team_new=is_team_new)


def insert_account(
    connection: Connection, new: NewAccount, password: str | None, *, actor: str, is_team_new: bool = False
) -> Account:
    """Create an account within a transaction; `password` is the hash."""
    name, shown = (
        normalise_sign_in_name(new.name),
        read_name(new.shown_name or new.name, what="display name", longest=_LONGEST_SHOWN),
    )
    team = new.team.strip()
    values: dict[str, Any] = {
        "name": name,
        "shown_name": shown,
        "team_id": ensure_team(connection, team, is_new=is_team_new) if team else None,
        "roles": list(new.roles),
        "password": password,
        "added_at": now_utc(),
    }
    made_id = connection.execute(insert_if_missing(connection, tables.accounts, values).returning(tables.accounts.c.id))
    if made_id.scalar() is None:
        raise UsageError(f"the name {name} is taken", remedy="choose another name")
    record_event(connection, None, actor, "account added", {"name": name, "roles": list(new.roles), "team": team})
    made = find_account_in(connection, tables.accounts.c.name == name)
    assert made is not None
    return made


def find_account(store: Store, name: str) -> Account | None:
    """The account of this name."""
    with store.read() as connection:
        return find_account_in(connection, tables.accounts.c.name == name.strip().casefold())


def list_accounts(store: Store, *, role: GivenRole | None = None) -> list[Account]:
    """All accounts, or those with a role, by name."""
    with store.read() as connection:
        rows = connection.execute(ACCOUNT_ROWS.order_by(tables.accounts.c.name)).mappings()
        return [one for one in map(read_account, rows) if role is None or role in one.roles]


def has_maintainer(store: Store) -> bool:
    """Whether anyone can sign in as maintainer."""
    return any(one.may("maintainer") for one in list_accounts(store, role="maintainer"))


def check_password(store: Store, name: str, given: str) -> Account | None:
    """The account, if this is its password and it is not disabled."""
    table = tables.accounts
    with store.read() as connection:
        where = table.c.name == name.strip().casefold()
        kept = connection.execute(sa.select(table.c.password).where(where)).scalar()
        found = find_account_in(connection, where)
    is_right = is_password(kept, given)
    return found if is_right and found is not None and found.disabled_at is None else None


def set_password(store: Store, account: Account, password: str, *, actor: str) -> None:
    """Change an account's password, and end its sessions."""
    kept = hash_password(password, name=account.name)
    with store.write() as connection:
        _change(connection, account.id, {"password": kept}, actor=actor, what="password changed")
        end_sessions_in(connection, account.id)


def set_roles(store: Store, account: Account, roles: Sequence[GivenRole], *, actor: str) -> None:
    """Change an account's roles; the last maintainer cannot lose that role."""
    with store.write() as connection:
        if "maintainer" not in roles:
            _refuse_last_maintainer(connection, account)
        _change(connection, account.id, {"roles": list(roles)}, actor=actor, what="roles changed")


def set_disabled(store: Store, account: Account, *, is_disabled: bool, actor: str) -> None:
    """Disable an account and all its credentials, or enable it again; the last maintainer cannot be disabled."""
    with store.write() as connection:
        if is_disabled:
            _refuse_last_maintainer(connection, account)
            end_sessions_in(connection, account.id)
        values = {"disabled_at": now_utc() if is_disabled else None}
        what = "account disabled" if is_disabled else "account enabled"
        _change(connection, account.id, values, actor=actor, what=what)


def end_sessions_in(connection: Connection, account_id: int) -> None:
    """End every session of an account within a transaction."""
    connection.execute(tables.sessions.delete().where(tables.sessions.c.account_id == account_id))


def find_account_in(connection: Connection, where: sa.ColumnElement[bool]) -> Account | None:
    """The matching account, within a transaction."""
    row = connection.execute(ACCOUNT_ROWS.where(where)).mappings().first()
    return None if row is None else read_account(row)


def normalise_sign_in_name(given: str) -> str:
    """A normalised sign-in name, or UsageError."""
    name = given.strip().casefold()
    if len(name) < 2 or not is_person_name(name):
        raise UsageError(
            "the name cannot be used to sign in",
            remedy="use 2 to 100 characters of a-z, 0-9 and . _ @ + -, starting with a letter or digit",
        )
    return name


ACCOUNT_ROWS = sa.select(tables.accounts, tables.teams.c.name.label("team")).join(
    tables.teams, tables.teams.c.id == tables.accounts.c.team_id, isouter=True
)


def read_account(row: sa.RowMapping) -> Account:
    """The account of a row of `ACCOUNT_ROWS`."""
    fields = {name: row[name] for name in Account.__struct_fields__ if name != "has_password"}
    return msgspec.convert(fields | {"has_password": row["password"] is not None}, Account)


def _change(connection: Connection, number: int, values: dict[str, Any], *, actor: str, what: str) -> None:
    where = tables.accounts.c.id == number
    connection.execute(tables.accounts.update().where(where).values(values))
    said = {name: value for name, value in values.items() if name == "roles"}
    record_event(connection, None, actor, what, {"account": number} | said)


def _refuse_last_maintainer(connection: Connection, account: Account) -> None:
    # All are locked, so that two maintainers cannot remove each other at the same time.
    rows = connection.execute(sa.select(tables.accounts).with_for_update()).mappings().all()
    others = [row for row in rows if row["id"] != account.id and row["disabled_at"] is None]
    if "maintainer" in account.roles and not any("maintainer" in row["roles"] for row in others):
        raise Declined(f"{account.name} is the only maintainer", remedy="make someone else a maintainer first")
