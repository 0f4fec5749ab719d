"""Tables: CSV, XLSX and JSON Lines, read without loss and written safely for spreadsheets."""

import csv
import io
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple
from zipfile import BadZipFile, ZipFile

from medthink.core.errors import DataError, UsageError
from medthink.core.files import open_for_reading, write_atomic
from medthink.core.jsonio import read_jsonl, write_jsonl

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

FORMATS = ("csv", "xlsx", "jsonl")
# A table that a person fills in, and any table; what a workbook unpacks to counts.
MAX_BYTES = 64 * 1024 * 1024
MAX_RAW_BYTES = 1024 * 1024 * 1024
# A sheet of a few rows may claim all 16,384 columns; formatting whole columns makes about 12 million cells.
MAX_CELLS = 20_000_000
_GUARD = "'"
_SIGNS = frozenset("=+-@|%\t\r\n")
# Characters before a sign that do not stop a spreadsheet from reading the rest as a formula.
_BEFORE = " \u00a0\u3000\ufeff\u200b\"'`"
_SEPARATOR = re.compile(r"\"?sep=(.|\\t)\"?", re.IGNORECASE)
_QUOTED = re.compile(r'"[^"]*"')
_SHEET = re.compile(r"xl/worksheets/sheet\d+\.xml")
_MERGE = re.compile(rb'<mergeCell [^>]*?ref="([A-Z]+\d+:[A-Z]+\d+)"')
# Characters that XML cannot hold.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_AS_UTF8 = 'save it as "CSV UTF-8"'
_Line = tuple[int, list[Any]]


class ValueRow(NamedTuple):
    """One row: its number in the file, the header being row 1, and its values by column."""

    number: int
    values: dict[str, Any]


class TableRow(NamedTuple):
    """One row: its number in the file, the header being row 1, and its cells as text by column."""

    number: int
    cells: dict[str, str]


class Unread(NamedTuple):
    """A part of a table that could not be read."""

    row: int
    detail: str


class TableFile(NamedTuple):
    """The rows of a table, empty ones left out, and what in it could not be read."""

    rows: list[TableRow]
    unread: tuple[Unread, ...] = ()


class Layout(NamedTuple):
    """The layout of a workbook's columns: allowed words, widths, and which may be merged across rows."""

    choices: Mapping[str, Sequence[str]] = {}
    widths: Mapping[str, int] = {}
    merged: Sequence[str] = ()


_PLAIN = Layout()


def escape_formula(text: str) -> str:
    """The text with a mark in front if a spreadsheet would read it as a formula; `unescape_formula` removes it."""
    first = text.lstrip(_BEFORE)[:1]
    # Full-width and small forms of a sign work like the sign.
    is_formula = unicodedata.normalize("NFKC", first)[:1] in _SIGNS
    return _GUARD + text if is_formula or text.startswith(_GUARD) else text


def unescape_formula(text: str) -> str:
    """The text without the mark."""
    rest = text[1:]
    return rest if text.startswith(_GUARD) and escape_formula(rest) == text else text


def cell_text(value: Any) -> str:
    """A cell as text: None is "", a Boolean is true or false, 1.0 is 1, a list is joined with semicolons."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer():
            return str(int(value))
        case list():
            return ";".join(map(cell_text, value))
        case _:
            return str(value)


def read_raw(path: Path) -> Iterator[ValueRow]:
    """Every row that is not empty, with its values and column names unchanged, or DataError."""
    match path.suffix.lower():
        case ".jsonl":
            return _read_jsonl(path)
        case ".xlsx":
            # A workbook leaves out the empty cells at the end of a row.
            return _name_cells(enumerate(_read_book(path, MAX_RAW_BYTES), start=1), path, cell_text)
        case ".csv" | ".tsv":
            return _name_cells(_check_lengths(_read_csv(path, MAX_RAW_BYTES), path), path, cell_text)
    raise _not_readable(path)


def read_table(path: Path, layout: Layout = _PLAIN) -> TableFile:
    """A table that a person fills in, with column names in lower case and cells as text, or DataError."""
    unread: tuple[Unread, ...] = ()
    match path.suffix.lower():
        case ".jsonl":
            rows = [
                TableRow(number, {_fold(name): cell_text(value) for name, value in values.items()})
                for number, values in _read_jsonl(path)
            ]
        case ".xlsx":
            book, unread = _read_filled_book(path, layout.merged)
            rows = _as_texts(enumerate(book, start=1), path)
        case ".csv" | ".tsv":
            rows = _as_texts(_read_csv(path, MAX_BYTES), path)
        case _:
            raise _not_readable(path)
    if not rows:
        raise DataError("the table has no rows", file=path, remedy="check that this is the right file")
    return TableFile(rows, unread)


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]], layout: Layout = _PLAIN) -> None:
    """Write the rows in the format that the name ends in."""
    match path.suffix.lower():
        case ".csv":
            # Spreadsheets read UTF-8 as such only after a byte-order mark.
            write_atomic(path, [csv_text(columns, rows, line_end="\r\n").encode("utf-8-sig")])
        case ".xlsx":
            write_atomic(path, [_book_bytes(columns, rows, layout)])
        case ".jsonl":
            write_jsonl(path, ({name: row.get(name, "") for name in columns} for row in rows))
        case _:
            raise UsageError(f"{path}: not a writable table format", remedy=f"known: {', '.join(FORMATS)}")


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], *, line_end: str = "\n") -> str:
    """The table as CSV: numbers as numbers, and no text that a spreadsheet would run as a formula."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator=line_end)
    writer.writerow(map(_guarded, columns))
    writer.writerows([_guarded(row.get(name)) for name in columns] for row in rows)
    return stream.getvalue()


