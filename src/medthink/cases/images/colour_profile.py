"""ICC colour profiles rebuilt from their numbers alone: description, copyright, dates and private tags stay behind.

Profiles of screens and cameras are kept: three colours with their curves (or one curve of grey) define how pixels look.
Each value must be of a size and in a range in which no words fit. Profiles of any other kind are left out: they hold
tables that could contain anything.
"""

import struct
from collections.abc import Callable
from itertools import pairwise

from medthink.core.errors import DataError

_HEADER, _ENTRY = 128, 12
_D50 = bytes.fromhex("0000f6d6 00010000 0000d32d")
_CLASSES = (b"mntr", b"scnr", b"spac", b"prtr")
_PARAMETERS = (1, 3, 4, 5, 7)  # of a curve by formula, by its function type
_MOST_CURVE_POINTS = 4096
_MOST_TAGS = 100
_ONE = 65536  # 1 as a number with 16 bits after the point


def rebuild_profile(profile: bytes) -> bytes | None:
    """The profile reduced to what is needed to show the picture; None if its numbers do not define that."""
    tags = _read_tags(profile)
    wanted = _WANTED.get(profile[16:20])
    if tags is None or wanted is None or profile[12:16] not in _CLASSES or profile[20:24] != b"XYZ ":
        return None
    kept = {name: clean for name, check in wanted.items() if (clean := check(tags.get(name, b""))) is not None}
    if any(name not in kept for name in wanted if name != b"chad"):
        return None
    return _write(profile, kept)


def _read_tags(profile: bytes) -> dict[bytes, bytes] | None:
    """The tags by name, or None for what is no profile."""
    if len(profile) < _HEADER + 4 or profile[36:40] != b"acsp":
        return None
    count = int.from_bytes(profile[_HEADER : _HEADER + 4], "big")
    if count > _MOST_TAGS or len(profile) < _HEADER + 4 + count * _ENTRY:
        return None
    entries = struct.iter_unpack(">4sII", profile[_HEADER + 4 : _HEADER + 4 + count * _ENTRY])
    return {name: profile[start : start + size] for name, start, size in entries}


def _write(profile: bytes, tags: dict[bytes, bytes]) -> bytes:
    intent = bytes((0, 0, 0, profile[67] & 3))
    head = bytes(4) + profile[8:10] + bytes(2) + profile[12:24] + bytes(12) + b"acsp" + bytes(24) + intent + _D50
    start, table, body = _HEADER + 4 + len(tags) * _ENTRY, b"", b""
    places: dict[bytes, int] = {}
    for name, data in tags.items():
        if data not in places:
            places[data] = start + len(body)
            body += data + bytes(-len(data) % 4)
        table += struct.pack(">4sII", name, places[data], len(data))
    size = (start + len(body)).to_bytes(4, "big")
    return (size + head).ljust(_HEADER, b"\0") + len(tags).to_bytes(4, "big") + table + body


def _curve(data: bytes) -> bytes | None:
    """A curve by points that only rise, or by a formula."""
    kind, count = data[:4], int.from_bytes(data[8:12], "big")
    if kind == b"para":
        function = int.from_bytes(data[8:10], "big")
        return _numbers(data, b"para", data[8:10] + bytes(2), _PARAMETERS[function]) if function < 5 else None
    if kind != b"curv" or count > _MOST_CURVE_POINTS or len(data) < 12 + 2 * count:
        return None
    points = struct.unpack(f">{count}H", data[12 : 12 + 2 * count])
    # A single point is a gamma with 8 bits after the point: 10 is more than any.
    is_curve = points[0] < 2560 if count == 1 else all(a <= b for a, b in pairwise(points))
    return b"curv" + bytes(4) + data[8 : 12 + 2 * count] if is_curve else None


def _numbers(data: bytes, kind: bytes, before: bytes, count: int) -> bytes | None:
    """So many numbers between −16 and 16 after the head of a tag."""
    start = 8 + len(before)
    if data[:4] != kind or len(data) < start + 4 * count:
        return None
    values = struct.unpack(f">{count}i", data[start : start + 4 * count])
    fits = all(-16 * _ONE <= value <= 16 * _ONE for value in values)
    return kind + bytes(4) + before + data[start : start + 4 * count] if fits else None


def _colour(data: bytes) -> bytes | None:
    return _numbers(data, b"XYZ ", b"", 3)


def _adaptation(data: bytes) -> bytes | None:
    return _numbers(data, b"sf32", b"", 9)


_Check = Callable[[bytes], bytes | None]
_WANTED: dict[bytes, dict[bytes, _Check]] = {
    b"RGB ": {
        b"wtpt": _colour, b"chad": _adaptation, b"rXYZ": _colour, b"gXYZ": _colour, b"bXYZ": _colour,
        b"rTRC": _curve, b"gTRC": _curve, b"bTRC": _curve,
    },
    b"GRAY": {b"wtpt": _colour, b"chad": _adaptation, b"kTRC": _curve},
}  # fmt: skip


class MalformedImage(DataError):
    """A malformed image file: its segments or chunks are broken."""


class TruncatedImage(MalformedImage):
    """A truncated image file."""


def truncated_image(name: str) -> TruncatedImage:
    """The error for a file that ends too early."""
    return TruncatedImage("the image is truncated", file=name, remedy="copy or download the file again")
