"""What readers say of units, and everything in their tables that could not be used.

Two forms are read. Our own has a row for each reader and unit. The published one has a row for each case and reader,
with the columns `stepN`, `human_factualN`, `human_criticalN` and `human_error_typesN`.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from medthink.judge.rubric import DIMENSIONS, Dimension, ErrorType, Score, SentenceLabel, Support, What
from medthink.judge.units import UnitKey, UnitSet, education_id

UnitKind = Literal["step", "sentence", "statement", "education"]
ProblemKind = Literal["unmatched", "duplicate", "contradictory", "invalid", "unlabelled", "other_run"]

AGAIN = " (again)"
_KINDS: dict[What, UnitKind] = {"steps": "step", "discussion": "sentence", "findings": "statement"}
_CASE = re.compile(r"(?:case\s+number\s+)?0*(\d{1,18})", re.IGNORECASE)


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A unit that can be read: which case it belongs to, and what kind of label it takes."""

    id: str
    case: int
    sample: int
    kind: UnitKind
    part: str
    text: str


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What one reader says of one unit; None where the reader did not say, or was unsure.

    `factual` is whether a step is true; `support` says more where the reader used the three words.
    """

    reader: str
    unit: str
    case: int
    kind: UnitKind
    factual: bool | None = None
    support: Support | None = None
    critical: bool | None = None
    error_types: tuple[ErrorType, ...] | None = None
    label: SentenceLabel | None = None
    score: Score | None = None
    note: str = ""
    file: str = ""
    row: int = 0

    @property
    def labels(self) -> tuple[object, ...]:
        """All that was said but the note."""
        return (self.factual, self.support, self.critical, self.error_types, self.label, self.score)


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A row that could not be used, or not as it stands."""

    kind: ProblemKind
    file: str
    row: int
    detail: str

    def __str__(self) -> str:
        return f"{self.file}:{self.row}: {self.kind.replace('_', ' ')}: {self.detail}"


class Import(msgspec.Struct, frozen=True, kw_only=True):
    """The readings of all tables, the rows that were not used, and readings of planted checks by code."""

    readings: tuple[Reading, ...]
    problems: tuple[Problem, ...]
    checks: tuple[Reading, ...] = ()


def catalogue(units: Mapping[UnitKey, UnitSet]) -> dict[str, Known]:
    """Every unit of a run that a reader may have read, by id; a discussion adds its five dimensions."""
    found: dict[str, Known] = {}
    for one in units.values():
        for unit in one.units:
            found[unit.id] = Known(
                id=unit.id, case=one.case, sample=one.sample, kind=_KINDS[one.what], part=unit.part, text=unit.text
            )
        if one.what == "discussion" and one.state == "ok":
            for name in DIMENSIONS:
                key = education_id(one, name)
                found[key] = _dimension(one, key, name)
    return found


def _dimension(units: UnitSet, key: str, name: Dimension) -> Known:
    return Known(id=key, case=units.case, sample=units.sample, kind="education", part=name, text="")


def settle_readings(found: list[Reading]) -> tuple[list[Reading], list[Problem]]:
    """One reading for each reader and unit: the same said twice counts once, and a contradiction counts for nothing."""
    groups: dict[tuple[str, str], list[Reading]] = {}
    for one in found:
        groups.setdefault((one.reader, one.unit), []).append(one)
    kept: list[Reading] = []
    problems: list[Problem] = []
    for (reader, unit), group in groups.items():
        if len({one.labels for one in group}) == 1:
            kept.append(group[0])
            problems += [_problem("duplicate", one, f"{reader} says the same of {unit} before") for one in group[1:]]
        else:
            places = ", ".join(f"{Path(one.file).name}:{one.row}" for one in group)
            problems += [
                _problem("contradictory", one, f"{reader} says two things of {unit}: {places}") for one in group
            ]
    return kept, problems


def _problem(kind: ProblemKind, reading: Reading, detail: str) -> Problem:
    return Problem(kind=kind, file=reading.file, row=reading.row, detail=detail)


def parse_case(text: str) -> int | None:
    """The number of `Case number 12`, `12` or `00012`; None for anything else."""
    found = _CASE.fullmatch(text.strip())
    return int(found[1]) if found else None