def _not_readable(path: Path) -> UsageError:
    return UsageError(f"{path}: not a readable table format", remedy="give a .csv, .xlsx or .jsonl file")


def _read_jsonl(path: Path) -> Iterator[ValueRow]:
    for line in read_jsonl(path):
        if not isinstance(line.value, dict):
            raise DataError("not an object", file=path, row=line.number, remedy="one JSON object per line")
        yield ValueRow(line.number, line.value)


def _read_csv(path: Path, most: int) -> Iterator[_Line]:
    encoding = _find_encoding(path, most)
    with io.TextIOWrapper(open_for_reading(path), encoding=encoding, newline="") as text:
        first, skipped = text.readline(), 0
        lines: Iterable[str] = chain([first], text)
        # Spreadsheets in some locales name the separator on a line of its own.
        if found := _SEPARATOR.fullmatch(first.strip()):
            lines, delimiter, skipped = text, found[1].replace("\\t", "\t"), 1
        elif path.suffix.lower() == ".tsv" and "\t" in first:
            delimiter = "\t"
        else:
            delimiter = max(",;\t", key=_QUOTED.sub("", first).count)
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        try:
            yield from enumerate(reader, start=1 + skipped)
        except csv.Error as error:
            row = reader.line_num + skipped
            raise DataError(f"not CSV: {error}", file=path, row=row, remedy="correct that line") from None


def _find_encoding(path: Path, most: int) -> str:
    """UTF-8, or what spreadsheets on Windows write: Windows-1252.

    A file in UTF-8 is never read as Windows-1252 because of one broken byte: all its letters would be wrong.
    """
    in_utf8, not_utf8 = 0, 0
    with open_for_reading(path) as stream:
        if os.fstat(stream.fileno()).st_size > most:
            raise DataError(f"larger than {most:,} bytes", file=path, remedy="check that this is the right file")
        for number, line in enumerate(stream, start=1):
            if _is_text(line, "utf-8"):
                in_utf8 = in_utf8 or (0 if line.isascii() else number)
            elif _is_text(line, "cp1252"):
                not_utf8 = not_utf8 or number
            else:
                raise DataError("neither UTF-8 nor Windows-1252", file=path, row=number, remedy=_AS_UTF8)
    if in_utf8 and not_utf8:
        raise DataError("UTF-8 with a broken character", file=path, row=not_utf8, remedy=f"correct it, or {_AS_UTF8}")
    return "cp1252" if not_utf8 else "utf-8-sig"


def _is_text(line: bytes, encoding: str) -> bool:
    try:
        return "\x00" not in line.decode(encoding)
    except UnicodeDecodeError:
        return False


def _check_lengths(lines: Iterable[_Line], path: Path) -> Iterator[_Line]:
    """The same rows; one with fewer cells than the header has lost a separator or a quote."""
    width = 0
    for number, cells in lines:
        width = width or len(cells)
        if any(cells) and len(cells) < width:
            problem = f"{len(cells)} cells, but the header has {width}"
            raise DataError(problem, file=path, row=number, remedy="check for a missing separator or quote")
        yield number, cells


def _name_cells(lines: Iterable[_Line], path: Path, name_of: Callable[[Any], str]) -> Iterator[ValueRow]:
    numbered = iter(lines)
    header = [name_of(cell) for cell in next(numbered, (1, []))[1]]
    if not any(header):
        raise DataError("no column names", file=path, row=1, remedy="the first row names the columns")
    twice = sorted({name for name in header if name and header.count(name) > 1})
    if twice:
        raise DataError("the column occurs twice", file=path, row=1, field=twice[0], remedy="keep one of them")
    for number, cells in numbered:
        if any(map(_is_filled, cells[len(header) :])):
            raise DataError(
                "more cells than columns",
                file=path,
                row=number,
                remedy="put text that contains the separator in quotes",
            )
        if any(map(_is_filled, cells)):
            yield ValueRow(number, {name: cell for name, cell in zip(header, cells, strict=False) if name})


def _is_filled(value: Any) -> bool:
    return bool(cell_text(value).strip())


def _as_texts(lines: Iterable[_Line], path: Path) -> list[TableRow]:
    return [
        TableRow(number, {name: unescape_formula(cell_text(value)) for name, value in values.items()})
        for number, values in _name_cells(lines, path, _fold)
    ]


def _fold(name: Any) -> str:
    return cell_text(name).strip().lower()


