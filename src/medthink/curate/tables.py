"""Raw tables: CSV, JSON, JSON Lines and spreadsheets as rows of plain values."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from medthink.core.errors import DataError
from medthink.core.files import open_for_reading
from medthink.core.jsonio import read_json, read_jsonl

RawRow = dict[str, Any]
SUFFIXES = (".csv", ".tsv", ".jsonl", ".json", ".xlsx")
_WRAPPERS = ("data", "cases", "items", "rows")


def read_table(path: Path) -> Iterator[tuple[int, RawRow]]:
    """Every row of a table with its number in the file."""
    match path.suffix.lower():
        case ".csv" | ".tsv":
            return _read_csv(path)
        case ".jsonl":
            return ((line.number, _object(line.value, path, line.number)) for line in read_jsonl(path))
        case ".json":
            return _read_json(path)
        case ".xlsx":
            return _read_workbook(path)
    raise DataError("not a table", file=path, remedy=f"give one of {', '.join(SUFFIXES)}")


def find_table(path: Path, name: str) -> Path:
    """The table itself, or the only one in a folder."""
    if not path.is_dir():
        return path
    if name:
        return path / name
    tables = sorted(
        file for file in path.iterdir() if file.suffix.lower() in SUFFIXES and not file.name.startswith(".")
    )
    if len(tables) != 1:
        found = ", ".join(file.name for file in tables) or "none"
        raise DataError(
            f"the folder must hold exactly one table, found: {found}", file=path, remedy="name it with `table`"
        )
    return tables[0]


def _read_csv(path: Path) -> Iterator[tuple[int, RawRow]]:
    with open_for_reading(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        reader = csv.reader(text, delimiter="\t" if path.suffix.lower() == ".tsv" else ",", strict=True)
        try:
            head = _head(next(reader, []), path)
            for number, cells in enumerate(reader, start=2):
                if not any(cells):
                    continue
                if len(cells) != len(head):
                    problem = f"{len(cells)} cells, but the header has {len(head)}"
                    raise DataError(problem, file=path, row=number, remedy="is a comma or a quote missing?")
                yield number, dict(zip(head, cells, strict=True))
        except UnicodeDecodeError as error:
            raise DataError(f"not UTF-8: {error.reason}", file=path, remedy="save the table as UTF-8") from None
        except csv.Error as error:
            raise DataError(f"not CSV: {error}", file=path, row=reader.line_num, remedy="correct that line") from None


def _read_json(path: Path) -> Iterator[tuple[int, RawRow]]:
    value = read_json(path)
    if isinstance(value, dict):
        inside = [value[name] for name in _WRAPPERS if isinstance(value.get(name), list)]
        if inside:
            value = inside[0]
        elif all(isinstance(each, dict) for each in value.values()):
            value = [{"id": key} | each for key, each in value.items()]
    if not isinstance(value, list):
        raise DataError("not a list of cases", file=path, remedy="write a JSON array of objects")
    return ((number, _object(row, path, number)) for number, row in enumerate(value, start=1))


def _read_workbook(path: Path) -> Iterator[tuple[int, RawRow]]:
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except (InvalidFileException, OSError, KeyError) as error:
        raise DataError(f"not a workbook: {error}", file=path, remedy="save it as .xlsx") from None
    rows = book.worksheets[0].iter_rows(values_only=True)
    head = _head([str(cell or "") for cell in next(rows, ())], path)
    for number, cells in enumerate(rows, start=2):
        if any(cell is not None for cell in cells):
            yield number, {name: cell for name, cell in zip(head, cells, strict=False) if name}
    book.close()


def _head(names: list[str], path: Path) -> list[str]:
    twice = {name for name in names if name and names.count(name) > 1}
    if twice:
        raise DataError(f"a column occurs twice: {', '.join(sorted(twice))}", file=path, row=1, remedy="rename one")
    if not any(names):
        raise DataError("no column names", file=path, row=1, remedy="the first row names the columns")
    return names


def _object(value: Any, path: Path, number: int) -> RawRow:
    if not isinstance(value, dict):
        raise DataError("a case must be an object", file=path, row=number, remedy="one JSON object for each case")
    return value
