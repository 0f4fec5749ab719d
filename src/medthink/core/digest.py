"""Content digests, and seeds made from them."""

import hashlib
from pathlib import Path
from typing import Any

from medthink.core.files import open_for_reading
from medthink.core.jsonio import canonical_json

_PIECE_BYTES = 1 << 20


def digest_bytes(data: bytes) -> str:
    """SHA-256 of the bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


def digest_file(path: Path) -> str:
    """SHA-256 of a file, read in pieces."""
    found = hashlib.sha256()
    with open_for_reading(path) as stream:
        while piece := stream.read(_PIECE_BYTES):
            found.update(piece)
    return found.hexdigest()


def digest_value(value: Any) -> str:
    """SHA-256 of the value's canonical JSON, in hex: equal values, equal digests."""
    return digest_bytes(canonical_json(value))


def seed_from(*parts: str | int) -> int:
    """A 64-bit seed that depends on these parts alone, not on a global generator or the order of calls."""
    return int.from_bytes(hashlib.sha256(canonical_json(parts)).digest()[:8], "big")
