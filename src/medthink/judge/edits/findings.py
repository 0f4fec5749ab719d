"""Edits of findings: deletion, invention, and other diagnoses in place of the right one."""

import re
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from random import Random

import msgspec

from medthink.judge.edits.guards import count_negations, match_capitals
from medthink.metrics.findings import compare_findings
from medthink.metrics.findings.lexicon import content_words

# A sentence that begins like this refers to the one before it.
_REFERS_BACK = re.compile(
    r"(?:it|its|this|that|these|those|they|their|he|she|both|however|moreover|also"
    r"|the (?:lesion|mass|finding|latter|same|tumou?r))\b",
    re.IGNORECASE,
)


def delete_finding(sentences: Sequence[str], finding: str) -> tuple[str, ...] | None:
    """The sentences that do not mention the finding; None if none does, none is left, or one loses its reference."""
    mentions = [_mentions(sentence, finding) for sentence in sentences]
    orphaned = any(
        gone and not mentions[place] and _REFERS_BACK.match(sentences[place])
        for place, gone in enumerate(mentions[:-1], start=1)
    )
    kept = tuple(sentence for sentence, gone in zip(sentences, mentions, strict=True) if not gone)
    return kept if any(mentions) and kept and not orphaned else None


def _mentions(sentence: str, finding: str) -> bool:
    compared = compare_findings(finding, sentence)
    return sentence == finding or bool(compared.matched or compared.conflicts)


class Region(msgspec.Struct, frozen=True):
    """A body region: words that identify it, and findings keyed by the words that must not occur in the case."""

    cues: tuple[str, ...]
    findings: dict[str, str]


def invent_finding(said: str, chance: Random) -> str | None:
    """A sentence with an invented finding in the region of the texts, which they do not mention."""
    words = {token.word for token in content_words(said)}
    counts = {name: sum(cue in words for cue in region.cues) for name, region in _bank().items()}
    best = max(counts, key=lambda name: counts[name])
    if not counts[best]:
        return None
    fitting = [text for terms, text in _bank()[best].findings.items() if not words & set(terms.split())]
    return chance.choice(fitting) if fitting else None


@cache
def _bank() -> dict[str, Region]:
    with (Path(__file__).parent / "inventions.toml").open("rb") as stream:
        return msgspec.convert(tomllib.load(stream), dict[str, Region])


# A disease named in a list, or next to what distinguishes it, is not what the sentence claims.
_COMPARES = re.compile(
    r"\b(?:like|unlike|differential|versus|vs|confus\w+|mimic\w*|resembl\w+|distinguish\w*|than)\b", re.IGNORECASE
)


def name_other_options(sentence: str, options: Iterable[str], answer: str) -> list[str]:
    """The sentence with each other option in place of the diagnosis; none where it names several, or denies it."""
    others = [option for option in options if option != answer]
    if not answer or count_negations(sentence) or _COMPARES.search(sentence):
        return []
    if not _names(sentence, answer) or any(_names(sentence, other) for other in others):
        return []
    return [_put(sentence, answer, other) for other in others if _is_plural(other) == _is_plural(answer)]


def _names(sentence: str, option: str) -> bool:
    return bool(_pattern(option).search(sentence))


def _put(sentence: str, answer: str, other: str) -> str:
    """The other name, in lower case inside a sentence if the diagnosis is, unless it is an abbreviation."""
    small = other if other[1:2].isupper() else other[:1].lower() + other[1:]
    return _pattern(answer).sub(lambda found: match_capitals(found[0], small), sentence)


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)


def _is_plural(name: str) -> bool:
    return name.endswith("s") and not name.endswith(("is", "us", "ss"))
