"""The deterministic splitter: sentences and clauses of a text, with their positions."""

import re
from collections.abc import Iterator
from typing import NamedTuple


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ALWAYS = _words(
    "e.g i.e vs cf c.f viz dr prof mr mrs pt pts approx ca incl excl resp esp hx dx ddx tx rx bilat abd lig vit rt lt"
)
_BEFORE_NUMBER = _words("no nos nr fig figs tab ref refs vol pp eq seg segs")
_MONTHS = _words("jan feb mar apr jun jul aug sep sept oct nov dec")
_BEFORE_OTHERS = _words(
    "i.v p.i p.o s.c i.m y.o b.i.d u.s al max min ant post lat med sup inf prox dist ext int sp spp yr yrs wk wks mo hr"
    " hrs"
)
_KNOWN = _ALWAYS | _BEFORE_NUMBER | _MONTHS | _BEFORE_OTHERS
# Words that open a sentence rather than continue one after an abbreviation.
_OPENERS = _words(
    "the a an it its this that these those there no not none on in at of we he she they his her their as but and or so"
    " however therefore thus if for with without after before when while although because given since by to from both"
    " ct mri mr us pet ultrasound radiograph radiographs chest x-ray imaging contrast findings differential diagnosis"
)
_ROMAN = re.compile(r"[IVX]+\b")
_OPENING_MIX = re.compile(r"[a-z]+[A-Z]")
# A sentence ends at its mark, closing quotes, brackets and reference numbers included; a line break ends one too.
_END = re.compile(
    r"[.!?]+[\"'”’)\]*_]*(?:\s?\[\d+(?:\s*[,–-]\s*\d+)*\])*(?=\s|$|&#)"
    r"|[。！？]+[”’」』）]*|(?:[\r\n\u2028\u2029\x0b\x0c\x85]|&#x[aAdD];|&#1[03];)+"
)
_BREAK = re.compile(r"(?:\s|&#x[aAdD];|&#1[03];)+")
# What may be before the words of a list entry: bullets, "1.", "(a)", "Step 2:". "M." and "R." are no markers.
_LETTERED = r"\(?[a-z][.)]\s+|\(?[A-Z]\)\s+|\(?[A-H]\.\s+(?=[A-Z])"
_MARKER = re.compile(rf"(?:[-*•·–—>#]+\s+|\(?\d{{1,2}}[.)]\s+|{_LETTERED}|(?i:step)\s+\d{{1,2}}\s*[:.)]\s*)+")
_MARKER_ONLY = re.compile(r"\(?(?:\d{1,2}|[a-zA-H])[.)]$")
_WORDS = re.compile(r"\w", re.UNICODE)

_LONG_SENTENCE = 18
_CLAUSE = re.compile(
    r";\s+|,\s+(?=(?:but|while|whereas|although|so|yet)\s"
    r"|and\s+(?:the|a|an|it|this|that|these|there|they|he|she|we|no|ct|mri|pet|ultrasound)\s)",
    re.IGNORECASE,
)
_FINITE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|can|could|may|might|would|should|will|do|does|did|lies?|lay|fits?|"
    r"(?:show|reveal|demonstrate|suggest|indicate|favou?r|appear|remain|measure|enhance|contain|cause|support|argue|make"
    r"|point|exclude|occur|present|seem|represent|involve|extend|displace|compress|confirm|affect|lack|mimic)(?:s|d|ed)?"
    r"|made|found|seen)\b",
    re.IGNORECASE,
)


class Span(NamedTuple):
    """A piece of a text: `text[start:end]`."""

    start: int
    end: int


def split_sentences(text: str) -> list[Span]:
    """The sentences in reading order, without markers and surrounding space; pieces without a word are left out."""
    spans = []
    for start, end in _cut(text):
        start, end = _trim(text, start, end)
        if _WORDS.search(text, start, end):
            spans.append(Span(start, end))
    return spans


def split_clauses(text: str) -> list[Span]:
    """The sentences; long ones are split between clauses that each have a verb."""
    return [clause for span in split_sentences(text) for clause in _cut_clauses(text, span)]


def _cut_clauses(text: str, span: Span) -> list[Span]:
    sentence = text[span.start : span.end]
    if len(sentence.split()) < _LONG_SENTENCE:
        return [span]
    marks = [mark for mark in _CLAUSE.finditer(sentence) if not _is_bracketed(sentence[: mark.start()])]
    # The comma or semicolon stays with the clause before it.
    starts = [span.start, *(span.start + mark.end() for mark in marks)]
    ends = [*(span.start + mark.start() + 1 for mark in marks), span.end]
    clauses: list[Span] = []
    for start, end in zip(starts, ends, strict=True):
        if clauses and not (_FINITE.search(text, start, end) and _FINITE.search(text, *clauses[-1])):
            clauses[-1] = Span(clauses[-1].start, end)
        else:
            clauses.append(Span(start, end))
    return clauses


def _is_bracketed(before: str) -> bool:
    return before.count("(") != before.count(")")


def _cut(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for mark in _END.finditer(text):
        if _BREAK.fullmatch(mark[0]):
            yield start, mark.start()
        elif _is_inside(text, start, mark):
            continue
        else:
            yield start, mark.end()
        start = mark.end()
    yield start, len(text)


def _is_inside(text: str, start: int, mark: re.Match[str]) -> bool:
    """Whether the stop belongs to an abbreviation, an initial or a list's number."""
    so_far = text[start : mark.end()].strip()
    if mark[0] not in (".", ".)"):
        return False
    following = text[mark.end() :].split(None, 1)
    after = following[0].lstrip("(\"'“‘") if following else ""
    if _MARKER_ONLY.fullmatch(so_far) and _is_marker(so_far, after):
        return True
    if mark[0] != "." or not after:
        return False
    return _is_abbreviated(so_far.split()[-1].lstrip("([\"'“‘").removesuffix("."), after)


def _is_marker(so_far: str, after: str) -> bool:
    return not so_far.strip("(.)").isupper() or so_far.endswith(")") or after[:1].isupper()


def _is_abbreviated(before: str, after: str) -> bool:
    word = before.lower()
    if after[:1].islower() and not _OPENING_MIX.match(after):
        return word in _KNOWN or (len(word) < 4 and word.isalpha())
    if word in _ALWAYS:
        return True
    if word in _BEFORE_NUMBER or word in _MONTHS:
        return after[0].isdigit() or bool(word in _BEFORE_NUMBER and _ROMAN.match(after))
    is_opener = after.strip(".,:;()").lower() in _OPENERS
    return not is_opener and (word in _BEFORE_OTHERS or (len(before) == 1 and before.isupper()))


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    marker = _MARKER.match(text, start, end)
    if marker and marker.end() < end:
        start = marker.end()
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
