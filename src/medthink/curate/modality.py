"""The modality of an image from its caption: the modality it names, else words used for only one modality.

The words are in `data/modalities.toml`.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from medthink.cases.case import MODALITIES

_TABLE = Path(__file__).parent / "data" / "modalities.toml"
# How level-2 names in the released data spell their parent: Other_Xray.
_SHORT = dict(
    zip(
        MODALITIES,
        ("CT", "MRI", "Xray", "Ultrasound", "Pathology", "Photography", "Nuclear", "Endoscopy", "Nonmodality"),
        strict=True,
    )
)
# Images that are mentioned but not shown: "as seen on CT", "compared with the radiograph", "before MRI".
_ELSEWHERE = re.compile(
    r"\b(?:as (?:seen|shown|noted|described) (?:on|in|at)|compar(?:ed|ison) (?:to|with)|correlat\w+ (?:to|with)"
    r"|prior to|before|unlike|than (?:on|in)|not (?:seen|visible|shown) (?:on|in|at)|previous"
    r"|confirmed (?:on|by|at)|see)"
    r"\s+(?:\w+\s+){0,3}$",
    re.IGNORECASE,
)
_JOINED = re.compile(r"[\w-]*\s*(?:and|or|,|/|&|\+)\s*(?:\w+\s+)?", re.IGNORECASE)


class ModalityWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words of one modality."""

    name: str
    capitals: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    described: tuple[str, ...] = ()


class FinerName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A level-2 name, and the words that give it."""

    modality: str
    name: str
    pattern: str


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    modality: tuple[ModalityWords, ...]
    finer: tuple[FinerName, ...]


class NamedModality(NamedTuple):
    """A modality given by a caption: the words that give it, whether it is named outright, and what else is named."""

    modality: str
    start: int
    end: int
    is_named: bool
    also: tuple[str, ...] = ()


def modality_of(caption: str) -> NamedModality | None:
    """The modality of a caption; the first of several named ones wins; None if there is no clue."""
    named = sorted(_find_named(caption), key=lambda one: (one.start, -one.end))
    shown = [one for one in named if not _ELSEWHERE.search(caption[: one.start])] or named
    if not shown:
        return _find_described(caption)
    first = shown[0]
    others = [one for one in shown if one.modality != first.modality]
    if others and _JOINED.fullmatch(caption[first.end : others[0].start]):
        return None  # "ultrasound and MRI images": either
    return first._replace(also=tuple(dict.fromkeys(one.modality for one in others)))


def sub_modality_of(modality: str, caption: str) -> str:
    """A proposal for the level-2 name: one known from released data, else `Other_` and the parent."""
    for finer in _table().finer:
        if finer.modality == modality and re.search(finer.pattern, caption, re.IGNORECASE):
            return finer.name
    return f"Other_{_SHORT[modality]}"


def _find_named(caption: str) -> Iterator[NamedModality]:
    taken: list[tuple[int, int]] = []
    for modality, pattern in _named_patterns().items():
        for match in pattern.finditer(caption):
            if not any(start <= match.start() < end for start, end in taken):
                taken.append(match.span())
                yield NamedModality(modality, *match.span(), is_named=True)


def _find_described(caption: str) -> NamedModality | None:
    found = [
        NamedModality(modality, *match.span(), is_named=False)
        for modality, pattern in _described_patterns().items()
        if (match := pattern.search(caption))
    ]
    # Words of two modalities settle nothing.
    return found[0] if len(found) == 1 else None


@cache
def _table() -> _Table:
    return msgspec.toml.decode(_TABLE.read_bytes(), type=_Table)


@cache
def _named_patterns() -> dict[str, re.Pattern[str]]:
    return {one.name: _named_pattern(one) for one in _table().modality}


def _named_pattern(one: ModalityWords) -> re.Pattern[str]:
    capitals = [rf"{re.escape(word)}(?![A-Za-z])" for word in sorted(one.capitals, key=len, reverse=True)]
    words = [rf"(?i:{re.escape(word)}\w*)" for word in sorted(one.words, key=len, reverse=True)]
    return re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join([*one.patterns, *capitals, *words])})")


@cache
def _described_patterns() -> dict[str, re.Pattern[str]]:
    words = {one.name: one.described for one in _table().modality if one.described}
    return {name: re.compile(rf"(?<!\w)(?:{'|'.join(found)})", re.IGNORECASE) for name, found in words.items()}
