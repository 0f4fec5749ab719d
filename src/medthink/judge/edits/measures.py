"""Edits of numbers: size, unit, spinal level."""

import math
import re

from medthink.judge.edits.guards import is_positive

_NUMBER = r"\d{1,3}(?:\.\d{1,2})?"
_GROUP = re.compile(
    rf"(?<![\d.–-])(?P<numbers>{_NUMBER}(?:\s?[x×*]\s?{_NUMBER}){{0,2}})(?P<space>\s?-?)(?P<unit>mm|cm)\b(?![²³23])"
)
_NOT_A_SIZE = re.compile(
    r"[<>≤≥]|\b(?:than|over|under|above|below|up to|at least|at most|exceed\w*|between|rang\w+|slices?|thick\w*"
    r"|collimation|normal\w*|threshold|cut-?off|every|limit|from the|away|distance|per)\b"
    r"|\d\s?(?:to|–|-|and|or)\s?\d",
    re.IGNORECASE,
)  # fmt: skip
_DOUBLED_UNDER_MM = 40
_LEAST_CHANGE_MM = 5
_MM_TO_CM = (2, 25)
_LONGEST_CM = 40
_LEVEL = re.compile(
    r"\b(?P<letter>C|Th|T|D|L)(?P<first>\d{1,2})(?:(?P<mark>\s?[-–/]\s?(?:C|Th|T|D|L)?)(?P<second>\d{1,2}))?(?![\w-])"
)
_NOT_A_LEVEL = re.compile(
    r"\b(?:weighted|signal\w*|images?|sequences?|FLAIR|STIR|segments?|T[12]W\w*|hepatic|liver)\b", re.IGNORECASE
)
_LEVELS = {"C": 7, "T": 12, "Th": 12, "D": 12, "L": 5}
_BY_LEVELS = 2


def change_size(sentence: str) -> str | None:
    """The sentence's only size, doubled, or halved if it is 40 mm or more."""
    found = _only_size(sentence)
    if found is None:
        return None
    numbers = re.findall(_NUMBER, found["numbers"])
    scale = 10 if found["unit"] == "cm" else 1
    largest = max(map(float, numbers)) * scale
    factor = 2.0 if largest < _DOUBLED_UNDER_MM else 0.5
    if abs(largest * factor - largest) < _LEAST_CHANGE_MM:
        return None
    written = re.sub(_NUMBER, lambda one: _scale(one[0], factor), found["numbers"])
    return _put(sentence, found, written, found["unit"])


def change_unit(sentence: str) -> str | None:
    """Millimetres instead of centimetres, or vice versa, if the number allows it."""
    found = _only_size(sentence)
    if found is None:
        return None
    numbers = [float(one) for one in re.findall(_NUMBER, found["numbers"])]
    if found["unit"] == "mm":
        fits = all(_MM_TO_CM[0] <= one <= _MM_TO_CM[1] for one in numbers)
        return _put(sentence, found, found["numbers"], "cm") if fits else None
    fits = all(one <= _LONGEST_CM for one in numbers)
    return _put(sentence, found, found["numbers"], "mm") if fits else None


def write_unit_otherwise(sentence: str) -> str | None:
    """The same size in the other unit: 3.2 cm is 32 mm."""
    found = _only_size(sentence)
    if found is None:
        return None
    to_mm = found["unit"] == "cm"
    written = re.sub(_NUMBER, lambda one: f"{float(one[0]) * (10 if to_mm else 0.1):.4g}", found["numbers"])
    return _put(sentence, found, written, "mm" if to_mm else "cm")


def change_level(sentence: str) -> str | None:
    """The only vertebra or range of vertebrae, moved by two levels."""
    groups = list(_LEVEL.finditer(sentence))
    if len(groups) != 1 or _NOT_A_LEVEL.search(sentence) or not is_positive(sentence):
        return None
    found = groups[0]
    first, second = int(found["first"]), int(found["second"] or found["first"])
    most = _LEVELS[found["letter"]]
    if not 1 <= first <= second <= most or (found["mark"] or "-").strip(" -–/") not in ("", found["letter"]):
        return None
    by = _BY_LEVELS if second + _BY_LEVELS <= most else -_BY_LEVELS
    if first + by < 1:
        return None
    end = f"{found['mark']}{second + by}" if found["second"] else ""
    return f"{sentence[: found.start()]}{found['letter']}{first + by}{end}{sentence[found.end() :]}"


def _only_size(sentence: str) -> re.Match[str] | None:
    groups = list(_GROUP.finditer(sentence))
    if len(groups) != 1 or _NOT_A_SIZE.search(sentence) or not is_positive(sentence):
        return None
    return groups[0]


def _scale(number: str, factor: float) -> str:
    """The scaled number with the same decimals, never closer to the original than the factor."""
    decimals = len(number.partition(".")[2])
    scaled = float(number) * factor * 10**decimals
    whole = math.ceil(scaled) if factor > 1 else math.floor(scaled)
    return f"{whole / 10**decimals:.{decimals}f}"


def _put(sentence: str, found: re.Match[str], numbers: str, unit: str) -> str:
    return f"{sentence[: found.start()]}{numbers}{found['space']}{unit}{sentence[found.end() :]}"
