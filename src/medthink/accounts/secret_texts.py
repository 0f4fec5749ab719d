"""Texts that open a door: made at random, handed out once, kept as a digest."""

import secrets

from medthink.core.digest import digest_bytes


def make_secret(prefix: str = "") -> str:
    """A text of 256 random bits that nobody can guess."""
    return prefix + secrets.token_urlsafe(32)


def digest_secret(secret: str) -> str:
    """What the store keeps of it. A random text needs no salt and no slow digest."""
    return digest_bytes(secret.encode("utf-8", "surrogatepass"))
