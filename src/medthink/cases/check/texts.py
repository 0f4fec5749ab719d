"""Comparison of texts: as words, as normalised text, and for near-duplicates."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

_WORD = re.compile(r"[^\W_]+")
# Signs that typesetting adds to plain English; none is part of a word, whichever way it is normalised.
_TYPESET = re.compile("[‘’“”–—…•·°×±≤≥≈→]")
_NOT_WESTERN = re.compile(r"[^\x00-\x7fÀ-ÖØ-Þà-öø-ÿ]")


def _lower(byte: int) -> int:
    """A byte of a text in ASCII and accented letters, as one of the text's words."""
    if byte < 0x80:
        return ord(chr(byte).lower()) if chr(byte).isalnum() else ord(" ")
    return byte + 0x20 if byte < 0xA0 else byte  # the second byte of an accented letter: À is C3 80, à C3 A0


_WESTERN = bytes(map(_lower, range(256)))


def normalised_words(text: str) -> bytes:
    """The words of a text, without case, punctuation or compatibility forms, and with nothing but spaces between."""
    plain = text if text.isascii() else _TYPESET.sub(" ", text)
    if plain.isascii() or not _NOT_WESTERN.search(plain):
        return plain.encode().translate(_WESTERN)  # the same, ten times faster
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold())).encode()


def contains_phrase(spelled: bytes, phrase: str) -> bool:
    """Whether the normalised text contains the phrase's words one after the other, as whole words."""
    sought = normalised_words(phrase).split()
    if not sought or not all(map(spelled.__contains__, sought)):
        return False
    return b" %b " % b" ".join(sought) in b" %b " % b" ".join(spelled.split())


def plurals(phrase: str) -> tuple[str, ...]:
    """The regular plurals of a phrase's last word."""
    phrase = phrase.rstrip(" .")
    if not phrase or not phrase[-1].isalpha():
        return ()
    if phrase.endswith("is"):
        return (phrase[:-2] + "es",)
    if phrase.endswith("oma"):
        return (phrase + "s", phrase + "ta")
    if phrase.endswith("y") and phrase[-2:-1] not in tuple("aeiou"):
        return (phrase[:-1] + "ies",)
    return (phrase + "es" if phrase.endswith(("s", "x", "ch", "sh")) else phrase + "s",)


def normalised_text(text: str) -> str:
    """The text in lower case, without invisible characters, repeated spaces or a final dot."""
    if not text.isascii():
        plain = unicodedata.normalize("NFKC", text)
        text = "".join(sign for sign in plain if unicodedata.category(sign) != "Cf")
    return " ".join(text.casefold().split()).rstrip(" .")


GRAM = 5


class SimilarTexts(NamedTuple):
    """Two texts of different splits, by their position, and their similarity."""

    first: int
    second: int
    similarity: float


class _Text(NamedTuple):
    """A text's word sequences, and the rarest ones, of which any match must share at least one."""

    number: int
    split: str
    grams: frozenset[int]
    prefix: list[int]


class SimilarTextFinder:
    """Finds texts of different splits whose five-word sequences have a Jaccard similarity of 0.8 or more, exactly.

    A text of fewer than five words counts as one sequence. Sequences are compared by hashes of 64 bits.
    """

    def __init__(self) -> None:
        self._spelled: list[bytes] = []
        self._splits: list[str] = []

    def add(self, split: str, spelled: bytes) -> None:
        """Add the next text, as `normalised_words` returns it."""
        self._spelled.append(spelled)
        self._splits.append(split)

    def matches(self) -> Iterator[SimilarTexts]:
        """For each text, its most similar predecessor in another split, if nearly identical."""
        met: dict[int, list[_Text]] = {}
        stood_for: set[tuple[str, frozenset[int]]] = set()
        for second in self._texts_with_shared_grams():
            candidates = {first.number: first for gram in second.prefix for first in met.get(gram, ())}
            found = [match for first in candidates.values() if (match := self._compare(first, second)) is not None]
            if found:
                yield max(found, key=lambda match: (match.similarity, -match.first))
            # The first of equal texts represents all: a thousand copies of "not available" are not compared in pairs.
            if (kind := (second.split, second.grams)) not in stood_for:
                stood_for.add(kind)
                for gram in second.prefix:
                    met.setdefault(gram, []).append(second)

    def _compare(self, first: _Text, second: _Text) -> SimilarTexts | None:
        if first.split == second.split:
            return None
        common = len(first.grams & second.grams)
        union = len(first.grams) + len(second.grams) - common
        return SimilarTexts(first.number, second.number, common / union) if 5 * common >= 4 * union else None

    def _texts_with_shared_grams(self) -> list[_Text]:
        """The texts that can have a match, in order: four fifths of their sequences are in other splits too."""
        related = self._related_grams()
        shared = self._shared_grams(related)
        kept = {number: grams for number, grams in related.items() if 5 * len(grams & shared) >= 4 * len(grams)}
        frequency = Counter(gram for grams in kept.values() for gram in grams & shared)
        return [
            _Text(number, self._splits[number], grams, _prefix(grams, shared, frequency))
            for number, grams in sorted(kept.items())
        ]

    def _shared_grams(self, related: dict[int, frozenset[int]]) -> set[int]:
        """The sequences that are in more than one split."""
        by_split: dict[str, set[int]] = {}
        for number, grams in related.items():
            by_split.setdefault(self._splits[number], set()).update(grams)
        met: set[int] = set()
        shared: set[int] = set()
        for found in by_split.values():
            shared |= met & found
            met |= found
        return shared

    def _related_grams(self) -> dict[int, frozenset[int]]:
        """The sequences of the smaller splits' texts, and of those of the largest that may have a match there."""
        counts = Counter(self._splits)
        if len(counts) < 2:
            return {}
        largest = max(counts, key=counts.__getitem__)
        inside = [number for number, split in enumerate(self._splits) if split == largest]
        outside = [number for number, split in enumerate(self._splits) if split != largest]
        related = {number: grams for number in outside if (grams := _grams(self._spelled[number].split()))}
        elsewhere: set[int] = set().union(*related.values())
        candidates = [number for number in inside if _may_match(self._spelled[number], elsewhere)]
        if not candidates and len(counts) == 2:
            return {}
        return related | {number: _grams(self._spelled[number].split()) for number in candidates}


def _grams(words: list[bytes]) -> frozenset[int]:
    """The text's sequences, as hashes."""
    if len(words) < GRAM:
        return frozenset({hash(tuple(words))} if words else ())
    return frozenset(map(hash, zip(words, words[1:], words[2:], words[3:], words[4:], strict=False)))


def _may_match(spelled: bytes, elsewhere: set[int]) -> bool:
    """Whether a text may have a match among those whose sequences occur elsewhere: a quick "no" for nearly every one.

    A match shares four fifths of the text's sequences, so of more than a fifth of them at least one is found elsewhere.
    """
    fifth = spelled.count(b" ") // 5  # of as many sequences as there are, or more
    words = spelled.split(None, fifth + GRAM)[: fifth + GRAM]
    first = _grams(words)
    return not elsewhere.isdisjoint(first) or (len(first) <= fifth and bool(first))


def _prefix(grams: frozenset[int], shared: set[int], frequency: Counter[int]) -> list[int]:
    rarest_first = sorted(grams & shared, key=lambda gram: (frequency[gram], gram))
    least_common = -(-4 * len(grams) // 5)
    return rarest_first[: len(rarest_first) - least_common + 1]
