"""Mentions of a diagnosis in a text: its name, another name, its words, its acronym, or a misspelling.

Strong rules decide alone; suspect rules only nominate. Every mention has a position in the text. A passage that another
option explains better is not a mention: a distractor named in the history reveals nothing about the right diagnosis.
"""

import html
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Literal, NamedTuple
from urllib.parse import unquote

from rapidfuzz import fuzz

from medthink.curate.names import (
    ANATOMY,
    GENERIC,
    QUALIFIERS,
    WORD,
    acronyms_of,
    core_words,
    eponyms_of,
    head_of,
    is_abbreviation,
    is_specific,
    name_key,
    name_words,
    normalise_word,
    other_names,
    without_qualifiers,
)

MentionClass = Literal["L3", "L2", "L1", "negated", "suspect"]
_FUZZY, _SHORTEST_FUZZY = 90, 8
_SPARE_WORDS = 3
_RARE_SHARE, _RARE_LETTERS = 0.02, 6
_PREFIX = 7
_CUE_CHARS = 50

_HEDGE = re.compile(
    r"\b(?:suspect(?:ed|ing)?|suspicio(?:n|us)|possib(?:le|ly)|probab(?:le|ly)|presum(?:ed|ptive)|quer(?:y|ied)|likely|"
    r"rule out|r/o|to exclude|concern(?:ing)? for|known(?: case of)?|history of|diagnosed|consistent with|questionable|"
    r"differential|provisional|working diagnosis|suggest(?:ive|ing|ed)?)\b[^.]*$|\?\s*$",
    re.I,
)
_NEGATED_BEFORE = re.compile(
    r"\b(?:no|not|without|denie[sd]|denying|negative for|absence of|excluded|ruled out|never had|free of|lack of)\b"
    r"[^.;,]*$",
    re.I,
)
_NEGATED_AFTER = re.compile(
    r"^[^.;,]{0,20}\b(?:was|were|is|been|being)?\s*(?:excluded|ruled out|unlikely|absent)\b", re.I
)
_SENTENCE_END = re.compile(r"[.!?;]\s|\n")


class TextMention(NamedTuple):
    """A passage that mentions the diagnosis, with the rule that found it, and its class."""

    start: int
    end: int
    rule: str
    level: MentionClass


_ENTITY = re.compile(r"&(?:amp;)*(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_PERCENT = re.compile(r"(?:%(?:25)*[0-9A-Fa-f]{2})+")
_REVERSED = re.compile("\u202e([^\u202c\u202e\n]*)\u202c?")
_ENCODED = re.compile(f"{_REVERSED.pattern}|{_ENTITY.pattern}|{_PERCENT.pattern}|[^\x00-\x7f]", re.DOTALL)


class DecodedText(NamedTuple):
    """A text as a person reads it, and the place in the original of each of its characters.

    Entities and the signs of links are decoded, text that is turned around by a control sign is turned back, signs
    without width are left out, and other forms of a letter are that letter.
    """

    text: str
    places: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, text: str) -> "DecodedText":
        """The text, read."""
        signs: list[str] = []
        places: list[tuple[int, int]] = []
        at = 0
        for match in _ENCODED.finditer(text):
            start, end = match.span()
            shown = _shown(match[0])
            signs += [*text[at:start], *shown]
            places += [*((one, one + 1) for one in range(at, start)), *((start, end) for _ in shown)]
            at = end
        signs += text[at:]
        places += [(one, one + 1) for one in range(at, len(text))]
        return cls("".join(signs), tuple(places))

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The place in the original of a passage."""
        return self.places[start][0], self.places[end - 1][1]


def _shown(sign: str) -> str:
    """What a person sees in its place."""
    if turned := _REVERSED.fullmatch(sign):
        return DecodedText.of(turned[1]).text[::-1]
    decode = html.unescape if sign.startswith("&") else _unquoted if sign.startswith("%") else str
    before = ""
    # What was encoded twice is read as well.
    while before != sign:
        before, sign = sign, decode(sign)
    plain = unicodedata.normalize("NFKC", sign).translate(_LOOK_ALIKES)
    return "".join(one for one in plain if unicodedata.category(one) not in ("Cf", "Mn") and one != _TATWEEL)


def _unquoted(sign: str) -> str:
    try:
        return unquote(sign, errors="strict")
    except UnicodeDecodeError:
        return sign


# Cyrillic and Greek letters, by number, that look like Latin ones; a name written with them is read as that name.
_CYRILLIC = "0410 0412 0415 0405 0406 0408 041A 041C 041D 041E 0420 0421 0422 0423 0425 0430 0435 0455 0456 0458 043E"
_GREEK = "0391 0392 0395 0396 0397 0399 039A 039C 039D 039F 03A1 03A4 03A5 03A7 03BF"
_LOOK_ALIKES = dict(
    zip(
        (int(number, 16) for number in f"{_CYRILLIC} 0441 0440 0443 0445 0501 04BB {_GREEK}".split()),
        "ABESIJKMHOPCTYXaesijocpyxdhABEZHIKMNOPTYXo",
        strict=True,
    )
)
# A line that only stretches an Arabic word.
_TATWEEL = "\u0640"


class SpelledText:
    """A text's folded words with their positions, and the same joined without gaps."""

    def __init__(self, text: str) -> None:
        self.text = text
        read = DecodedText.of(text)
        matches = list(WORD.finditer(read.text))
        self.raw = [match[0] for match in matches]
        self.words = [normalise_word(word) for word in self.raw]
        self.places = [read.span(*match.span()) for match in matches]
        self.joined = "".join(self.words)
        self._starts: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        # Where each word begins in `joined`, and where the last one ends.
        self.offsets = [0, *accumulate(map(len, self.words))]
        for number, (start, end) in enumerate(pairwise(self.offsets)):
            self._starts.setdefault(start, number)
            self._ends[end] = number

    def find(self, key: str) -> Iterator[tuple[int, int]]:
        """The words that spell the key (start, end), however they are split and hyphenated."""
        at = self.joined.find(key) if key else -1
        while at >= 0:
            first, last = self._starts.get(at), self._ends.get(at + len(key))
            if first is not None and last is not None:
                yield first, last + 1
            at = self.joined.find(key, at + 1)

    def span(self, first: int, behind: int) -> tuple[int, int]:
        """The span of these words in the text."""
        return self.places[first][0], self.places[behind - 1][1]

    def sentences(self) -> Iterator[tuple[int, int]]:
        """The words of each sentence (start, end)."""
        first = 0
        for number in range(len(self.words)):
            gap_end = self.places[number + 1][0] if number + 1 < len(self.words) else len(self.text)
            if number + 1 == len(self.words) or _SENTENCE_END.search(self.text[self.places[number][1] : gap_end]):
                yield first, number + 1
                first = number + 1


