"""Edits that drop a negation, or add one."""

import re

from medthink.judge.edits.guards import calls_normal, count_negations, is_positive, like

_SEEN = r"(?:is|was|are|were) (?:seen|noted|present|found|visible|visuali[sz]ed|detected|identified|observed|evident)"
_SHOWS = r"shows?|showed|reveal(?:s|ed)|demonstrate(?:s|d)|disclose(?:s|d)|depict(?:s|ed)"
_DROPS = (
    re.compile(r"\b(?P<lead>There (?:is|was|are|were)) no\b ", re.IGNORECASE),
    re.compile(rf"^(?P<lead>)No (?=.*\b{_SEEN}\b)"),
    re.compile(rf"\b(?P<lead>{_SHOWS}) no\b ", re.IGNORECASE),
)
_WITHOUT = re.compile(r"\bwithout (?!\w+ing\b)", re.IGNORECASE)
_KEEPS_NEGATION = re.compile(
    r"\b(?:but|except\w*|other\w*|either|while|whereas|further|longer|more|yet)\b", re.IGNORECASE
)
_ADD = re.compile(
    rf"\b(?P<lead>There (?:is|was|were|are)|{_SHOWS}) "
    r"(?:an?|multiple|several|numerous) "
    r"(?:(?:large|small|marked|mild|moderate|severe|subtle|discrete|extensive|huge) )?",
    re.IGNORECASE,
)
_KEEPS_CLAIM = re.compile(
    r"\b(?:few|slight\w*|predominant\w*|views?|distribution|appearance|pattern|\d+(?:\.\d+)? ?(?:mm|cm))\b",
    re.IGNORECASE,
)
_MOST_WORDS = 16


def drop_negation(sentence: str) -> str | None:
    """The sentence with its only negation removed: "no A or B" becomes "A and B"."""
    if count_negations(sentence) != 1 or _KEEPS_NEGATION.search(sentence) or calls_normal(sentence):
        return None
    edited = _WITHOUT.sub(lambda cue: like(cue[0], "with "), sentence, count=1)
    for cue in _DROPS:
        edited = cue.sub(lambda found: found["lead"] + " " if found["lead"] else "", edited, count=1)
    if edited == sentence:
        return None
    edited = re.sub(r"\bor\b", "and", re.sub(r"\bany ", "", edited))
    return edited[:1].upper() + edited[1:]


def add_negation(sentence: str) -> str | None:
    """The sentence with what it shows denied: "showed a mass" becomes "showed no mass"."""
    is_long = len(sentence.split()) > _MOST_WORDS
    if is_long or not is_positive(sentence) or _KEEPS_CLAIM.search(sentence) or len(_ADD.findall(sentence)) != 1:
        return None
    return _ADD.sub(lambda found: f"{found['lead']} no ", sentence)
