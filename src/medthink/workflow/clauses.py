"""Clauses of long sentences, and where a sentence may be cut without changing what its pieces say.

A negation, hedge, condition, quantifier, comparison or attribution governs words after it. How far it reaches cannot
always be told by rule; where it cannot, the sentence stays whole.
"""

import re
from itertools import pairwise

from medthink.workflow.sentences import FINITE, Span, split_sentences

_LONG_SENTENCE = 18
_SHORTEST = 3
_CLAUSE = re.compile(
    r";\s+|,\s+(?=(?:but|while|whereas|although|so|yet)\s"
    r"|and\s+(?:the|a|an|it|this|that|these|there|they|he|she|we|no|ct|mri|pet|ultrasound)\s)",
    re.IGNORECASE,
)
# Words that may govern more than their own clause: conditions, what is said, thought, doubted or assumed, quantifiers.
_FAR_REACHING = re.compile(
    r"\b(?:if|unless|whether|provided|until|lest|otherwise|that|would|could|should|might|had\s+(?:the|this|it|there|he|she)"
    r"|were\s+(?:this|it|the|there)|assum\w+|suppos\w+|presum\w+|imagin\w+|doubt\w*|den(?:y|ies|ied)|believ\w*|think\w*"
    r"|thought|say|says|said|saying|stat(?:es?|ed|ing)|report(?:s|ed|edly)?|claim\w*|suggest\w*|argu(?:es?|ed|ing)|wrong"
    r"|hard|difficult|unlikely|impossible|according|alleged\w*|apparent\w*|only|all|every|each|both|none|neither|nor"
    r"|either|few|rarely|seldom|never|hardly|fail\w*|instead|rather|except|exclud\w+|rul(?:es?|ed|ing)\s+out|because"
    r"|since|than|before|after)\b",
    re.IGNORECASE,
)
_FIRST = re.compile(
    r"(?:without|with\s+n\w+|apart|as\s+(?:far|long|soon)|in\s+case|despite|given|for)\b", re.IGNORECASE
)
# A piece that begins so goes on with what stands before it.
_GOES_ON = re.compile(r"(?:(?:and|but|or)\s+)?(?:that|or|nor|which|who|whose|whom|than|as|to|not)\b", re.IGNORECASE)
# Words that govern words of their own clause, besides the far-reaching ones.
_GOVERNING = re.compile(
    r"\b(?:no|not|cannot|without|non|absen(?:t|ce)|lack\w*|miss\w+|free\s+of|spar(?:es?|ed|ing)|negative|unremarkable"
    r"|may|can|possibl[ey]|probabl[ey]|likely|perhaps|maybe|suspect\w*|suspicious|questionabl[ey]|equivocal|seem\w*"
    r"|appear\w*|suggestive|consider\w*|consistent|compatible|most|mostly|many|some|several|much|more|less|fewer|least"
    r"|almost|nearly|barely|scarcely|partly|partially|usually|often|sometimes|always|typical\w*|rare|same|equal\w*|as"
    r"|compared|similar|increas\w+|decreas\w+|one|two|three|four|five|\d+)\b"
    r"|n't\b|[<>≤≥]",
    re.IGNORECASE,
)
_JOINT = re.compile(
    r"(?:and|but|with|which|who|while|whereas|although|so|therefore|thus|in|on|at|along|together|showing|suggesting)\b",
    re.IGNORECASE,
)


def split_clauses(text: str) -> list[Span]:
    """The sentences; long ones are split between clauses that each have a verb and stand for themselves."""
    return [clause for span in split_sentences(text) for clause in _cut_clauses(text, span)]


def _cut_clauses(text: str, span: Span) -> list[Span]:
    if len(text[span.start : span.end].split()) < _LONG_SENTENCE:
        return [span]
    places = [span.start, *_clause_starts(text, span), span.end]
    return [Span(start, start + len(text[start:end].rstrip())) for start, end in pairwise(places)]


def _clause_starts(text: str, span: Span) -> list[int]:
    """Where a clause begins that says the same by itself as in its sentence."""
    sentence = text[span.start : span.end]
    if _FAR_REACHING.search(sentence) or _FIRST.match(sentence):
        return []
    marks = [mark.end() for mark in _CLAUSE.finditer(sentence) if not _is_bracketed(sentence[: mark.start()])]
    starts: list[int] = []
    for place, end in pairwise([*marks, len(sentence)]):
        before = sentence[starts[-1] if starts else 0 : place]
        if _stands_alone(before) and _stands_alone(sentence[place:end]):
            starts.append(place)
    return [span.start + place for place in starts]


def _stands_alone(clause: str) -> bool:
    return bool(FINITE.search(clause)) and len(clause.split()) > _SHORTEST and not _GOES_ON.match(clause)


def _is_bracketed(before: str) -> bool:
    return before.count("(") != before.count(")")


def may_cut(text: str, sentences: list[Span], place: int) -> bool:
    """Whether a text may be cut before this place without parting a word from what it governs."""
    ends = [span.end for span in sentences if span.end <= place]
    inside = [span for span in sentences if span.start < place < span.end]
    if not inside:
        # The number of an item belongs to it.
        return re.search(r"\w", text[ends[-1] if ends else 0 : place]) is None
    span = inside[0]
    if place in _clause_starts(text, span):
        return True
    sentence = text[span.start : span.end]
    if _FAR_REACHING.search(sentence) or _GOVERNING.search(sentence) or _FIRST.match(sentence):
        return False
    before, after = text[span.start : place].rstrip(), text[place : span.end]
    return bool(FINITE.search(before)) and (before[-1] in ",;:" or bool(_JOINT.match(after)))
