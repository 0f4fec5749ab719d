"""API tokens: shown once, stored as a digest, limited by scope and time, invalid as soon as they are revoked."""

from collections.abc import Sequence

import msgspec
import sqlalchemy as sa

from medthink.accounts.account import Account
from medthink.accounts.people import find_in
from medthink.accounts.roles import TokenScope
from medthink.accounts.secret_texts import digest_secret, make_secret
from medthink.board import tables
from medthink.board.records import note
from medthink.board.store import BoardStore
from medthink.core.clock import now_utc, utc_in
from medthink.core.errors import UsageError

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


def make_token(store: BoardStore, account: Account, label: str, scopes: Sequence[TokenScope], *, days: int) -> str:
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
        live = sa.and_(_belongs(account), tables.api_tokens.c.revoked_at.is_(None))
        if connection.execute(sa.select(sa.func.count()).where(live)).scalar_one() >= _MOST_TOKENS:
            raise UsageError(f"you have {_MOST_TOKENS} tokens", remedy="revoke those you no longer use")
        connection.execute(tables.api_tokens.insert().values(row))
        note(connection, None, account.name, "token made", {"hint": row["hint"], "scopes": list(scopes)})
    return secret


def find_token(store: BoardStore, secret: str) -> tuple[Account, ApiToken] | None:
    """The account of this token, if it is valid and the account is open."""
    table = tables.api_tokens
    with store.read() as connection:
        row = connection.execute(sa.select(table).where(table.c.digest == digest_secret(secret))).mappings().first()
        account = None if row is None else find_in(connection, tables.accounts.c.id == row["account_id"])
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


def list_tokens(store: BoardStore, account: Account) -> list[ApiToken]:
    """The tokens of an account, newest first."""
    table = tables.api_tokens
    with store.read() as connection:
        rows = connection.execute(sa.select(table).where(_belongs(account)).order_by(table.c.id.desc())).mappings()
        return [_token(row) for row in rows]


def revoke_token(store: BoardStore, account: Account, number: int) -> bool:
    """Revoke one of this account's tokens at once; returns whether it existed."""
    table = tables.api_tokens
    with store.write() as connection:
        where = sa.and_(table.c.id == number, _belongs(account))
        changed = connection.execute(table.update().where(where).values(revoked_at=now_utc())).rowcount
        if changed:
            note(connection, None, account.name, "token revoked", {"token": number})
    return changed > 0


def _belongs(account: Account) -> sa.ColumnElement[bool]:
    return tables.api_tokens.c.account_id == account.id


def _token(row: sa.RowMapping) -> ApiToken:
    return msgspec.convert({name: row[name] for name in ApiToken.__struct_fields__}, ApiToken)
