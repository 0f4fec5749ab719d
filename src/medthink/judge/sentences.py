"""Sentences of a text with their places in it: the deterministic splitter."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_ABBREVIATIONS = ("e.g", "i.e", "vs", "fig", "figs", "dr", "approx", "cf", "resp", "incl", "prof", "et al")
_ABBREVIATED = re.compile(rf"(?:^|[\s(])(?:{'|'.join(map(re.escape, _ABBREVIATIONS))})\.$", re.IGNORECASE)
# A sentence ends at its mark, closing quotes and brackets included, before space or the end; a line break ends one too.
_END = re.compile(r"[.!?]+[\"'”’)\]*_]*(?=\s|$)|[。！？]+[”’」』）]*|[\r\n\u2028\u2029\x0b\x0c\x85]+")
# What may stand before the words of a list entry: bullets, "1.", "(a)", "Step 2:".
_MARKER = re.compile(r"(?:[-*•·–—>#]+\s+|\(?(?:\d{1,2}|[a-zA-Z])[.)]\s+|step\s+\d{1,2}\s*[:.)]\s*)+", re.IGNORECASE)
_MARKER_ONLY = re.compile(r"\(?(?:\d{1,2}|[A-Za-z])[.)]$")
_WORDS = re.compile(r"\w", re.UNICODE)


class Span(NamedTuple):
    """A piece of a text: `text[start:end]`."""

    start: int
    end: int


def split_sentences(text: str) -> list[Span]:
    """The sentences in reading order, without markers and space around them; what holds no word is none."""
    spans = []
    for start, end in _cut(text):
        start, end = _trim(text, start, end)
        if _WORDS.search(text, start, end):
            spans.append(Span(start, end))
    return spans


def _cut(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for mark in _END.finditer(text):
        if not mark[0].isspace() and _is_inside(text, start, mark.end()):
            continue
        yield start, mark.end()
        start = mark.end()
    yield start, len(text)


def _is_inside(text: str, start: int, end: int) -> bool:
    """Whether the stop belongs to an abbreviation or to a list's number."""
    so_far = text[start:end].strip()
    return bool(_ABBREVIATED.search(so_far) or _MARKER_ONLY.fullmatch(so_far))


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    marker = _MARKER.match(text, start, end)
    if marker and marker.end() < end:
        start = marker.end()
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