class TargetName(NamedTuple):
    """A diagnosis to look for: its names by rule, its acronyms, its words, and options that match better."""

    names: tuple[tuple[str, str], ...]
    capitals: frozenset[str]
    core: tuple[str, ...]
    telling: frozenset[str]
    others: tuple[str, ...]

    @classmethod
    def of(cls, gold: str, *, aliases: Iterable[str] = (), others: Sequence[str] = ()) -> "TargetName":
        """Everything the rules derive from the name, except what another option shares."""
        keys = tuple(
            dict.fromkeys(key for other in others for key in (name_key(other), name_key(head_of(other))) if key)
        )
        plain = [name for name in aliases if not is_abbreviation(name)]
        derived = [
            *(("alias", name) for name in (*plain, *other_names(gold))),
            ("head", head_of(gold)),
            ("qualifier dropped", without_qualifiers(gold)),
            *(("eponym", person) for name in (gold, *plain) for person in eponyms_of(name)),
        ]
        names = {name_key(gold): "name"}
        for rule, name in derived:
            key = name_key(name)
            if (is_specific(name) or rule == "eponym") and len(key) >= 5 and not any(key in other for other in keys):
                names.setdefault(key, rule)
        capitals = {one.split()[0] for one in aliases if is_abbreviation(one)} | acronyms_of(gold)
        taken = {one for other in others for one in acronyms_of(other)}
        core = tuple(core_words(gold))
        theirs = [set(core_words(other)) for other in others]
        usable = len(core) >= 2 and is_specific(" ".join(core)) and not any(set(core) <= other for other in theirs)
        return cls(
            tuple((key, rule) for key, rule in names.items() if key),
            frozenset(one for one in capitals - taken if len(one) >= 3),
            core if usable else (),
            _telling_words(gold) - {word for other in others for word in name_words(other)},
            keys,
        )


def strong_mentions(text: SpelledText, target: TargetName) -> list[TextMention]:
    """Every passage found by a strong rule, with the most reliable rule for each."""
    explained = [text.span(*words) for key in target.others for words in text.find(key)]
    found: dict[tuple[int, int], TextMention] = {}
    for rule, first, behind in _finds(text, target):
        start, end = text.span(first, behind)
        is_others = rule != "name" and any(a <= start and end <= b and (a, b) != (start, end) for a, b in explained)
        overlaps = any(start < b and a < end for a, b in found)
        if not is_others and not overlaps:
            level = _class_of(text.text, start, end, "L3" if rule == "name" else "L2")
            found[start, end] = TextMention(start, end, rule, level)
    return sorted(found.values())


