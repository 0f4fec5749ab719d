"""The words that people write into cells, read as labels; a word that is not known is a ValueError, never a guess."""

import json
import re

import msgspec

from medthink.judge.readings import UnitKind
from medthink.judge.rubric import (
    ERROR_TYPES,
    SCORES,
    SENTENCE_LABELS,
    SUPPORTS,
    ErrorType,
    Score,
    SentenceLabel,
    Support,
)

_YES = frozenset({"yes", "y", "true", "t", "1", "ja", "oui"})
_NO = frozenset({"no", "n", "false", "f", "0", "nein", "non"})
_NOTHING = frozenset({"", "unsure", "?", "n/a", "na", "-", "–", "none", "nan", "null", "not sure"})
_TYPE_WORDS: dict[str, ErrorType] = {name.replace("_", " "): name for name in ERROR_TYPES} | {
    "image": "image_understanding",
    "imaging": "image_understanding",
    "clinical": "clinical_scenario",
    "scenario": "clinical_scenario",
    "knowledge": "medical_knowledge",
}
_SEPARATORS = re.compile(r"[;,|/\n]+")
_ENDING = re.compile(r"\s+(?:err|errs|error|errors)\.?$")


class Labels(msgspec.Struct, frozen=True, kw_only=True):
    """What a row says of one unit."""

    factual: bool | None = None
    support: Support | None = None
    critical: bool | None = None
    error_types: tuple[ErrorType, ...] | None = None
    label: SentenceLabel | None = None
    score: Score | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is said that could be compared."""
        return self.factual is None and self.critical is None and self.label is None and self.score is None


def read_labels(kind: UnitKind, cells: dict[str, str]) -> Labels:
    """The labels that a unit of this kind takes; ValueError names the cell that cannot be read or contradicts."""
    if kind == "sentence":
        return Labels(label=read_sentence(cells.get("label", "")))
    if kind == "education":
        return Labels(score=read_score(cells.get("score", "")))
    factual, support = read_factual(cells.get("factual", ""))
    if kind == "statement":
        if factual is not None and support is None:
            raise ValueError(f"factual: of a statement one of {', '.join(SUPPORTS)} must be said")
        return Labels(factual=factual, support=support)
    return Labels(
        factual=factual,
        support=support,
        critical=read_truth("critical", cells.get("critical", "")),
        error_types=_name_types(factual, support, read_types(cells.get("error_types", ""))),
    )


def _name_types(
    factual: bool | None, support: Support | None, types: tuple[ErrorType, ...]
) -> tuple[ErrorType, ...] | None:
    """The types that were named, or None where that is not known: a step that is wrong must have one."""
    if factual and types:
        raise ValueError("factual, and yet with error types")
    if factual is None:
        return None
    # Readers are asked for types of contradicted steps only: of an unsupported one, none is an answer.
    return types if types or factual or support == "unsupported" else None


def read_factual(text: str) -> tuple[bool | None, Support | None]:
    """Whether it is true, and how it is supported where one of the three words is used."""
    word = _fold(text)
    for support in SUPPORTS:
        if word == support:
            return support == "supported", support
    return read_truth("factual", text), None


def read_truth(column: str, text: str) -> bool | None:
    """Yes, no, or nothing."""
    word = _fold(text)
    if word in _NOTHING:
        return None
    if word in _YES or word in _NO:
        return word in _YES
    raise ValueError(f"{column}: {text.strip()!r} is neither yes nor no")


def read_sentence(text: str) -> SentenceLabel | None:
    """One of the three labels of a sentence, or nothing."""
    word = _fold(text)
    if word in _NOTHING:
        return None
    found = next((label for label in SENTENCE_LABELS if label == word), None)
    if found is None:
        raise ValueError(f"label: {text.strip()!r} is none of {', '.join(SENTENCE_LABELS)}")
    return found


def read_score(text: str) -> Score | None:
    """0, 1, 2 or nothing."""
    word = _fold(text)
    if word in _NOTHING:
        return None
    found = next((score for score in SCORES if str(score) == word), None)
    if found is None:
        raise ValueError(f"score: {text.strip()!r} is none of 0, 1, 2")
    return found


def read_types(text: str) -> tuple[ErrorType, ...]:
    """Error types, apart by semicolons, commas or lines, or as a JSON list; in the order of the rubric."""
    stripped = text.strip()
    pieces = _json_list(stripped) if stripped.startswith("[") else _SEPARATORS.split(stripped)
    found = {_read_type(piece) for piece in pieces if _fold(piece) not in _NOTHING}
    return tuple(name for name in ERROR_TYPES if name in found)


def _read_type(piece: str) -> ErrorType:
    word = _ENDING.sub("", _fold(piece).replace("_", " ").replace("-", " "))
    if word not in _TYPE_WORDS:
        raise ValueError(f"error_types: {piece.strip()!r} is none of {', '.join(ERROR_TYPES)}")
    return _TYPE_WORDS[word]


def _json_list(text: str) -> list[str]:
    try:
        value = json.loads(text.replace("'", '"'))
    except (json.JSONDecodeError, RecursionError):
        raise ValueError(f"error_types: {text[:40]!r} is no list") from None
    return [str(one) for one in value]


def _fold(text: str) -> str:
    return " ".join(text.lower().split())
