"""Invitations by link.

An ordinary one creates an account, once; a personal one signs a person in without a password, any number of times until
it expires. A coordinator invites a reader with `invite_reader`: the account exists at once, and the reader signs in
with the link.
"""

from collections.abc import Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from medthink.accounts.account import Account, NewAccount, ensure_team, find_account_in, insert_account
from medthink.accounts.passwords import digest_secret, hash_password, make_secret
from medthink.accounts.roles import GivenRole
from medthink.core.clock import now_utc, utc_in
from medthink.core.errors import Declined
from medthink.store import tables
from medthink.store.engine import Store, record_event

DAYS = 14
READER_DAYS = 90


class Invitation(msgspec.Struct, frozen=True, kw_only=True):
    """An invitation; `account_id` is the account that a personal link signs in to."""

    id: int
    account_id: int | None
    team: str | None
    roles: tuple[GivenRole, ...]
    note: str
    made_by: str
    made_at: str
    expires_at: str
    used_at: str | None
    revoked_at: str | None

    @property
    def is_personal(self) -> bool:
        """Whether it signs in to an account instead of creating one."""
        return self.account_id is not None

    @property
    def is_over(self) -> bool:
        """Whether it is no longer valid."""
        is_spent = self.used_at is not None and not self.is_personal
        return is_spent or self.revoked_at is not None or self.expires_at <= now_utc()


def invite(
    store: Store, roles: Sequence[GivenRole], *, actor: str, team: str = "", about: str = "", days: int = DAYS
) -> str:
    """Invite someone to create an account with these roles in this team; returns the secret of the link."""
    with store.write() as connection:
        team_id = ensure_team(connection, team) if team.strip() else None
        return _make(connection, {"roles": list(roles), "team_id": team_id, "note": about[:200]}, actor, days)


def invite_reader(
    store: Store, name: str, *, shown_name: str = "", actor: str, days: int = READER_DAYS
) -> tuple[Account, str]:
    """Create a reader who signs in by a personal link; returns the account and the secret of the link."""
    with store.write() as connection:
        return invite_reader_in(connection, name, shown_name=shown_name, actor=actor, days=days)


def invite_reader_in(
    connection: Connection, name: str, *, shown_name: str = "", actor: str, days: int = READER_DAYS
) -> tuple[Account, str]:
    """The same within a transaction."""
    new = NewAccount(name=name, shown_name=shown_name, roles=("reader",))
    account = insert_account(connection, new, None, actor=actor)
    values = {"roles": ["reader"], "account_id": account.id, "note": account.shown_name}
    return account, _make(connection, values, actor, days)


def renew_link(store: Store, account: Account, *, actor: str, days: int = READER_DAYS) -> str:
    """A new personal link for someone who lost theirs; earlier ones become invalid."""
    table = tables.invitations
    with store.write() as connection:
        earlier = sa.and_(table.c.account_id == account.id, table.c.revoked_at.is_(None))
        connection.execute(table.update().where(earlier).values(revoked_at=now_utc()))
        values = {"roles": list(account.roles), "account_id": account.id, "note": account.shown_name}
        return _make(connection, values, actor, days)


def find_invitation(store: Store, secret: str) -> Invitation | None:
    """The invitation behind a link, if it is still valid."""
    with store.read() as connection:
        found = _find(connection, tables.invitations.c.digest == digest_secret(secret))
    return None if found is None or found.is_over else found


def list_invitations(store: Store) -> list[Invitation]:
    """Every invitation, newest first."""
    with store.read() as connection:
        rows = connection.execute(_SELECT.order_by(tables.invitations.c.id.desc())).mappings()
        return [_invitation(row) for row in rows]


def accept_invitation(store: Store, secret: str, new: NewAccount) -> Account:
    """Create the account of an invitation; roles and team are the invitation's, whatever `new` says."""
    kept = None if new.password is None else hash_password(new.password, name=new.name)
    table = tables.invitations
    with store.write() as connection:
        where = table.c.digest == digest_secret(secret)
        connection.execute(sa.select(table.c.id).where(where).with_for_update())
        found = _find(connection, where)
        if found is None or found.is_over or found.is_personal:
            raise Declined("this invitation has been used or has expired", remedy="ask for another one")
        connection.execute(table.update().where(where).values(used_at=now_utc()))
        granted = msgspec.structs.replace(new, roles=found.roles, team=found.team or new.team)
        return insert_account(connection, granted, kept, actor=found.made_by, is_team_new=found.team is None)


def accept_personal_link(store: Store, secret: str) -> Account | None:
    """The owner of this personal link, if it is valid and the account is open."""
    found = find_invitation(store, secret)
    if found is None or found.account_id is None:
        return None
    with store.write() as connection:
        where = tables.invitations.c.id == found.id
        connection.execute(tables.invitations.update().where(where).values(used_at=now_utc()))
        account = find_account_in(connection, tables.accounts.c.id == found.account_id)
    return account if account is not None and account.disabled_at is None else None


def revoke_invitation(store: Store, number: int, *, actor: str) -> bool:
    """Revoke a link at once; returns whether it existed."""
    table = tables.invitations
    with store.write() as connection:
        changed = connection.execute(table.update().where(table.c.id == number).values(revoked_at=now_utc())).rowcount
        if changed:
            record_event(connection, None, actor, "invitation revoked", {"invitation": number})
    return changed > 0


def _make(connection: Connection, values: dict[str, object], actor: str, days: int) -> str:
    secret = make_secret()
    row = {
        "digest": digest_secret(secret),
        "made_by": actor,
        "made_at": now_utc(),
        "expires_at": utc_in(days * 86400),
    }
    connection.execute(tables.invitations.insert().values(row | values))
    record_event(connection, None, actor, "invited", {"roles": values["roles"], "note": values["note"]})
    return secret


_SELECT = sa.select(tables.invitations, tables.teams.c.name.label("team")).join(
    tables.teams, tables.teams.c.id == tables.invitations.c.team_id, isouter=True
)


def _find(connection: Connection, where: sa.ColumnElement[bool]) -> Invitation | None:
    row = connection.execute(_SELECT.where(where)).mappings().first()
    return None if row is None else _invitation(row)


def _invitation(row: sa.RowMapping) -> Invitation:
    return msgspec.convert({name: row[name] for name in Invitation.__struct_fields__}, Invitation)