def _finds(text: SpelledText, target: TargetName) -> Iterator[tuple[str, int, int]]:
    """The matches of each strong rule, the most reliable rules first."""
    for key, rule in target.names:
        yield from ((rule, *words) for words in text.find(key))
    for number, word in enumerate(text.raw):
        if word in target.capitals or (word.endswith("s") and word[:-1] in target.capitals):
            yield "capitals", number, number + 1
    yield from (("word order", *words) for words in _core_in_sentence(text, target.core))
    yield from (("misspelt", *words) for words in _misspelt(text, target))


def _core_in_sentence(text: SpelledText, core: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """All core words close together in one sentence, in any order."""
    wanted = set(core)
    if not wanted or not wanted <= set(text.words):
        return
    for first, behind in text.sentences():
        places = [at for at in range(first, behind) if text.words[at] in wanted]
        for begin in places:
            window = [at for at in places if begin <= at < begin + len(core) + _SPARE_WORDS]
            if {text.words[at] for at in window} == wanted:
                yield begin, window[-1] + 1
                break


def _misspelt(text: SpelledText, target: TargetName) -> Iterator[tuple[int, int]]:
    """Words that spell a name except for a letter or two, and match no other option better."""
    for key, rule in target.names:
        if rule not in ("name", "alias", "head", "qualifier dropped") or len(key) < _SHORTEST_FUZZY:
            continue
        for first, behind, joined in _windows(text, len(key)):
            score = fuzz.ratio(joined, key, score_cutoff=_FUZZY)
            if score and not any(fuzz.ratio(joined, other, score_cutoff=score) for other in target.others):
                yield first, behind


def _windows(text: SpelledText, length: int) -> Iterator[tuple[int, int, str]]:
    """Consecutive words with about this many letters in total."""
    slack = max(1, length // 8)
    for first, start in enumerate(text.offsets[:-1]):
        behind = bisect_left(text.offsets, start + length - slack, first + 1)
        while behind < len(text.offsets) and text.offsets[behind] <= start + length + slack:
            yield first, behind, text.joined[start : text.offsets[behind]]
            behind += 1


def _class_of(text: str, start: int, end: int, plain: MentionClass) -> MentionClass:
    """The class of a mention: negated, hedged, or that of the rule."""
    before, after = text[max(0, start - _CUE_CHARS) : start], text[end : end + _CUE_CHARS]
    if _NEGATED_BEFORE.search(before) and not re.search(r"\bnot only\b", before, re.I):
        return "negated"
    if _NEGATED_AFTER.search(after):
        return "negated"
    return "L1" if _HEDGE.search(before) or after.lstrip().startswith("?") else plain


class WordFrequency:
    """The number of texts in which each word occurs."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._texts = 0

    def add(self, text: SpelledText) -> None:
        """Count one text."""
        self._texts += 1
        for word in set(text.words):
            if len(word) >= _RARE_LETTERS:
                self._counts[word] = self._counts.get(word, 0) + 1

    def is_rare(self, word: str) -> bool:
        """Whether few enough texts contain the word for it to be informative."""
        return self._counts.get(word, 0) <= max(1, _RARE_SHARE * self._texts)


def suspect_mentions(text: SpelledText, target: TargetName, frequency: WordFrequency) -> list[TextMention]:
    """Rare words that also occur in the diagnosis, or start like one of its words in another language."""
    prefixes = {cognate_form(word)[:_PREFIX] for word in target.telling if len(cognate_form(word)) >= _PREFIX}
    found = []
    for number, word in enumerate(text.words):
        if len(word) < _RARE_LETTERS or not frequency.is_rare(word):
            continue
        rule = "rare word" if word in target.telling else "cognate" if cognate_form(word)[:_PREFIX] in prefixes else ""
        if rule:
            found.append(TextMention(*text.places[number], rule, "suspect"))
    return found


_SAY_LITTLE = GENERIC | QUALIFIERS | ANATOMY


def _telling_words(gold: str) -> frozenset[str]:
    return frozenset(word for word in name_words(gold) if len(word) >= _RARE_LETTERS and word not in _SAY_LITTLE)


_COGNATES = (
    ("ae", "e"), ("oe", "e"), ("ue", "u"), ("rrh", "r"), ("ph", "f"), ("th", "t"), ("ch", "c"), ("rh", "r"),
    ("qu", "c"), ("k", "c"), ("z", "c"), ("y", "i"), ("x", "cs"), ("w", "v"), ("j", "i"),
)  # fmt: skip
_DOUBLE = re.compile(r"(.)\1")


@lru_cache(maxsize=1 << 16)
def cognate_form(word: str) -> str:
    """A word reduced to the spelling it shares with German, French and Spanish."""
    for old, new in _COGNATES:
        word = word.replace(old, new)
    return _DOUBLE.sub(r"\1", word)


def options_of(names: Mapping[str, str] | Sequence[str], gold: str) -> list[str]:
    """The other options of a case."""
    values = names.values() if isinstance(names, Mapping) else names
    return [name for name in values if name_key(name) != name_key(gold)]
