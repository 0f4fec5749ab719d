"""Texts compared by their words: a phrase inside a history, and histories that are nearly identical."""

import re
import unicodedata
from array import array
from collections.abc import Iterator
from typing import Any, NamedTuple

GRAM = 5

_WORD = re.compile(r"[^\W_]+")
_ASCII = {code: " " for code in range(128) if not chr(code).isalnum()}


def words_of(text: str) -> list[str]:
    """The words of a text, without case, punctuation or compatibility forms."""
    if text.isascii():
        return text.lower().translate(_ASCII).split()  # the same, four times faster
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


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

    A text of fewer than five words counts as one sequence. Words are kept as hashes, 8 bytes each.
    """

    def __init__(self) -> None:
        self._words = array("q")
        self._ends = array("q")
        self._splits: list[str] = []

    def add(self, split: str, words: list[str]) -> None:
        """Take in the next text."""
        self._words.fromlist([*map(hash, words)])
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
        stood_for: set[tuple[str, frozenset[int]]] = set()
        for second in texts:
            candidates = {first.number: first for gram in second.prefix for first in met.get(gram, ())}
            found = [match for first in candidates.values() if (match := self._compare(first, second)) is not None]
            if found:
                yield max(found, key=lambda match: (match.similarity, -match.first))
            # Of equal texts the first stands for all: a thousand times "not available" must not be compared in pairs.
            if (kind := (self._splits[second.number], second.grams)) not in stood_for:
                stood_for.add(kind)
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
        sizes = np.bincount(text, minlength=len(self._ends))
        kept = np.flatnonzero(self._is_shared(gram, text, np))
        enough = 5 * np.bincount(text[kept], minlength=len(self._ends)) >= 4 * sizes
        kept = kept[enough[text[kept]]]
        _, which, frequency = np.unique(gram[kept], return_inverse=True, return_counts=True)
        order = np.lexsort((which, frequency[which], text[kept]))
        numbers, starts = np.unique(text[kept], return_index=True)
        pieces = np.split(which[order], starts[1:])
        return [_text(n, p.tolist(), int(sizes[n])) for n, p in zip(numbers.tolist(), pieces, strict=False)]

    def _is_shared(self, gram: Any, text: Any, np: Any) -> Any:
        """Which sequences stand in more than one split."""
        split = np.unique(np.array(self._splits), return_inverse=True)[1][text]
        each = [_distinct(gram[split == one], np) for one in range(split.max(initial=-1) + 1)]
        together = np.sort(np.concatenate([gram[:0], *each]))
        shared = _distinct(together[1:][together[1:] == together[:-1]], np)
        if not len(shared):
            return np.zeros(len(gram), dtype=bool)
        return shared[np.searchsorted(shared, gram).clip(max=len(shared) - 1)] == gram

    def _grams(self, np: Any) -> tuple[Any, Any]:
        """Every distinct sequence of every text: its hash, and the number of its text, ordered by text."""
        words = np.array(self._words).view(np.uint64)
        ends = np.array(self._ends)
        text = np.repeat(np.arange(len(ends), dtype=np.uint64), np.diff(ends, prepend=0))
        count = max(0, len(words) - GRAM + 1)
        gram = np.zeros(count, dtype=np.uint64)
        for offset in range(GRAM):
            gram = gram * np.uint64(0x9E3779B97F4A7C15) + words[offset : offset + count]
            gram ^= gram >> np.uint64(29)
        within = text[:count] == text[GRAM - 1 :]
        # Text and hash in one number: sorting plain numbers is what numpy does fastest.
        bits = np.uint64(64 - len(ends).bit_length())
        keys = _distinct(text[:count][within] << bits | gram[within] >> (np.uint64(64) - bits), np)
        return keys & ((np.uint64(1) << bits) - np.uint64(1)), (keys >> bits).astype(np.int64)


def _distinct(values: Any, np: Any) -> Any:
    """The distinct values, sorted; ten times faster than `np.unique` on large arrays of numbers."""
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), dtype=bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]


class _Text(NamedTuple):
    """A text's shared sequences, and the rarest of them, of which a match cannot miss all."""

    number: int
    size: int
    grams: frozenset[int]
    prefix: list[int]


def _text(number: int, rarest_first: list[int], size: int) -> _Text:
    least_common = -(-4 * size // 5)
    return _Text(number, size, frozenset(rarest_first), rarest_first[: len(rarest_first) - least_common + 1])
