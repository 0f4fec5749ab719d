"""From text to clauses: words, measurements and the lexicon's mentions, cut where one statement ends."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from medthink.metrics.findings.lexicon import Entry, Lexicon, fold_word, word_set
from medthink.metrics.spelling import normalise_spelling

_NUMBER = r"\d+(?:[.,]\d+)?"
_UNIT = r"(?:mm|cm|millimeters?|centimeters?)"
_TOKEN = re.compile(
    rf"(?P<size>{_NUMBER}(?:\s*{_UNIT})?(?:\s*(?:x|×|by|to|-|–)\s*{_NUMBER}(?:\s*{_UNIT})?)*\s*{_UNIT}\b)"
    r"|(?P<word>[a-z]+|\d+(?:[.,]\d+)?)|(?P<mark>[,;:()/?])"
)
_EACH_NUMBER = re.compile(_NUMBER)
# A full stop ends a sentence unless it belongs to a number or an abbreviation.
_SENTENCE_END = re.compile(
    r"[.!](?=\s|$)(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bapprox\.)(?<!\bfig\.)(?<!\bvs\.)(?<!\bdr\.)|\n|\?(?<=\w\?)(?=\s|$)"
)
_NOT_A_SIZE = word_set(
    "from above below slice slices section sections collimation thick distal proximal away intervals deep"
)
# Adverbs that come between the words of a cue and change nothing.
_PASSED_OVER = word_set("definitively definitely entirely fully reliably confidently certainly totally safely clearly")
VERBS = word_set(
    "is are was were has have had shows show showed demonstrates demonstrate demonstrated reveals reveal revealed "
    "appears appear appeared there contains contain contained remains exhibits exhibited measures measured"
)

MarkKind = Literal["finding", "normal", "site", "side", "cue", "size"]


class Mention(msgspec.Struct, frozen=True):
    """Something the lexicon knows, or a measurement, at words `start` to `end` of its clause."""

    kind: MarkKind
    name: str
    start: int
    end: int
    size_mm: float | None = None


class Clause(msgspec.Struct, frozen=True):
    """The words of one clause and the mentions in it."""

    words: tuple[str, ...]
    mentions: tuple[Mention, ...]

    def of_kind(self, *kinds: MarkKind) -> list[Mention]:
        """The mentions of these kinds, in reading order."""
        return [mention for mention in self.mentions if mention.kind in kinds]

    def cues(self, *names: str) -> list[Mention]:
        """The cues of these names, in reading order."""
        return [mention for mention in self.mentions if mention.kind == "cue" and mention.name in names]


def read_clauses(text: str, lexicon: Lexicon) -> Iterator[Clause]:
    """Every clause of a text."""
    for sentence in _SENTENCE_END.split(normalise_spelling(text)):
        words, sizes = _read_words(sentence)
        mentions = _find_mentions(words, sizes, lexicon)
        if not any(mention.kind in ("finding", "normal") for mention in mentions):
            continue
        bounds = [0, *_cuts(words, mentions), len(words)]
        for start, end in pairwise(bounds):
            if start < end:
                yield _clause(words, mentions, start, end)


def _read_words(sentence: str) -> tuple[list[str], dict[int, float]]:
    words: list[str] = []
    sizes: dict[int, float] = {}
    for token in _TOKEN.finditer(sentence):
        if token["size"]:
            sizes[len(words)] = _to_mm(token["size"])
            words.append("#")
        elif token["word"] not in _PASSED_OVER:
            words.append(token["word"] or token["mark"])
    return words, sizes


def _to_mm(measurement: str) -> float:
    """The largest dimension, in millimetres; the last unit counts for all."""
    factor = 10.0 if re.search(r"c[a-z]*$", measurement) else 1.0
    return max(float(number.replace(",", ".")) for number in _EACH_NUMBER.findall(measurement)) * factor


def _find_mentions(words: Sequence[str], sizes: dict[int, float], lexicon: Lexicon) -> list[Mention]:
    folded = list(map(fold_word, words))
    mentions: list[Mention] = []
    # Only some words begin anything; the rest are passed over at once.
    starts = [
        place
        for place, word in enumerate(words)
        if word in lexicon.exact or folded[place] in lexicon.stemmed or place in sizes
    ]
    free_from = 0
    for place in starts:
        if place < free_from:
            continue
        mention = _read_size(words, place, sizes[place]) if place in sizes else _longest(words, folded, place, lexicon)
        if mention:
            mentions.append(mention)
            free_from = mention.end
    return [mention for mention in mentions if _is_meant(words, mention, mentions)]


def _is_meant(words: Sequence[str], mention: Mention, mentions: Sequence[Mention]) -> bool:
    """Whether a mention is what it looks like: "both" is a side in "both lungs", not in "both lesions"."""
    if words[mention.start] != "both" or mention.end - mention.start > 1:
        return True
    return any(other.kind == "site" and 0 <= other.start - mention.end <= 1 for other in mentions)


def _read_size(words: Sequence[str], place: int, size_mm: float) -> Mention | None:
    following = words[place + 1] if place + 1 < len(words) else ""
    return None if following in _NOT_A_SIZE else Mention("size", "", place, place + 1, size_mm)


def _longest(words: Sequence[str], folded: Sequence[str], place: int, lexicon: Lexicon) -> Mention | None:
    """The longest phrase that starts here; among equals, cues and sides before findings and sites."""
    exact = _first_fit(words, place, lexicon.exact.get(words[place], []))
    stemmed = _first_fit(folded, place, lexicon.stemmed.get(folded[place], []))
    entry = exact or stemmed
    if exact and stemmed and len(stemmed.words) > len(exact.words):
        entry = stemmed
    return Mention(entry.kind, entry.name, place, place + len(entry.words)) if entry else None


def _first_fit(words: Sequence[str], place: int, entries: Sequence[Entry]) -> Entry | None:
    for entry in entries:
        if tuple(words[place : place + len(entry.words)]) == entry.words:
            return entry
    return None


def _cuts(words: Sequence[str], mentions: Sequence[Mention]) -> list[int]:
    """Where a sentence falls into clauses: at ending cues, at `;`, and between two verbs."""
    ends = {mention.start for mention in mentions if mention.kind == "cue" and mention.name == "ends"}
    inside_cue = {place for m in mentions if m.kind == "cue" for place in range(m.start, m.end)}
    cuts: list[int] = []
    start = 0
    for place, word in enumerate(words):
        joins = word in (",", "and") and place not in inside_cue and _joins_two_sentences(words, start, place)
        if place and (place in ends or word == ";" or joins):
            cuts.append(place)
            start = place
    return cuts


def _joins_two_sentences(words: Sequence[str], start: int, place: int) -> bool:
    left = words[start:place]
    right: list[str] = []
    for word in words[place + 1 :]:
        if word in (",", ";") and right:
            break
        right.append(word)
    return not VERBS.isdisjoint(left) and not VERBS.isdisjoint(right)


def _clause(words: Sequence[str], mentions: Sequence[Mention], start: int, end: int) -> Clause:
    inside = (
        Mention(m.kind, m.name, m.start - start, m.end - start, m.size_mm)
        for m in mentions
        if m.start >= start and m.end <= end
    )
    return Clause(tuple(words[start:end]), tuple(inside))
