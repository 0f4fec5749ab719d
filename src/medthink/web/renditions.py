"""Images as pages show them: 112 and 1024 pixels, made once and kept in the user's cache, and full size.

Only what `cases.images` can decode within its limits is ever sent, always without the file's metadata.
"""

from pathlib import Path
from typing import Literal, get_args

import msgspec

from medthink.cases.case import Image
from medthink.cases.images import JPEG, PNG, prepare, sniff, upright_size
from medthink.core.digest import digest_bytes
from medthink.core.errors import DataError
from medthink.core.files import cache_folder, write_atomic

RenditionSize = Literal["112", "1024", "full"]
SIZES: tuple[RenditionSize, ...] = get_args(RenditionSize)
_VERSION = "1"
_TAKES = {"112": frozenset({JPEG}), "1024": frozenset({JPEG, PNG}), "full": frozenset({JPEG, PNG})}


class Rendition(msgspec.Struct, frozen=True):
    """An image to send, and the digest of the file it was made from."""

    data: bytes
    media_type: str
    digest: str


class Renditions:
    """Images made smaller, cached in a folder by the digest of their file, if it is writable."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or cache_folder() / "renditions"

    def get(self, image: Image, size: RenditionSize) -> Rendition:
        """The image in this size, or DataError: missing, not an image, or too large to decode."""
        data = image.read()
        digest = digest_bytes(data)
        if size == "full":
            return _make(data, size, digest, image.path)
        kept = self._folder / digest[:2] / f"{digest}-{size}-{_VERSION}"
        found = _read(kept)
        if found is not None:
            return Rendition(found, sniff(found) or JPEG, digest)
        made = _make(data, size, digest, image.path)
        _keep(kept, made.data)
        return made


def image_size(image: Image) -> tuple[int, int]:
    """Width and height as displayed, or DataError."""
    return upright_size(image.read(), name=image.path)


def _make(data: bytes, size: RenditionSize, digest: str, name: str) -> Rendition:
    side = None if size == "full" else int(size)
    made = prepare(data, accepts=_TAKES[size], max_side=side, quality=85, name=name)
    return Rendition(made.data, made.media_type, digest)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _keep(path: Path, data: bytes) -> None:
    try:
        write_atomic(path, [data])
    except DataError:
        return  # the cache is not writable: the image is made again next time
