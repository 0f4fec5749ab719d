"""Pictures that look the same: a 64-bit perceptual hash finds pairs, a thumbnail confirms them.

Both are taken from the middle of a picture, without a tenth at each border, so that a footer or a name burned in there
makes no difference. The hash is that of the lowest 8 × 8 frequencies at 32 × 32 pixels, each above or below their
median; it alone takes drawings of the same organ for one another, the thumbnail does not.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

NEAR_BITS = 6
_BORDER = 10  # a tenth
_SIDE, _LOW = 32, 8
_BLOCK = 1024
_LEAST_CONTRAST = 2
# Compression changes a thumbnail's pixel by less; all but one in a hundred must be the same.
_SAME_LEVELS, _SAME_SHARE = 4, 0.99


class ImageAppearance(NamedTuple):
    """How a picture looks: its hash, and the pixels of its thumbnail."""

    hash: int
    thumbnail: bytes


def appearance(picture: "PillowImage") -> ImageAppearance | None:
    """How a picture looks; None for one without contrast, since all such look alike."""
    import numpy as np
    from PIL.Image import Resampling
    from scipy.fft import dctn

    cut = (picture.width // _BORDER, picture.height // _BORDER)
    middle = picture.crop((*cut, picture.width - cut[0], picture.height - cut[1]))
    small = np.asarray(middle.convert("L").resize((_SIDE, _SIDE), Resampling.LANCZOS))
    if np.ptp(small) < _LEAST_CONTRAST:
        return None
    low = dctn(small.astype(np.float64), norm="ortho")[:_LOW, :_LOW].ravel()
    bits = np.packbits(low > np.median(low[1:]))
    return ImageAppearance(int.from_bytes(bits.tobytes(), "big"), small.tobytes())


def look_alikes(seen: Sequence[ImageAppearance]) -> Iterator[tuple[int, int]]:
    """Every pair that looks the same, by position."""
    import numpy as np

    hashes = np.array([one.hash for one in seen], dtype=np.uint64)
    for start in range(0, len(hashes), _BLOCK):
        rows = hashes[start : start + _BLOCK]
        distances = np.bitwise_count(rows[:, None] ^ hashes[None, start:])
        for row, column in np.argwhere(distances <= NEAR_BITS):
            first, second = int(start + row), int(start + column)
            if first < second and is_same_appearance(seen[first], seen[second]):
                yield first, second


def is_same_appearance(first: ImageAppearance, second: ImageAppearance) -> bool:
    """Whether the thumbnails are the same except for compression."""
    import numpy as np

    a, b = (np.frombuffer(one.thumbnail, dtype=np.uint8).astype(np.int16) for one in (first, second))
    return bool(np.mean(np.abs(a - b) <= _SAME_LEVELS) >= _SAME_SHARE)
