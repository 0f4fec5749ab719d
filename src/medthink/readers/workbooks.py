"""XLSX workbooks: one sheet of rows, with lists of the allowed words where a reader fills in labels."""

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from zipfile import BadZipFile, ZipFile

from openpyxl import Workbook, load_workbook
from openpyxl.styles import Alignment, Font
from openpyxl.utils import get_column_letter, range_boundaries
from openpyxl.utils.exceptions import InvalidFileException
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.worksheet import Worksheet

from medthink.core.errors import DataError
from medthink.judge.kinds import KINDS
from medthink.readers.tables import MAX_BYTES, Unread, guarded

# A sheet of a few rows may claim all 16,384 columns; formatting whole columns makes about 12 million cells.
MAX_CELLS = 20_000_000
# Columns that identify the rows, and may be merged across them.
_SPREAD = ("reader", "annotator", "rater", "case", "title", "sheet")
_SHEET = re.compile(r"xl/worksheets/sheet\d+\.xml")
_MERGE = re.compile(rb'<mergeCell [^>]*?ref="([A-Z]+\d+:[A-Z]+\d+)"')
_CHOICES = {column.name: column.choices for kind in KINDS.values() for column in kind.columns if column.choices}
_WIDE = {"text": 70, "history": 60, "findings": 60, "discussion": 80, "captions": 60, "error_types": 30, "note": 40}
# Characters that XML cannot hold.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


class BookRows(NamedTuple):
    """The rows of the first sheet, and cells whose value is not in the file."""

    rows: list[list[Any]]
    unread: tuple[Unread, ...]


def read_workbook(stream: BinaryIO, path: Path) -> BookRows:
    """The rows of the first sheet, with formulas as their last value; merged names apply to all rows they cover."""
    try:
        with ZipFile(stream) as archive:
            _refuse_over(MAX_BYTES, sum(member.file_size for member in archive.infolist()), "bytes", path)
            merges = _find_merges(archive)
        rows = _load(stream, path, data_only=True)
        formulas = _find_formulas(_load(stream, path, data_only=False), rows)
    except (BadZipFile, InvalidFileException, KeyError, ValueError, IndexError, SyntaxError) as error:
        raise DataError(f"not an XLSX workbook: {error}", file=path, remedy="save it as .xlsx again") from None
    return BookRows(rows, (*formulas, *_spread(merges, rows)))


def _load(stream: BinaryIO, path: Path, *, data_only: bool) -> list[list[Any]]:
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
    for number, (row, known) in enumerate(zip(written, values, strict=True), start=1):
        for place, (cell, value) in enumerate(zip(row, known, strict=True), start=1):
            if value is None and isinstance(cell, str) and cell.startswith("="):
                detail = f"{get_column_letter(place)}{number} is a formula whose value was not saved"
                yield Unread(number, detail)


def _spread(merges: Iterable[str], rows: list[list[Any]]) -> Iterator[Unread]:
    """Write a merged name into every row it covers; any other merged cell counts for its first row only."""
    header = [str(cell or "").strip().lower() for cell in rows[0]] if rows else []
    for merged in merges:
        left, top, right, bottom = (int(place or 1) for place in range_boundaries(merged))
        name = header[left - 1] if left <= len(header) else ""
        if left == right and name in _SPREAD:
            for row in rows[top:bottom]:
                row[left - 1] = rows[top - 1][left - 1]
        else:
            yield Unread(top, f"{merged} is one merged cell: it counts for its first row and column only")


def _refuse_over(most: int, found: int, what: str, path: Path) -> None:
    if found > most:
        raise DataError(f"unpacks to more than {most:,} {what}", file=path, remedy="is this the right file?")


def workbook_bytes(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> bytes:
    """The workbook's bytes; every text is written as text, never as a formula."""
    book = Workbook()
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    sheet.append(list(columns))
    for number, row in enumerate(rows, start=2):
        for place, name in enumerate(columns, start=1):
            value = guarded(row.get(name, ""))
            cell = sheet.cell(number, place)
            cell.value = _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", value) if isinstance(value, str) else value
            if isinstance(value, str):
                cell.data_type = "s"
            cell.alignment = Alignment(wrap_text=True, vertical="top")
    _dress(sheet, columns)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def _dress(sheet: Worksheet, columns: Sequence[str]) -> None:
    sheet.freeze_panes = "A2"
    last = max(2, sheet.max_row)
    for place, name in enumerate(columns, start=1):
        letter = get_column_letter(place)
        sheet.cell(1, place).font = Font(bold=True)
        sheet.column_dimensions[letter].width = _WIDE.get(name, 14)
        if name in _CHOICES:
            choices = DataValidation(type="list", formula1=f'"{",".join(_CHOICES[name])}"', allow_blank=True)
            choices.add(f"{letter}2:{letter}{last}")
            sheet.add_data_validation(choices)
