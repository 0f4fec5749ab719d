"""PNG cleaning, chunk by chunk: what is needed to show the picture is kept, everything else is removed."""

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from medthink.cases.images.colour_profile import MalformedImage, rebuild_profile, truncated_image

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"

# How long a chunk is that says how to show the picture, by its name; text of any use fits in none of them.
_SIZES = {b"gAMA": (4,), b"cHRM": (32,), b"sRGB": (1,), b"sBIT": (1, 2, 3, 4), b"bKGD": (1, 2, 6), b"pHYs": (9,),
          b"cICP": (4,), b"mDCV": (24,), b"mDCv": (24,), b"cLLI": (8,), b"cLLi": (8,)}  # fmt: skip
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by colour type
_GREY, _COLOUR, _PALETTE = 0, 2, 3
# Where each pass of an interlaced picture starts, and its steps: across, down.
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
_PORTION = 1 << 20
_PROFILE_NAME = b"ICC Profile\0\0"
_MOST_PROFILE_BYTES = 4 * 1024 * 1024


class Chunk(NamedTuple):
    """A PNG chunk: its name, its content, and all of its bytes."""

    kind: bytes
    content: bytes
    data: bytes


class _Header(NamedTuple):
    width: int
    height: int
    depth: int
    colour: int
    is_interlaced: bool

    def pixel_bytes(self) -> int:
        """How many bytes the unpacked picture has: each row its filter's number and its pixels."""
        passes = _PASSES if self.is_interlaced else ((0, 0, 1, 1),)
        return sum(self._pass_bytes(*one) for one in passes)

    def _pass_bytes(self, left: int, top: int, across: int, down: int) -> int:
        columns, rows = -((left - self.width) // across), -((top - self.height) // down)
        bits = columns * _CHANNELS[self.colour] * self.depth
        return rows * (1 + (bits + 7) // 8) if columns > 0 and rows > 0 else 0


def clean_png(data: bytes, name: str) -> bytes:
    """The file without its metadata."""
    chunks = list(_chunks(data, name))
    header = _read_header(chunks[0], name)
    seen: set[bytes] = set()
    kept = [PNG_SIGNATURE]
    for one in chunks:
        if one.kind == b"IDAT":
            # All of them together are the picture; they stay where the first one is.
            kept += [] if b"IDAT" in seen else _clean_pixels(chunks, header, name)
        elif one.kind not in seen:
            kept.append(_clean(one, header))
        seen.add(one.kind)
    return b"".join(kept)


def refuse_missing_pixels(data: bytes, name: str) -> None:
    """DataError for a PNG whose pixels end too early: decoders fill up such a picture and say nothing."""
    header, packed, at = None, [], len(PNG_SIGNATURE)
    while (kind := data[at + 4 : at + 8]) and kind != b"IEND":
        end = at + 12 + int.from_bytes(data[at : at + 4], "big")
        if header is None:
            header = _read_header(Chunk(kind, data[at + 8 : end - 4], data[at:end]), name)
        if kind == b"IDAT":
            packed.append(data[at + 8 : end - 4])
        at = end
    if header is None or sum(map(len, _unpack(zlib.decompressobj(), b"".join(packed), name))) < header.pixel_bytes():
        raise truncated_image(name)


def _chunks(data: bytes, name: str) -> Iterator[Chunk]:
    at = len(PNG_SIGNATURE)
    kind = b""
    while kind != b"IEND":
        kind = data[at + 4 : at + 8]
        end = at + 12 + int.from_bytes(data[at : at + 4], "big")
        if len(kind) < 4 or end > len(data):
            raise truncated_image(name)
        yield Chunk(kind, data[at + 8 : end - 4], data[at:end])
        at = end


def _read_header(first: Chunk, name: str) -> _Header:
    if first.kind != b"IHDR" or len(first.content) != 13:
        raise MalformedImage("broken PNG: it does not begin with its header", file=name, remedy="replace the file")
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", first.content)
    if colour not in _CHANNELS:
        raise MalformedImage(f"broken PNG: no such colour type: {colour}", file=name, remedy="replace the file")
    return _Header(width, height, depth, colour, bool(interlaced))


def _clean(one: Chunk, header: _Header) -> bytes:
    """The chunk as it is kept; empty if it carries no part of the picture."""
    if one.kind == b"IHDR":
        return one.data
    if one.kind == b"IEND":
        return _chunk(b"IEND", b"")
    if zlib.crc32(one.kind + one.content) != int.from_bytes(one.data[-4:], "big"):
        return b""
    if one.kind == b"iCCP":
        return _clean_profile(one.content)
    if one.kind == b"PLTE":
        fits = header.colour == _PALETTE and len(one.content) <= 3 << header.depth
    elif one.kind == b"tRNS":
        fits = len(one.content) <= {_GREY: 2, _COLOUR: 6, _PALETTE: 1 << header.depth}.get(header.colour, 0)
    else:
        fits = len(one.content) in _SIZES.get(one.kind, ())
    return one.data if fits else b""


def _clean_profile(content: bytes) -> bytes:
    packed = content.partition(b"\0")[2][1:]
    try:
        profile = rebuild_profile(zlib.decompressobj().decompress(packed, _MOST_PROFILE_BYTES))
    except zlib.error:
        return b""
    return b"" if profile is None else _chunk(b"iCCP", _PROFILE_NAME + zlib.compress(profile))


def _clean_pixels(chunks: list[Chunk], header: _Header, name: str) -> list[bytes]:
    """The chunks of pixels: unchanged if they contain exactly the picture, else compressed again."""
    pixels = [one for one in chunks if one.kind == b"IDAT"]
    if any(zlib.crc32(one.kind + one.content) != int.from_bytes(one.data[-4:], "big") for one in pixels):
        raise MalformedImage("broken PNG: a checksum of the pixels is wrong", file=name, remedy="replace the file")
    packed, wanted = b"".join(one.content for one in pixels), header.pixel_bytes()
    if _is_exact(packed, wanted, name):
        return [one.data for one in pixels]
    packer, again, left = zlib.compressobj(6), [], wanted
    for portion in _unpack(zlib.decompressobj(), packed, name):
        again.append(packer.compress(portion[:left]))
        left -= min(left, len(portion))
        if not left:
            break
    return [_chunk(b"IDAT", b"".join(again) + packer.flush())]


def _is_exact(packed: bytes, wanted: int, name: str) -> bool:
    """Whether the stream ends with its last byte and holds so many bytes; too few of them are no whole picture."""
    unpacker, size = zlib.decompressobj(), 0
    for portion in _unpack(unpacker, packed, name):
        size += len(portion)
        if size > wanted:
            return False
    if size < wanted:
        raise truncated_image(name)
    return not unpacker.unused_data


def _unpack(unpacker: "zlib._Decompress", packed: bytes, name: str) -> Iterator[bytes]:
    rest = packed
    try:
        while rest and not unpacker.eof:
            yield unpacker.decompress(rest, _PORTION)
            rest = unpacker.unconsumed_tail
    except zlib.error as error:
        raise MalformedImage(f"broken PNG: {error}", file=name, remedy="replace the file") from None


def _chunk(kind: bytes, content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + kind + content + zlib.crc32(kind + content).to_bytes(4, "big")
