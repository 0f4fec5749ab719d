"""From text to clauses: words, measurements and the lexicon's mentions, cut where one statement ends."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from medthink.metrics.findings.lexicon import Lexicon, Term, fold_word, word_set
from medthink.metrics.findings.meant import is_meant
from medthink.metrics.findings.mention import VERBS, Clause, Mention
from medthink.metrics.findings.patterns import PATTERN_WORDS, named_finding, pattern_finding
from medthink.metrics.spelling import american_word, plain_letters

_NUMBER = r"\d+(?:[.,]\d+)?"
_UNIT = r"(?:mm|cm|(?:milli|centi)met(?:er|re)s?)"
_SIZE = rf"{_NUMBER}(?:\s*{_UNIT})?(?:\s*(?:x|×|by|to|-|–)\s*{_NUMBER}(?:\s*{_UNIT})?)*\s*{_UNIT}\b"
_WORDS = r"[a-z]+|\d+(?:[.,]\d+)?|[,;:()/?]"
_TOKEN = re.compile(_WORDS)
_TOKEN_OR_SIZE = re.compile(f"({_SIZE})|({_WORDS})")
_DIGIT = re.compile(r"\d")
_EACH_NUMBER = re.compile(_NUMBER)
# A full stop ends a sentence unless it belongs to a number or an abbreviation.
_SENTENCE_END = re.compile(
    r"[.!](?=[\"'”’)\]]?(?:\s|$))"
    r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bapprox\.)(?<!\bfig\.)(?<!\bvs\.)(?<!\bdr\.)|\n|\?(?<=\w\?)(?=\s|$)"
)
# What a bracket says of the pictures and not of the patient: "(Fig. 2, arrow)", "(images not shown)".
_POINTER = re.compile(
    r"[(\[]\s*(?:[a-z]+\s+){0,2}(?:figs?\b|figures?\b|arrow\w*|asterisks?\b|circles?\b|panels?\b|series \d"
    r"|images? (?:\d|[a-z]\b|not\b)|not shown|not pictured)[^()\[\]]{0,60}[)\]]"
)
_NOT_A_SIZE = word_set(
    "from above below slice slices section sections collimation thick distal proximal away intervals deep"
)
# Adverbs that come between the words of a cue and change nothing.
_PASSED_OVER = word_set("definitively definitely entirely fully reliably confidently certainly totally safely clearly")
_TELLING = PATTERN_WORDS | word_set("absent absence not")


def read_clauses(text: str, lexicon: Lexicon) -> Iterator[Clause]:
    """Every clause of a text that may state something."""
    for sentence in _SENTENCE_END.split(_POINTER.sub(" ", plain_letters(text))):
        words, sizes = _read_words(sentence)
        folded = list(map(fold_word, words))
        if not _may_state(words, folded, lexicon):
            continue
        mentions = _find_mentions(words, folded, sizes, lexicon)
        bounds = [0, *_cuts(words, mentions), len(words)]
        for start, end in pairwise(bounds):
            clause = _clause(words, mentions, start, end)
            if clause.of_kind("finding", "normal") or clause.cues("negates_previous", "negates_either", "negates_next"):
                yield clause


def _may_state(words: Sequence[str], folded: Sequence[str], lexicon: Lexicon) -> bool:
    """Whether any word of a sentence begins a finding, or could be part of one."""
    if not lexicon.finding_starts.isdisjoint(folded) or not _TELLING.isdisjoint(words):
        return True
    return any(map(named_finding, words))


def _read_words(sentence: str) -> tuple[list[str], dict[int, float]]:
    """The words in American spelling, with `#` for each measurement, and the measurements by place."""
    sizes: dict[int, float] = {}
    if not _DIGIT.search(sentence):
        found = [word for word in _TOKEN.findall(sentence) if word not in _PASSED_OVER]
    else:
        found = []
        for size, word in _TOKEN_OR_SIZE.findall(sentence):
            if size:
                sizes[len(found)] = _to_mm(size)
            if word not in _PASSED_OVER:
                found.append("#" if size else word)
    return list(map(american_word, found)), sizes


def _to_mm(measurement: str) -> float:
    """The largest dimension, in millimetres; the last unit counts for all."""
    factor = 10.0 if re.search(r"c(?:m|enti[a-z]+)$", measurement) else 1.0
    return max(float(number.replace(",", ".")) for number in _EACH_NUMBER.findall(measurement)) * factor


def _find_mentions(
    words: Sequence[str], folded: Sequence[str], sizes: Mapping[int, float], lexicon: Lexicon
) -> list[Mention]:
    mentions: list[Mention] = []
    exact, stemmed = lexicon.exact.lengths, lexicon.stemmed.lengths
    # Only some words can begin a mention; the rest are skipped.
    starts = [
        place
        for place, (word, fold) in enumerate(zip(words, folded, strict=True))
        if fold in stemmed or word in exact or place in sizes or named_finding(word)
    ]
    if not PATTERN_WORDS.isdisjoint(words):
        starts = list(range(len(words)))
    free_from = 0
    for place in starts:
        if place < free_from:
            continue
        mention = _read_size(words, place, sizes[place]) if place in sizes else _longest(words, folded, place, lexicon)
        if mention:
            mentions.append(mention)
            free_from = mention.end
    return [mention for mention in mentions if is_meant(words, mention, mentions)]


def _read_size(words: Sequence[str], place: int, size_mm: float) -> Mention | None:
    following = words[place + 1] if place + 1 < len(words) else ""
    return None if following in _NOT_A_SIZE else Mention("size", "", place, place + 1, size_mm)


def _longest(words: Sequence[str], folded: Sequence[str], place: int, lexicon: Lexicon) -> Mention | None:
    """The longest phrase that starts here; among equals, cues and sides before findings and sites."""
    exact = lexicon.exact.longest(words, place)
    stemmed = lexicon.stemmed.longest(folded, place)
    entry = exact or stemmed
    pattern = pattern_finding(words, place)
    if pattern and _outdoes(pattern, place, stemmed) and not _holds_a_known_sign(pattern, folded, place, lexicon):
        return Mention("finding", pattern[0], place, pattern[1])
    if exact and stemmed and len(stemmed.words) > len(exact.words):
        entry = stemmed
    if entry:
        return Mention(entry.kind, entry.name, place, place + len(entry.words))
    name = named_finding(words[place])
    return Mention("finding", name, place, place + 1) if name else None


def _outdoes(pattern: tuple[str, int], place: int, entry: Term | None) -> bool:
    """Whether a pattern says more than the lexicon's phrase: it is longer, or both are one word."""
    length = len(entry.words) if entry else 0
    return pattern[1] - place > length or pattern[1] - place == length == 1


