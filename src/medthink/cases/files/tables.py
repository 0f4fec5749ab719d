"""The rows of a split, streamed from JSON Lines or parquet.

Both formats give the same rows in the same order, keep a few hundred of them in memory, and yield a DataError in place
of a faulty row, so that a check can continue; a file that cannot be read at all raises.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from medthink.cases.files.rows import COLUMNS, EMBEDDED_COLUMNS, SLOT_COLUMNS
from medthink.core.errors import DataError
from medthink.core.files import open_for_reading, refuse_other_kind
from medthink.core.jsonio import parse_json, parse_line, read_lines

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

JSON_MARK = {b"medthink": b"json"}
"""The metadata of a parquet column whose texts are JSON, written by our export for values parquet has no type for."""

_T = TypeVar("_T")
_AHEAD = 16
_BATCH_ROWS = 256
_BUFFER_BYTES = 64 * 1024
_EMBEDDED = frozenset(EMBEDDED_COLUMNS)
_SLOTS = frozenset(SLOT_COLUMNS)


class SourceRow(NamedTuple):
    """One row: its number for messages, its position for `row_at`, and its values by column."""

    number: int
    position: int
    values: dict[str, Any]


class JsonlTable:
    """A split in a JSON Lines file; a row's position is the byte its line starts at."""

    def __init__(self, path: Path, split: str) -> None:
        self.path = path
        self.split = split

    def rows(self) -> Iterator[SourceRow | DataError]:
        """Every row, or the error that says why it cannot be used."""
        for line in read_lines(self.path):
            try:
                yield SourceRow(line.number, line.offset, parse_line(line, file=self.path))
            except DataError as error:
                yield error

    def row_at(self, position: int, number: int) -> SourceRow:
        """The row that starts at this byte."""
        line = next(read_lines(self.path, offset=position))
        return SourceRow(number, position, parse_line(line._replace(number=number), file=self.path))

    def count(self) -> int:
        """How many rows there are, without parsing them."""
        return sum(1 for _ in read_lines(self.path))


class ParquetTable:
    """A split in a parquet file; a row's position is its index. Embedded images are not read for the text."""

    def __init__(self, path: Path, split: str) -> None:
        self.path = path
        self.split = split

    def rows(self) -> Iterator[SourceRow | DataError]:
        """Every row, or the error that says why it cannot be used."""
        number = 0
        for batch, marked in self._batches():
            for values in self._rows_of(batch):
                number += 1
                yield self._finish(values, marked, number)
        if number == 0:
            raise DataError("the file holds no row", file=self.path, remedy="expected one row per case")

    def row_at(self, position: int, number: int) -> SourceRow:
        """The row with this index."""
        group, first = self._group_of(position)
        for batch, marked in self._batches(groups=[group]):
            if position < first + batch.num_rows:
                row = self._finish(self._rows_of(batch.slice(position - first, 1))[0], marked, number)
                if isinstance(row, DataError):
                    raise row
                return row
            first += batch.num_rows
        raise self._has_changed()

    def count(self) -> int:
        """How many rows there are, from the file's footer."""
        with open_parquet(self.path) as file:
            return int(file.metadata.num_rows)

    @property
    def has_embedded_images(self) -> bool:
        """Whether the file carries the images themselves."""
        with open_parquet(self.path) as file:
            return bool(embedded_columns(file.schema_arrow))

    def _batches(self, groups: list[int] | None = None) -> "Iterator[tuple[pa.RecordBatch, frozenset[str]]]":
        """The text columns in batches, each with the names of those that hold JSON."""
        with open_parquet(self.path) as file:
            schema = file.schema_arrow
            _refuse_columns(schema, self.path)
            embedded = set(embedded_columns(schema))
            names = [name for name in schema.names if name not in embedded]
            metadata = {name: schema.field(name).metadata or {} for name in names}
            marked = frozenset(name for name in names if metadata[name].items() >= JSON_MARK.items())
            for batch in file.iter_batches(_BATCH_ROWS, row_groups=groups, columns=names, use_threads=False):
                yield batch, marked

    def _rows_of(self, batch: "pa.RecordBatch") -> list[dict[str, Any]]:
        with reading_parquet(self.path):
            return _rows_of_batch(batch, self.path)

    def _finish(self, values: dict[str, Any], marked: frozenset[str], number: int) -> SourceRow | DataError:
        """Decode the columns that hold JSON."""
        try:
            for name in marked:
                if isinstance(text := values.get(name), str):
                    values[name] = parse_json(text.encode(), file=self.path, row=number)
        except DataError as error:
            return error
        return SourceRow(number, number - 1, values)

    def _group_of(self, position: int) -> tuple[int, int]:
        """The row group that holds a row, and the index of the group's first row."""
        with open_parquet(self.path) as file:
            first = 0
            for group in range(file.metadata.num_row_groups):
                size = file.metadata.row_group(group).num_rows
                if position < first + size:
                    return group, first
                first += size
        raise self._has_changed()

    def _has_changed(self) -> DataError:
        return DataError("the file has changed while it was read", file=self.path, remedy="open it again")


