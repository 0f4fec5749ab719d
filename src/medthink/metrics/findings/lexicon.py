"""The lexicon: the words of findings, sites, sides and cues, read once from its data file."""

import re
import tomllib
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import Literal, NamedTuple

import msgspec

from medthink.core.digest import digest_bytes
from medthink.metrics.words import normalise_spelling, stem

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
        """The longest entry that starts at this position."""
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
def lexicon_form(word: str) -> str:
    """The form under which a word of a finding or a site is looked up."""
    word = _SINGULARS.get(word, word)
    # The stemmer would merge "pancreatitis" with "pancreatic", and "vascular" with "vascularity".
    return word if len(word) <= 3 or word.endswith("itis") or word in _KEPT_WHOLE else stem(word)


def _phrases(text: str) -> list[str]:
    return [phrase.strip() for phrase in text.split("|")]


def _entries(kind: MentionKind, table: dict[str, str]) -> list[Term]:
    fold = lexicon_form if kind in ("finding", "normal", "site") else str
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


_LETTERS = re.compile(r"[^\W\d_]+")
_ENGLISH = word_set(
    "the of and in with is are was were no not to a an on at for by from this there that as or without left right "
    "within showed shows seen noted which be has have"
)
# The commonest words of other languages that do not occur in English reports.
_FOREIGN = (
    word_set(
        "der die das und mit ist im den dem ein eine einer eines kein keine nicht bei von zur zum auf links rechts "
        "beidseits le la les des du de et avec est un une dans sans aux au par sur gauche droite pas ce cette il "
        "el los las y con es en una del por sin se izquierdo derecho izquierda derecha hay lo "
        "di il della del che con gli nel nella non sinistra destra sono per una "
        "da do dos das com sem na no em os esquerda direita uma nao "
        "het een van met en geen links rechts bij niet zijn aan"
    )
    - _ENGLISH
    - {"in", "an", "no", "die"}
)
_FEWEST_WORDS = 4


def is_english(text: str) -> bool:
    """False if the words are clearly of another language; a text too short to tell counts as English."""
    words = [word.lower() for word in _LETTERS.findall(text)]
    if not words:
        return True
    latin = sum(word.isascii() or word[0] < "ɐ" for word in words)
    if latin * 2 < len(words):
        return False
    english = sum(word in _ENGLISH for word in words)
    foreign = sum(word in _FOREIGN for word in words)
    return len(words) < _FEWEST_WORDS or foreign <= english or foreign < 2


VERBS = word_set(
    "is are was were has have had shows show showed demonstrates demonstrate demonstrated reveals reveal revealed "
    "appears appear appeared there contains contain contained remains exhibits exhibited measures measured"
)

MarkKind = Literal["finding", "normal", "site", "side", "cue", "size"]


class Mention(msgspec.Struct, frozen=True):
    """A mention of a lexicon entry, or a measurement, at words `start` to `end` of its clause."""

    kind: MarkKind
    name: str
    start: int
    end: int
    size_mm: float | None = None


class Clause(msgspec.Struct, frozen=True):
    """The words of one clause and the mentions in it."""

    words: tuple[str, ...]
    mentions: tuple[Mention, ...]

    def of_kind(self, *kinds: MarkKind) -> list[Mention]:
        """The mentions of these kinds, in reading order."""
        return [mention for mention in self.mentions if mention.kind in kinds]

    def cues(self, *names: str) -> list[Mention]:
        """The cues of these names, in reading order."""
        return [mention for mention in self.mentions if mention.kind == "cue" and mention.name in names]


Side = Literal["left", "right", "bilateral", "midline"]
Polarity = Literal["present", "absent"]
Certainty = Literal["certain", "uncertain"]
Change = Literal["new", "increased", "decreased", "stable", "resolved"]


class Statement(msgspec.Struct, frozen=True):
    """One finding, stated as present or absent; fields that the text does not state are None."""

    finding: str
    polarity: Polarity = "present"
    certainty: Certainty = "certain"
    site: str | None = None
    side: Side | None = None
    size_mm: float | None = None
    change: Change | None = None


_TOKEN = re.compile(r"\d+(?:[.,]\d+)?|[^\W\d_]+(?:['’][^\W\d_]+)?|[<>≤≥=±%+]")
_ENTRY = re.compile(r"(?:^|[\r\n])[ \t]*(?:[-*•·–—>#]+|\(?\d{1,2}[.)]|\(?[a-zA-H]\)|(?i:step)\s+\d{1,2}\s*[:.)])(?=\s)")


_FRAME = word_set(
    "a an the is are was were be been being has have had do does did there it this that these those which"
    " and also then first firstly second secondly third next finally moreover furthermore additionally overall"
    " show shows showed shown showing reveal reveals revealed revealing see sees saw seen note notes noted"
    " demonstrate demonstrates demonstrated demonstrating identify identifies identified visualize visualized"
    " observe observes observed depict depicts depicted find finds found"
)
_NUMBERS = {
    "zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8",
    "nine": "9", "ten": "10", "eleven": "11", "twelve": "12",
}  # fmt: skip
_CLASSES: dict[str, frozenset[str]] = {
    "a negation": word_set(
        "no not without never none neither nor cannot absent absence lacks lack lacking denies denied negative"
    ),
    "a side": word_set("left right bilateral unilateral both ipsilateral contralateral midline"),
    "a hedge": word_set(
        "may might could would can possible possibly probable probably likely unlikely suspected suggest suggests"
        " suggestive suspicious appears perhaps maybe presumably presumed potentially questionable equivocal"
    ),
}


class Token(NamedTuple):
    """A word in its normal form, and its position in the text."""

    word: str
    start: int
    end: int


def content_words(text: str) -> list[Token]:
    """The words that carry content, in a normalised spelling, without list markers."""
    plain = _ENTRY.sub(lambda entry: " " * len(entry[0]), text)
    found = (Token(_normal(match[0]), *match.span()) for match in _TOKEN.finditer(plain))
    return [token for token in found if token.word not in _FRAME]


# They qualify what can be seen or would follow, not how sure the author is.
_NO_HEDGE = word_set("can would")


def is_hedged(text: str) -> bool:
    """Whether the text calls something possible, probable or suspected instead of stating it."""
    return any(name_class(token.word) == "a hedge" and token.word not in _NO_HEDGE for token in content_words(text))


def name_class(word: str) -> str:
    """The kind of word it is, for a message that does not repeat it."""
    if word[:1].isdigit():
        return "a number"
    return next((name for name, words in _CLASSES.items() if word in words), "a word")


def _normal(word: str) -> str:
    """Lower case, digits for number words, and one spelling for British and American words."""
    folded = word.lower().replace("’", "'").replace(",", ".")
    folded = _NUMBERS.get(folded, folded)
    if len(folded) < 5:
        return folded
    spelt = folded.replace("ae", "e").replace("oe", "e").replace("our", "or")
    return re.sub(r"is(e|ed|es|ing|ation)$", r"iz\1", re.sub(r"([a-z])tre$", r"\1ter", spelt))
