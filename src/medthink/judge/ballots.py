"""Counting votes."""

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import combinations
from typing import TypeVar

Chosen = TypeVar("Chosen", bound=Hashable)


def majority(labels: Sequence[Chosen]) -> Chosen | None:
    """The label that more than half give, or None."""
    for label, count in Counter(labels).most_common(1):
        if 2 * count > len(labels):
            return label
    return None


def disagreement(labels: Sequence[Hashable]) -> float:
    """The share of pairs of votes that differ."""
    pairs = list(combinations(labels, 2))
    return sum(a != b for a, b in pairs) / len(pairs) if pairs else 0.0
