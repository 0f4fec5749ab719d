"""The options as replies name them: in full, reordered, abridged, with the kind behind the name."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator
from difflib import SequenceMatcher
from functools import lru_cache

import msgspec

from medthink.workflow.parsing.phrases import DENIED, IS_IT
from medthink.workflow.parsing.plain import flatten, make_plain

_SMALL_WORDS = frozenset(("of", "the", "with", "in", "type", "form", "kind", "variety", "variant"))
_WORD = re.compile(r"[^\W_]+")
_IN_BRACKETS = re.compile(r"\s?\([^()]*\)")
# All that names one thing: up to where a sentence or its grounds begin.
_NAME = re.compile(r"(?:[^.;:!?()\n\]\"]|(?<=\b[a-z])\.|(?<!\A)\([^()\n]{1,80}\)){1,200}")
# Behind an option's text: what says which kind of it.
_CLAUSE = re.compile(r"[.;:!?\n]")
_SPECIFIER = re.compile(r",\s?(?!and|or|not|no)|\s?-\s|\s?\((?!no|not)|\s(?:of|with)\s")
_LIST_MARK = re.compile(r"[,;/]|(?<![a-z])(?:or|and|vs|oder|und|ou|et|o|y|e)(?![a-z])")
_ASIDE = re.compile(r"\s?\((?!not|no|rather|unlike)([^()\n]{1,80})\)")
_SHORTEST_NAME = 5
_JOINED = re.compile(r"\b(?:with|and|of|in|from|due|after|or)\b")
_MODIFIERS = re.compile(
    r"(?:(?:active|chronic|acute|subacute|advanced|typical|classical?|extensive|complicated|reactivation"
    r"|post-?primary|left|right"
    r"|bilateral|large|small"
    r"|stage [ivx\d]{1,3})\s){1,3}"
)
_ALIKE = 0.7
_LONG_STRETCH = 8
_BRACKETED_NAME = re.compile(r"\(([^()]{5,})\)")
_SOUNDS = str.maketrans("kzy", "cci", "\u0300\u0301\u0302\u0303\u0308")
_FURTHER_TEXT = re.compile(
    r"[\s,;/()]{0,4}(?:[,;/>]|(?<![a-z])(?:or|and|vs\.?|versus|oder|und|ou|et|o|y|e|或|和))\s{0,2}"
)
SPACED_END = re.compile(r"\s{1,3}(?:[(\[/&+>|=。，✓-]|$)|\s*\n")
# German verbs and their parts that close a sentence.
_VERB = re.compile(r"\s(?:vor|wählen|nehmen|sagen)(?![a-zà-ÿ])")
REASON = re.compile(
    r"\s{1,2}(?:because|since|due|given|based|as|for|weil|da|denn|aufgrund|car|parce|porque|ya|debido|perché"
    r"|poiché|pois|omdat)"
    r"(?![a-zà-ÿ])",
    re.IGNORECASE,
)


class Options(msgspec.Struct, frozen=True):
    """The options in the shape that replies are compared in."""

    letters: frozenset[str]
    texts: tuple[tuple[str, str], ...]
    names: tuple[tuple[str, str], ...]
    longest: int

    @classmethod
    def of(cls, options: dict[str, str]) -> "Options":
        """The options, flattened like the replies."""
        texts = [(letter, flatten(make_plain(text)).rstrip(" .")) for letter, text in options.items()]
        texts = [(letter, text) for letter, text in texts if text]
        names = [(letter, short) for letter, text in texts for short in _shortened(text, options)]
        return cls(
            frozenset(options),
            tuple(texts),
            (*texts, *names, *_last_words(texts)),
            max(len(text) for text in options.values()),
        )

    def window(self, plain: str, place: int) -> str:
        """The part of the text from `place` that a claim can cover."""
        return plain[place : place + self.longest + 120]

    def spelled(self, text: str) -> frozenset[str]:
        """The options whose text is this one, in whatever order of words ("Meningioma, atypical")."""
        flat = flatten(text).strip(" .\"'()")
        named = frozenset(letter for letter, known in self.names if known.strip(" .\"'()") == flat)
        named = named or frozenset(letter for letter, known in self.texts if _words(known) == _words(flat))
        named = named or self._by_genus(flat)
        return named or frozenset(
            letter
            for letter, known in self.texts
            if flat and flat in (_IN_BRACKETS.sub("", known), *_BRACKETED_NAME.findall(known))
        )

    def named_by(self, text: str) -> frozenset[str]:
        """The options whose text is at the start, and ends there: the longest, or all that read the same."""
        flat = flatten(text.lstrip().partition("\n")[0])
        flat = flat[self._end_of_modifiers(flat) :]
        fitting = [
            (letter, known) for letter, known in self.names if flat.startswith(known) and _ends_text(flat[len(known) :])
        ]
        longest = max((len(known) for _, known in fitting), default=0)
        whole = _NAME.match(flat)
        is_more = whole and len(whole[0].strip()) > longest and not flat.startswith("?", whole.end())
        if whole and is_more and not DENIED.match(flat, whole.end()) and (reordered := self.spelled(whole[0])):
            return reordered
        if not longest or DENIED.match(flat, longest):
            return frozenset()
        further = _FURTHER_TEXT.match(flat, longest)
        more = self._listed(flat[further.end() :]) if further else self._in_brackets(flat[longest:])
        named = more.union(letter for letter, known in fitting if len(known) == longest)
        return named | self._of_the_kind(flat[:longest], flat[longest:])

    def end_of_text(self, text: str) -> int:
        """Where the option's text ends that the text begins with; 0 if there is none."""
        flat = flatten(text)
        return max((len(known) for _, known in self.texts if flat.startswith(known)), default=0)

    def is_denied(self, text: str) -> bool:
        """Whether the text begins with an option's and goes on to deny it."""
        end = self.end_of_text(text)
        return bool(end and DENIED.match(flatten(text), end))

    def begins(self, text: str) -> bool:
        """Whether the text begins with an option's and goes on with further words."""
        flat = flatten(text)
        return any(re.match(rf"{re.escape(known)} \w", flat) for _, known in self.texts)

    def _by_genus(self, flat: str) -> frozenset[str]:
        """The option whose genus is written out: "Clostridioides difficile colitis" for "C. difficile colitis"."""
        genus, _, rest = flat.partition(" ")
        return frozenset(letter for letter, known in self.texts if len(genus) > 1 and known == f"{genus[0]}.{rest}")

    def _end_of_modifiers(self, flat: str) -> int:
        """Where words end that say how the disease presents, unless an option begins with one."""
        match = _MODIFIERS.match(flat)
        begins = match and any(known.startswith(match[0].split()[0]) for _, known in self.texts)
        return match.end() if match and not begins else 0

    def resembles(self, words: str, letter: str) -> bool:
        """Whether the words may be the option's text, abridged or in another language."""
        theirs = [word for word in _WORD.findall(_sound(words)) if word.isascii() and len(word) > 3][-6:]
        ours = [word for one, text in self.texts if one == letter for word in _WORD.findall(_sound(text))]
        # Words in another script cannot be compared.
        return not theirs or any(_is_alike(own, their) for own in ours for their in theirs if len(own) > 3)

    def _listed(self, tail: str) -> frozenset[str]:
        """The options named further on in a list: "sarcoidosis, tuberculosis or lymphoma"."""
        parts = _LIST_MARK.split(_clause(tail))
        return self.named_by(tail).union(*(self.spelled(part) for part in parts[:8]))

    def _in_brackets(self, tail: str) -> frozenset[str]:
        """The options named in brackets right behind another: "lymphoma (DD sarcoidosis)"."""
        match = _ASIDE.match(tail)
        return frozenset(letter for letter, known in self.texts if match and known in match[1])

    def _of_the_kind(self, known: str, tail: str) -> frozenset[str]:
        """The options that are a kind of the one named, if the words behind it may mean that kind."""
        if not _SPECIFIER.match(tail):
            return frozenset()
        base, said = _words(known), _words(_clause(tail))
        return frozenset(letter for letter, text in self.texts if base < _words(text) and (_words(text) - base) & said)


