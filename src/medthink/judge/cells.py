"""Reading the words people write into table cells as labels; an unknown word is a ValueError, never a guess."""

import json
import re
from collections.abc import Sequence
from typing import TypeVar

from medthink.judge.rubric import ERROR_TYPES, SUPPORTS, ErrorType, Support

UNSURE = "unsure"

_YES = frozenset({"yes", "y", "true", "t", "1", "ja", "oui"})
_NO = frozenset({"no", "n", "false", "f", "0", "nein", "non"})
_NOTHING = frozenset({"", UNSURE, "?", "n/a", "na", "-", "–", "none", "nan", "null", "not sure"})
_TYPE_WORDS: dict[str, ErrorType] = {name.replace("_", " "): name for name in ERROR_TYPES} | {
    "image": "image_understanding",
    "imaging": "image_understanding",
    "clinical": "clinical_scenario",
    "scenario": "clinical_scenario",
    "knowledge": "medical_knowledge",
}
_SEPARATORS = re.compile(r"[;,|/\n]+")
_ENDING = re.compile(r"\s+(?:err|errs|error|errors)\.?$")

Word = TypeVar("Word", bound=str)


class ContradictoryCells(ValueError):
    """Cells of one row that cannot all be right."""


def read_word(column: str, text: str, words: Sequence[Word]) -> Word | None:
    """One of the words, or nothing."""
    folded = _fold(text)
    found = next((word for word in words if word == folded), None)
    if found is None and folded not in _NOTHING:
        raise ValueError(f"{column}: {text.strip()!r} is not one of {', '.join(words)}")
    return found


def read_factual(text: str) -> tuple[bool | None, Support | None]:
    """Whether it is true, and how it is supported where one of the three words is used."""
    support = read_support(text, may_differ=True)
    if support is not None:
        return support == "supported", support
    return read_truth("factual", text), None


def read_support(text: str, *, may_differ: bool = False) -> Support | None:
    """One of the three words, or nothing; with `may_differ`, any other word counts as nothing too."""
    word = _fold(text)
    if may_differ and word not in SUPPORTS:
        return None
    return read_word("factual", word, SUPPORTS)


def read_truth(column: str, text: str) -> bool | None:
    """Yes, no, or nothing."""
    word = _fold(text)
    if word in _NOTHING:
        return None
    if word in _YES or word in _NO:
        return word in _YES
    raise ValueError(f"{column}: {text.strip()!r} is neither yes nor no")


def read_types(text: str) -> tuple[ErrorType, ...]:
    """Error types separated by semicolons, commas or line breaks, or as a JSON list; main one first."""
    stripped = text.strip()
    pieces = _json_list(stripped) if stripped.startswith("[") else _SEPARATORS.split(stripped)
    return tuple(dict.fromkeys(_read_type(piece) for piece in pieces if _fold(piece) not in _NOTHING))


def _read_type(piece: str) -> ErrorType:
    word = _ENDING.sub("", _fold(piece).replace("_", " ").replace("-", " "))
    if word not in _TYPE_WORDS:
        raise ValueError(f"error_types: {piece.strip()!r} is not one of {', '.join(ERROR_TYPES)}")
    return _TYPE_WORDS[word]


def _json_list(text: str) -> list[str]:
    try:
        value = json.loads(text.replace("'", '"'))
    except (json.JSONDecodeError, RecursionError):
        raise ValueError(f"error_types: {text[:40]!r} is not a list") from None
    return [str(one) for one in value]


def _fold(text: str) -> str:
    return " ".join(text.lower().split())
