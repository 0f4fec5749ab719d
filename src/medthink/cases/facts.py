"""What is found out about an image from its bytes, once for all who ask."""

from typing import NamedTuple

from medthink.cases.plain import Size, plain_jpeg_size
from medthink.core.digest import digest_bytes


class ImageFacts(NamedTuple):
    """The digest of an image's bytes, and the size of one that goes out as it is: a plain JPEG."""

    digest: str
    plain_size: Size | None


def find_facts(data: bytes) -> ImageFacts:
    """The facts of an image's bytes."""
    return ImageFacts(digest_bytes(data), plain_jpeg_size(data))
