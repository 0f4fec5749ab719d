"""Harmless edits: the same content in other words, or in more words. A judge that penalises them judges wording."""

import re
from collections.abc import Iterator

from medthink.judge.edits.measures import write_unit_otherwise
from medthink.metrics.findings.lexicon import word_set
from medthink.workflow.sentences import split_sentences

_SYNONYMS = (
    ("revealed", "showed"), ("demonstrated", "showed"), ("disclosed", "showed"), ("showed", "revealed"),
    ("reveals", "shows"), ("demonstrates", "shows"), ("depicts", "shows"), ("shows", "reveals"),
    ("were noted", "were seen"), ("was noted", "was seen"), ("is noted", "is seen"), ("are noted", "are seen"),
    ("were seen", "were noted"), ("was seen", "was noted"), ("is seen", "is noted"), ("are seen", "are noted"),
    ("no evidence of", "no sign of"), ("no sign of", "no evidence of"), ("identified", "seen"), ("observed", "seen"),
)  # fmt: skip
_THERE = re.compile(r"^There (?P<be>is|was|are|were) (?P<what>[^,;:]+?) (?P<where>(?:in|at|on|within|along|near) .+)$")
_SEEN_IN = re.compile(
    r"^(?P<what>[^,;:]+?) (?P<be>is|was|are|were) (?P<seen>seen|noted) (?P<where>(?:in|at|on|within) [^,;:.]+)"
)
_FRONT = re.compile(r"^(?P<where>(?:In|At|On|Within) [^,;:]{3,40}), (?P<rest>[^,;:]+?)(?P<end>\.?)$")
_COMMON = word_set(
    "the a an there it this these those no both multiple several some in on at within no its their mild marked"
)
# What can be said of any finding, before or after it.
_CLAUSES = (
    ", which is worth noting at this point", ", as is to be noted here", ", to be read with the history in mind",
    ", as stated in the report", ", which deserves to be mentioned", ", on review of the whole study",
)  # fmt: skip
_LEADS = ("On review, ", "Of note, ", "As the report says, ", "To begin with, ", "In addition, ", "Overall, ")


def reword(sentence: str, turn: int = 0) -> str | None:
    """The sentence by one of the rules that fit, which take turns; None if none fits."""
    versions = list(dict.fromkeys(_rewordings(sentence)))
    return versions[turn % len(versions)] if versions else None


def _rewordings(sentence: str) -> Iterator[str]:
    """The sentence with a synonym, in another order, or with its size in the other unit."""
    for old, new in _SYNONYMS:
        if re.search(rf"\b{old}\b", sentence):
            yield re.sub(rf"\b{old}\b", new, sentence, count=1)
    if there := _THERE.match(sentence):
        yield f"{_capital(there['what'])} {there['be']} seen {there['where']}"
    if (found := _SEEN_IN.match(sentence)) and (what := _small(found["what"])):
        yield f"{_capital(found['where'])}, {what} {found['be']} {found['seen']}{sentence[found.end() :]}"
    if found := _FRONT.match(sentence):
        yield f"{_capital(found['rest'])} {_small(found['where'])}{found['end']}"
    if in_other_unit := write_unit_otherwise(sentence):
        yield in_other_unit


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _small(words: str) -> str | None:
    """The words as they stand inside a sentence; None where the first may be a name."""
    first = words.split(maxsplit=1)[0]
    return words[:1].lower() + words[1:] if first.lower() in _COMMON else None


def lengthen_sentence(sentence: str, turn: int = 0) -> str:
    """The sentence with an empty phrase before or after it; these take turns."""
    words, inside = sentence.rstrip(" .!;"), _small(sentence)
    if turn % 2 and inside:
        return f"{_LEADS[turn // 2 % len(_LEADS)]}{inside}"
    return f"{words}{_CLAUSES[turn // 2 % len(_CLAUSES)]}{sentence[len(words) :].strip() or '.'}"


def merge_sentences(one: str, other: str) -> str | None:
    """Two sentences as one; None if the second may begin with a name."""
    inside = _small(other)
    return f"{one.rstrip(' .!;')}, and {inside}" if inside else None


def reword_text(text: str) -> str:
    """A text with every sentence reworded where possible."""
    found = list(text)
    for start, end in reversed(split_sentences(text)):
        found[start:end] = reword(text[start:end]) or text[start:end]
    return "".join(found)
