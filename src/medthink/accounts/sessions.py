"""Sessions: stored by the server, identified in the browser by a random secret only."""

from collections.abc import Sequence

import msgspec
import sqlalchemy as sa

from medthink.accounts.account import ACCOUNT_ROWS, Account, end_sessions_in, find_account_in, read_account
from medthink.accounts.passwords import digest_secret, make_secret
from medthink.accounts.roles import TokenScope
from medthink.core.clock import now_utc, utc_in
from medthink.core.digest import digest_bytes
from medthink.core.errors import Declined, UsageError
from medthink.store import tables
from medthink.store.engine import Store, insert_if_missing, record_event

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


def begin_session(store: Store, account: Account) -> str:
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


def find_session(store: Store, secret: str) -> Account | None:
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


def end_session(store: Store, secret: str) -> None:
    """Sign out."""
    with store.write() as connection:
        connection.execute(tables.sessions.delete().where(tables.sessions.c.digest == digest_secret(secret)))


def end_sessions(store: Store, account: Account) -> None:
    """Sign a person out everywhere."""
    with store.write() as connection:
        end_sessions_in(connection, account.id)


def _times() -> dict[str, str]:
    """The times after which a session has expired."""
    return {"now": now_utc(), "idle_since": utc_in(-IDLE_S)}


PREFIX = "mt_"
_HINT = 8
_MOST_DAYS = 366
_MOST_TOKENS = 50


class ApiToken(msgspec.Struct, frozen=True, kw_only=True):
    """The visible part of a token: its first characters, never the rest."""

    id: int
    hint: str
    label: str
    scopes: tuple[TokenScope, ...]
    made_at: str
    expires_at: str
    used_at: str | None
    revoked_at: str | None

    @property
    def is_over(self) -> bool:
        """Whether it is no longer valid."""
        return self.revoked_at is not None or self.expires_at <= now_utc()


def make_token(store: Store, account: Account, label: str, scopes: Sequence[TokenScope], *, days: int) -> str:
    """A new token; it is returned only once."""
    if not scopes or not 1 <= days <= _MOST_DAYS:
        raise UsageError("a token needs a scope and an expiry", remedy=f"choose scopes, and 1 to {_MOST_DAYS} days")
    secret = make_secret(PREFIX)
    row = {
        "account_id": account.id,
        "digest": digest_secret(secret),
        "hint": secret[:_HINT],
        "label": label.strip()[:200] or "token",
        "scopes": list(scopes),
        "made_at": now_utc(),
        "expires_at": utc_in(days * 86400),
    }
    with store.write() as connection:
        table = tables.api_tokens
        live = sa.and_(_belongs(account), table.c.revoked_at.is_(None), table.c.expires_at > now_utc())
        if connection.execute(sa.select(sa.func.count()).where(live)).scalar_one() >= _MOST_TOKENS:
            raise UsageError(f"you have {_MOST_TOKENS} tokens", remedy="revoke those you no longer use")
        connection.execute(table.insert().values(row))
        record_event(connection, None, account.name, "token made", {"hint": row["hint"], "scopes": list(scopes)})
    return secret


def find_token(store: Store, secret: str) -> tuple[Account, ApiToken] | None:
    """The account of this token, if it is valid and the account is open."""
    table = tables.api_tokens
    with store.read() as connection:
        row = connection.execute(sa.select(table).where(table.c.digest == digest_secret(secret))).mappings().first()
        account = None if row is None else find_account_in(connection, tables.accounts.c.id == row["account_id"])
    if row is None or account is None or account.disabled_at is not None:
        return None
    token = _token(row)
    if token.is_over:
        return None
    today = now_utc()[:10]
    if (token.used_at or "")[:10] != today:
        with store.write() as connection:
            connection.execute(table.update().where(table.c.id == token.id).values(used_at=now_utc()))
    return account, token


def list_tokens(store: Store, account: Account) -> list[ApiToken]:
    """The tokens of an account, newest first."""
    table = tables.api_tokens
    with store.read() as connection:
        rows = connection.execute(sa.select(table).where(_belongs(account)).order_by(table.c.id.desc())).mappings()
        return [_token(row) for row in rows]


def revoke_token(store: Store, account: Account, number: int) -> bool:
    """Revoke one of this account's tokens at once; returns whether it existed."""
    table = tables.api_tokens
    with store.write() as connection:
        where = sa.and_(table.c.id == number, _belongs(account))
        changed = connection.execute(table.update().where(where).values(revoked_at=now_utc())).rowcount
        if changed:
            record_event(connection, None, account.name, "token revoked", {"token": number})
    return changed > 0


def remove_token(store: Store, account: Account, number: int) -> bool:
    """Remove one of this account's tokens that is no longer valid from its list; returns whether there was one."""
    table = tables.api_tokens
    is_over = sa.or_(table.c.revoked_at.is_not(None), table.c.expires_at <= now_utc())
    with store.write() as connection:
        return connection.execute(table.delete().where(table.c.id == number, _belongs(account), is_over)).rowcount > 0


def _belongs(account: Account) -> sa.ColumnElement[bool]:
    return tables.api_tokens.c.account_id == account.id


def _token(row: sa.RowMapping) -> ApiToken:
    return msgspec.convert({name: row[name] for name in ApiToken.__struct_fields__}, ApiToken)


WINDOW_S = 900
# For one name from one address, for one name from everywhere, and for all names from one address.
_BOTH, _NAME, _ADDRESS = 10, 100, 60


class TooManyAttempts(Declined):
    """Too many attempts; `wait_s` says how long further ones are refused."""

    wait_s = WINDOW_S


def limit_sign_in(store: Store, name: str, address: str) -> None:
    """Count an attempt to sign in, or raise TooManyAttempts."""
    name = name.strip().casefold()
    limits = {f"both/{address}/{name}": _BOTH, f"name/{name}": _NAME, f"address/{address}": _ADDRESS}
    if not all([count_attempt(store, what, most) for what, most in limits.items()]):
        minutes = WINDOW_S // 60
        raise TooManyAttempts("too many attempts to sign in", remedy=f"try again in {minutes} minutes")


def forget_attempts(store: Store, name: str, address: str) -> None:
    """Reset the count after a successful sign-in."""
    with store.write() as connection:
        key = _key(f"both/{address}/{name.strip().casefold()}")
        connection.execute(tables.attempts.delete().where(tables.attempts.c.key == key))


def count_attempt(store: Store, what: str, most: int) -> bool:
    """Count one more attempt at something; whether it is among the first `most` of its window."""
    table, key = tables.attempts, _key(what)
    with store.write() as connection:
        connection.execute(table.delete().where(table.c.since < utc_in(-WINDOW_S)))
        connection.execute(insert_if_missing(connection, table, {"key": key, "since": now_utc(), "count": 0}))
        more = table.update().where(table.c.key == key).values(count=table.c.count + 1)
        connection.execute(more)
        tried: int = connection.execute(sa.select(table.c.count).where(table.c.key == key)).scalar_one()
    return tried <= most


def _key(what: str) -> str:
    # Names and addresses are not stored in plain text.
    return digest_bytes(what.encode("utf-8", "surrogatepass"))
