"""The images of a case as pages list them."""

import msgspec

from medthink.cases.case import Image
from medthink.core.errors import DataError
from medthink.web.library import OpenBenchmark
from medthink.web.renditions import image_size


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


def show_image(bench: OpenBenchmark, image: Image, number: int) -> PageImage:
    """An image of the benchmark, without what is withheld."""
    problem, (width, height) = "", (0, 0)
    try:
        width, height = image_size(image)
    except DataError as error:
        problem = error.problem
    return PageImage(id=bench.id_of(image), number=number, width=width, height=height, problem=problem)