def _last_words(texts: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The last words of texts that say enough and stand in no other: "tuberculosis" for "Pulmonary tuberculosis"."""
    for letter, text in texts:
        for place in [] if _JOINED.search(text) else [match.end() for match in re.finditer(" ", text)]:
            name = text[place:]
            if len(name) >= _SHORTEST_NAME and sum(name in other for _, other in texts) == 1:
                yield letter, name


def _shortened(text: str, letters: Collection[str]) -> Iterator[str]:
    """The text with three or more of its words as an abbreviation ("PCL avulsion"), if that is no list of letters."""
    words = text.split()
    for start in range(len(words) - 2):
        for end in range(start + 3, len(words) + 1):
            run = words[start:end]
            short = "".join(word[0] for word in run)
            if all(word.isalpha() and len(word) > 2 for word in run) and not set(short.upper()) <= set(letters):
                yield " ".join([*words[:start], short, *words[end:]])


def _ends_text(tail: str) -> bool:
    """Whether an option's text followed by this is all of what was named, not the start of something longer."""
    is_end = not tail or bool(_VERB.match(tail)) or tail[0] in "().,;:!]}\"'\\$|。、"
    return is_end or any(words.match(tail) for words in (SPACED_END, REASON, IS_IT))


def _is_alike(own: str, their: str) -> bool:
    """Whether two words are nearly the same, or share a long stretch as parts of a compound do."""
    match = SequenceMatcher(None, own, their)
    return match.ratio() >= _ALIKE or match.find_longest_match().size >= _LONG_STRETCH


@lru_cache(maxsize=1024)
def _words(text: str) -> Counter[str]:
    return Counter(word for word in _WORD.findall(text) if word not in _SMALL_WORDS)


def _clause(text: str) -> str:
    return _CLAUSE.split(text[:100], maxsplit=1)[0]


def _sound(text: str) -> str:
    """The text spelled alike in the languages of Europe: "Sarkoidose" and "sarcoidose"."""
    plain = unicodedata.normalize("NFKD", text.lower()).replace("ph", "f")
    return plain.translate(_SOUNDS)
