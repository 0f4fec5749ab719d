"""The account of a person identified by a provider."""

import sqlalchemy as sa

from medthink.accounts.account import Account
from medthink.accounts.people import find_in
from medthink.accounts.providers import Identity
from medthink.board import tables
from medthink.board.records import note
from medthink.board.store import BoardStore
from medthink.board.teams import insert_once
from medthink.core.clock import now_utc


def find_by_identity(store: BoardStore, identity: Identity) -> Account | None:
    """The account of this person, if there is one and it is open."""
    table = tables.identities
    same = sa.and_(table.c.issuer == identity.issuer, table.c.subject == identity.subject)
    with store.read() as connection:
        number = connection.execute(sa.select(table.c.account_id).where(same)).scalar()
        found = None if number is None else find_in(connection, tables.accounts.c.id == number)
    return found if found is not None and found.disabled_at is None else None


def link_identity(store: BoardStore, account: Account, identity: Identity) -> None:
    """Link this person to the account; someone already linked to another account keeps that one."""
    row = {
        "issuer": identity.issuer,
        "subject": identity.subject,
        "account_id": account.id,
        "added_at": now_utc(),
    }
    with store.write() as connection:
        connection.execute(insert_once(connection, tables.identities, row))
        note(connection, None, account.name, "identity linked", {"issuer": identity.issuer})
