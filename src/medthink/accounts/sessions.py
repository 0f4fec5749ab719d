"""Sessions: stored by the server, identified in the browser by a random secret only."""

import sqlalchemy as sa

from medthink.accounts.account import Account
from medthink.accounts.people import ACCOUNT_ROWS, end_sessions_in, read_account
from medthink.accounts.secret_texts import digest_secret, make_secret
from medthink.board import tables
from medthink.board.store import BoardStore
from medthink.core.clock import now_utc, utc_in

LONGEST_S = 14 * 86400
IDLE_S = 3 * 86400
# A session seen within this time is not updated.
_SEEN_EVERY_S = 300
_OVER = sa.or_(
    tables.sessions.c.expires_at <= sa.bindparam("now"), tables.sessions.c.seen_at < sa.bindparam("idle_since")
)
# Asked for with every request, and therefore put together once.
_FIND = (
    ACCOUNT_ROWS.add_columns(tables.sessions.c.seen_at)
    .join(tables.sessions, tables.sessions.c.account_id == tables.accounts.c.id)
    .where(tables.sessions.c.digest == sa.bindparam("digest"), sa.not_(_OVER))
)


def begin_session(store: BoardStore, account: Account) -> str:
    """Sign a person in; returns the secret for their browser."""
    secret, now = make_secret(), now_utc()
    row = {
        "digest": digest_secret(secret),
        "account_id": account.id,
        "made_at": now,
        "seen_at": now,
        "expires_at": utc_in(LONGEST_S),
    }
    with store.write() as connection:
        connection.execute(tables.sessions.delete().where(_OVER), _times())
        connection.execute(tables.sessions.insert().values(row))
    return secret


def find_session(store: BoardStore, secret: str) -> Account | None:
    """The account of this session, if it is valid and the account is open."""
    table, digest = tables.sessions, digest_secret(secret)
    with store.read() as connection:
        row = connection.execute(_FIND, {"digest": digest, **_times()}).mappings().first()
    account = None if row is None else read_account(row)
    if row is None or account is None or account.disabled_at is not None:
        return None
    if row["seen_at"] < utc_in(-_SEEN_EVERY_S):
        with store.write() as connection:
            connection.execute(table.update().where(table.c.digest == digest).values(seen_at=now_utc()))
    return account


def end_session(store: BoardStore, secret: str) -> None:
    """Sign out."""
    with store.write() as connection:
        connection.execute(tables.sessions.delete().where(tables.sessions.c.digest == digest_secret(secret)))


def end_sessions(store: BoardStore, account: Account) -> None:
    """Sign a person out everywhere."""
    with store.write() as connection:
        end_sessions_in(connection, account.id)


def _times() -> dict[str, str]:
    """By which a session is over."""
    return {"now": now_utc(), "idle_since": utc_in(-IDLE_S)}
