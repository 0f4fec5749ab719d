"""Image metadata, removed without touching a pixel.

Text, EXIF, comments, thumbnails and trailing bytes can carry names, dates and diagnoses that must not travel with a
picture. What says how to show the picture stays (JFIF, colour profile, Adobe, gamma, transparency …), cut to the size
it needs: neither a profile's description nor the tail of a segment, nor what follows the pixels, goes with it. The
pixels are copied as they are packed.
"""

from medthink.cases.broken import CutOff as CutOff
from medthink.cases.broken import Malformed as Malformed
from medthink.cases.jpeg import JPEG_SIGNATURE as JPEG_SIGNATURE
from medthink.cases.jpeg import clean_jpeg
from medthink.cases.png import PNG_SIGNATURE as PNG_SIGNATURE
from medthink.cases.png import clean_png
from medthink.core.errors import DataError


def without_metadata(data: bytes, *, name: str = "") -> bytes:
    """The same picture without its metadata: the same object when there is none, Malformed when broken.

    An EXIF orientation is metadata too; whoever removes it must turn the pixels (see `images.prepare`).
    """
    if data.startswith(PNG_SIGNATURE):
        kept = clean_png(data, name)
    elif data.startswith(JPEG_SIGNATURE):
        kept = clean_jpeg(data, name)
    else:
        raise DataError("neither JPEG nor PNG", file=name, remedy="convert the image to one of the two")
    return data if kept == data else kept
