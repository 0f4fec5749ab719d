"""Images by opaque ids, in the sizes that pages use."""

from pathlib import Path
from typing import Literal, get_args

import msgspec
from litestar import get
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException
from litestar.params import FromPath, SkipValidation
from litestar.response import Response

from medthink.cases.case import Image
from medthink.cases.images.content import JPEG, PNG, as_shown, sniff, upright_size
from medthink.core.digest import digest_bytes
from medthink.core.errors import DataError
from medthink.core.files import cache_folder, write_atomic
from medthink.web.app.access import needs
from medthink.web.app.application import Feature
from medthink.web.app.benchmarks import BenchmarkCache, LoadedSplit

RenditionSize = Literal["112", "1024", "full"]
SIZES: tuple[RenditionSize, ...] = get_args(RenditionSize)
_VERSION = "2"
_TAKES = {"112": frozenset({JPEG}), "1024": frozenset({JPEG, PNG}), "full": frozenset({JPEG, PNG})}


class Rendition(msgspec.Struct, frozen=True):
    """An image to send, and the digest of the file it was made from."""

    data: bytes
    media_type: str
    digest: str


class Renditions:
    """Scaled-down images, cached in a folder by the digest of their file, if it is writable."""

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
    made = as_shown(data, accepts=_TAKES[size], max_side=side, quality=85, name=name)
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


_KEPT_FOR = "private, max-age=3600"


@get("/images/{image_id:str}/{size:str}", guards=[needs("visitor")], sync_to_thread=True)
def serve_image(
    image_id: FromPath[str],
    size: FromPath[str],
    library: NamedDependency[SkipValidation[BenchmarkCache]],
    renditions: NamedDependency[SkipValidation[Renditions]],
) -> Response[bytes]:
    """An image of a benchmark that is open, by its id and size."""
    image = library.image(image_id)
    wanted = next((one for one in SIZES if one == size), None)
    if image is None or wanted is None:
        raise NotFoundException
    try:
        made = renditions.get(image, wanted)
    except DataError as error:
        raise NotFoundException(detail=f"This image cannot be shown: {error.problem}.") from None
    headers = {"Cache-Control": _KEPT_FOR, "ETag": f'"{made.digest[:16]}-{size}"'}
    return Response(made.data, media_type=made.media_type, headers=headers)


def image_feature(library: BenchmarkCache, renditions: Renditions | None) -> Feature:
    """The images of benchmarks that are open."""
    return Feature(routes=[serve_image], shared={"library": library, "renditions": renditions or Renditions()})


class PageImage(msgspec.Struct, frozen=True, kw_only=True):
    """One image of a grid; `problem` says why it cannot be shown. Group and caption are empty before a reveal.

    `source` is the image itself, as an address, on a page that is one file.
    """

    id: str
    number: int
    width: int
    height: int
    problem: str = ""
    group: str = ""
    caption: str = ""
    source: str = ""


def show_image(bench: LoadedSplit, image: Image, number: int) -> PageImage:
    """An image of the benchmark, without what is withheld."""
    problem, (width, height) = "", (0, 0)
    try:
        width, height = image_size(image)
    except DataError as error:
        problem = error.problem
    return PageImage(id=bench.id_of(image), number=number, width=width, height=height, problem=problem)
