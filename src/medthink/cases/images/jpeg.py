"""JPEG cleaning, segment by segment: what is needed to show the picture is kept, everything else is removed."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from medthink.cases.images.colour_profile import MalformedImage, rebuild_profile, truncated_image

JPEG_SIGNATURE = b"\xff\xd8\xff"

_SOI, _EOI, _SOS, _APP0, _APP2, _APP14 = 0xD8, 0xD9, 0xDA, 0xE0, 0xE2, 0xEE
_RESTARTS = range(0xD0, 0xD8)
_STANDALONE = frozenset({0x01, _SOI, *_RESTARTS})
# Frames, tables, scans and what belongs to them. Reserved markers and extensions carry nothing that is shown.
_PICTURE = frozenset({*range(0xC0, 0xD0), *_RESTARTS, _SOI, _EOI, _SOS, 0xDB, 0xDC, 0xDD}) - {0xC8}
# A marker that ends entropy-coded data: FF followed by neither a stuffed zero, a restart marker nor more filling.
_MARKER_IN_SCAN = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
_JFIF, _ICC, _ADOBE = b"JFIF\0", b"ICC_PROFILE\0", b"Adobe"
# Marker, length and the fixed fields; after them comes a thumbnail (JFIF), or nothing that has a meaning (Adobe).
_JFIF_BYTES, _ADOBE_BYTES = 18, 16
_ICC_HEAD = 4 + len(_ICC) + 2
_MOST_BYTES = 65_535


class Segment(NamedTuple):
    """A JPEG segment, with the scan it opens: its marker and all of its bytes."""

    marker: int
    data: bytes


def clean_jpeg(data: bytes, name: str) -> bytes:
    """The file without its metadata."""
    segments = list(_segments(data, name))
    profile = _clean_profile(segments)
    seen: set[int] = set()
    kept = []
    for one in segments:
        part = profile if _is_profile(one) else _clean(one)
        # Of the three kinds that are kept one is enough, and a second could hold anything.
        if part and (one.marker in _PICTURE or one.marker not in seen):
            kept.append(part)
            seen.add(one.marker)
    return b"".join(kept)


def is_clean(marker: int, data: bytes) -> bool:
    """Whether a segment is left unchanged."""
    one = Segment(marker, data)
    return (_clean_profile([one]) if _is_profile(one) else _clean(one)) == data


def segment_end(data: bytes, at: int, marker: int, name: str = "") -> int:
    """The end of the segment that starts at a byte, with the scan it opens; TruncatedImage if it is missing."""
    if marker in _STANDALONE or marker == _EOI:
        return at + 2
    length = int.from_bytes(data[at + 2 : at + 4], "big")
    end = at + 2 + length
    if length < 2 or end > len(data):
        raise truncated_image(name)
    if marker != _SOS:
        return end
    following = _MARKER_IN_SCAN.search(data, end)
    if following is None:
        raise truncated_image(name)
    return following.start()


def _segments(data: bytes, name: str) -> Iterator[Segment]:
    at = 0
    marker = 0
    while marker != _EOI:
        if at + 2 > len(data):
            raise truncated_image(name)
        if data[at] != 0xFF:
            raise MalformedImage(f"broken JPEG: no marker at byte {at}", file=name, remedy="replace the file")
        marker = data[at + 1]
        if marker == 0xFF:  # filling between segments
            at += 1
            continue
        end = segment_end(data, at, marker, name)
        yield Segment(marker, data[at:end])
        at = end


def _clean(one: Segment) -> bytes:
    """The segment reduced to what is needed; empty if it carries no part of the picture."""
    payload = one.data[4:]
    if one.marker == _APP0 and payload.startswith(_JFIF):
        return _head(one.data, _JFIF_BYTES) + b"\0\0" if len(one.data) >= _JFIF_BYTES else b""
    if one.marker == _APP14 and payload.startswith(_ADOBE):
        return _head(one.data, _ADOBE_BYTES) if len(one.data) >= _ADOBE_BYTES else b""
    return one.data if one.marker in _PICTURE else b""


def _head(data: bytes, size: int) -> bytes:
    """The fixed fields of a segment that is to have a size; JFIF ends them with the size of its thumbnail."""
    return data[:2] + (size - 2).to_bytes(2, "big") + data[4:16]


def _is_profile(one: Segment) -> bool:
    return one.marker == _APP2 and one.data[4:].startswith(_ICC)


def _clean_profile(segments: list[Segment]) -> bytes:
    """The colour profile of the file in one segment, without its texts; empty if there is none to keep."""
    # Each part begins with its number.
    parts = sorted((one.data[_ICC_HEAD - 2 : _ICC_HEAD], one.data[_ICC_HEAD:]) for one in segments if _is_profile(one))
    profile = rebuild_profile(b"".join(part for _, part in parts)) if parts else None
    if profile is None or _ICC_HEAD + len(profile) > _MOST_BYTES:
        return b""
    length = (_ICC_HEAD - 2 + len(profile)).to_bytes(2, "big")
    return b"\xff\xe2" + length + _ICC + b"\x01\x01" + profile


MAX_PIXELS = 50_000_000

_SOS, _EOI = 0xDA, 0xD9
_PLAIN_PICTURE = frozenset({0xC4, 0xD8, 0xD9, 0xDA, 0xDB, 0xDD})  # tables and marks; anything else may be metadata
_FRAMES = frozenset({0xC0, 0xC1, 0xC2})  # baseline, extended, progressive: what everybody decodes
_COMPONENTS = (1, 3)  # grey, colour


class Size(NamedTuple):
    """Width and height in pixels."""

    width: int
    height: int


def plain_jpeg_size(data: bytes) -> Size | None:
    """The size of a whole 8-bit grey or colour JPEG without metadata, which `as_shown` leaves unchanged; else None."""
    if not data.startswith(JPEG_SIGNATURE):
        return None
    try:
        size, end = _walk(data)
    except (MalformedImage, IndexError):
        return None
    fits = size is not None and 0 < size.width * size.height <= MAX_PIXELS
    return size if fits and end == len(data) else None


def _walk(data: bytes) -> tuple[Size | None, int]:
    """The picture's size and end; no size if anything in it is not plain."""
    sizes: list[Size | None] = []
    others: set[int] = set()
    at, marker, scans = 0, 0, 0
    while marker != _EOI:
        marker = data[at + 1]
        if data[at] != 0xFF or marker == 0xFF:
            return None, at
        end = segment_end(data, at, marker)
        if marker in _FRAMES:
            sizes.append(_frame_size(data[at:end]))
        elif marker == _SOS:
            scans += 1
        elif marker not in _PLAIN_PICTURE and (marker in others or not is_clean(marker, data[at:end])):
            return None, at
        else:
            others.add(marker)
        at = end
    return (sizes[0] if len(sizes) == 1 and scans else None), at


def _frame_size(segment: bytes) -> Size | None:
    is_plain = segment[4] == 8 and segment[9] in _COMPONENTS
    return Size(int.from_bytes(segment[7:9], "big"), int.from_bytes(segment[5:7], "big")) if is_plain else None
