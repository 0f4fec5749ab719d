"""What may identify a patient: dates, numbers, addresses and names, found by their form and only flagged."""

import re
from typing import NamedTuple

_MONTH = r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_PATTERNS = (
    ("date", r"\b(?:\d{1,2}[./-]\d{1,2}[./-](?:19|20)?\d{2}|(?:19|20)\d{2}-\d{2}-\d{2})\b"),
    ("date", rf"\b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}\s+(?:19|20)\d{{2}}\b"),
    ("date", rf"\b{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+(?:19|20)\d{{2}}\b"),
    ("e-mail", r"\b[\w.+-]+@[\w-]+\.[\w.]+\b"),
    ("telephone", r"(?<![\w.])(?:\+\d{1,3}[ -]?)?(?:\(\d{2,4}\)[ -]?)?\d{3,4}[ -]\d{3}[ -]?\d{3,4}(?![\w.])"),
    ("record number", r"\b(?i:MRN|patient id|record n(?:o|umber)|hospital n(?:o|umber)|accession)\W{1,3}\w*\d\w*"),
    ("name", r"\b(?:Mr|Mrs|Ms|Miss|Herr|Frau|Mme|Sig)\.?\s+[A-ZÀ-Þ][\w’'-]+"),
    ("name", r"\b(?i:patient|name|named|called)\s*:\s*[A-ZÀ-Þ][\w’'-]+\s+[A-ZÀ-Þ][\w’'-]+"),
    ("age over 89", r"\b(?:9\d|1[01]\d)[- ]years?[- ]old\b"),
)
_COMPILED = tuple((kind, re.compile(pattern)) for kind, pattern in _PATTERNS)


class Identifier(NamedTuple):
    """A passage that may identify a person, and its kind."""

    start: int
    end: int
    kind: str


def find_identifiers(text: str) -> list[Identifier]:
    """Every such passage, in the order of the text."""
    return sorted({Identifier(*match.span(), kind) for kind, pattern in _COMPILED for match in pattern.finditer(text)})
