"""Planted checks: a judged text in which one supported statement was made false, or reworded and left true.

Each edit changes one thing (side, negation, size, level, the option named), so that a check looks like any other text.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple

from msgspec.structs import replace

from medthink.judge.units import Source, Unit, UnitSet

_GUARD = re.compile(
    r"\b(?:may|might|could|would|possibl[ey]|suspected|suggest\w*|expected|should|recommend\w*|consider|bilateral|both"
    r"|midline|contralateral|ipsilateral|but|except|either)\b",
    re.IGNORECASE,
)
_CUE = re.compile(r"\b(?:no|not|without|never|neither|nor|normal|clear|unlikely|against|excluded?)\b", re.IGNORECASE)
_SIDE = re.compile(r"\b(left|right)\b", re.IGNORECASE)
_DROPS = (
    (re.compile(r"\b(There (?:is|was|are|were)) no (?:evidence of |sign of )?(?:any )?", re.IGNORECASE), r"\1 "),
    (re.compile(r"^No (\w)(?=.*\b(?:is|was|are|were) (?:seen|noted|present|found|visible)\b)"), None),
    (re.compile(r"\bwithout (?!\w+ing\b)(?:any )?", re.IGNORECASE), "with "),
    (re.compile(r"\b(shows?|showed|reveal(?:s|ed)) no ", re.IGNORECASE), r"\1 "),
)
_ADD = re.compile(r"\b(There (?:is|was)|shows?|showed|reveal(?:s|ed)) an? ", re.IGNORECASE)
_SIZE = re.compile(r"(?<![\d.–-])(\d{1,3}(?:\.\d)?)( ?)(mm|cm)\b(?! slices?)")
_LEVEL = re.compile(r"\b([CTL])(\d{1,2})\b(?![-/–]?weighted|W)")
_LEVELS = {"C": 7, "T": 12, "L": 5}
_TWINS = (
    ("shows", "reveals"), ("showed", "revealed"), ("reveals", "shows"), ("revealed", "showed"), ("is seen", "is noted"),
    ("was seen", "was noted"), ("no evidence of", "no sign of"), ("There is", "One can see"),
    ("is large", "is big"), ("is small", "is little"),
)  # fmt: skip


class Check(NamedTuple):
    """A unit in other words, and whether it is still true."""

    unit: Unit
    text: str
    is_true: bool


def find_check(
    units: Sequence[Unit],
    *,
    supported: frozenset[str],
    options: Mapping[str, str],
    answer: str,
    is_true: bool,
    chance: Random,
) -> Check | None:
    """A check made of one of the units that are known to be true, or None where no edit fits."""
    found = []
    for unit in units:
        names_answer = bool(answer) and answer.lower() in unit.text.lower() and not _CUE.search(unit.text)
        if unit.id in supported or names_answer:
            texts = _reword(unit.text) if is_true else _falsify(unit.text, options, answer)
            found += [Check(unit, text, is_true) for text in texts if text != unit.text]
    return chance.choice(found) if found else None


def apply_check(check: Check, source: Source, units: UnitSet) -> tuple[Source, UnitSet]:
    """The text with the check in it, and its units, whose ids are no real ones."""
    part, moved = check.unit.part, len(check.text) - len(check.unit.text)
    text = source.parts[part]
    edited = text[: check.unit.start] + check.text + text[check.unit.end :]
    changed = []
    for unit in units.units:
        new = replace(unit, id=f"planted {unit.id}")
        if unit.id == check.unit.id:
            new = replace(new, text=check.text, end=unit.end + moved)
        elif unit.part == part and unit.start >= check.unit.end:
            new = replace(new, start=unit.start + moved, end=unit.end + moved)
        changed.append(new)
    return replace(source, parts=source.parts | {part: edited}), replace(units, units=tuple(changed))


def _falsify(text: str, options: Mapping[str, str], answer: str) -> Iterator[str]:
    if _GUARD.search(text):
        return
    is_negated = bool(_CUE.search(text))
    sides = {side.lower() for side in _SIDE.findall(text)}
    if len(sides) == 1 and not is_negated:
        yield _SIDE.sub(lambda side: _like(side[0], "right" if side[0].lower() == "left" else "left"), text)
    if len(_CUE.findall(text)) == 1:
        yield from _drop_negation(text)
    if not is_negated:
        yield _ADD.sub(r"\1 no ", text, count=1)
        yield from _change_size(text)
        yield from _change_level(text)
        yield from (_put(text, answer, option) for option in options.values() if option != answer and answer)


def _reword(text: str) -> Iterator[str]:
    for old, new in _TWINS:
        if re.search(rf"\b{old}\b", text):
            yield re.sub(rf"\b{old}\b", new, text, count=1)
            return


def _drop_negation(text: str) -> Iterator[str]:
    for cue, instead in _DROPS:
        if instead is None:
            yield cue.sub(lambda found: found[1].upper(), text, count=1)
        else:
            yield cue.sub(instead, text, count=1)


def _change_size(text: str) -> Iterator[str]:
    sizes = _SIZE.findall(text)
    if len(sizes) == 1:
        number, space, unit = sizes[0]
        millimetres = float(number) * (10 if unit == "cm" else 1)
        other = float(number) * (2 if millimetres < 40 else 0.5)
        if abs(other - float(number)) * (10 if unit == "cm" else 1) >= 5:
            written = f"{other:.1f}" if "." in number else f"{other:.0f}"
            yield _SIZE.sub(f"{written}{space}{unit}", text)


def _change_level(text: str) -> Iterator[str]:
    levels = _LEVEL.findall(text)
    if len(levels) == 1 and "MRI" not in text and "signal" not in text.lower():
        letter, number = levels[0][0], int(levels[0][1])
        if 1 <= number <= _LEVELS[letter]:
            yield _LEVEL.sub(f"{letter}{number + 2 if number + 2 <= _LEVELS[letter] else number - 2}", text)


def _put(text: str, answer: str, option: str) -> str:
    return re.sub(re.escape(answer), lambda _: option, text, flags=re.IGNORECASE)


def _like(model: str, word: str) -> str:
    return word.capitalize() if model[0].isupper() else word
