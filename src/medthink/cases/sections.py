"""The six sections of a case discussion, and how a discussion is split at their headings."""

import re
from typing import Literal, get_args

import msgspec

SectionName = Literal[
    "background", "clinical_perspective", "imaging_perspective", "clinical_significance", "outcome", "teaching_points"
]
SECTIONS: tuple[SectionName, ...] = get_args(SectionName)

_HEADINGS: dict[SectionName, str] = {
    "background": r"background|introduction",
    "clinical_perspective": r"clinical\s+(?:perspectives?|features?|presentation)",
    "imaging_perspective": r"(?:imaging|radiological|radiologic)\s+(?:perspectives?|features?)",
    "clinical_significance": r"clinical\s+(?:significance|relevance|importance)",
    "outcome": r"outcomes?|outcome\s+and\s+prognosis|(?:treatment|therapy)\s+and\s+outcome",
    "teaching_points": (
        r"(?:take[\s-]*home\s+(?:messages?|points?)|teaching\s+points?|learning\s+points?|key\s+points?)"
        r"(?:\s*(?:[,/&]|and|or)\s*(?:take[\s-]*home\s+(?:messages?|points?)|teaching\s+points?))?"
    ),
}
_TITLES = "|".join(f"(?P<{section}>{pattern})" for section, pattern in _HEADINGS.items())
_HEADING = re.compile(
    # At the start of a line: marks or a number may come before, and a colon, a dash or nothing after.
    rf"(?:^[ \t]*(?:[#>*_\-•]+[ \t]*)*(?:\(?\d{{1,2}}[.):][ \t]*)?[*_]*"
    # Within a line: only after a sentence has ended, and only with a colon.
    rf"|(?<=[.!?])[ \t]+[*_]*(?P<inline>))(?:{_TITLES})[ \t]*[*_]*"
    rf"(?:[ \t]*:[*_]*|(?(inline)(?!)|[ \t]*(?:[–—-](?=\s)|#*[ \t]*$)))",
    re.IGNORECASE | re.MULTILINE,
)


class Discussion(msgspec.Struct, frozen=True):
    """The text of each section that is present, in reading order, and the text before the first heading."""

    sections: dict[SectionName, str]
    preamble: str

    @property
    def body(self) -> str:
        """The complete text without its headings."""
        return "\n\n".join(part for part in (self.preamble, *self.sections.values()) if part)


def split_discussion(text: str) -> Discussion:
    """Split a discussion at its headings; a heading that occurs twice continues its section."""
    headings = list(_HEADING.finditer(text))
    starts = [heading.start() for heading in headings] + [len(text)]
    sections: dict[SectionName, str] = {}
    for heading, end in zip(headings, starts[1:], strict=True):
        body = text[heading.end() : end].strip()
        section = next(name for name in SECTIONS if heading[name])
        if body:
            sections[section] = f"{sections[section]}\n{body}" if section in sections else body
    return Discussion(sections, text[: starts[0]].strip())


def has_headings(text: str) -> bool:
    """Whether a discussion has any heading of the six sections."""
    return _HEADING.search(text) is not None
