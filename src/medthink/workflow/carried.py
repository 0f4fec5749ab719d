"""What the items of a list take over from its heading.

"No sign of:" governs every item below it, "absent" in a table's header every row. Items say what they mean only
together with it, so the heading is no statement of its own, and each item carries it.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from medthink.workflow.sentences import FINITE, INLINE_BULLET, LINE_BREAK, Span, split_sentences

# A pair of brackets marks what a unit carries and does not say where it stands.
_SHOWN = "[{carried}] {text}"
_LINE = re.compile(rf"(?:(?!{LINE_BREAK}).)+", re.DOTALL)
_INLINE_ITEM = re.compile(rf"{INLINE_BULLET}\s+|(?<=\s)\(?(\d{{1,2}})[.)]\s+(?=\S)")
_BULLET = re.compile(r"\s*(?:([-–—>*•▪▫‣◦●■►·])\s|\(?(?:(\d{1,2})|([a-z]|[ivx]{1,4})|([A-H]))[.)]\s)")
_HEADING = re.compile(r"\s*(#+)\s+")
_SEPARATOR = re.compile(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-*:?\s*)*")
_ORNAMENT = " \t*_#|"
_FULL_STOPS = (".", "!", "?")
_LONGEST_FRAGMENT = 12


class Piece(NamedTuple):
    """A piece of a text that can be judged by itself: its place, and what it carries from the heading of its list."""

    start: int
    end: int
    carried: str = ""

    def shown(self, text: str) -> str:
        """The statement's words, with what it carries before them in brackets."""
        words = text[self.start : self.end]
        return _SHOWN.format(carried=self.carried, text=words) if self.carried else words


class _Line(NamedTuple):
    """A line, or a piece of one that an inline marker begins, with the kind of its marker."""

    start: int
    end: int
    indent: int
    marker: str

    @property
    def depth(self) -> tuple[int, bool]:
        return (self.indent, bool(self.marker))


class _Stem(NamedTuple):
    """The heading of a list; `takes_fragments` says that phrases without a marker belong to it too."""

    span: Span
    line: _Line
    takes_fragments: bool


def carry(text: str, spans: Iterable[Span]) -> list[Piece]:
    """The pieces as statements: headings of lists are left out, and the pieces of their items carry them."""
    lists = list(_lists(text))
    stems = {stem for _, found in lists for stem in found}
    statements = []
    kept = [span for span in spans if not any(_is_within(span, stem) for stem in stems)]
    for span in _join_labels(text, kept):
        above = [found for line, found in lists if line.start < span.end and span.start < line.end][:1]
        carried = [stem for found in above for stem in found if not span.start <= stem.start < span.end]
        statements.append(Piece(*span, " ".join(_words(text, stem) for stem in carried)))
    return statements


def _is_within(span: Span, stem: Span) -> bool:
    return stem.start <= span.start and span.end <= stem.end


def _join_labels(text: str, spans: Iterable[Span]) -> Iterator[Span]:
    """The pieces; a label on a line of its own ("Conclusion:") is one piece with the sentence below it."""
    label: Span | None = None
    for span in spans:
        joined = Span(label.start, span.end) if label else span
        is_label = text[span.start : span.end].rstrip(_ORNAMENT).endswith(":")
        if not is_label:
            yield joined
        label = joined if is_label else None
    if label:
        yield label


def _words(text: str, stem: Span) -> str:
    words = text[stem.start : stem.end].strip(_ORNAMENT)
    return re.sub(r"\s*\|\s*", " | ", words)


def _lists(text: str) -> Iterator[tuple[_Line, tuple[Span, ...]]]:
    """Every line below a heading, with the headings above it, the highest first."""
    lines = list(_read_lines(text))
    above: list[_Stem] = []
    for number, line in enumerate(lines):
        after = lines[number + 1] if number + 1 < len(lines) else None
        if number and _is_blank_before(text, lines[number - 1], line):
            above = [stem for stem in above if not stem.takes_fragments or line.marker]
        while above and not _is_below(text, line, above[-1]):
            above.pop()
        if above:
            yield line, tuple(stem.span for stem in above)
        stem = _stem(text, line, after)
        if stem is not None:
            above.append(stem)