CaseTable = JsonlTable | ParquetTable


def prefetch(found: Iterator[_T]) -> Iterator[_T]:
    """The same rows, read a few ahead: a tenth faster in a check than one at a time."""
    few = [*islice(found, _AHEAD)]
    while few:
        yield from few
        few.clear()  # before the next are read
        few.extend(islice(found, _AHEAD))


@contextmanager
def reading_parquet(path: Path) -> Iterator[None]:
    """Translate errors of the parquet library into DataError."""
    import pyarrow as pa

    try:
        yield
    except FileNotFoundError:
        raise DataError("no such file", file=path, remedy="check the path") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        refuse_other_kind(path)
        reason = (str(error).splitlines() or ["unknown"])[0][:200]
        raise DataError(
            f"cannot be read as parquet: {reason}", file=path, remedy="copy or download the file again"
        ) from None


@contextmanager
def open_parquet(path: Path) -> "Iterator[pq.ParquetFile]":
    """A parquet file, closed in the end, with its errors as DataError."""
    with reading_parquet(path), parquet_file(path) as file:
        yield file


def parquet_file(path: Path) -> "pq.ParquetFile":
    """Open a parquet file with its checksums verified and its pages streamed; the caller closes it."""
    open_for_reading(path).close()
    import pyarrow.parquet as pq

    with reading_parquet(path):
        return pq.ParquetFile(path, page_checksum_verification=True, buffer_size=_BUFFER_BYTES, pre_buffer=False)


def embedded_columns(schema: "pa.Schema") -> list[str]:
    """The `image_NN` columns that carry bytes: a struct of bytes and path as `datasets` writes it, or plain binary."""
    import pyarrow.types as types

    def carries_bytes(kind: "pa.DataType") -> bool:
        if types.is_struct(kind):
            return any(field.name == "bytes" for field in kind)
        return bool(types.is_binary(kind) or types.is_large_binary(kind))

    return [field.name for field in schema if field.name in _EMBEDDED and carries_bytes(field.type)]


def _rows_of_batch(batch: "pa.RecordBatch", path: Path) -> list[dict[str, Any]]:
    """The batch's rows; of the slot columns only what is filled, since most of the 49 slots are empty in every row."""
    plain = [name for name in batch.schema.names if name not in _SLOTS]
    columns = [_values(batch.column(name), name, path) for name in plain]
    rows = [dict(zip(plain, values, strict=True)) for values in zip(*columns, strict=True)]
    for name in batch.schema.names:
        if name not in _SLOTS or (column := batch.column(name)).null_count == len(column):
            continue
        for row, value in zip(rows, _values(column, name, path), strict=True):
            if value:
                row[name] = value
    return rows


def _values(column: "pa.Array", name: str, path: Path) -> list[Any]:
    import pyarrow.types as types

    values: list[Any] = column.to_pylist()
    if types.is_floating(column.type) or types.is_nested(column.type):
        try:
            return [_finite(value) for value in values]
        except _Infinite:
            raise DataError(
                "the column holds an infinite number, which JSON cannot write",
                file=path, field=name, remedy="write null, or turn the column into text",
            ) from None  # fmt: skip
    return values


class _Infinite(Exception):
    """A number that JSON cannot write."""


def _finite(value: Any) -> Any:
    """The value with null for NaN, which in parquet means "no value"."""
    if isinstance(value, float):
        if math.isinf(value):
            raise _Infinite
        return None if math.isnan(value) else value
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return value


def _refuse_columns(schema: "pa.Schema", path: Path) -> None:
    """Refuse a file without the columns every row needs, or with a column that JSON cannot hold."""
    names = set(schema.names)
    if missing := [column for column in COLUMNS if column not in names]:
        raise DataError(
            f"these columns are missing: {', '.join(missing)}",
            file=path, remedy="check that this is a split of a benchmark in the MedThinkVQA form",
        )  # fmt: skip
    if len(names) < len(schema.names):
        twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
        raise DataError(f"columns occur twice: {', '.join(twice)}", file=path, remedy="rename or drop one of each")
    embedded = set(embedded_columns(schema))
    for field in schema:
        if field.name not in embedded and field.name != "options" and not _is_plain(field.type):
            raise DataError(
                f"the column holds {field.type}, which JSON cannot write",
                file=path, field=field.name, remedy="drop the column or turn it into text",
            )  # fmt: skip


def _is_plain(kind: "pa.DataType") -> bool:
    """Whether JSON has a form for values of this type."""
    import pyarrow.types as types

    if types.is_dictionary(kind) or types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _is_plain(kind.value_type)
    if types.is_struct(kind):
        return all(_is_plain(field.type) for field in kind)
    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return bool(is_text or is_number or types.is_null(kind))
