"""The album: the train split's images and captions, searched by visual similarity.

A ridge regression from image features to caption topics is fitted first, and nearest neighbours are found among its
predictions. For the album's own images these are leave-one-out predictions, so that they compare fairly with those
for a new image.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from medthink.baselines.pictures import Vector, describe, describe_readable
from medthink.baselines.words import fit_topics, words_of
from medthink.cases.case import Case, Image
from medthink.core.digest import seed_from
from medthink.core.errors import UsageError

_MOST_IMAGES = 16_000
_TOPICS = 128
_STIFFNESS = 0.5
_NEIGHBOURS = 5


class Neighbour(NamedTuple):
    """A similar image of the album; `nearness` is the cosine similarity, at most 1."""

    caption: str
    case_id: int
    nearness: float


class _Leaf(NamedTuple):
    image: Image
    caption: str
    case_id: int


class Album:
    """The captioned images of the train split, up to 16,000."""

    def __init__(self, cases: Sequence[Case]) -> None:
        leaves = _gather(cases)
        looks = describe_readable([leaf.image for leaf in leaves])
        readable = [(leaf, look) for leaf, look in zip(leaves, looks, strict=True) if look is not None]
        if not readable:
            raise UsageError(
                "baseline/retrieval learns from the images of the train split, and none can be read",
                remedy="medthink data check --images says what is wrong",
            )
        self._leaves = [leaf for leaf, _ in readable]
        matrix = np.stack([look for _, look in readable])
        self._mean = matrix.mean(axis=0)
        topics = _topics_of([leaf.caption for leaf in self._leaves])
        self._map, predicted = _fit_ridge(matrix - self._mean, topics)
        self._places = _unit_rows(predicted)

    def __len__(self) -> int:
        return len(self._leaves)

    def nearest(self, image: Image) -> list[Neighbour]:
        """The most similar images, most similar first."""
        place = _unit_rows((describe(image) - self._mean)[None] @ self._map)[0]
        nearness = self._places @ place
        order = np.argsort(-nearness, kind="stable")[:_NEIGHBOURS]
        return [Neighbour(self._leaves[at].caption, self._leaves[at].case_id, float(nearness[at])) for at in order]

    def caption(self, image: Image) -> str:
        """Of the neighbours' captions, the one that shares most words with the others."""
        near = self.nearest(image)
        bags = [set(words_of(neighbour.caption)) for neighbour in near]
        votes = [(bag, max(neighbour.nearness, 0.0) ** 2) for bag, neighbour in zip(bags, near, strict=True)]
        support = [sum(weight * len(bag & other) / max(1, len(bag | other)) for other, weight in votes) for bag in bags]
        return near[int(np.argmax(support))].caption


def _gather(cases: Sequence[Case]) -> list[_Leaf]:
    """The images that have a caption, case by case in a seeded order until the album is full."""
    leaves: list[_Leaf] = []
    for case in sorted(cases, key=lambda case: seed_from("album", case.id)):
        pairs = zip(case.question.images, case.reference.images, strict=True)
        leaves += [_Leaf(image, known.caption.strip(), case.id) for image, known in pairs if known.caption.strip()]
        if len(leaves) >= _MOST_IMAGES:
            break
    return leaves[:_MOST_IMAGES]


def _topics_of(captions: list[str]) -> Vector:
    """Captions as topic vectors: TF-IDF of words and word pairs, reduced by a truncated SVD."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    rare = 2 if len(captions) >= 50 else 1
    counted = TfidfVectorizer(
        ngram_range=(1, 2), min_df=rare, max_features=8000, sublinear_tf=True, token_pattern=r"[^\W\d_]{2,}"
    ).fit_transform(captions)
    placed: Vector = fit_topics(counted, _TOPICS)[1]
    return placed.astype(np.float32)


def _fit_ridge(looks: Vector, topics: Vector) -> tuple[Vector, Vector]:
    """The ridge regression from features to topics, and its leave-one-out prediction for each image."""
    spread = looks.T @ looks
    spread[np.diag_indices_from(spread)] += _STIFFNESS
    inverse = np.linalg.inv(spread.astype(np.float64))
    mapping = inverse @ (looks.T @ (topics - topics.mean(axis=0))).astype(np.float64)
    fitted = looks @ mapping
    leverage = np.minimum(np.einsum("ij,jk,ik->i", looks, inverse, looks, optimize=True), 0.999)[:, None]
    centred = topics - topics.mean(axis=0)
    without = (fitted - leverage * centred) / (1 - leverage)
    return mapping.astype(np.float32), without.astype(np.float32)


def _unit_rows(matrix: Vector) -> Vector:
    rows: Vector = matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-6)
    return rows
