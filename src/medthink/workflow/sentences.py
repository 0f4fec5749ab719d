"""The sentences of a text, with their positions."""

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
# Abbreviations of single letters ("Z.n.", "s.p.") that need no entry above.
_LETTERS = re.compile(r"[a-z]{1,2}(?:\.[a-z]{1,2})+")
_ROMAN = re.compile(r"[IVX]+\b")
_OPENING_MIX = re.compile(r"[a-z]+[A-Z]")
# A sentence ends at its mark, closing quotes, brackets and reference numbers included, even where the space after it
# is missing; a line break and a bullet within a line end one too.
LINE_BREAK = r"(?:[\r\n\u2028\u2029\x0b\x0c\x85]|&#x[aAdD];|&#1[03];)"
INLINE_BULLET = r"(?<=\s)[•▪▫‣◦●■►](?=\s)"
_END = re.compile(
    r"[.!?]+[\"'”’)\]*_]*(?:\s?\[\d+(?:\s*[,–-]\s*\d+)*\])*(?=\s|$|&#)"
    r"|(?<=[a-z0-9)%])[.!?](?=[A-Z][a-z]*\s)"
    rf"|[。！？]+[”’」』）]*|{LINE_BREAK}+|{INLINE_BULLET}"
)
_BREAK = re.compile(rf"(?:\s|{LINE_BREAK}|[•▪▫‣◦●■►])+")
_LINE_BREAK = re.compile(LINE_BREAK)
_QUOTED = re.compile(r"\"[^\"\n\r]*\"|“[^“”\n\r]*”|\([^()\n\r]*\)")
# What may be before the words of a list entry: bullets, "1.", "(a)", "Step 2:". "M." and "R." are no markers.
_LETTERED = r"\(?[a-z][.)]\s+|\(?[A-Z]\)\s+|\(?[A-H]\.\s+(?=[A-Z])"
# Before a number, "-" and ">" are signs: "- 80 HU" is fat, and "> 5 cm" no bullet.
MARKER = re.compile(
    rf"(?:[-–—>]+\s+(?![\d.]*\d)|[*•▪▫‣◦●■►·#]+\s+|\(?\d{{1,2}}[.)]\s+|\(?[ivx]{{1,4}}[.)]\s+|{_LETTERED}"
    r"|(?i:step)\s+\d{1,2}\s*[:.)]\s*)+"
)
_MARKER_ONLY = re.compile(r"(?:\(?(?:\d{1,2}|[a-zA-H])|(?i:step)\s+\d{1,2})[.)]$")
_INLINE_NUMBER = re.compile(r"(?<!\S)\d{1,2}\.$")
# "..." and a stop before a closing quote or bracket end no sentence if the next word is in lower case.
_GOES_ON = re.compile(r"\.{2,}|…|[.!?]+[\"'”’)\]]+")
_WORDS = re.compile(r"\w", re.UNICODE)
# A question that a bare word or a phrase without a verb answers says something only together with that answer.
_OPEN_QUESTION = re.compile(r"(?:what|which|who|where|when|why|how)\b", re.IGNORECASE)
_ANSWER = re.compile(
    r"(?:yes|no|none|not|nor|neither|never|nothing|hardly|unlikely|likely|probably|possibly|perhaps|maybe|absent|present"
    r"|negative|positive|there (?:is|are|was|were) (?:none|not|no such)\b)",
    re.IGNORECASE,
)
FINITE = re.compile(
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
    """The sentences in reading order, without markers and surrounding space; pieces without a word are left out.

    A question and its short answer are one sentence, and so is all that stands within quotation marks or brackets.
    """
    spans: list[Span] = []
    for start, end in _cut(text):
        start, end = _trim(text, start, end)
        if not _WORDS.search(text, start, end):
            continue
        if spans and _is_answer(text, spans[-1], start, end):
            spans[-1] = Span(spans[-1].start, end)
        else:
            spans.append(Span(start, end))
    return spans


def _is_answer(text: str, question: Span, start: int, end: int) -> bool:
    if text[question.end - 1] != "?" or _LINE_BREAK.search(text, question.end, start):
        return False
    if _ANSWER.match(text, start, end):
        return True
    return not (_OPEN_QUESTION.match(text, question.start) or FINITE.search(text, start, end))


def _cut(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    closed = _quotations(text)
    for mark in _END.finditer(text):
        if _BREAK.fullmatch(mark[0]):
            yield start, mark.start()
        elif _is_inside(text, start, mark) or any(one.start <= mark.start() and mark.end() < one.end for one in closed):
            continue
        else:
            yield start, mark.end()
        start = mark.end()
    yield start, len(text)


def _quotations(text: str) -> list[Span]:
    """What is quoted or bracketed within a line; a line that is one quotation is read like any other."""
    found = [Span(*match.span()) for match in _QUOTED.finditer(text)]
    return [one for one in found if not _is_line(text, one)]


def _is_line(text: str, span: Span) -> bool:
    before, after = text[: span.start].rstrip(" \t"), text[span.end :].lstrip(" \t")
    return (not before or before[-1] in "\r\n") and (not after or after[0] in "\r\n")


def _is_inside(text: str, start: int, mark: re.Match[str]) -> bool:
    """Whether the stop belongs to an abbreviation, an initial, an address or a list's number."""
    so_far = text[start : mark.end()].strip()
    if _GOES_ON.fullmatch(mark[0]) and re.match(r"\s[a-z]", text[mark.end() : mark.end() + 2]):
        return True
    if mark[0] not in (".", ".)"):
        return False
    word = so_far.split()[-1].lstrip("([\"'“‘").removesuffix(".")
    is_spaced = not text[mark.end() : mark.end() + 1].strip()
    if not is_spaced and any(sign in word for sign in "./@"):
        return True
    following = text[mark.end() :].split(None, 1)
    after = following[0].lstrip("(\"'“‘") if following else ""
    if _MARKER_ONLY.fullmatch(so_far) and _is_marker(so_far, after):
        return True
    if mark[0] != "." or not after or _answers(text, start, so_far):
        return False
    if _INLINE_NUMBER.search(so_far) and (after[0].islower() or so_far.removesuffix(word + ".").endswith(": ")):
        return True
    return _is_abbreviated(word, after)


def _answers(text: str, start: int, so_far: str) -> bool:
    """Whether "No." answers a question or a label, and is no abbreviation."""
    before = text[:start].rstrip()[-1:] if so_far.lower() == "no." else so_far[:-3].rstrip()[-1:]
    return so_far.lower().endswith("no.") and before in ("?", ":")


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
    is_short = word in _BEFORE_OTHERS or _LETTERS.fullmatch(word) is not None
    return not is_opener and (is_short or (len(before) == 1 and before.isupper()))


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    marker = MARKER.match(text, start, end)
    if marker and marker.end() < end:
        start = marker.end()
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
