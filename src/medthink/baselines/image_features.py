"""Image features: brightness, colour, edges and texture on a coarse grid."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from medthink.cases.case import Image, Question
from medthink.cases.images.content import decode, flatten, open_header
from medthink.cases.images.result_cache import ResultCache
from medthink.core.errors import DataError

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

Vector = NDArray[np.floating[Any]]

_SIDE = 96
_IMAGES_PER_CASE = 6
_CHUNK = 512
_KIND = "features"


def image_features(image: Image) -> Vector:
    """The image's features, or DataError where it cannot be read."""
    cache, key = ResultCache(_KIND), image.digest()
    kept = cache.find([key]).get(key)
    if kept is not None:
        return np.frombuffer(kept, dtype=np.float32)
    vector = _describe(image)
    cache.keep({key: vector.tobytes()})
    return vector


def readable_image_features(images: Sequence[Image]) -> list[Vector | None]:
    """The features of many images, on all cores; None for one that is missing or cannot be decoded."""
    return [vector for vectors in _by_chunk(images) for vector in vectors]


def case_image_features(questions: Sequence[Question]) -> list[Vector | None]:
    """For each question the mean features of its images, at most six of them, evenly spaced; None without images."""
    chosen = [_spread(question.images) for question in questions]
    found = chain.from_iterable(_by_chunk([image for images in chosen for image in images]))
    looks: list[Vector | None] = []
    for images in chosen:
        vectors = [vector for _ in images if (vector := next(found)) is not None]
        looks.append(np.mean(vectors, axis=0, dtype=np.float32) if vectors else None)
    return looks


def image_digests(questions: Sequence[Question]) -> list[str]:
    """The digests of the images whose features are taken; "" for one that cannot be read."""
    return [_digest_or_none(image) or "" for question in questions for image in _spread(question.images)]


def _by_chunk(images: Sequence[Image]) -> Iterator[list[Vector | None]]:
    """Features kept on disk are read from there; the others are computed, and kept chunk by chunk."""
    cache = ResultCache(_KIND)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for start in range(0, len(images), _CHUNK):
            chunk = images[start : start + _CHUNK]
            keys = [_digest_or_none(image) for image in chunk]
            kept = cache.find([key for key in keys if key is not None])
            missing = {
                key: image for key, image in zip(keys, chunk, strict=True) if key is not None and key not in kept
            }
            made = dict(zip(missing, pool.map(_describe_or_none, missing.values()), strict=True))
            new = {key: vector.tobytes() for key, vector in made.items() if vector is not None}
            cache.keep(new)
            known = {key: np.frombuffer(data, dtype=np.float32) for key, data in (kept | new).items()}
            yield [None if key is None else known.get(key) for key in keys]


def picture_features(picture: "PillowImage") -> Vector:
    """The features of a decoded picture; each kind is scaled to the same norm."""
    from PIL import Image as Pillow

    small = flatten(picture).convert("RGB").resize((_SIDE, _SIDE), Pillow.Resampling.BOX)
    colour = np.asarray(small, dtype=np.float32) / 255
    grey = colour.mean(axis=2)
    parts = [_brightness(grey), _tones(grey), _tints(colour), _edges(grey), _texture(grey)]
    return np.concatenate([part / max(float(np.linalg.norm(part)), 1e-6) for part in parts]).astype(np.float32)


def _brightness(grey: Vector) -> Vector:
    coarse: Vector = _pool(grey, 16).ravel()
    return coarse - float(coarse.mean())


def _tones(grey: Vector) -> Vector:
    counts, _ = np.histogram(grey, bins=24, range=(0, 1))
    roots: Vector = np.sqrt(counts)
    return roots


def _tints(colour: Vector) -> Vector:
    """Colour without brightness; the constant keeps the noise of grey pictures from being scaled up."""
    red, green, blue = colour[..., 0], colour[..., 1], colour[..., 2]
    coarse = [_pool(red - green, 4).ravel(), _pool(blue - (red + green) / 2, 4).ravel()]
    return np.concatenate([*coarse, np.full(1, 0.2, dtype=np.float32)])


def _edges(grey: Vector) -> Vector:
    """Edge strength by direction in each cell of an 8 × 8 grid."""
    down, across = np.gradient(grey)
    sector = (np.arctan2(down, across) * (8 / np.pi)).astype(int) % 8
    place = np.arange(_SIDE) // (_SIDE // 8)
    bins = (place[:, None] * 8 + place[None, :]) * 8 + sector
    roots: Vector = np.sqrt(np.bincount(bins.ravel(), np.hypot(down, across).ravel(), minlength=8**3))
    return roots


def _texture(grey: Vector) -> Vector:
    """How many of its eight neighbours a pixel is brighter than, at two distances, in each cell of a 3 × 3 grid."""
    parts = []
    for reach in (1, 3):
        inner = grey[reach:-reach, reach:-reach] - 0.02
        size = len(inner)
        steps = [(down, across) for down in (0, reach, 2 * reach) for across in (0, reach, 2 * reach)]
        around = [
            grey[down : down + size, across : across + size]
            for down, across in steps
            if (down, across) != (reach, reach)
        ]
        brighter = np.add.reduce([inner > other for other in around], dtype=int)
        place = np.arange(size) * 3 // size
        bins = (place[:, None] * 3 + place[None, :]) * 9 + brighter
        parts.append(np.bincount(bins.ravel(), minlength=81))
    roots: Vector = np.sqrt(np.concatenate(parts))
    return roots


def _pool(plane: Vector, cells: int) -> Vector:
    size = _SIDE // cells
    pooled: Vector = plane.reshape(cells, size, cells, size).mean(axis=(1, 3))
    return pooled


def _open_small(data: bytes, name: str) -> "PillowImage":
    """The picture; a JPEG is decoded at the smallest size that suffices, several times faster."""
    picture = open_header(data, name=name)
    picture.draft("RGB", (_SIDE, _SIDE))
    try:
        picture.load()
    except (OSError, SyntaxError, ValueError):
        return decode(data, name=name)  # says properly what is wrong with it
    return picture


def _describe(image: Image) -> Vector:
    return picture_features(_open_small(image.read(), image.path))


def _describe_or_none(image: Image) -> Vector | None:
    try:
        return _describe(image)
    except DataError:
        return None


def _digest_or_none(image: Image) -> str | None:
    try:
        return image.digest()
    except DataError:
        return None


def _spread(images: tuple[Image, ...]) -> list[Image]:
    if len(images) <= _IMAGES_PER_CASE:
        return list(images)
    return [images[round(at)] for at in np.linspace(0, len(images) - 1, _IMAGES_PER_CASE)]
