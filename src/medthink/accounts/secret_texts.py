"""Secrets: generated at random, shown once, stored as a digest."""

import secrets

from medthink.core.digest import digest_bytes


def make_secret(prefix: str = "") -> str:
    """A secret of 256 random bits."""
    return prefix + secrets.token_urlsafe(32)


def digest_secret(secret: str) -> str:
    """The digest to store. A random secret needs no salt and no slow hash."""
    return digest_bytes(secret.encode("utf-8", "surrogatepass"))
