"""Paragraphs with their units marked by hand, and an oracle that tells which units of a cut changed their meaning.

In `cut_paragraphs.txt`, "¦" begins a unit, and "{a:No sign of}" marks words that govern units further on, which begin
with "¦a~". "{>}" are words that govern their own unit. The oracle replaces each of these words by its opposite in the
paragraph: the units that it governs must change, and no others.
"""

import re
from pathlib import Path
from typing import NamedTuple

from medthink.workflow.carried import Piece
from medthink.workflow.sentences import Span

_PARAGRAPHS = Path(__file__).parents[1] / "unit" / "workflow" / "cut_paragraphs.txt"
_MARKS = re.compile(r"¦(?:([a-z]+)~)?|\{(?:([a-z]):)?([^}]*)\}")
_OPPOSITE = "the opposite of it"


class Operator(NamedTuple):
    """Words that govern units, in the text from `start` to `end`."""

    name: str
    start: int
    end: int


class MarkedUnit(NamedTuple):
    """A unit marked by hand: the finest piece that says by itself what it says in the paragraph."""

    start: int
    end: int
    carries: frozenset[str]


class Paragraph(NamedTuple):
    """A paragraph with its marks taken out."""

    text: str
    units: tuple[MarkedUnit, ...]
    operators: tuple[Operator, ...]


def read_paragraphs() -> list[Paragraph]:
    """Every paragraph; each second one was kept back while the rules were written."""
    return [read_marks(marked) for marked in _PARAGRAPHS.read_text(encoding="utf-8").rstrip("\n").split("\n%\n")]


def read_marks(marked: str) -> Paragraph:
    """A paragraph from its text with marks."""
    text, last = "", 0
    starts: list[tuple[int, str]] = [(0, "")]
    operators: list[Operator] = []
    for mark in _MARKS.finditer(marked):
        text += marked[last : mark.start()]
        last = mark.end()
        if mark[0].startswith("¦"):
            starts.append((len(text), mark[1] or ""))
        else:
            operators.append(Operator(mark[2] or f"own {len(text)}", len(text), len(text) + len(mark[3])))
            text += mark[3]
    text += marked[last:]
    ends = [*(start for start, _ in starts[1:]), len(text)]
    units = [MarkedUnit(start, end, frozenset(names)) for (start, names), end in zip(starts, ends, strict=True)]
    return Paragraph(text, tuple(one for one in units if re.search(r"\w", text[one.start : one.end])), tuple(operators))


def changed(paragraph: Paragraph, statements: list[Piece]) -> list[str]:
    """The statements that do not say by themselves what they say in the paragraph."""
    return [one.shown(paragraph.text) for one in statements if _is_changed(paragraph, one, statements)]


def _is_changed(paragraph: Paragraph, one: Piece, statements: list[Piece]) -> bool:
    marked = [unit for unit in paragraph.units if overlaps(paragraph.text, unit, one)]
    if any(len([other for other in statements if overlaps(paragraph.text, unit, other)]) > 1 for unit in marked):
        return True  # the cut runs through a unit
    governed = {
        operator.name
        for operator in paragraph.operators
        for unit in marked
        if operator.name in unit.carries or unit.start <= operator.start < unit.end
    }
    read = one.shown(paragraph.text)
    differs = {operator.name for operator in paragraph.operators if _negate(paragraph, operator, one) != read}
    return governed != differs


def _negate(paragraph: Paragraph, operator: Operator, one: Piece) -> str:
    """How the statement reads in the paragraph with the operator's opposite in its place."""
    words = paragraph.text[operator.start : operator.end]
    text = paragraph.text[one.start : one.end]
    if one.start <= operator.start < one.end:
        place = operator.start - one.start
        text = text[:place] + _OPPOSITE + text[place + len(words) :]
    carried = one.carried.replace(words, _OPPOSITE) if words else one.carried
    return Piece(0, len(text), carried).shown(text)


def overlaps(text: str, unit: MarkedUnit, one: Piece | Span) -> bool:
    """Whether they share a word."""
    start, end = max(unit.start, one.start), min(unit.end, one.end)
    return start < end and re.search(r"\w", text[start:end]) is not None
