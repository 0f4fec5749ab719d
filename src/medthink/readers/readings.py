"""Readers' labels for the items of a run, and the parts of their tables that could not be used.

Two forms are read. Our own has a row for each reader and item. The published one has a row for each case and reader,
with the columns `stepN`, `human_factualN`, `human_criticalN` and `human_error_typesN`.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from medthink.core.errors import DataError
from medthink.core.tables import TableFile, TableRow, read_table
from medthink.judge.kinds import KINDS
from medthink.judge.kinds.kind import UNSURE, ContradictoryCells, JudgedItem, Label, read_types
from medthink.judge.units import UnitKey, UnitSet
from medthink.readers.assignment import PLANTED, CodeEntry, ReadingKey
from medthink.readers.lists import COLUMNS, LAYOUT
from medthink.readers.mismatches import Mismatch, find_mismatches, refuse_mismatches, written_rows

UnusedKind = Literal[
    "unmatched", "duplicate", "contradictory", "invalid", "unlabelled", "other_run", "unread", "missing"
]  # fmt: skip

AGAIN = " (again)"
_CASE = re.compile(r"(?:case\s+number\s+)?0*(\d{1,18})", re.IGNORECASE)


class ReadableItem(JudgedItem, frozen=True, kw_only=True):
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


class ImportedReadings(msgspec.Struct, frozen=True, kw_only=True):
    """The readings of all tables, the rows that were not used, and readings of planted checks by code."""

    readings: tuple[Reading, ...]
    problems: tuple[UnusedRow, ...]
    checks: tuple[Reading, ...] = ()


def readable_items(units: Mapping[UnitKey, UnitSet]) -> dict[str, ReadableItem]:
    """Every item of a run that a reader may have read, by id."""
    found = (
        ReadableItem(**msgspec.structs.asdict(item), case=one.case, sample=one.sample, what=one.what)
        for one in units.values()
        for item in KINDS[one.what].items(one)
    )
    return {one.id: one for one in found}


def merge_readings(found: list[Reading]) -> tuple[list[Reading], list[UnusedRow]]:
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


_STEP = re.compile(r"step(\d{1,3})")
_READERS = ("reader", "annotator", "rater")
_PUBLISHED = ("factual", "critical", "error_types")
_PUBLISHED_COLUMN = re.compile(rf"(?:step|unit|human_(?:{'|'.join(_PUBLISHED)}))\d{{1,3}}")


class ReadingsImporter:
    """Reads tables one after the other; `units` are those of the run, `key` opens blinded tables."""

    def __init__(self, units: Mapping[UnitKey, UnitSet], key: ReadingKey | None = None) -> None:
        self._known = readable_items(units)
        self._written = written_rows(units, key)
        self._codes = key.codes if key else {}
        self._by_text: dict[tuple[int, str], list[ReadableItem]] = {}
        for known in self._known.values():
            if known.form == "step":
                self._by_text.setdefault((known.case, _fold(known.text)), []).append(known)
        self._readings: list[Reading] = []
        self._checks: list[Reading] = []
        self._problems: list[UnusedRow] = []
        self._matched = 0

    def take_rows(self, rows: Iterable[TableRow], path: Path) -> None:
        """Read rows of our own form; `path` names their origin in messages."""
        for row in rows:
            self._take_unit(row, path)

    def mismatches(self, path: Path) -> list[Mismatch]:
        """The rows of a table of our own form that do not fit the unit that their code names."""
        return find_mismatches(read_table(path, LAYOUT).rows, self._written, path)

    def _refuse_borrowed(self, rows: Sequence[TableRow], path: Path) -> None:
        """Raise DataError if a reader's list is filled in under another reader's name."""
        codes = ((row, self._codes.get(row.cells.get("unit", "").strip())) for row in rows)
        borrowed = [
            (row.number, code.reader, _named_reader(row))
            for row, code in codes
            if code is not None and _named_reader(row) not in ("", code.reader)
        ]
        if borrowed:
            line, owner, name = borrowed[0]
            raise DataError(
                f"{len(borrowed)} rows of {owner}'s list are filled in under the name {name}",
                file=path,
                row=line,
                field="reader",
                remedy="a list has codes of its own: only the reader it was written for can fill it in",
            )

    def _tell_missing(self, rows: Sequence[TableRow], path: Path) -> None:
        """Report how many rows of each reader's list of this run are not in the table."""
        there = {row.cells.get("unit", "").strip() for row in rows}
        owners = {self._codes[code].reader for code in there & self._codes.keys()}
        for reader in sorted(owners):
            due = [code for code, one in self._codes.items() if one.reader == reader and one.unit in self._known]
            if missing := len(set(due) - there):
                detail = f"{missing} of {len(due)} rows of {reader}'s list are not in the file"
                self._problems.append(UnusedRow(kind="missing", file=str(path), row=1, detail=detail))

    def take(self, path: Path) -> None:
        """Read a table of either form."""
        table = read_table(path, LAYOUT)
        columns = {name for row in table.rows for name in row.cells}
        self._matched = 0
        if "unit" in columns:
            self._tell_columns(table, path, _is_own)
            _refuse_swapped_columns(table.rows, path)
            self._refuse_borrowed(table.rows, path)
            self.take_rows(table.rows, path)
            self._tell_missing(table.rows, path)
        elif any(_STEP.fullmatch(name) for name in columns):
            self._tell_columns(table, path, _is_published)
            for row in table.rows:
                self._take_case(row, path)
        else:
            raise DataError(
                "neither a column `unit` nor `step1`",
                file=path,
                row=1,
                remedy="see docs/readers-table.md for both forms",
            )
        if not self._matched:
            raise DataError(
                "no row of the table belongs to this run",
                file=path,
                remedy="check that this is the right run, and for a blinded list, that --key names the key that was "
                "written with it",
            )

    def _tell_columns(self, table: TableFile, path: Path, is_known: Callable[[str], object]) -> None:
        """List cells that could not be read, and filled columns with unknown names."""
        for one in table.unread:
            self._problems.append(UnusedRow(kind="unread", file=str(path), row=one.row, detail=one.detail))
        filled = dict.fromkeys(name for row in table.rows for name, cell in row.cells.items() if cell.strip())
        for name in filled:
            if not is_known(name):
                detail = f"the column {name!r} is unknown and is ignored"
                self._problems.append(UnusedRow(kind="unread", file=str(path), row=1, detail=detail))

    def result(self) -> ImportedReadings:
        """All readings, one per reader and unit, and all problems in the order of files and rows."""
        kept, doubled = merge_readings(self._readings)
        checks, checked_twice = merge_readings(self._checks)
        found = [*self._problems, *doubled, *checked_twice]
        problems = sorted(found, key=lambda one: (one.file, one.row, one.kind))
        return ImportedReadings(readings=tuple(kept), problems=tuple(problems), checks=tuple(checks))

    def _take_unit(self, row: TableRow, path: Path) -> None:
        unit = row.cells.get("unit", "").strip()
        code = self._codes.get(unit)
        reader = _named_reader(row) or (code.reader if code else path.stem)
        if code is not None and code.run == PLANTED:
            # The rows around a planted check only serve to surround it.
            if code.planted is not None:
                self._take_check(code, unit, reader, row, path)
            return
        known = self._known.get(code.unit if code else unit)
        if known is None:
            kind: UnusedKind = "other_run" if code else "unmatched"
            self._tell(kind, path, row, f"no unit {unit!r} in this run")
            return
        again = AGAIN if code is not None and code.is_again else ""
        self._add(known, f"{reader}{again}", row.cells, row, path)

    def _take_check(self, code: CodeEntry, unit: str, reader: str, row: TableRow, path: Path) -> None:
        planted = ReadableItem(id=unit, case=code.case, sample=0, what=code.what, form=code.form, part=PLANTED, text="")
        before, matched = len(self._readings), self._matched
        self._add(planted, reader, row.cells, row, path)
        self._checks += self._readings[before:]
        del self._readings[before:]
        self._matched = matched

    def _take_case(self, row: TableRow, path: Path) -> None:
        """A row of the published form: all steps of one case by one reader."""
        case = parse_case(row.cells.get("case") or row.cells.get("title") or "")
        steps = [(int(found[1]), name) for name in row.cells if (found := _STEP.fullmatch(name))]
        filled = [(number, name) for number, name in sorted(steps) if row.cells[name].strip()]
        if case is None or not filled:
            self._tell("unmatched", path, row, "no case number, or no steps")
            return
        for number, name in sorted(steps):
            if not row.cells[name].strip():
                self._tell_orphans(number, row, path)
        for number, name in filled:
            cells = {label: row.cells.get(f"human_{label}{number}", "") for label in _PUBLISHED}
            known = self._find(case, row.cells.get(f"unit{number}", "").strip(), row.cells[name])
            if isinstance(known, str):
                self._tell("unmatched", path, row, f"step{number}: {known}")
            else:
                self._add(known, _reader(row, path), cells, row, path)

    def _tell_orphans(self, number: int, row: TableRow, path: Path) -> None:
        """Report labels of a step that has no text."""
        for label in _PUBLISHED:
            if row.cells.get(f"human_{label}{number}", "").strip():
                self._tell("unmatched", path, row, f"human_{label}{number} has no step{number}")

    def _find(self, case: int, unit: str, text: str) -> ReadableItem | str:
        if unit:
            return self._known.get(unit) or f"no unit {unit!r} in this run"
        found = self._by_text.get((case, _fold(text)), [])
        if len(found) == 1:
            return found[0]
        return f"case {case} has {'no step' if not found else 'several steps'} with these words"

    def _add(self, known: ReadableItem, reader: str, cells: Mapping[str, str], row: TableRow, path: Path) -> None:
        self._matched += 1
        try:
            labels = KINDS[known.what].read_cells(known.form, cells)
        except ValueError as error:
            kind: UnusedKind = "contradictory" if isinstance(error, ContradictoryCells) else "invalid"
            self._tell(kind, path, row, f"{known.id}: {error}")
            return
        said = {aspect: label for aspect, label in labels.items() if label is not None}
        if not said:
            self._tell("unlabelled", path, row, f"{reader} left {known.id} empty")
            return
        self._readings.append(
            Reading(
                reader=reader,
                unit=known.id,
                case=known.case,
                labels=said,
                error_types=read_types(cells.get("error_types", "")),
                note=cells.get("note", ""),
                file=str(path),
                row=row.number,
            )
        )

    def _tell(self, kind: UnusedKind, path: Path, row: TableRow, detail: str) -> None:
        self._problems.append(UnusedRow(kind=kind, file=str(path), row=row.number, detail=detail))


