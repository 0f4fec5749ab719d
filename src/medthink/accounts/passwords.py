"""Passwords, hashed with argon2id."""

import secrets
import threading
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from medthink.core.digest import digest_bytes
from medthink.core.errors import UsageError

SHORTEST, LONGEST = 12, 200
# Each hash takes 64 MB for some tens of milliseconds: this many at once, the others wait.
_AT_ONCE = threading.BoundedSemaphore(4)


def hash_password(password: str, *, name: str = "") -> str:
    """The hash of a password, or UsageError if it is easy to guess."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise UsageError(f"the password has {len(password)} characters", remedy=f"use {SHORTEST} to {LONGEST}")
    if len(set(password)) < 5 or (len(name) > 3 and name.casefold() in password.casefold()):
        raise UsageError("the password is easy to guess", remedy="use several unrelated words")
    with _AT_ONCE:
        return _hasher().hash(password)


def is_password(kept: str | None, given: str) -> bool:
    """Whether this is the password; takes equally long if there is none, so that account names cannot be probed."""
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


def make_secret(prefix: str = "") -> str:
    """A secret of 256 random bits."""
    return prefix + secrets.token_urlsafe(32)


def digest_secret(secret: str) -> str:
    """The digest to store. A random secret needs no salt and no slow hash."""
    return digest_bytes(secret.encode("utf-8", "surrogatepass"))
