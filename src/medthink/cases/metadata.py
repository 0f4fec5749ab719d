"""Image metadata, removed without touching a pixel.

Text, EXIF, comments, thumbnails and trailing bytes can carry names, dates and diagnoses that must not travel with a
picture. JPEG segments and PNG chunks that say how to show the picture stay (JFIF, ICC, Adobe, gamma, transparency …);
everything else goes. Compressed pixels are copied byte for byte.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from medthink.core.errors import DataError

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
JPEG_SIGNATURE = b"\xff\xd8\xff"

_PNG_KEPT = frozenset(b"IHDR PLTE IDAT IEND tRNS gAMA cHRM sRGB iCCP sBIT bKGD pHYs cICP mDCV cLLI mDCv cLLi".split())
_SOI, _EOI, _SOS, _COM, _APP0, _APP2, _APP14, _APP15 = 0xD8, 0xD9, 0xDA, 0xFE, 0xE0, 0xE2, 0xEE, 0xEF
_STANDALONE = frozenset({0x01, _SOI, *range(0xD0, 0xD8)})
# A marker that ends entropy-coded data: FF followed by neither a stuffed zero, a restart marker nor more filling.
_MARKER_IN_SCAN = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
_JFIF_BYTES = 18  # marker, length and the fixed fields; what follows is a thumbnail


class Malformed(DataError):
    """An image file whose segments or chunks cannot be followed to their end."""


class CutOff(Malformed):
    """An image file that ends before its picture does."""


class Piece(NamedTuple):
    """A JPEG segment (with the scan it opens) or a PNG chunk: its kind and all of its bytes."""

    kind: bytes
    data: bytes


def without_metadata(data: bytes, *, name: str = "") -> bytes:
    """The same picture without its metadata: the same object when there is none, Malformed when broken.

    An EXIF orientation is metadata too; whoever removes it must turn the pixels (see `images.prepare`).
    """
    if data.startswith(PNG_SIGNATURE):
        kept = PNG_SIGNATURE + b"".join(piece.data for piece in _png_pieces(data, name) if piece.kind in _PNG_KEPT)
    elif data.startswith(JPEG_SIGNATURE):
        kept = b"".join(_without_thumbnail(piece) for piece in _jpeg_pieces(data, name) if _is_kept(piece))
    else:
        raise DataError("neither JPEG nor PNG", file=name, remedy="convert the image to one of the two")
    return data if kept == data else kept


def _png_pieces(data: bytes, name: str) -> Iterator[Piece]:
    at = len(PNG_SIGNATURE)
    kind = b""
    while kind != b"IEND":
        kind = data[at + 4 : at + 8]
        end = at + 12 + int.from_bytes(data[at : at + 4], "big")
        if len(kind) < 4 or end > len(data):
            raise _cut_off(name)
        yield Piece(kind, data[at:end])
        at = end


def _jpeg_pieces(data: bytes, name: str) -> Iterator[Piece]:
    at = 0
    marker = 0
    while marker != _EOI:
        if at + 2 > len(data):
            raise _cut_off(name)
        if data[at] != 0xFF:
            raise Malformed(f"broken JPEG: no marker at byte {at}", file=name, remedy="replace the file")
        marker = data[at + 1]
        if marker == 0xFF:  # filling between segments
            at += 1
            continue
        end = segment_end(data, at, marker, name)
        yield Piece(bytes([marker]), data[at:end])
        at = end


def segment_end(data: bytes, at: int, marker: int, name: str = "") -> int:
    """Where the JPEG segment ends that starts at a byte, with the scan it opens; CutOff when that is not there."""
    if marker in _STANDALONE or marker == _EOI:
        return at + 2
    length = int.from_bytes(data[at + 2 : at + 4], "big")
    end = at + 2 + length
    if length < 2 or end > len(data):
        raise _cut_off(name)
    if marker != _SOS:
        return end
    following = _MARKER_IN_SCAN.search(data, end)
    if following is None:
        raise _cut_off(name)
    return following.start()


def is_kept_whole(piece: Piece) -> bool:
    """Whether the JPEG segment is left as it is."""
    return _is_kept(piece) and _without_thumbnail(piece) == piece.data


def _is_kept(piece: Piece) -> bool:
    marker = piece.kind[0]
    payload = piece.data[4:]
    if marker == _APP0:
        return payload.startswith(b"JFIF\0")
    if marker == _APP2:
        return payload.startswith(b"ICC_PROFILE\0")
    if marker == _APP14:
        return payload.startswith(b"Adobe")
    return not (_APP0 <= marker <= _APP15 or marker == _COM)


def _without_thumbnail(piece: Piece) -> bytes:
    if piece.kind[0] != _APP0 or len(piece.data) <= _JFIF_BYTES:
        return piece.data
    return piece.data[:2] + (_JFIF_BYTES - 2).to_bytes(2, "big") + piece.data[4 : _JFIF_BYTES - 2] + b"\0\0"


def _cut_off(name: str) -> CutOff:
    return CutOff("the image is cut off", file=name, remedy="copy or download the file again")
