"""Surface features of options: length and style, each relative to the other options.

A guesser that does well on these has learned how the options were made, not what the patient has.
"""

import re

import numpy as np
from numpy.typing import NDArray

from medthink.baselines.words import words_of

_COUNTED = (
    re.compile(r","),
    re.compile(r"[()\[\]]"),
    re.compile(r"[-–—/]"),
    re.compile(r"[:;]"),
    re.compile(r"\d"),
    re.compile(r"[A-Z]{2,}"),
    re.compile(r"[A-Z][a-z]"),
    re.compile(r"\b(?:with|and|secondary|due|of|in|complicated|associated)\b", re.IGNORECASE),
    re.compile(r"\b(?:acute|chronic|bilateral|left|right|multiple|primary|type|stage|grade)\b", re.IGNORECASE),
    re.compile(r"[^\x00-\x7f]"),
    re.compile(r"\.$"),
)
SHAPE_SIZE = 2 + len(_COUNTED) + 5 + 2


def shapes_of(texts: list[str]) -> NDArray[np.float32]:
    """One row per option, every column relative to the other options of the same case."""
    counts = np.array([_count(text) for text in texts], dtype=np.float32)
    lengths = np.array([len(text.strip()) for text in texts], dtype=np.float32)
    spread = counts.std(axis=0)
    relative = (counts - counts.mean(axis=0)) / np.where(spread > 0, spread, 1)
    return np.hstack([relative, _length_ranks(lengths), _likeness(texts)]).astype(np.float32)


def _count(text: str) -> list[float]:
    length, words = np.log1p(len(text.strip())), np.log1p(len(words_of(text)))
    return [float(length), float(words), *(float(len(pattern.findall(text.strip()))) for pattern in _COUNTED)]


def _length_ranks(lengths: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rank of the length from −1 to 1, whether longest or shortest, and by how much."""
    longer = (lengths[:, None] > lengths[None, :]).sum(axis=1)
    shorter = (lengths[:, None] < lengths[None, :]).sum(axis=1)
    rank = (longer - shorter) / max(1, len(lengths) - 1)
    columns = [
        rank,
        shorter == 0,
        longer == 0,
        lengths / lengths.max(initial=1),
        lengths.min(initial=1) / (1 + lengths),
    ]
    return np.stack(columns, axis=1).astype(np.float32)


def _likeness(texts: list[str]) -> NDArray[np.float32]:
    """How many words an option shares with the others: distractors are often variations on the right one."""
    bags = [set(words_of(text)) for text in texts]
    shared = np.array([[len(one & other) / max(1, len(one | other)) for other in bags] for one in bags])
    np.fill_diagonal(shared, 0)
    return np.stack([shared.sum(axis=1) / max(1, len(texts) - 1), shared.max(axis=1)], axis=1).astype(np.float32)
