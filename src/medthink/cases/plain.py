"""JPEG files that go out as they are, recognised by their segments alone: nothing is decoded, Pillow is not loaded.

Most images of a benchmark are such files, and a run looks at each of them. Whatever is not plain is judged by
`images.prepare`, which also says why it cannot be used.
"""

from typing import NamedTuple

from medthink.cases.broken import Malformed
from medthink.cases.jpeg import JPEG_SIGNATURE, is_clean, segment_end

MAX_PIXELS = 50_000_000

_SOS, _EOI = 0xDA, 0xD9
_PICTURE = frozenset({0xC4, 0xD8, 0xD9, 0xDA, 0xDB, 0xDD})  # tables and marks; anything else may be metadata
_FRAMES = frozenset({0xC0, 0xC1, 0xC2})  # baseline, extended, progressive: what everybody decodes
_COMPONENTS = (1, 3)  # grey, colour


class Size(NamedTuple):
    """Width and height in pixels."""

    width: int
    height: int


def plain_jpeg_size(data: bytes) -> Size | None:
    """The size of a whole 8-bit grey or colour JPEG without metadata, which `prepare` leaves as it is; else None."""
    if not data.startswith(JPEG_SIGNATURE):
        return None
    try:
        size, end = _walk(data)
    except (Malformed, IndexError):
        return None
    fits = size is not None and 0 < size.width * size.height <= MAX_PIXELS
    return size if fits and end == len(data) else None


def _walk(data: bytes) -> tuple[Size | None, int]:
    """The picture's size and where it ends; no size when there is anything that is not plain."""
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
        elif marker not in _PICTURE and (marker in others or not is_clean(marker, data[at:end])):
            return None, at
        else:
            others.add(marker)
        at = end
    return (sizes[0] if len(sizes) == 1 and scans else None), at


def _frame_size(segment: bytes) -> Size | None:
    is_plain = segment[4] == 8 and segment[9] in _COMPONENTS
    return Size(int.from_bytes(segment[7:9], "big"), int.from_bytes(segment[5:7], "big")) if is_plain else None
