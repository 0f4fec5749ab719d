"""Tables that people fill in: CSV, XLSX and JSON Lines, read without loss and written safe for spreadsheets."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from medthink.core.cells import guard, unguard
from medthink.core.errors import DataError, UsageError
from medthink.core.files import open_for_reading, write_atomic
from medthink.core.jsonio import read_jsonl, write_jsonl

FORMATS = ("csv", "xlsx", "jsonl")
MAX_BYTES = 64 * 1024 * 1024


class TableRow(NamedTuple):
    """One row: its number in the file, the header being row 1, and its cells as text by column."""

    number: int
    cells: dict[str, str]


def read_table(path: Path) -> list[TableRow]:
    """The rows of a table of any format, empty ones left out, or DataError."""
    readers = {".csv": _read_csv, ".tsv": _read_csv, ".xlsx": _read_xlsx, ".jsonl": _read_jsonl}
    if path.suffix.lower() not in readers:
        raise UsageError(f"{path}: not a table that can be read", remedy="give a .csv, .xlsx or .jsonl file")
    rows = readers[path.suffix.lower()](path)
    if not rows:
        raise DataError("the table has no rows", file=path, remedy="is this the right file?")
    return rows


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write the rows in the format that the name ends in."""
    match path.suffix.lower():
        case ".csv":
            write_atomic(path, [_csv_bytes(columns, rows)])
        case ".xlsx":
            from medthink.readers.workbooks import workbook_bytes

            write_atomic(path, [workbook_bytes(columns, rows)])
        case ".jsonl":
            write_jsonl(path, ({name: row.get(name, "") for name in columns} for row in rows))
        case _:
            raise UsageError(f"{path}: not a format that can be written", remedy=f"known: {', '.join(FORMATS)}")


def _csv_bytes(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> bytes:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([guarded(row.get(name, "")) for name in columns])
    # Spreadsheets read UTF-8 as such only after a byte-order mark.
    return b"\xef\xbb\xbf" + stream.getvalue().encode()


def guarded(value: Any) -> Any:
    """A cell as it may be written: numbers stay numbers."""
    return guard(value.replace("\x00", "\N{REPLACEMENT CHARACTER}")) if isinstance(value, str) else value


def _read_csv(path: Path) -> list[TableRow]:
    with open_for_reading(path) as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise DataError(f"larger than {MAX_BYTES:,} bytes", file=path, remedy="is this the right file?")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError("not UTF-8", file=path, remedy='save it as "CSV UTF-8"') from None
    header = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=header.count)
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise DataError(f"not CSV: {error}", file=path, remedy="save it as CSV again") from None
    return _name_cells(lines, path)


def _read_xlsx(path: Path) -> list[TableRow]:
    from medthink.readers.workbooks import read_workbook

    with open_for_reading(path) as stream:
        return _name_cells(read_workbook(stream, path), path)


def _read_jsonl(path: Path) -> list[TableRow]:
    rows = []
    for line in read_jsonl(path):
        if not isinstance(line.value, dict):
            raise DataError("not an object", file=path, row=line.number, remedy="one JSON object per line")
        rows.append(TableRow(line.number, {name: cell_text(value) for name, value in line.value.items()}))
    return rows


def _name_cells(lines: Sequence[Sequence[Any]], path: Path) -> list[TableRow]:
    header = [cell_text(cell).strip() for cell in lines[0]] if lines else []
    twice = sorted({name for name in header if name and header.count(name) > 1})
    if twice:
        raise DataError("the column stands twice", file=path, row=1, field=twice[0], remedy="keep one of them")
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        cells = [unguard(cell_text(cell)) for cell in line]
        if any(cell.strip() for cell in cells[len(header) :]):
            raise DataError("more cells than columns", file=path, row=number, remedy="is a text unquoted?")
        if any(cell.strip() for cell in cells):
            rows.append(TableRow(number, dict(zip(header, cells, strict=False))))
    return rows


def cell_text(value: Any) -> str:
    """A cell as text: nothing is "", a truth is true or false, 1.0 is 1, a list is joined by semicolons."""
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
