"""XLSX workbooks: one sheet of rows, with lists of the allowed words where a reader fills in labels."""

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile, ZipFile

from openpyxl import Workbook, load_workbook
from openpyxl.styles import Alignment, Font
from openpyxl.utils import get_column_letter
from openpyxl.utils.exceptions import InvalidFileException
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.worksheet import Worksheet

from medthink.core.errors import DataError
from medthink.judge.kinds import KINDS
from medthink.readers.tables import MAX_BYTES, guarded

# A sheet of a few rows may claim all 16,384 columns of them; whole columns of one format are about 12 million cells.
MAX_CELLS = 20_000_000
_CHOICES = {column.name: column.choices for kind in KINDS.values() for column in kind.columns if column.choices}
_WIDE = {"text": 70, "history": 60, "findings": 60, "discussion": 80, "captions": 60, "error_types": 30, "note": 40}
# What XML cannot hold.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def read_workbook(stream: BinaryIO, path: Path) -> list[tuple[Any, ...]]:
    """The rows of the first sheet, formulas by their last value."""
    try:
        with ZipFile(stream) as archive:
            _refuse_over(MAX_BYTES, sum(member.file_size for member in archive.infolist()), "bytes", path)
        book = load_workbook(stream, read_only=True, data_only=True)
        rows: list[tuple[Any, ...]] = []
        cells = 0
        for row in book.worksheets[0].iter_rows(values_only=True):
            cells += len(row)
            _refuse_over(MAX_CELLS, cells, "cells", path)
            rows.append(row)
        book.close()
    except (BadZipFile, InvalidFileException, KeyError, ValueError, IndexError, SyntaxError) as error:
        raise DataError(f"not an XLSX workbook: {error}", file=path, remedy="save it as .xlsx again") from None
    return rows


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
