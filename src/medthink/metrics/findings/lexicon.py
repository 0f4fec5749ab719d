"""The lexicon: the words of findings, sites, sides and cues, read once from its data file."""

import re
import tomllib
from functools import cache, lru_cache
from importlib import resources
from typing import Literal

import msgspec

from medthink.core.digest import digest_bytes
from medthink.metrics.porter import stem
from medthink.metrics.spelling import normalise_spelling

MentionKind = Literal["finding", "normal", "site", "side", "cue"]
_WORD = re.compile(r"[a-z]+|\d+|[,?]")


class Entry(msgspec.Struct, frozen=True):
    """A phrase of the lexicon, by its words as they are looked up."""

    words: tuple[str, ...]
    kind: MentionKind
    name: str


class Lexicon(msgspec.Struct, frozen=True):
    """All entries by their first word, longest first, and how findings and sites nest."""

    version: str
    digest: str
    exact: dict[str, list[Entry]]
    stemmed: dict[str, list[Entry]]
    broader: dict[str, str]
    part_of: dict[str, str]
    unsided: frozenset[str]
    unsized: frozenset[str]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    version: str
    findings: dict[str, str]
    absent: dict[str, str]
    broader: dict[str, str]
    sites: dict[str, str]
    part_of: dict[str, str]
    sides: dict[str, str]
    unsided: dict[str, str]
    unsized: dict[str, str]
    cues: dict[str, str]


@cache
def read_lexicon() -> Lexicon:
    """The lexicon that comes with the package."""
    data = resources.files(__package__).joinpath("lexicon.toml").read_bytes()
    file = msgspec.convert(tomllib.loads(data.decode()), _File)
    return Lexicon(
        version=file.version,
        digest=digest_bytes(data),
        exact=_index(_entries("side", file.sides) + _entries("cue", file.cues)),
        stemmed=_index(
            _entries("finding", file.findings) + _entries("normal", file.absent) + _entries("site", file.sites)
        ),
        broader=file.broader,
        part_of=file.part_of,
        unsided=frozenset(_phrases(file.unsided["findings"])),
        unsized=frozenset(_phrases(file.unsized["findings"])),
    )


def word_set(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


@lru_cache(maxsize=1 << 16)
def fold_word(word: str) -> str:
    """The form under which a word of a finding or a site is looked up."""
    # The stemmer would make "pancreatitis" and "pancreatic" one word.
    return word if len(word) <= 3 or word.endswith("itis") else stem(word)


def _phrases(text: str) -> list[str]:
    return [phrase.strip() for phrase in text.split("|")]


def _entries(kind: MentionKind, table: dict[str, str]) -> list[Entry]:
    fold = fold_word if kind in ("finding", "normal", "site") else str
    return [
        Entry(tuple(fold(word) for word in _WORD.findall(normalise_spelling(phrase))), kind, name)
        for name, phrases in table.items()
        for phrase in _phrases(phrases)
    ]


def _index(entries: list[Entry]) -> dict[str, list[Entry]]:
    index: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: -len(entry.words)):
        index.setdefault(entry.words[0], []).append(entry)
    return index