def import_tables(
    paths: Sequence[Path],
    units: Mapping[UnitKey, UnitSet],
    key: ReadingKey | None = None,
    accept: Sequence[str] = (),
) -> ImportedReadings:
    """Read all tables against a run's units; rows that do not fit their unit are refused but for those of `accept`."""
    importer = ReadingsImporter(units, key)
    refuse_mismatches([one for path in paths for one in importer.mismatches(path)], accept)
    for path in paths:
        importer.take(path)
    return importer.result()


def _refuse_swapped_columns(rows: Sequence[TableRow], path: Path) -> None:
    """Raise DataError if a column is filled with the words of another one: one line, not one for each cell."""
    words = _column_words()
    looks = {}
    for name in words:
        filled = {_fold(row.cells.get(name, "").lower()) for row in rows} - {""}
        fitting = [other for other in words if len(filled) > 1 and filled <= words[other]]
        if fitting and name not in fitting and not filled & words[name] - {UNSURE}:
            looks[name] = fitting[0]
    if looks:
        raise DataError(
            "; ".join(f"the column {name} looks like {other}" for name, other in looks.items()),
            file=path,
            row=1,
            field=next(iter(looks)),
            remedy="were headers swapped? Put each header over its own column",
        )


def _column_words() -> dict[str, frozenset[str]]:
    """The words that readers may write in each column that has a choice of them."""
    found: dict[str, frozenset[str]] = {}
    for kind in KINDS.values():
        for column in kind.columns:
            if column.choices:
                found[column.name] = found.get(column.name, frozenset()) | frozenset(column.choices)
    return found


