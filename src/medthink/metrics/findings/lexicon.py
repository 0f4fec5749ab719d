"""The lexicon: the words of findings, sites, sides and cues, read once from its data file."""

import re
import tomllib
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import Literal

import msgspec

from medthink.core.digest import digest_bytes
from medthink.metrics.porter import stem
from medthink.metrics.spelling import normalise_spelling

MentionKind = Literal["finding", "normal", "site", "side", "cue"]


def word_set(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


_KEPT_WHOLE = word_set(
    "vascular vascularity vascularized vascularization abnormal based pathology pathologies thinning thinned "
    "extension extensive restriction restricted recurrence recurrent fecalization straining"
)
# Plurals that the stemmer does not bring together with their singular.
_SINGULARS = dict(
    pair.split(":")
    for pair in word_set(
        "sinuses:sinus apices:apex apexes:apex bronchi:bronchus foci:focus calyces:calyx calices:calyx "
        "phalanges:phalanx femora:femur menisci:meniscus bursae:bursa bullae:bulla foramina:foramen sulci:sulcus "
        "gyri:gyrus testes:testis fistulae:fistula diverticula:diverticulum diverticuli:diverticulum "
        "diverticulae:diverticulum vertebrae:vertebra scapulae:scapula maxillae:maxilla pleurae:pleura humeri:humerus "
        "radii:radius tali:talus bronchioles:bronchiole cervices:cervix pelves:pelvis thalami:thalamus "
        "hippocampi:hippocampus nuclei:nucleus hila:hilum septae:septa globi:globus thrombi:thrombus emboli:embolus "
        "calculi:calculus lumina:lumen varices:varix stenoses:stenosis metastases:metastasis synechiae:synechia "
        "sequestra:sequestrum ganglia:ganglion papillae:papilla pneumothoraces:pneumothorax "
        "pneumothoraxes:pneumothorax hydroceles:hydrocele tophi:tophus"
    )
)
_WORD = re.compile(r"[a-z]+|\d+|[,?]")


class Term(msgspec.Struct, frozen=True):
    """A phrase of the lexicon, by its words in the form used for lookup."""

    words: tuple[str, ...]
    kind: MentionKind
    name: str


class PhraseTable(msgspec.Struct, frozen=True):
    """Entries by their words, and the possible lengths by first word, longest first."""

    entries: dict[tuple[str, ...], Term]
    lengths: dict[str, list[int]]

    def longest(self, words: Sequence[str], place: int) -> Term | None:
        """The longest entry that starts at this place."""
        for length in self.lengths.get(words[place], ()):
            entry = self.entries.get(tuple(words[place : place + length]))
            if entry:
                return entry
        return None


class Lexicon(msgspec.Struct, frozen=True):
    """The phrases of cues and sides (exact words) and of findings and sites (stems), and how the latter nest."""

    version: str
    digest: str
    exact: PhraseTable
    stemmed: PhraseTable
    finding_starts: frozenset[str]
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
    findings = _entries("finding", file.findings) + _entries("normal", file.absent)
    return Lexicon(
        version=file.version,
        digest=digest_bytes(data),
        exact=_table(_entries("side", file.sides) + _entries("cue", file.cues)),
        stemmed=_table(findings + _entries("site", file.sites)),
        finding_starts=frozenset(entry.words[0] for entry in findings),
        broader=file.broader,
        part_of=file.part_of,
        unsided=frozenset(_phrases(file.unsided["findings"])),
        unsized=frozenset(_phrases(file.unsized["findings"])),
    )


@lru_cache(maxsize=1 << 16)
def fold_word(word: str) -> str:
    """The form under which a word of a finding or a site is looked up."""
    word = _SINGULARS.get(word, word)
    # The stemmer would merge "pancreatitis" with "pancreatic", and "vascular" with "vascularity".
    return word if len(word) <= 3 or word.endswith("itis") or word in _KEPT_WHOLE else stem(word)


def _phrases(text: str) -> list[str]:
    return [phrase.strip() for phrase in text.split("|")]


def _entries(kind: MentionKind, table: dict[str, str]) -> list[Term]:
    fold = fold_word if kind in ("finding", "normal", "site") else str
    return [
        Term(tuple(fold(word) for word in _WORD.findall(normalise_spelling(phrase))), kind, name)
        for name, phrases in table.items()
        for phrase in _phrases(phrases)
    ]


def _table(entries: list[Term]) -> PhraseTable:
    lengths: dict[str, set[int]] = {}
    for entry in entries:
        lengths.setdefault(entry.words[0], set()).add(len(entry.words))
    # Of two entries with the same words the first counts: findings before sites.
    by_words = {entry.words: entry for entry in reversed(entries)}
    return PhraseTable(by_words, {word: sorted(found, reverse=True) for word, found in lengths.items()})
