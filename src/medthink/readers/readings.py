"""Readers' labels for the items of a run, and everything in their tables that could not be used.

Two forms are read. Our own has a row for each reader and item. The published one has a row for each case and reader,
with the columns `stepN`, `human_factualN`, `human_criticalN` and `human_error_typesN`.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from medthink.judge.kinds import KINDS
from medthink.judge.kinds.kind import Item, Label
from medthink.judge.units import UnitKey, UnitSet

UnusedKind = Literal["unmatched", "duplicate", "contradictory", "invalid", "unlabelled", "other_run", "unread"]

AGAIN = " (again)"
_CASE = re.compile(r"(?:case\s+number\s+)?0*(\d{1,18})", re.IGNORECASE)


class Readable(Item, frozen=True, kw_only=True):
    """An item that can be read, with its case and the kind of judging."""

    case: int
    sample: int
    what: str


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """One reader's labels for one item, by aspect; an aspect the reader left empty is absent.

    `error_types` are those named, in the reader's order: the main one first.
    """

    reader: str
    unit: str
    case: int
    labels: dict[str, Label]
    error_types: tuple[str, ...] = ()
    note: str = ""
    file: str = ""
    row: int = 0


class UnusedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row that could not be used, or not as written."""

    kind: UnusedKind
    file: str
    row: int
    detail: str

    def __str__(self) -> str:
        return f"{self.file}:{self.row}: {self.kind.replace('_', ' ')}: {self.detail}"


class Import(msgspec.Struct, frozen=True, kw_only=True):
    """The readings of all tables, the rows that were not used, and readings of planted checks by code."""

    readings: tuple[Reading, ...]
    problems: tuple[UnusedRow, ...]
    checks: tuple[Reading, ...] = ()


def catalogue(units: Mapping[UnitKey, UnitSet]) -> dict[str, Readable]:
    """Every item of a run that a reader may have read, by id."""
    found = (
        Readable(**msgspec.structs.asdict(item), case=one.case, sample=one.sample, what=one.what)
        for one in units.values()
        for item in KINDS[one.what].items(one)
    )
    return {one.id: one for one in found}


def settle_readings(found: list[Reading]) -> tuple[list[Reading], list[UnusedRow]]:
    """One reading for each reader and item: a repeated row counts once, and contradictory rows do not count."""
    groups: dict[tuple[str, str], list[Reading]] = {}
    for one in found:
        groups.setdefault((one.reader, one.unit), []).append(one)
    kept: list[Reading] = []
    problems: list[UnusedRow] = []
    for (reader, unit), group in groups.items():
        if all(one.labels == group[0].labels for one in group):
            kept.append(group[0])
            problems += [
                _unused("duplicate", one, f"{reader} gave {unit} the same labels in an earlier row")
                for one in group[1:]
            ]
        else:
            places = ", ".join(f"{Path(one.file).name}:{one.row}" for one in group)
            problems += [
                _unused("contradictory", one, f"{reader} labelled {unit} in two different ways: {places}")
                for one in group
            ]
    return kept, problems


def _unused(kind: UnusedKind, reading: Reading, detail: str) -> UnusedRow:
    return UnusedRow(kind=kind, file=reading.file, row=reading.row, detail=detail)


def parse_case(text: str) -> int | None:
    """The number of `Case number 12`, `12` or `00012`; None for anything else."""
    found = _CASE.fullmatch(text.strip())
    return int(found[1]) if found else None
