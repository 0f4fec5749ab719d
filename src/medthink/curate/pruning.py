"""Pruning a discussion: whole sentences that name diagnoses which are no longer options are removed.

The rest is untouched: every sentence kept is in the result verbatim and in order.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from medthink.curate.matching import is_parent
from medthink.curate.mentions import SoughtName, SpelledText, strong_mentions
from medthink.curate.names import core_words, head_of, name_key, short_form
from medthink.workflow.sentences import Span, split_sentences

# A line with nothing left but a list marker, heading marks or a colon.
_MARKER = re.compile(r"(?:\(?\d{1,2}[.)]|[-*•·–—])\s+")
_MARKER_AT_END = re.compile(rf"(?:^|\s){_MARKER.pattern}$")
_BARE_LINE = re.compile(r"[\s#>*_•·–—-]*(?:\(?\d{1,2}[.)])?[\s*_:]*")


class DroppedNames(NamedTuple):
    """Diagnoses of the source's list that are not options, and those too close to an option to search for."""

    sought: tuple[str, ...]
    unsearchable: tuple[str, ...]


class NumberedSentence(NamedTuple):
    """A sentence of a discussion, and which dropped diagnoses and options it names."""

    span: Span
    text: str
    dropped: tuple[str, ...]
    options: tuple[str, ...]


def dropped_names(listed: Sequence[str], options: Sequence[str]) -> DroppedNames:
    """Which names of a list are no longer options; a broader term than an option cannot be distinguished from it."""
    forms = {name_key(form) for option in options for form in (option, head_of(option), short_form(option))}
    gone = [
        name for name in listed if not {name_key(name), name_key(head_of(name)), name_key(short_form(name))} & forms
    ]
    close = [name for name in gone if any(_is_close(name, option) for option in options)]
    return DroppedNames(tuple(name for name in gone if name not in close), tuple(close))


def _is_close(name: str, option: str) -> bool:
    own, other = set(core_words(name)), set(core_words(option))
    return is_parent(name, option) or own <= other


def read_sentences(
    text: str, dropped: Sequence[str], options: Sequence[str], aliases: Mapping[str, Sequence[str]]
) -> list[NumberedSentence]:
    """The sentences of a discussion with what each names."""
    spans = split_sentences(text)
    found = [set[str]() for _ in spans]
    for name, place in _mentions(text, spans, dropped, options, aliases):
        found[place].add(name)
    return [
        NumberedSentence(
            span,
            text[span.start : span.end],
            tuple(name for name in dropped if name in names),
            tuple(name for name in options if name in names),
        )
        for span, names in zip(spans, found, strict=True)
    ]


def _mentions(
    text: str,
    spans: Sequence[Span],
    dropped: Sequence[str],
    options: Sequence[str],
    aliases: Mapping[str, Sequence[str]],
) -> Iterator[tuple[str, int]]:
    """Every name with the sentence it occurs in."""
    spelled = SpelledText(text)
    for name in (*dropped, *options):
        others = [other for other in (*dropped, *options) if other != name]
        sought = SoughtName.of(name, aliases=aliases.get(name, ()), others=others)
        for mention in strong_mentions(spelled, sought):
            yield from (
                (name, at) for at, span in enumerate(spans) if span.start < mention.end and mention.start < span.end
            )


def without_sentences(text: str, spans: Sequence[Span], removed: Collection[int]) -> str:
    """The text without these sentences, without empty lines they leave, and without headings of nothing."""
    if not removed:
        return text
    lines: list[str | None] = []
    for start, line in _lines(text):
        gone = [spans[number] for number in removed if start <= spans[number].start < start + len(line)]
        rest = _cut(line, [(span.start - start, span.end - start) for span in gone])
        lines.append(None if gone and _BARE_LINE.fullmatch(rest) else rest)
    kept = [line for at, line in enumerate(lines) if line is not None and not _heads_nothing(lines, at)]
    return "".join(kept).rstrip()


def _lines(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for line in text.splitlines(keepends=True):
        yield start, line
        start += len(line)


def _cut(line: str, places: list[tuple[int, int]]) -> str:
    """The line without these spans; the gap after each goes too, and for the last one the gap before."""
    for start, end in sorted(places, reverse=True):
        before, after = line[:start], line[end:]
        if not after.strip():
            line = _MARKER_AT_END.sub("", before).rstrip() + after
        else:
            after = after.lstrip(" \t")
            # The next point of a list has its own marker.
            line = (_MARKER_AT_END.sub(" ", before) if _MARKER.match(after) else before) + after
    return line


def _heads_nothing(lines: Sequence[str | None], at: int) -> bool:
    """Whether a line is a heading, and every line under it, to the next empty one, is gone."""
    line = lines[at]
    if line is None or not is_heading(line):
        return False
    under = list(takewhile(lambda one: one is None or one.strip(), lines[at + 1 :]))
    return bool(under) and all(one is None for one in under)


def is_heading(line: str) -> bool:
    """Whether a line is a heading: it ends in a colon, or is a few words that are not a sentence."""
    bare = line.strip().strip("#*_ ")
    return bool(bare) and (bare.endswith(":") or (len(bare.split()) <= 5 and not bare.endswith((".", "!", "?"))))
