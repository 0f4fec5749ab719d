"""ICD-10 categories that the words of a diagnosis do not reveal: a table of names, and one of tumours by site."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from medthink.curate.names import words_of

Behaviour = Literal["malignant", "benign", "uncertain", "secondary"]
_DATA = Path(__file__).parent / "data"
_SITES_OF_CONTEXT = 3


class TumourSite(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A site by its words, and the category of a tumour there by behaviour."""

    words: tuple[str, ...]
    codes: dict[Behaviour, str]
    tissue: str = ""


class Histology(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of tumour by its words: its code by site, for any site, and where none is named."""

    words: tuple[str, ...]
    behaviour: Behaviour | None = None
    only: str = ""
    always: tuple[str, ...] = ()
    otherwise: tuple[str, ...] = ()


class TableHit(NamedTuple):
    """A category from a table, the number of words matched, and whether a site made it certain."""

    category: str
    words: int
    is_sure: bool


def listed_categories(names: Sequence[str]) -> list[TableHit]:
    """The categories of every table entry that occurs in one of the names, longer entries first."""
    hits: dict[str, TableHit] = {}
    for name in names:
        words = words_of(name)
        for start, first in enumerate(words):
            for entry, category in _entries().get(first, ()):
                if tuple(words[start : start + len(entry)]) == entry:
                    hit = TableHit(category, len(entry), is_sure=True)
                    hits[category] = max(hit, hits.get(category, hit), key=lambda one: one.words)
    return sorted(hits.values(), key=lambda hit: -hit.words)


def tumour_categories(names: Sequence[str], context: str) -> list[TableHit]:
    """The code of a tumour with these names; a site they do not name may be taken from the context."""
    texts = [_padded(name) for name in names]
    hits: dict[str, TableHit] = {}
    found = [(length, kind) for kind in _tumours().histology if (length := _longest(kind.words, texts))]
    for length, kind in sorted(found, key=lambda pair: -pair[0]):
        for hit in _of_histology(kind, length, texts, context):
            hits.setdefault(hit.category, hit)
    return list(hits.values())


def _of_histology(kind: Histology, length: int, texts: list[str], context: str) -> Iterator[TableHit]:
    sites = [site for site in _tumours().site if _longest(site.words, texts) and kind.only in ("", site.tissue)]
    is_sure = bool(sites)
    if kind.behaviour is not None:
        for site in sites or _sites_of(context, kind):
            yield TableHit(site.codes[kind.behaviour], length, is_sure=is_sure)
    for category in kind.always:
        yield TableHit(category, length, is_sure=True)
    for category in () if is_sure else kind.otherwise:
        yield TableHit(category, length, is_sure=False)


def _sites_of(context: str, kind: Histology) -> list[TumourSite]:
    """The sites that a text mentions most."""
    text = _padded(context)
    sites = [site for site in _tumours().site if kind.only in ("", site.tissue)]
    counts = Counter({place: len(_pattern(site.words).findall(text)) for place, site in enumerate(sites)})
    return [sites[place] for place, count in counts.most_common(_SITES_OF_CONTEXT) if count]


class _Tumours(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    site: tuple[TumourSite, ...]
    histology: tuple[Histology, ...]


@cache
def _tumours() -> _Tumours:
    return msgspec.toml.decode((_DATA / "tumours.toml").read_bytes(), type=_Tumours)


@cache
def _entries() -> dict[str, list[tuple[tuple[str, ...], str]]]:
    """The table of names, by the first word of each."""
    groups = tomllib.loads((_DATA / "icd_names.toml").read_text(encoding="utf-8"))["groups"]
    entries: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for category, *names in groups:
        for name in names:
            words = tuple(words_of(name))
            entries.setdefault(words[0], []).append((words, category))
    return entries


def _padded(text: str) -> str:
    return f" {' '.join(words_of(text))} "


def _longest(phrases: tuple[str, ...], texts: list[str]) -> int:
    """The length of the longest of these phrases that occurs at a word of one of the texts."""
    found = [match[0] for text in texts for match in _pattern(phrases).finditer(text)]
    return max((len(match.strip()) for match in found), default=0)


@cache
def _pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(phrases, key=len, reverse=True)
    return re.compile(" (?:" + "|".join(map(re.escape, longest_first)) + ")")
