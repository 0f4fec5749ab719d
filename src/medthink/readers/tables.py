"""Tables that people fill in: CSV, XLSX and JSON Lines, read without loss and written safely for spreadsheets."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from medthink.core.cells import guard, unguard
from medthink.core.errors import DataError, UsageError
from medthink.core.files import open_for_reading, write_atomic
from medthink.core.jsonio import read_jsonl, write_jsonl

FORMATS = ("csv", "xlsx", "jsonl")
MAX_BYTES = 64 * 1024 * 1024
_SEPARATOR = re.compile(r"\"?sep=(.|\\t)\"?", re.IGNORECASE)


class TableRow(NamedTuple):
    """One row: its number in the file, the header being row 1, and its cells as text by column."""

    number: int
    cells: dict[str, str]


class Unread(NamedTuple):
    """Something in a table that could not be read."""

    row: int
    detail: str


class TableFile(NamedTuple):
    """The rows of a table, empty ones left out, and what in it could not be read."""

    rows: list[TableRow]
    unread: tuple[Unread, ...] = ()


def read_table(path: Path) -> list[TableRow]:
    """The rows of a table of any format, empty ones left out, or DataError."""
    return read_table_file(path).rows


def read_table_file(path: Path) -> TableFile:
    """A table of any format, with column names in lower case, or DataError."""
    readers = {".csv": _read_csv, ".tsv": _read_csv, ".xlsx": _read_xlsx, ".jsonl": _read_jsonl}
    if path.suffix.lower() not in readers:
        raise UsageError(f"{path}: not a readable table format", remedy="give a .csv, .xlsx or .jsonl file")
    table = readers[path.suffix.lower()](path)
    if not table.rows:
        raise DataError("the table has no rows", file=path, remedy="is this the right file?")
    return table


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
            raise UsageError(f"{path}: not a writable table format", remedy=f"known: {', '.join(FORMATS)}")


def _csv_bytes(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> bytes:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([guarded(row.get(name, "")) for name in columns])
    # Spreadsheets read UTF-8 as such only after a byte-order mark.
    return b"\xef\xbb\xbf" + stream.getvalue().encode()


def guarded(value: Any) -> Any:
    """A cell made safe for writing: numbers stay numbers."""
    return guard(value.replace("\x00", "\N{REPLACEMENT CHARACTER}")) if isinstance(value, str) else value


def _read_csv(path: Path) -> TableFile:
    with open_for_reading(path) as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise DataError(f"larger than {MAX_BYTES:,} bytes", file=path, remedy="is this the right file?")
    text, skipped = _decode(data, path), 0
    first, _, rest = text.partition("\n")
    delimiter = max(",;\t", key=first.count)
    # Spreadsheets in some locales name the separator on a line of its own.
    if found := _SEPARATOR.fullmatch(first.strip()):
        text, delimiter, skipped = rest, found[1].replace("\\t", "\t"), 1
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise DataError(f"not CSV: {error}", file=path, remedy="save it as CSV again") from None
    return TableFile(_name_cells(lines, path, first=1 + skipped))


def _decode(data: bytes, path: Path) -> str:
    """UTF-8, or what spreadsheets on Windows write: Windows-1252."""
    for encoding in ("utf-8-sig", "cp1252"):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\x00" not in text and not text.startswith("ÿþ"):
            return text
    raise DataError("neither UTF-8 nor Windows-1252", file=path, remedy='save it as "CSV UTF-8"') from None


def _read_xlsx(path: Path) -> TableFile:
    from medthink.readers.workbooks import read_workbook

    with open_for_reading(path) as stream:
        book = read_workbook(stream, path)
    return TableFile(_name_cells(book.rows, path), book.unread)


def _read_jsonl(path: Path) -> TableFile:
    rows = []
    for line in read_jsonl(path):
        if not isinstance(line.value, dict):
            raise DataError("not an object", file=path, row=line.number, remedy="one JSON object per line")
        rows.append(TableRow(line.number, {name.strip().lower(): cell_text(one) for name, one in line.value.items()}))
    return TableFile(rows)


def _name_cells(lines: Sequence[Sequence[Any]], path: Path, *, first: int = 1) -> list[TableRow]:
    header = [cell_text(cell).strip().lower() for cell in lines[0]] if lines else []
    twice = sorted({name for name in header if name and header.count(name) > 1})
    if twice:
        raise DataError("the column occurs twice", file=path, row=1, field=twice[0], remedy="keep one of them")
    rows = []
    for number, line in enumerate(lines[1:], start=first + 1):
        cells = [unguard(cell_text(cell)) for cell in line]
        if any(cell.strip() for cell in cells[len(header) :]):
            raise DataError("more cells than columns", file=path, row=number, remedy="is a text unquoted?")
        if any(cell.strip() for cell in cells):
            rows.append(TableRow(number, dict(zip(header, cells, strict=False))))
    return rows


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
