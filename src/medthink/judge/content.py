"""The content words of a text: the tokens that any rewording must keep, in order.

Articles, auxiliaries, connecting words and verbs that only frame a finding ("shows", "is seen") may change. Negations,
hedges, degrees, numbers, units, sides, levels, positions and every other word may not.
"""

import re
from typing import NamedTuple

from medthink.metrics.findings.lexicon import word_set

_TOKEN = re.compile(r"\d+(?:[.,]\d+)?|[^\W\d_]+(?:['’][^\W\d_]+)?|[<>≤≥=±%+]")
_ENTRY = re.compile(r"(?:^|[\r\n])[ \t]*(?:[-*•·–—>#]+|\(?\d{1,2}[.)]|\(?[a-zA-H]\)|(?i:step)\s+\d{1,2}\s*[:.)])(?=\s)")


_FRAME = word_set(
    "a an the is are was were be been being has have had do does did there it this that these those which"
    " and also then first firstly second secondly third next finally moreover furthermore additionally overall"
    " show shows showed shown showing reveal reveals revealed revealing see sees saw seen note notes noted"
    " demonstrate demonstrates demonstrated demonstrating identify identifies identified visualize visualized"
    " observe observes observed depict depicts depicted find finds found"
)
_NUMBERS = {
    "zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8",
    "nine": "9", "ten": "10", "eleven": "11", "twelve": "12",
}  # fmt: skip
_CLASSES: dict[str, frozenset[str]] = {
    "a negation": word_set(
        "no not without never none neither nor cannot absent absence lacks lack lacking denies denied negative"
    ),
    "a side": word_set("left right bilateral unilateral both ipsilateral contralateral midline"),
    "a hedge": word_set(
        "may might could would can possible possibly probable probably likely unlikely suspected suggest suggests"
        " suggestive appears"
    ),
}


class Token(NamedTuple):
    """A word in its normal form, and its place in the text."""

    word: str
    start: int
    end: int


def content_tokens(text: str) -> list[Token]:
    """The words that carry content, in a normalised spelling, without list markers."""
    plain = _ENTRY.sub(lambda entry: " " * len(entry[0]), text)
    found = (Token(_normal(match[0]), *match.span()) for match in _TOKEN.finditer(plain))
    return [token for token in found if token.word not in _FRAME]


def name_class(word: str) -> str:
    """What kind of word it is, for a message that does not repeat it."""
    if word[:1].isdigit():
        return "a number"
    return next((name for name, words in _CLASSES.items() if word in words), "a word")


def _normal(word: str) -> str:
    """Lower case, digits for number words, and one spelling for British and American words."""
    folded = word.lower().replace("’", "'").replace(",", ".")
    folded = _NUMBERS.get(folded, folded)
    if len(folded) < 5:
        return folded
    spelt = folded.replace("ae", "e").replace("oe", "e").replace("our", "or")
    return re.sub(r"is(e|ed|es|ing|ation)$", r"iz\1", re.sub(r"([a-z])tre$", r"\1ter", spelt))
