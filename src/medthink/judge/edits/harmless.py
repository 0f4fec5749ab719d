"""Harmless edits: the same content in other words, or in more words. A judge that penalises them judges wording."""

import re

from medthink.judge.edits.measures import write_unit_otherwise
from medthink.workflow.sentences import split_sentences

_SYNONYMS = (
    ("revealed", "showed"), ("demonstrated", "showed"), ("disclosed", "showed"), ("showed", "revealed"),
    ("reveals", "shows"), ("demonstrates", "shows"), ("depicts", "shows"), ("shows", "reveals"),
    ("were noted", "were seen"), ("was noted", "was seen"), ("is noted", "is seen"), ("are noted", "are seen"),
    ("were seen", "were noted"), ("was seen", "was noted"), ("is seen", "is noted"), ("are seen", "are noted"),
    ("no evidence of", "no sign of"), ("no sign of", "no evidence of"), ("identified", "seen"), ("observed", "seen"),
)  # fmt: skip
_THERE = re.compile(r"^There (?P<be>is|was|are|were) (?P<what>[^,;:]+?) (?P<where>(?:in|at|on|within|along|near) .+)$")
_CLAUSE = ", which is worth noting at this point"


def reword(sentence: str) -> str | None:
    """The sentence with a synonym, another word order, or its size in the other unit; None if nothing fits."""
    for old, new in _SYNONYMS:
        if re.search(rf"\b{old}\b", sentence):
            return re.sub(rf"\b{old}\b", new, sentence, count=1)
    if there := _THERE.match(sentence):
        what = there["what"]
        return f"{what[:1].upper()}{what[1:]} {there['be']} seen {there['where']}"
    return write_unit_otherwise(sentence)


def lengthen_sentence(sentence: str) -> str:
    """The sentence with an empty clause added."""
    words = sentence.rstrip(" .!;")
    return f"{words}{_CLAUSE}{sentence[len(words) :].strip() or '.'}"


def reword_text(text: str) -> str:
    """A text with every sentence reworded where possible."""
    found = list(text)
    for start, end in reversed(split_sentences(text)):
        found[start:end] = reword(text[start:end]) or text[start:end]
    return "".join(found)
