"""Rate limiting against guessing: a limited number of attempts per quarter of an hour, counted before checking."""

import sqlalchemy as sa

from medthink.board import tables
from medthink.board.store import BoardStore
from medthink.board.teams import insert_once
from medthink.core.clock import now_utc, utc_in
from medthink.core.digest import digest_bytes
from medthink.core.errors import Declined

WINDOW_S = 900
# For one name from one address, for one name from everywhere, and for all names from one address.
_BOTH, _NAME, _ADDRESS = 10, 100, 60


class TooManyAttempts(Declined):
    """Too many attempts; `wait_s` says how long further ones are refused."""

    wait_s = WINDOW_S


def admit_sign_in(store: BoardStore, name: str, address: str) -> None:
    """Count an attempt to sign in, or raise TooManyAttempts."""
    name = name.strip().casefold()
    limits = {f"both/{address}/{name}": _BOTH, f"name/{name}": _NAME, f"address/{address}": _ADDRESS}
    if not all([count_attempt(store, what, most) for what, most in limits.items()]):
        minutes = WINDOW_S // 60
        raise TooManyAttempts("too many attempts to sign in", remedy=f"try again in {minutes} minutes")


def forget_attempts(store: BoardStore, name: str, address: str) -> None:
    """Reset the count after a successful sign-in."""
    with store.write() as connection:
        key = _key(f"both/{address}/{name.strip().casefold()}")
        connection.execute(tables.attempts.delete().where(tables.attempts.c.key == key))


def count_attempt(store: BoardStore, what: str, most: int) -> bool:
    """Count one more attempt at something; whether it is among the first `most` of its window."""
    table, key = tables.attempts, _key(what)
    with store.write() as connection:
        connection.execute(table.delete().where(table.c.since < utc_in(-WINDOW_S)))
        connection.execute(insert_once(connection, table, {"key": key, "since": now_utc(), "count": 0}))
        more = table.update().where(table.c.key == key).values(count=table.c.count + 1)
        connection.execute(more)
        tried: int = connection.execute(sa.select(table.c.count).where(table.c.key == key)).scalar_one()
    return tried <= most


def _key(what: str) -> str:
    # Names and addresses are not stored in plain text.
    return digest_bytes(what.encode("utf-8", "surrogatepass"))
