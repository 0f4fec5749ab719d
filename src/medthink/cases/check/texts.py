"""Texts compared by their words: a phrase inside a history, and histories that are nearly identical."""

import re
import unicodedata
from array import array
from collections.abc import Iterator
from typing import Any, NamedTuple

GRAM = 5

_WORD = re.compile(r"[^\W_]+")


def words_of(text: str) -> list[str]:
    """The words of a text, without case, punctuation or compatibility forms."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _WORD.findall(text.casefold())


def contains_phrase(words: list[str], phrase: str) -> bool:
    """Whether the phrase's words stand in the text one after the other, whole words only."""
    sought = words_of(phrase)
    if not sought or sought[0] not in words:
        return False
    return f" {' '.join(sought)} " in f" {' '.join(words)} "


class Match(NamedTuple):
    """Two texts of different splits, by their order of arrival, and how much they share."""

    first: int
    second: int
    similarity: float


class NearlyIdentical:
    """Finds texts of different splits whose five-word sequences have a Jaccard similarity of 0.8 or more, exactly.

    A text of fewer than five words counts as one sequence. Words are kept as 64-bit hashes, 8 bytes a word.
    """

    def __init__(self) -> None:
        self._words = array("q")
        self._ends = array("q")
        self._splits: list[str] = []

    def add(self, split: str, words: list[str]) -> None:
        """Take in the next text."""
        self._words.extend(map(hash, words))
        if 0 < len(words) < GRAM:
            self._words.extend([-1] * (GRAM - len(words)))  # no word hashes to -1
        self._ends.append(len(self._words))
        self._splits.append(split)

    def matches(self) -> Iterator[Match]:
        """For each text, its most similar predecessor in another split, if nearly identical."""
        if len(set(self._splits)) < 2:
            return
        texts = self._texts_with_shared_grams()
        met: dict[int, list[_Text]] = {}
        for second in texts:
            candidates = {first.number: first for gram in second.prefix for first in met.get(gram, ())}
            found = [match for first in candidates.values() if (match := self._compare(first, second)) is not None]
            if found:
                yield max(found, key=lambda match: (match.similarity, -match.first))
            for gram in second.prefix:
                met.setdefault(gram, []).append(second)

    def _compare(self, first: "_Text", second: "_Text") -> Match | None:
        if self._splits[first.number] == self._splits[second.number]:
            return None
        common = len(first.grams & second.grams)
        union = first.size + second.size - common
        return Match(first.number, second.number, common / union) if 5 * common >= 4 * union else None

    def _texts_with_shared_grams(self) -> list["_Text"]:
        """The texts that can have a match, with those of their sequences that another split has too.

        A match shares at least four fifths of each side's sequences, so a text with fewer is out at once.
        """
        import numpy as np

        gram, text = self._grams(np)
        distinct, which, frequency = np.unique(gram, return_inverse=True, return_counts=True)
        split_of_text = np.unique(np.array(self._splits), return_inverse=True)[1]
        split = split_of_text[text]
        in_splits = np.zeros(len(distinct), dtype=int)
        for one in range(split_of_text.max() + 1):
            in_splits += np.bincount(which[split == one], minlength=len(distinct)) > 0
        sizes = np.bincount(text, minlength=len(self._ends))
        shared = (in_splits > 1)[which]
        enough = 5 * np.bincount(text[shared], minlength=len(self._ends)) >= 4 * sizes
        kept = np.flatnonzero(shared & enough[text])
        kept = kept[np.lexsort((which[kept], frequency[which[kept]], text[kept]))]
        numbers, starts = np.unique(text[kept], return_index=True)
        pieces = np.split(which[kept], starts[1:])
        return [_text(n, p.tolist(), int(sizes[n])) for n, p in zip(numbers.tolist(), pieces, strict=False)]

    def _grams(self, np: Any) -> tuple[Any, Any]:
        """Every distinct sequence of every text: its hash, and the number of its text."""
        words = np.array(self._words).view(np.uint64)
        ends = np.array(self._ends)
        text = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        count = max(0, len(words) - GRAM + 1)
        gram = np.zeros(count, dtype=np.uint64)
        for offset in range(GRAM):
            gram = gram * np.uint64(0x9E3779B97F4A7C15) + words[offset : offset + count]
            gram ^= gram >> np.uint64(29)
        within = text[:count] == text[GRAM - 1 :]
        gram, text = gram[within], text[:count][within]
        order = np.lexsort((gram, text))
        gram, text = gram[order], text[order]
        is_first = np.ones(len(gram), dtype=bool)
        is_first[1:] = (gram[1:] != gram[:-1]) | (text[1:] != text[:-1])
        return gram[is_first], text[is_first]


class _Text(NamedTuple):
    """A text's shared sequences, and the rarest of them, of which a match cannot miss all."""

    number: int
    size: int
    grams: frozenset[int]
    prefix: list[int]


def _text(number: int, rarest_first: list[int], size: int) -> _Text:
    least_common = -(-4 * size // 5)
    return _Text(number, size, frozenset(rarest_first), rarest_first[: len(rarest_first) - least_common + 1])
