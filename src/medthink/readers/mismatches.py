"""Rows of readers' tables that do not fit the unit that their code names.

What `reading lists` and the reading room wrote beside each code is known: its words, its number and its sheet. A row
that says otherwise was mixed up, as when one column was sorted by itself, and its labels may be another unit's.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from medthink.core.errors import DataError, UsageError
from medthink.core.tables import TableRow
from medthink.judge.kinds import KINDS
from medthink.judge.units import UnitKey, UnitSet
from medthink.readers.assignment import PLANTED, CodeEntry, ReadingKey, sheet_code, unit_code


class WrittenRow(NamedTuple):
    """What was written beside a code; what is not known is empty, and is not compared."""

    text: str = ""
    number: str = ""
    sheets: frozenset[str] = frozenset()

    def differing(self, cells: Mapping[str, str]) -> tuple[str, ...]:
        """The columns of a row that say otherwise; an empty cell says nothing."""
        told = {name: " ".join(cells.get(name, "").split()) for name in ("text", "number", "sheet")}
        known = {
            "text": {" ".join(self.text.split())} - {""},
            "number": {self.number} - {""},
            "sheet": self.sheets,
        }
        return tuple(name for name, cell in told.items() if cell and known[name] and cell not in known[name])


class Mismatch(NamedTuple):
    """A row that does not fit its unit, and in which columns."""

    path: Path
    row: int
    columns: tuple[str, ...]


def written_rows(units: Mapping[UnitKey, UnitSet], key: ReadingKey | None) -> dict[str, WrittenRow]:
    """What was written beside every unit's id and every code of this run."""
    found: dict[str, WrittenRow] = {}
    firsts: dict[int, list[str]] = {}
    own: dict[str, str] = {}
    for one in units.values():
        items = KINDS[one.what].items(one)
        firsts.setdefault(one.case, []).extend(item.id for item in items[:1])
        for number, item in enumerate(items, start=1):
            found[item.id], own[item.id] = WrittenRow(item.text, str(number)), items[0].id
    if key is None:
        return found
    coded = {
        code: _coded_row(code, entry, key.seed, found[entry.unit], own[entry.unit], firsts[entry.case])
        for code, entry in key.codes.items()
        if entry.run != PLANTED and entry.unit in found
    }
    return found | coded | _planted_rows(key, found)


def _coded_row(
    code: str, entry: CodeEntry, seed: int, row: WrittenRow, first: str, firsts: Sequence[str]
) -> WrittenRow:
    if code != unit_code(seed, entry.reader, (entry.run, entry.case, first, entry.is_again), entry.unit):
        # An item to adjudicate is shown among other ones than on its own sheet.
        return WrittenRow(row.text)
    # In the reading room, all texts about a case share the sheet of one of them.
    names = ((entry.run, entry.case, one, entry.is_again) for one in firsts)
    return row._replace(sheets=frozenset(sheet_code(seed, entry.reader, name) for name in names))


def _planted_rows(key: ReadingKey, known: Mapping[str, WrittenRow]) -> dict[str, WrittenRow]:
    """The rows of planted checks, whose codes stand in the key in their order; an edited text is not known."""
    groups: dict[tuple[str, int, str], list[str]] = {}
    for code, entry in key.codes.items():
        if entry.run == PLANTED:
            host = entry.unit.removeprefix("planted ").partition(" ")[0]
            groups.setdefault((entry.reader, entry.case, host), []).append(code)
    found = {}
    for (reader, case, _), codes in groups.items():
        sheet = sheet_code(key.seed, reader, (PLANTED, case, key.codes[codes[0]].unit, False))
        for number, code in enumerate(codes, start=1):
            entry = key.codes[code]
            own = known.get(entry.unit.rpartition("planted ")[2]) if entry.planted is None else None
            found[code] = WrittenRow(own.text if own else "", str(number), frozenset({sheet}))
    return found


def find_mismatches(rows: Iterable[TableRow], written: Mapping[str, WrittenRow], path: Path) -> list[Mismatch]:
    """The rows of a table of either form that do not fit."""
    told = ((row.number, (*_own_columns(row.cells, written), *_step_columns(row.cells, written))) for row in rows)
    return [Mismatch(path, number, columns) for number, columns in told if columns]


def _own_columns(cells: Mapping[str, str], written: Mapping[str, WrittenRow]) -> tuple[str, ...]:
    return written.get(cells.get("unit", "").strip(), WrittenRow()).differing(cells)


def _step_columns(cells: Mapping[str, str], written: Mapping[str, WrittenRow]) -> Iterator[str]:
    """The steps of a row of the published form whose words are not those of the unit named beside them."""
    for name, cell in cells.items():
        place = name.removeprefix("step")
        known = written.get(cells.get(f"unit{place}", "").strip()) if place.isdigit() else None
        if known is not None and known.differing({"text": cell}):
            yield name


def refuse_mismatches(found: Sequence[Mismatch], accept: Sequence[str]) -> None:
    """Raise DataError if there are rows that do not fit and are not among `accept`, places such as `anna.csv:3-9`."""
    accepted = [_read_place(place) for place in accept]
    left = [one for one in found if not any(_is_named(one, name, lines) for name, lines in accepted)]
    if left:
        places = ", ".join(_places(left))
        count = f"{len(left)} rows do" if len(left) > 1 else "a row does"
        raise DataError(
            f"{count} not fit the unit that the code names, and nothing was imported: {places}",
            file=left[0].path,
            row=left[0].row,
            field=left[0].columns[0],
            remedy="was one column sorted by itself? Sort whole rows. If the codes of these rows are right all the "
            f"same: --accept {','.join(place.partition(' ')[0] for place in _places(left))}",
        )


_PLACE = re.compile(r"(.+):(\d{1,9})(?:-(\d{1,9}))?")


def _read_place(place: str) -> tuple[str, range]:
    found = _PLACE.fullmatch(place.strip())
    if found is None:
        raise UsageError(f"--accept does not read {place!r}", remedy="name file and lines, such as anna.csv:3-9")
    return found[1], range(int(found[2]), int(found[3] or found[2]) + 1)


def _is_named(one: Mismatch, name: str, lines: range) -> bool:
    return one.row in lines and name in (one.path.name, str(one.path))


def _places(found: Sequence[Mismatch]) -> Iterator[str]:
    """Each stretch of rows that differ in the same columns: `anna.csv:3-9 (text, number)`."""
    stretches = groupby(enumerate(found), key=lambda pair: (pair[1].path, pair[1].columns, pair[1].row - pair[0]))
    for (path, columns, _), pairs in stretches:
        rows = [one.row for _, one in pairs]
        lines = f"{rows[0]}-{rows[-1]}" if len(rows) > 1 else f"{rows[0]}"
        yield f"{path.name}:{lines} ({', '.join(columns)})"
