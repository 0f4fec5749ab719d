"""Texts compared by their words: a phrase inside a history, and histories that are nearly identical."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Any, NamedTuple

from medthink.cases.check.grams import hash_grams

_WORD = re.compile(r"[^\W_]+")
_ASCII = bytes(ord(chr(code).lower()) if chr(code).isalnum() else ord(" ") for code in range(128)).ljust(256)
_BUCKETS = 1 << 20


def spell(text: str) -> bytes:
    """The words of a text, without case, punctuation or compatibility forms, and with nothing but spaces between."""
    if text.isascii():
        return text.encode().translate(_ASCII)  # the same, ten times faster
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold())).encode()


def contains_phrase(spelled: bytes, phrase: str) -> bool:
    """Whether the phrase's words stand in the spelled text one after the other, whole words only."""
    sought = spell(phrase).split()
    if not sought or not all(map(spelled.__contains__, sought)):
        return False
    return b" %b " % b" ".join(sought) in b" %b " % b" ".join(spelled.split())


class Match(NamedTuple):
    """Two texts of different splits, by their order of arrival, and how much they share."""

    first: int
    second: int
    similarity: float


class NearlyIdentical:
    """Finds texts of different splits whose five-word sequences have a Jaccard similarity of 0.8 or more, exactly.

    A text of fewer than five words counts as one sequence. Sequences are compared by hashes of 64 bits.
    """

    def __init__(self) -> None:
        self._spelled: list[bytes] = []
        self._splits: list[str] = []

    def add(self, split: str, spelled: bytes) -> None:
        """Take in the next text, as `spell` gives it."""
        self._spelled.append(spelled)
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

        gram, text = self._grams_of_related_texts(np)
        sizes = np.bincount(text, minlength=len(self._splits))
        kept = np.flatnonzero(self._is_shared(gram, text, np))
        enough = 5 * np.bincount(text[kept], minlength=len(self._splits)) >= 4 * sizes
        kept = kept[enough[text[kept]]]
        _, which, frequency = np.unique(gram[kept], return_inverse=True, return_counts=True)
        order = np.lexsort((which, frequency[which], text[kept]))
        numbers, starts = np.unique(text[kept], return_index=True)
        pieces = np.split(which[order], starts[1:])
        return [_text(n, p.tolist(), int(sizes[n])) for n, p in zip(numbers.tolist(), pieces, strict=False)]

    def _grams_of_related_texts(self, np: Any) -> tuple[Any, Any]:
        """The distinct sequences, ordered by text, of the texts that share any with another split: seldom many."""
        gram, text = hash_grams(self._spelled, np)
        likely = np.flatnonzero(_falls_together(gram, self._split_of(text, np), np))
        shared = likely[self._is_shared(gram[likely], text[likely], np)]
        is_related = np.zeros(len(self._splits), dtype=bool)
        is_related[text[shared]] = True
        kept = is_related[text]
        return _distinct_pairs(gram[kept], text[kept], np)

    def _is_shared(self, gram: Any, text: Any, np: Any) -> Any:
        """Which sequences stand in more than one split."""
        split = self._split_of(text, np)
        each = [_distinct(gram[split == one], np) for one in range(split.max(initial=-1) + 1)]
        together = np.sort(np.concatenate([gram[:0], *each]))
        shared = _distinct(together[1:][together[1:] == together[:-1]], np)
        if not len(shared):
            return np.zeros(len(gram), dtype=bool)
        return shared[np.searchsorted(shared, gram).clip(max=len(shared) - 1)] == gram

    def _split_of(self, text: Any, np: Any) -> Any:
        names = {name: number for number, name in enumerate(dict.fromkeys(self._splits))}
        return np.array([names[name] for name in self._splits], dtype=np.int16)[text]


def _falls_together(gram: Any, split: Any, np: Any) -> Any:
    """Which sequences fall into the same bucket as one of another split: all that are shared, and few others.

    Most sequences stand in one split only, and this finds them without sorting anything.
    """
    bucket = (gram & np.uint64(_BUCKETS - 1)).astype(np.int64)
    owner = np.zeros(_BUCKETS, dtype=split.dtype)
    owner[bucket] = split
    is_mixed = np.zeros(_BUCKETS, dtype=bool)
    is_mixed[bucket[owner[bucket] != split]] = True
    return is_mixed[bucket]


def _distinct_pairs(gram: Any, text: Any, np: Any) -> tuple[Any, Any]:
    order = np.lexsort((gram, text))
    gram, text = gram[order], text[order]
    is_new = np.ones(len(gram), dtype=bool)
    is_new[1:] = (gram[1:] != gram[:-1]) | (text[1:] != text[:-1])
    return gram[is_new], text[is_new]


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
