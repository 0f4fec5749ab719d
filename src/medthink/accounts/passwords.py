"""Passwords, hashed by argon2id."""

import threading
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from medthink.core.errors import UsageError

SHORTEST, LONGEST = 12, 200
# Each takes 64 MB for some tens of milliseconds: so many at once, the others wait.
_AT_ONCE = threading.BoundedSemaphore(4)


def hash_password(password: str, *, name: str = "") -> str:
    """What is kept of a password, or UsageError for one that is easily guessed."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise UsageError(f"the password has {len(password)} characters", remedy=f"take {SHORTEST} to {LONGEST}")
    if len(set(password)) < 5 or (len(name) > 3 and name.casefold() in password.casefold()):
        raise UsageError("the password is easily guessed", remedy="take several words that do not belong together")
    with _AT_ONCE:
        return _hasher().hash(password)


def is_password(kept: str | None, given: str) -> bool:
    """Whether this is the password; takes as long where none is kept, so that nobody learns who has an account."""
    if len(given) > LONGEST:
        return False
    with _AT_ONCE:
        try:
            return _hasher().verify(kept or _no_password(), given) and kept is not None
        except (VerificationError, InvalidHashError):
            return False


@cache
def _hasher() -> PasswordHasher:
    return PasswordHasher()


@cache
def _no_password() -> str:
    return _hasher().hash("nobody has this password")
