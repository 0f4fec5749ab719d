"""Images by opaque ids, in the sizes that pages use."""

from litestar import get
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException
from litestar.params import FromPath, SkipValidation
from litestar.response import Response

from medthink.core.errors import DataError
from medthink.web.access import needs
from medthink.web.feature import Feature
from medthink.web.library import Library
from medthink.web.renditions import SIZES, Renditions

_KEPT_FOR = "private, max-age=3600"


@get("/images/{image_id:str}/{size:str}", guards=[needs("visitor")], sync_to_thread=True)
def serve_image(
    image_id: FromPath[str],
    size: FromPath[str],
    library: NamedDependency[SkipValidation[Library]],
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


def image_feature(library: Library, renditions: Renditions | None) -> Feature:
    """The images of benchmarks that are open."""
    return Feature(routes=[serve_image], shared={"library": library, "renditions": renditions or Renditions()})
