"""Images: what they are, decoded within limits, and as they are shown.

The content decides what a file is, never its name. Only JPEG and PNG are decoded, up to 50 megapixels. Whatever leaves,
to a model, a trainer, another harness or a page, leaves by `as_shown`, so that all are shown what a person sees: byte
for byte where the file is 8-bit and opaque, else converted as docs/images.md states.
"""

import io
import struct
import threading
import warnings
import zlib
from collections.abc import Iterator

import msgspec
import PIL
from PIL import Image, ImageOps, features
from PIL.PngImagePlugin import PngInfo

from medthink.cases.images.colour_profile import MalformedImage, rebuild_profile
from medthink.cases.images.jpeg import JPEG_SIGNATURE, MAX_PIXELS, clean_jpeg
from medthink.cases.images.png import PNG_SIGNATURE, clean_png, refuse_missing_pixels
from medthink.core.digest import digest_bytes
from medthink.core.errors import DataError, UsageError


def without_metadata(data: bytes, *, name: str = "") -> bytes:
    """The same picture without its metadata: the same object if there is none, MalformedImage if the file is broken.

    An EXIF orientation is metadata too; whoever removes it must turn the pixels (see `images.as_shown`).
    """
    if data.startswith(PNG_SIGNATURE):
        kept = clean_png(data, name)
    elif data.startswith(JPEG_SIGNATURE):
        kept = clean_jpeg(data, name)
    else:
        raise DataError("neither JPEG nor PNG", file=name, remedy="convert the image to one of the two")
    return data if kept == data else kept


DEFAULT_QUALITY = 90
JPEG, PNG = "image/jpeg", "image/png"
EXTENSIONS = {JPEG: (".jpg", ".jpeg"), PNG: (".png",)}

_SIGNATURES = (
    (0, JPEG_SIGNATURE, JPEG),
    (0, PNG_SIGNATURE, PNG),
    (0, b"GIF8", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"BM", "image/bmp"),
    (0, b"II*\0", "image/tiff"),
    (0, b"MM\0*", "image/tiff"),
    (0, b"II+\0", "image/tiff"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftyphei", "image/heic"),
    (4, b"ftypmif1", "image/heic"),
    (4, b"jP  \r\n\x87\n", "image/jp2"),
    (0, b"\xff\x0a", "image/jxl"),
    (128, b"DICM", "application/dicom"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"PK\x03\x04", "application/zip"),
    (0, b"\x1f\x8b", "application/gzip"),
)
_TEXT_STARTS = (
    (b"<!doctype html", "text/html"),
    (b"<html", "text/html"),
    (b"<svg", "image/svg+xml"),
    (b"<?xml", "text/xml"),
    (b"version https://git-lfs", "a Git LFS pointer"),
)
_FORMATS = {JPEG: "JPEG", PNG: "PNG"}
_PILLOW_FAILURES = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    IndexError,
    KeyError,
    OverflowError,
    TypeError,
    MemoryError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
    Image.DecompressionBombWarning,
)
_ORIENTATION = 0x0112
_TURNED = range(2, 9)  # some cameras write 0 for "unknown": nothing else turns the picture
_ON_ITS_SIDE = range(5, 9)
_SMALLEST_QUALITY = 40
_SHRINK = (4, 5)
# Python's warning filters are global; opening one header at a time keeps two threads from mixing them up.
_opening = threading.Lock()


class TooLarge(DataError):
    """An image over the limit of 50 megapixels."""


class PreparedImage(msgspec.Struct, frozen=True):
    """An image as it will be sent; `changes` names what was done to it, nothing when the bytes went through."""

    data: bytes
    media_type: str
    width: int
    height: int
    changes: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether the bytes differ from the file's."""
        return bool(self.changes)


def sniff(data: bytes) -> str | None:
    """The media type that the content shows, or None for something unknown."""
    for offset, signature, media_type in _SIGNATURES:
        if data.startswith(signature, offset):
            return media_type
    head = data[:200].lstrip().lower()
    return next((media_type for start, media_type in _TEXT_STARTS if head.startswith(start)), None)


def decode(data: bytes, *, name: str) -> Image.Image:
    """The decoded picture, or DataError: not JPEG or PNG, over 50 megapixels, broken or cut off."""
    picture = open_header(data, name=name)
    if data.startswith(PNG_SIGNATURE):
        refuse_missing_pixels(data, name)
    try:
        picture.load()
    except _PILLOW_FAILURES as error:
        raise _undecodable(name, error) from None
    return picture


