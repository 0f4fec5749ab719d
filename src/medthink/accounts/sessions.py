"""Sessions: stored by the server, identified in the browser by a random secret only."""

from collections.abc import Sequence

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
    ACCOUNT_ROWS.add_columns(tables.sessions.c.digest, tables.sessions.c.seen_at)
    .join(tables.sessions, tables.sessions.c.account_id == tables.accounts.c.id)
    .where(tables.sessions.c.digest.in_(sa.bindparam("digests", expanding=True)), sa.not_(_OVER))
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


def find_sessions(store: BoardStore, secrets: Sequence[str]) -> list[Account | None]:
    """The account of each of these sessions, if it is valid and the account is open."""
    digests = [digest_secret(secret) for secret in secrets]
    rows = store.rows(_FIND, {"digests": sorted(set(digests)), **_times()})
    found = {row["digest"]: read_account(row) for row in rows}
    long_ago = utc_in(-_SEEN_EVERY_S)
    unseen = [row["digest"] for row in rows if row["seen_at"] < long_ago and found[row["digest"]].disabled_at is None]
    if unseen:
        table = tables.sessions
        with store.write() as connection:
            connection.execute(table.update().where(table.c.digest.in_(unseen)).values(seen_at=now_utc()))
    accounts = [found.get(digest) for digest in digests]
    return [None if one is None or one.disabled_at is not None else one for one in accounts]


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
