"""Conditions for editing a sentence: it makes one plain claim, and the edited claim occurs nowhere else."""

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from medthink.metrics.findings.lexicon import content_words

# Changing a word does not make a possibility or a recommendation false.
_NOT_CLAIMED = re.compile(
    r"\b(?:may|might|could|would|possib\w+|probab\w+|likely|suspect\w*|suspicio\w+|suggest\w*|expected|should"
    r"|recommend\w*|withdraw\w*|consider\w*|appear\w*|seem\w*|if|whether)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:no|not|without|never|neither|nor|none|cannot|absen(?:t|ce)|lack\w*|negative|free of|exclud\w+|denied|denies"
    r"|unlikely|against|rul(?:e|es|ed|ing) out)\b|n['’]t\b",
    re.IGNORECASE,
)
_NORMAL = re.compile(r"\b(?:normal\w*|clear|unremarkable|benign|healthy)\b", re.IGNORECASE)


def is_claim(sentence: str) -> bool:
    """Whether the sentence states something, without hedge or advice."""
    return not _NOT_CLAIMED.search(sentence) and not sentence.rstrip().endswith("?")


def count_negations(sentence: str) -> int:
    """The number of negations."""
    return len(_NEGATION.findall(sentence))


def is_positive(sentence: str) -> bool:
    """Whether the sentence denies nothing and calls nothing normal."""
    return not count_negations(sentence) and not _NORMAL.search(sentence)


def calls_normal(sentence: str) -> bool:
    """Whether the sentence calls something normal, clear or benign."""
    return bool(_NORMAL.search(sentence))


def is_stated_in(sentence: str, texts: Iterable[str]) -> bool:
    """Whether one of the texts contains everything that the sentence states."""
    words = _words(sentence)
    return any(words <= _words(text) for text in texts)


@lru_cache(maxsize=1024)
def _words(text: str) -> Counter[str]:
    return Counter(token.word for token in content_words(text))


def match_capitals(model: str, word: str) -> str:
    """The word, capitalised like another one."""
    return word[:1].upper() + word[1:] if model[:1].isupper() else word
