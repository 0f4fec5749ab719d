"""Edits that argue for an option other than the diagnosis."""

import re
from collections.abc import Iterable

from medthink.judge.edits.guards import count_negations, like

# A disease named in a list, or next to what distinguishes it, is not what the sentence claims.
_COMPARES = re.compile(
    r"\b(?:like|unlike|differential|versus|vs|confus\w+|mimic\w*|resembl\w+|distinguish\w*|than)\b", re.IGNORECASE
)


def name_other_options(sentence: str, options: Iterable[str], answer: str) -> list[str]:
    """The sentence with each other option in place of the diagnosis; none where it names several, or denies it."""
    others = [option for option in options if option != answer]
    if not answer or count_negations(sentence) or _COMPARES.search(sentence):
        return []
    if not _names(sentence, answer) or any(_names(sentence, other) for other in others):
        return []
    return [_put(sentence, answer, other) for other in others if _is_plural(other) == _is_plural(answer)]


def _names(sentence: str, option: str) -> bool:
    return bool(_pattern(option).search(sentence))


def _put(sentence: str, answer: str, other: str) -> str:
    """The other name, in lower case inside a sentence if the diagnosis is, unless it is an abbreviation."""
    small = other if other[1:2].isupper() else other[:1].lower() + other[1:]
    return _pattern(answer).sub(lambda found: like(found[0], small), sentence)


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)


def _is_plural(name: str) -> bool:
    return name.endswith("s") and not name.endswith(("is", "us", "ss"))
