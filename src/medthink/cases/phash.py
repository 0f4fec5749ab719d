"""Pictures that look the same: a 64-bit perceptual hash, and pairs of hashes that differ in few bits.

The hash is that of the lowest 8 × 8 frequencies of the picture at 32 × 32 pixels, each above or below their median. It
survives compression, scaling and brightness, an added footer or arrow often, a crop or a flip not.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

NEAR_BITS = 6
_SIDE, _LOW = 32, 8
_BLOCK = 1024


class NearPair(NamedTuple):
    """Two pictures by their places in the list, and the bits in which their hashes differ."""

    first: int
    second: int
    bits: int


def perceptual_hash(picture: "PillowImage") -> int | None:
    """The hash of a picture; None for one without any contrast, which looks like every other such."""
    import numpy as np
    from PIL.Image import Resampling
    from scipy.fft import dctn

    small = np.asarray(picture.convert("L").resize((_SIDE, _SIDE), Resampling.LANCZOS), dtype=np.float64)
    if np.ptp(small) < 2:
        return None
    low = dctn(small, norm="ortho")[:_LOW, :_LOW].ravel()
    bits = low > np.median(low[1:])
    return int.from_bytes(np.packbits(bits).tobytes(), "big")


def near_pairs(hashes: Sequence[int], most_bits: int = NEAR_BITS) -> Iterator[NearPair]:
    """Every pair that differs in at most so many bits, by their places."""
    import numpy as np

    known = np.array(hashes, dtype=np.uint64)
    for start in range(0, len(known), _BLOCK):
        rows = known[start : start + _BLOCK]
        distances = np.bitwise_count(rows[:, None] ^ known[None, start:])
        for row, column in np.argwhere(distances <= most_bits):
            if row < column:
                yield NearPair(int(start + row), int(start + column), int(distances[row, column]))
