"""Planted checks: a judged text in which one supported statement was made false, or reworded and left true.

The edits are those of the judge's exam, and each changes one thing, so that a check looks like any other text.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple

from msgspec.structs import replace

from medthink.judge.edits import falsify
from medthink.judge.edits.names import name_other_options
from medthink.judge.edits.twins import reword
from medthink.judge.units import Source, Unit, UnitSet


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
    """A check made from one of the units known to be true, or None if no edit fits.

    A unit is known to be true if every judge supports it, or if it names the diagnosis and no other option.
    """
    found = []
    for unit in units:
        wrong = name_other_options(unit.text, options.values(), answer)
        if unit.id not in supported and not wrong:
            continue
        said = [one.text for one in units if one is not unit]
        false = [*(falsify(unit.text, said).values() if unit.id in supported else ()), *wrong]
        texts = [reword(unit.text)] if is_true else false
        found += [Check(unit, text, is_true) for text in texts if text is not None and text != unit.text]
    return chance.choice(found) if found else None


def apply_check(check: Check, source: Source, units: UnitSet) -> tuple[Source, UnitSet]:
    """The text with the check in it, and its units, under made-up ids."""
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