def _is_blank_before(text: str, before: _Line, line: _Line) -> bool:
    return len(re.findall(LINE_BREAK, text[before.end : line.start].replace("\r\n", "\n"))) > 1


def _is_below(text: str, line: _Line, stem: _Stem) -> bool:
    if line.marker == "heading":
        return False
    if stem.line.marker == "heading":
        return bool(line.marker) or _is_fragment(text, line)
    if stem.line.marker == "row":
        return line.marker == "row"
    if line.depth > stem.line.depth:
        return bool(line.marker) or _is_fragment(text, line)
    if line.indent < stem.line.indent:
        return False
    if line.marker:
        return line.marker != stem.line.marker and bool(stem.line.marker)
    return stem.takes_fragments and _is_fragment(text, line) and not _ends_as_stem(text, line)


def _stem(text: str, line: _Line, after: _Line | None) -> _Stem | None:
    """The heading that the line ends with, if a list follows it."""
    if after is None:
        return None
    if line.marker == "row":
        is_header = after.marker == "row" and _SEPARATOR.fullmatch(text, after.start, after.end) is not None
        return _Stem(Span(line.start, line.end), line, takes_fragments=False) if is_header else None
    span = (split_sentences(text[line.start : line.end]) or [Span(0, 0)])[-1]
    span = Span(line.start + span.start, line.start + span.end)
    words = text[span.start : span.end].rstrip(_ORNAMENT)
    if not words or words.endswith(_FULL_STOPS):
        return None
    begins_list = after.depth > line.depth or (bool(line.marker) and bool(after.marker) and after.marker != line.marker)
    if line.marker == "heading":
        is_stem = bool(after.marker) and after.marker != "heading"
    elif after.marker:
        is_stem = begins_list and after.marker not in ("heading", "row")
    else:
        is_stem = False
    takes_fragments = words.endswith(":") and not after.marker and _is_fragment(text, after)
    if takes_fragments or is_stem:
        return _Stem(span, line, takes_fragments)
    return None


def _ends_as_stem(text: str, line: _Line) -> bool:
    return text[line.start : line.end].rstrip(_ORNAMENT).endswith(":")


def _is_fragment(text: str, line: _Line) -> bool:
    words = text[line.start : line.end]
    return not FINITE.search(words) and len(words.split()) <= _LONGEST_FRAGMENT


def _read_lines(text: str) -> Iterator[_Line]:
    for match in _LINE.finditer(text):
        if match[0].strip():
            yield from _pieces(text, Span(*match.span()))


def _pieces(text: str, line: Span) -> Iterator[_Line]:
    """The line, cut before the markers of a list that runs on within it."""
    starts = [line.start, *_inline_items(text, line)]
    for place, (start, end) in enumerate(zip(starts, [*starts[1:], line.end], strict=True)):
        words = text[start:end]
        indent = len(words) - len(words.lstrip()) if not place else 10**6
        yield _Line(start, end, indent, _marker(words))


def _inline_items(text: str, line: Span) -> list[int]:
    """Where items begin within a line: at bullets, and at 1, 2, 3 … after a colon."""
    found: list[int] = []
    expected = 1
    for mark in _INLINE_ITEM.finditer(text, line.start, line.end):
        if not text[line.start : mark.start()].strip():
            continue
        if mark[1] is None:
            found.append(mark.start())
        elif int(mark[1]) == expected and (expected > 1 or text[: mark.start()].rstrip().endswith(":")):
            found.append(mark.start())
            expected += 1
    return found


def _marker(words: str) -> str:
    """The kind of marker that the words begin with; empty if there is none."""
    if _HEADING.match(words):
        return "heading"
    if words.lstrip().startswith("|"):
        return "row"
    match = _BULLET.match(words)
    if match is None:
        return ""
    bullet, number, small, _ = match.groups()
    return bullet or ("number" if number else "small letter" if small else "capital letter")
