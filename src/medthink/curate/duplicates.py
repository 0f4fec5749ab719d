"""Cases that are nearly the same: texts by sketches of their word sequences, images by perceptual hashes."""

import zlib
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from medthink.cases.case import Image
from medthink.cases.check.texts import spell
from medthink.cases.phash import NEAR_BITS, PictureLook, appearance, is_same_look
from medthink.core.errors import DataError

_GRAM, _SKETCH = 5, 64
_ANCHORS, _SHARED = 8, 3
_SIMILAR = 0.8
_BLOCK = 1024


class TextSketches:
    """The lowest hashes of each text's five-word sequences: half a kilobyte per text, whatever its length.

    The share of the lowest 64 hashes that two texts have in common estimates the Jaccard similarity of their sequences,
    to five points. Texts that share fewer than three of their lowest eight hashes are not compared: at a similarity of
    0.8 that happens once in a thousand.
    """

    def __init__(self) -> None:
        self._sketches: dict[int, NDArray[np.uint32]] = {}
        self._met: dict[int, list[int]] = {}

    def add(self, case: int, text: str) -> list[int]:
        """Add a text; returns the earlier cases whose text is nearly the same."""
        sketch = _sketch(text)
        if not len(sketch):
            return []
        anchors = sketch[:_ANCHORS].tolist()
        near = Counter(other for anchor in anchors for other in self._met.get(anchor, ()))
        needed = min(_SHARED, len(anchors))
        found = [
            other
            for other, shared in near.items()
            if shared >= needed and _similarity(sketch, self._sketches[other]) >= _SIMILAR
        ]
        self._sketches[case] = sketch
        # The first of equal texts represents all: a thousand copies of "not available" must not be compared in pairs.
        if not any(np.array_equal(sketch, self._sketches[other]) for other in found):
            for anchor in anchors:
                self._met.setdefault(anchor, []).append(case)
        return sorted(found)


def _sketch(text: str) -> NDArray[np.uint32]:
    words = spell(text).split()
    grams = [b" ".join(words[at : at + _GRAM]) for at in range(max(1, len(words) - _GRAM + 1))] if words else []
    hashes = np.fromiter({_mix(zlib.crc32(gram)) for gram in grams}, dtype=np.uint32)
    hashes.sort()
    return hashes[:_SKETCH]


def _mix(value: int) -> int:
    """Checksums of similar texts are similar; after multiplication they are not."""
    return (value * 2654435761) & 0xFFFFFFFF


def _similarity(one: NDArray[np.uint32], other: NDArray[np.uint32]) -> float:
    lowest = np.union1d(one, other)[: min(_SKETCH, max(len(one), len(other)))]
    both = np.intersect1d(one, other)
    return len(np.intersect1d(lowest, both)) / len(lowest)


class ImageLooks:
    """The perceptual hashes of all images, eight bytes each; the pictures are opened only to confirm a pair."""

    def __init__(self) -> None:
        self._hashes: list[int] = []
        self._images: list[tuple[int, Image]] = []

    def add(self, case: int, image: Image, phash: str = "") -> None:
        """Add an image, opening it if its hash is missing.

        One that cannot be opened, or has no contrast, matches no other.
        """
        found = int(phash, 16) if phash else _hash_of(image)
        if found is not None:
            self._hashes.append(found)
            self._images.append((case, image))

    def pairs(self) -> Iterator[tuple[int, int]]:
        """The cases that share a picture."""
        hashes = np.array(self._hashes, dtype=np.uint64)
        joined: set[tuple[int, int]] = set()
        for start in range(0, len(hashes), _BLOCK):
            rows = hashes[start : start + _BLOCK]
            near = np.argwhere(np.bitwise_count(rows[:, None] ^ hashes[None, start:]) <= NEAR_BITS)
            for row, column in near:
                (case, image), (other, its) = self._images[start + int(row)], self._images[start + int(column)]
                pair = (case, other)
                if row < column and case != other and pair not in joined and _is_same(image, its):
                    joined.add(pair)
                    yield pair


def _hash_of(image: Image) -> int | None:
    look = _look(image)
    return None if look is None else look.hash


def _is_same(one: Image, other: Image) -> bool:
    looks = _look(one), _look(other)
    return looks[0] is not None and looks[1] is not None and is_same_look(looks[0], looks[1])


@lru_cache(maxsize=4096)
def _look(image: Image) -> PictureLook | None:
    try:
        return appearance(image.open())
    except DataError:
        return None


class Groups:
    """Which cases belong together: the finest grouping that joins every pair."""

    def __init__(self) -> None:
        self._parents: dict[Hashable, Hashable] = {}

    def find(self, one: Hashable) -> Hashable:
        """The representative of the group."""
        path = [one]
        while (parent := self._parents.get(path[-1], path[-1])) != path[-1]:
            path.append(parent)
        for each in path:
            self._parents[each] = path[-1]
        return path[-1]

    def join(self, ones: Iterable[Hashable]) -> None:
        """Put these into one group."""
        first, *rest = ones
        for one in rest:
            self._parents[self.find(one)] = self.find(first)