def check_decodes(data: bytes, *, name: str) -> None:
    """DataError as by `decode`; a JPEG is read to its end at an eighth of its size, which takes a third of the time."""
    picture = open_header(data, name=name)
    if data.startswith(PNG_SIGNATURE):
        refuse_missing_pixels(data, name)
    try:
        picture.draft("L", (picture.width // 8, picture.height // 8))
        picture.load()
    except _PILLOW_FAILURES as error:
        raise _undecodable(name, error) from None


def open_header(data: bytes, *, name: str) -> Image.Image:
    """The picture with its size and mode known and its pixels not yet decoded, or DataError."""
    media_type = sniff(data)
    if media_type not in _FORMATS:
        found = media_type or ("an empty file" if not data else "data of no known kind")
        raise DataError(f"neither JPEG nor PNG, but {found}", file=name, remedy="convert the image to one of the two")
    try:
        with _opening, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            picture = Image.open(io.BytesIO(data), formats=(_FORMATS[media_type],))
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise _too_large(name) from None
    except _PILLOW_FAILURES as error:
        raise _undecodable(name, error) from None
    if picture.width * picture.height > MAX_PIXELS:
        raise _too_large(name)
    return picture


def upright_size(data: bytes, *, name: str) -> tuple[int, int]:
    """Width and height after the orientation is applied, or DataError; no pixel is decoded."""
    header = open_header(data, name=name)
    is_turned = _orientation(header) in _ON_ITS_SIDE
    return (header.height, header.width) if is_turned else header.size


def has_alpha(picture: Image.Image) -> bool:
    """Whether the picture has a transparency channel or colour."""
    return picture.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in picture.info


def is_transparent(picture: Image.Image) -> bool:
    """Whether any pixel is transparent; an alpha channel that is opaque everywhere does not count."""
    return has_alpha(picture) and picture.convert("RGBA").getchannel("A").getextrema() != (255, 255)


def is_one_colour(picture: Image.Image) -> bool:
    """Whether all pixels are the same."""
    bands = flatten(picture).convert("RGB").split()
    return all(low == high for low, high in (band.getextrema() for band in bands))


def flatten(picture: Image.Image) -> Image.Image:
    """The picture as 8-bit grey or RGB: orientation applied, alpha over black, 16 bits cut to their upper 8."""
    picture = _upright(picture)
    if picture.mode.startswith("I"):
        picture = _upper_bits(picture)
    if has_alpha(picture):
        layer = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", layer.size, (0, 0, 0, 255)), layer).convert("RGB")
    return picture if picture.mode in ("L", "RGB") else picture.convert("L" if picture.mode == "1" else "RGB")


def pixel_digest(picture: Image.Image) -> str:
    """SHA-256 of size and flattened pixels: equal for pictures that look the same, under one decoder version."""
    flat = flatten(picture).convert("RGB")
    return digest_bytes(f"{flat.width}x{flat.height}:".encode() + flat.tobytes())


def decoder_versions() -> dict[str, str]:
    """The libraries that turn files into pixels, for `doctor` and for records that hold pixel digests."""
    names = {"libjpeg-turbo": "libjpeg_turbo", "libjpeg": "jpg", "zlib-ng": "zlib_ng", "zlib": "zlib"}
    found = {label: features.version(feature) for label, feature in names.items()}
    return {"Pillow": PIL.__version__} | {label: version for label, version in found.items() if version}


def as_shown(
    data: bytes,
    *,
    accepts: frozenset[str] = frozenset({JPEG, PNG}),
    max_side: int | None = None,
    max_bytes: int | None = None,
    quality: int = DEFAULT_QUALITY,
    name: str = "",
) -> PreparedImage:
    """The image as everybody sees it and the receiver takes it: its own bytes where possible, else converted.

    Its own bytes are those of a whole 8-bit grey or RGB picture without metadata: no two programs show them otherwise.
    """
    _refuse_bad_limits(accepts, max_side, max_bytes, quality)
    header = open_header(data, name=name)
    clean = _clean(data, name)
    media_type = sniff(data)
    fits = max_side is None or max(header.size) <= max_side
    light = max_bytes is None or (clean is not None and len(clean) <= max_bytes)
    taken = media_type in accepts and fits and light and clean is not None and _is_plain(clean, name)
    if taken and clean is not None and media_type and (clean is data or _orientation(header) == 1):
        return PreparedImage(clean, media_type, *header.size, () if clean is data else ("metadata removed",))
    return _convert(data, accepts=accepts, max_side=max_side, max_bytes=max_bytes, quality=quality, name=name)


def _is_plain(data: bytes, name: str) -> bool:
    """Whether the picture is opaque 8-bit grey or RGB, which every program shows alike."""
    header = open_header(data, name=name)
    # A PNG says in its header how many bits a sample has; Pillow does not tell 16-bit RGB from 8-bit.
    has_8_bits = not data.startswith(PNG_SIGNATURE) or data[24:25] == bytes([8])
    return has_8_bits and header.mode in ("L", "RGB") and not has_alpha(header)


def _clean(data: bytes, name: str) -> bytes | None:
    """The bytes without metadata; None if the file's structure is broken, so that it must be decoded."""
    try:
        return without_metadata(data, name=name)
    except MalformedImage:
        return None


def _convert(
    data: bytes, *, accepts: frozenset[str], max_side: int | None, max_bytes: int | None, quality: int, name: str
) -> PreparedImage:
    source = decode(data, name=name)
    picture = flatten(source)
    changes = ["alpha over black"] if has_alpha(source) else []
    if _orientation(source) != 1:
        changes.append("orientation applied")
    if max_side is not None and max(picture.size) > max_side:
        picture = _resize(picture, max_side, max(picture.size))
        changes.append(f"resized to {picture.width}×{picture.height}")
    profile = rebuild_profile(source.info.get("icc_profile") or b"") if source.mode in ("L", "RGB", "RGBA") else None
    is_resized = any(change.startswith("resized") for change in changes)
    # In a PNG that keeps its size, no pixel changes.
    first = PNG if sniff(data) == PNG and PNG in accepts and not is_resized else ""
    for encoding in _encodings(picture, first, JPEG if JPEG in accepts else PNG, quality, profile):
        if max_bytes is None or len(encoding.data) <= max_bytes:
            return msgspec.structs.replace(encoding, changes=(*changes, *encoding.changes))
    raise DataError(f"cannot be brought under {max_bytes:,} bytes", file=name, remedy="raise --max-bytes")


def _encodings(
    picture: Image.Image, first: str, media_type: str, quality: int, profile: bytes | None
) -> Iterator[PreparedImage]:
    """Ever smaller encodings: a lossless one if it comes `first`, then the quality falls by tens to 40, then the sides
    by a fifth at a time.
    """
    if first and first != media_type:
        yield PreparedImage(_encode(picture, first, quality, profile), first, *picture.size, ("PNG",))
    qualities = [quality, *range(quality - 10, _SMALLEST_QUALITY - 1, -10)] if media_type == JPEG else [quality]
    for used in qualities:
        how = f"JPEG quality {used}" if media_type == JPEG else "PNG"
        yield PreparedImage(_encode(picture, media_type, used, profile), media_type, *picture.size, (how,))
    while max(picture.size) > 1:
        picture = _resize(picture, *_SHRINK)
        shrunk = f"shrunk to {picture.width}×{picture.height}"
        yield PreparedImage(_encode(picture, media_type, used, profile), media_type, *picture.size, (shrunk, how))


def _encode(picture: Image.Image, media_type: str, quality: int, profile: bytes | None) -> bytes:
    stream = io.BytesIO()
    # Everything is named: left out, Pillow would copy the source's EXIF, comment and text into the new file.
    if media_type == JPEG:
        picture.save(stream, "JPEG", quality=quality, subsampling="4:4:4", comment=b"", exif=b"", icc_profile=profile)
    else:
        picture.save(stream, "PNG", compress_level=6, exif=b"", icc_profile=profile, pnginfo=PngInfo())
    return stream.getvalue()


def _resize(picture: Image.Image, part: int, whole: int) -> Image.Image:
    # In whole numbers: of 561 pixels, 512/561 is 511.999… in floats, and the longest side would be one short.
    size = (max(1, picture.width * part // whole), max(1, picture.height * part // whole))
    return picture.resize(size, Image.Resampling.LANCZOS)


def _orientation(picture: Image.Image) -> int:
    try:
        orientation = int(picture.getexif().get(_ORIENTATION, 1))
    except _PILLOW_FAILURES:
        return 1  # EXIF that cannot be read turns nothing
    return orientation if orientation in _TURNED else 1


def _upright(picture: Image.Image) -> Image.Image:
    try:
        return ImageOps.exif_transpose(picture)
    except _PILLOW_FAILURES:
        return picture


def _upper_bits(picture: Image.Image) -> Image.Image:
    import numpy as np

    return Image.fromarray((np.asarray(picture) >> 8).astype(np.uint8))


def _refuse_bad_limits(accepts: frozenset[str], max_side: int | None, max_bytes: int | None, quality: int) -> None:
    if not accepts & _FORMATS.keys():
        raise UsageError("the receiver accepts neither JPEG nor PNG", remedy="name image/jpeg or image/png")
    if max_side is not None and max_side < 1:
        raise UsageError(f"a longest side of {max_side} is not valid", remedy="give a number of pixels of at least 1")
    if max_bytes is not None and max_bytes < 1:
        raise UsageError(
            f"{max_bytes} bytes are not enough for an image", remedy="give a number of bytes of at least 1"
        )
    if not 1 <= quality <= 95:
        raise UsageError(f"JPEG quality {quality} is not valid", remedy="give a number from 1 to 95")


def _too_large(name: str) -> TooLarge:
    return TooLarge(f"over {MAX_PIXELS // 1_000_000} megapixels", file=name, remedy="scale the image down")


def _undecodable(name: str, error: BaseException) -> DataError:
    return DataError(f"cannot be decoded: {error}", file=name, remedy="replace the file")