@contextmanager
def _reading_book(path: Path) -> Iterator[None]:
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        yield
    except (BadZipFile, InvalidFileException, KeyError, ValueError, IndexError, SyntaxError) as error:
        raise DataError(f"not an XLSX workbook: {error}", file=path, remedy="save it as .xlsx again") from None


def _read_book(path: Path, most: int) -> list[list[Any]]:
    """The rows of the first sheet, with formulas as their last value."""
    with open_for_reading(path) as stream, _reading_book(path):
        with ZipFile(stream) as archive:
            _refuse_over(most, sum(member.file_size for member in archive.infolist()), "bytes", path)
        return _load(stream, path, data_only=True)


def _read_filled_book(path: Path, merged: Sequence[str]) -> tuple[list[list[Any]], tuple[Unread, ...]]:
    """The rows of the first sheet, and cells whose value is not in the file; merged names apply to all their rows."""
    rows = _read_book(path, MAX_BYTES)
    with open_for_reading(path) as stream, _reading_book(path):
        formulas = _find_formulas(_load(stream, path, data_only=False), rows)
        with ZipFile(stream) as archive:
            merges = _find_merges(archive)
        return rows, (*formulas, *_spread(merges, rows, merged))


def _load(stream: BinaryIO, path: Path, *, data_only: bool) -> list[list[Any]]:
    from openpyxl import load_workbook

    book = load_workbook(stream, read_only=True, data_only=data_only)
    rows: list[list[Any]] = []
    cells = 0
    for row in book.worksheets[0].iter_rows(values_only=True):
        cells += len(row)
        _refuse_over(MAX_CELLS, cells, "cells", path)
        rows.append(list(row))
    book.close()
    return rows


def _find_merges(archive: ZipFile) -> list[str]:
    """The merged ranges of the first sheet, such as A2:A5."""
    sheets = sorted(name for name in archive.namelist() if _SHEET.fullmatch(name))
    return [found.decode() for found in _MERGE.findall(archive.read(sheets[0]))] if sheets else []


def _find_formulas(written: list[list[Any]], values: list[list[Any]]) -> Iterator[Unread]:
    from openpyxl.utils import get_column_letter

    for number, (row, known) in enumerate(zip(written, values, strict=True), start=1):
        for place, (cell, value) in enumerate(zip(row, known, strict=True), start=1):
            if value is None and isinstance(cell, str) and cell.startswith("="):
                detail = f"{get_column_letter(place)}{number} is a formula whose value was not saved"
                yield Unread(number, detail)


def _spread(merges: Iterable[str], rows: list[list[Any]], names: Sequence[str]) -> Iterator[Unread]:
    """Write a merged name into every row it covers; any other merged cell counts for its first row only."""
    from openpyxl.utils import range_boundaries

    header = [str(cell or "").strip().lower() for cell in rows[0]] if rows else []
    for merged in merges:
        left, top, right, bottom = (int(place or 1) for place in range_boundaries(merged))
        name = header[left - 1] if left <= len(header) else ""
        if left == right and name in names:
            for row in rows[top:bottom]:
                row[left - 1] = rows[top - 1][left - 1]
        else:
            yield Unread(top, f"{merged} is one merged cell: only its first row and column count")


def _refuse_over(most: int, found: int, what: str, path: Path) -> None:
    if found > most:
        raise DataError(f"unpacks to more than {most:,} {what}", file=path, remedy="check that this is the right file")


def _guarded(value: Any) -> Any:
    """A cell made safe for writing: numbers stay numbers."""
    return escape_formula(value.replace("\x00", "\N{REPLACEMENT CHARACTER}")) if isinstance(value, str) else value


def _book_bytes(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], layout: Layout) -> bytes:
    """The workbook's bytes; every text is written as text, never as a formula."""
    from openpyxl import Workbook
    from openpyxl.styles import Alignment
    from openpyxl.worksheet.worksheet import Worksheet

    book = Workbook()
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    sheet.append(list(columns))
    for number, row in enumerate(rows, start=2):
        for place, name in enumerate(columns, start=1):
            value = _guarded(row.get(name, ""))
            cell = sheet.cell(number, place)
            cell.value = _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", value) if isinstance(value, str) else value
            if isinstance(value, str):
                cell.data_type = "s"
            cell.alignment = Alignment(wrap_text=True, vertical="top")
    _dress(sheet, columns, layout)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def _dress(sheet: "Worksheet", columns: Sequence[str], layout: Layout) -> None:
    from openpyxl.styles import Font
    from openpyxl.utils import get_column_letter
    from openpyxl.worksheet.datavalidation import DataValidation

    sheet.freeze_panes = "A2"
    last = max(2, sheet.max_row)
    for place, name in enumerate(columns, start=1):
        letter = get_column_letter(place)
        sheet.cell(1, place).font = Font(bold=True)
        sheet.column_dimensions[letter].width = layout.widths.get(name, 14)
        if words := layout.choices.get(name):
            choices = DataValidation(type="list", formula1=f'"{",".join(words)}"', allow_blank=True)
            choices.add(f"{letter}2:{letter}{last}")
            sheet.add_data_validation(choices)