def _holds_a_known_sign(pattern: tuple[str, int], folded: Sequence[str], place: int, lexicon: Lexicon) -> bool:
    """Whether the lexicon knows the sign that a longer name ends in: "a clockwise whirl sign" is the whirl sign."""
    name, end = pattern
    known = lexicon.stemmed.longest(folded, end - 2)
    return name.endswith("_sign") and end - place > 2 and known is not None and len(known.words) > 1


def _cuts(words: Sequence[str], mentions: Sequence[Mention]) -> list[int]:
    """Where a sentence falls into clauses: at ending cues, at `;`, and between two verbs, but never in a mention."""
    ends = {mention.start for mention in mentions if mention.kind == "cue" and mention.name == "ends"}
    inside = {place for m in mentions for place in range(m.start, m.end)}
    cuts: list[int] = []
    start = 0
    for place, word in enumerate(words):
        joins = word in (",", "and") and place not in inside and _joins_two_sentences(words, start, place)
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
    if start == 0 and end == len(words):
        return Clause(tuple(words), tuple(mentions))
    inside = (
        Mention(m.kind, m.name, m.start - start, m.end - start, m.size_mm)
        for m in mentions
        if m.start >= start and m.end <= end
    )
    return Clause(tuple(words[start:end]), tuple(inside))
