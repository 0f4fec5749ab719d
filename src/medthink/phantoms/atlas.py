"""The atlas: families of diseases, each disease a profile of signs, one sign per axis.

The wording is in `families/*.toml`. Profiles are stylised: close to the textbooks, and the same in every case,
so that they can be learned from the train split.
"""

from functools import cache
from itertools import combinations
from pathlib import Path

import msgspec


class View(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One way to show an axis: its painter, its labels, and its captions for each sign."""

    painter: str
    modality: str
    sub: str
    leads: tuple[str, ...]
    normal: tuple[str, ...]
    signs: dict[str, tuple[str, ...]]
    mm: int = 0


class Axis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One property that images can show, with its possible values and the views that show it."""

    name: str
    values: dict[str, str]
    views: tuple[View, ...]


class Disease(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One diagnosis: its ICD-10 category and its sign on each axis."""

    name: str
    icd: str
    profile: tuple[str, ...]
    about: str
    care: str


class HistoryWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The phrases that a history of this family may use; none depends on the disease."""

    complaints: tuple[str, ...]
    exams: tuple[str, ...]
    labs: tuple[str, ...]
    pasts: tuple[str, ...]


class Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Diseases of one region that are distinguished by the same axes."""

    region: str
    weight: float
    ages: tuple[int, int]
    sexes: tuple[str, ...]
    service: str
    history: HistoryWords
    axes: tuple[Axis, ...]
    diseases: tuple[Disease, ...]


@cache
def families() -> dict[str, Family]:
    """All families by name, in alphabetical order."""
    folder = Path(__file__).parent / "families"
    return {path.stem: msgspec.toml.decode(path.read_bytes(), type=Family) for path in sorted(folder.glob("*.toml"))}


@cache
def option_sets(family: str) -> tuple[tuple[Disease, ...], ...]:
    """Every set of five diseases in which no single axis decides, whichever of the five is right.

    On each axis the five must split into a pair and a triple. A set that is fair for all its members lets the right
    one be drawn evenly, so that the options reveal nothing about the answer.
    """
    return tuple(five for five in combinations(families()[family].diseases, 5) if is_fair(five))


def is_fair(five: tuple[Disease, ...]) -> bool:
    """Whether every axis splits these diseases two to three and all profiles differ."""
    profiles = [disease.profile for disease in five]
    if len(set(profiles)) < len(profiles):
        return False
    return all(sorted(map(signs.count, set(signs))) == [2, 3] for signs in zip(*profiles, strict=True))