def _is_own(column: str) -> bool:
    return column in (*COLUMNS, "critical", "case") or column in _READERS


def _is_published(column: str) -> object:
    return column in ("case", "title", "note", *_READERS) or _PUBLISHED_COLUMN.fullmatch(column)


def _reader(row: TableRow, path: Path) -> str:
    """The reader's name, from the row or else from the file's name."""
    return _named_reader(row) or path.stem


def _named_reader(row: TableRow) -> str:
    named = (row.cells.get(name, "").strip() for name in _READERS)
    return next((name for name in named if name), "")


def _fold(text: str) -> str:
    return " ".join(text.split())


STEPS = "steps"


class PublishedTable(NamedTuple):
    """The columns and rows of the published form, and how many readings have no column in it."""

    columns: tuple[str, ...]
    rows: list[dict[str, str]]
    left_out: int


def publish_readings(readings: Iterable[Reading], units: Mapping[UnitKey, UnitSet]) -> PublishedTable:
    """Every reader's labels of the steps of each case; a step that a reader left open has empty cells.

    `unitN` gives each step's id, so that the table can be read back even if two steps have the same words.
    """
    texts = [one for key, one in sorted(units.items()) if key[2] == STEPS and one.state == "ok"]
    known = {unit for one in texts for unit in one.ids}
    by_reader: dict[str, dict[str, Reading]] = {}
    left_out = 0
    for one in readings:
        if one.unit in known:
            by_reader.setdefault(one.reader, {})[one.unit] = one
        else:
            left_out += 1
    rows = [
        _row(reader, text, own)
        for reader, own in sorted(by_reader.items())
        for text in texts
        if any(unit in own for unit in text.ids)
    ]
    most = max((len(text.units) for text in texts), default=0)
    names = ("step", "unit", "human_factual", "human_critical", "human_error_types")
    columns = ("title", "reader", *(f"{name}{number}" for number in range(1, most + 1) for name in names))
    return PublishedTable(columns, rows, left_out)


def _row(reader: str, text: UnitSet, own: Mapping[str, Reading]) -> dict[str, str]:
    row = {"title": f"Case number {text.case}", "reader": reader}
    for number, unit in enumerate(text.units, start=1):
        row |= {f"step{number}": unit.text, f"unit{number}": unit.id}
        if unit.id in own:
            row |= {f"human_{name}{number}": cell for name, cell in _cells(own[unit.id]).items()}
    return row


_OPEN = ("not described", "unverifiable")


def _cells(reading: Reading) -> dict[str, str]:
    labels = reading.labels
    support = labels.get("support")
    return {
        # An empty cell is a gap: what a reader called open is another answer.
        "factual": str(support) if support in _OPEN else _yes_or_no(labels.get("factual")),
        "critical": _yes_or_no(labels.get("critical")),
        "error_types": "; ".join(name.replace("_", " ") for name in reading.error_types),
    }


def _yes_or_no(label: object) -> str:
    return "" if label is None else "yes" if label else "no"
