"""Cases as Arrow tables, losing nothing: the columns of the release, and what else the files carry."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

from medthink.cases.case import LETTERS, Case
from medthink.cases.rows import COLUMNS, EMBEDDED_COLUMNS, SLOT_COLUMNS, row_from_case
from medthink.cases.tables import JSON_MARK
from medthink.core.errors import DataError
from medthink.core.jsonio import encode_json

_BATCH_CASES = 512
_INT64 = range(-(2**63), 2**63)
_BASE_TYPES = {"is_longitudinal": pa.bool_(), "timepoint_count": pa.int64(), "image_count": pa.int64()}
_SCALARS: dict[type, pa.DataType] = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
_IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def plan_schema(cases: Iterable[Case], *, embed_images: bool = False) -> pa.Schema:
    """The schema that can hold all these cases; reads them once, since a column's type depends on every row."""
    letters: set[str] = set(LETTERS)
    extras: dict[str, set[Any]] = {}
    for case in cases:
        letters.update(case.question.options)
        for name, value in case.extra.items():
            extras.setdefault(name, set()).add(_type_of(value))
    fields = [pa.field(name, _BASE_TYPES.get(name, pa.string())) for name in COLUMNS]
    fields[COLUMNS.index("options")] = _options_field(letters)
    fields += [pa.field(name, pa.string()) for name in SLOT_COLUMNS]
    fields += [_extra_field(name, seen) for name, seen in sorted(extras.items())]
    return _with_embedded_images(fields, extras) if embed_images else pa.schema(fields)


def batch_from_cases(cases: list[Case], schema: pa.Schema) -> pa.RecordBatch:
    """The cases as one batch of this schema; the text columns only."""
    rows = [row_from_case(case) for case in cases]
    # By type and not by name: someone's own column may be called `image_01` and hold a link.
    fields = [field for field in schema if field.type != _IMAGE]
    columns = [_column([row.get(field.name) for row in rows], field) for field in fields]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def table_from_cases(cases: Iterable[Case]) -> pa.Table:
    """The cases as one table, with the column `split` unless the files have one of that name."""
    schema = plan_schema(cases)
    batches, splits = [], []
    for window in windows(cases, _BATCH_CASES):
        batches.append(batch_from_cases(window, schema))
        splits += [case.split for case in window]
    table = pa.Table.from_batches(batches, schema)
    return table if "split" in table.column_names else table.append_column("split", pa.array(splits, pa.string()))


def windows(cases: Iterable[Case], size: int) -> Iterator[list[Case]]:
    """The cases in lists of this size, the last one shorter."""
    stream = iter(cases)
    while window := list(islice(stream, size)):
        yield window


def _type_of(value: Any) -> type:
    """The Python type of a value that an Arrow column can hold as it is, else `object`."""
    kind = type(value)
    if kind not in _SCALARS or (kind is int and value not in _INT64):
        return object
    return kind


def _options_field(letters: set[str]) -> pa.Field:
    """A struct of the letters seen; JSON where someone's options are not keyed by letters."""
    if all(len(letter) == 1 and letter.isascii() and letter.isupper() for letter in letters):
        return pa.field("options", pa.struct([(letter, pa.string()) for letter in sorted(letters)]))
    return pa.field("options", pa.string(), metadata=JSON_MARK)


def _extra_field(name: str, seen: set[type]) -> pa.Field:
    if len(seen) == 1 and (kind := _SCALARS.get(next(iter(seen)))) is not None:
        return pa.field(name, kind)
    return pa.field(name, pa.string(), metadata=JSON_MARK)


def _with_embedded_images(fields: list[pa.Field], extras: Iterable[str]) -> pa.Schema:
    """Add the image columns, and the note by which `datasets` knows them for images."""
    if taken := sorted(set(extras) & set(EMBEDDED_COLUMNS)):
        raise DataError(f"a column of this name exists already: {taken[0]}", remedy="export without embedded images")
    features = {name: {"_type": "Image"} for name in EMBEDDED_COLUMNS}
    fields = fields + [pa.field(name, _IMAGE) for name in EMBEDDED_COLUMNS]
    return pa.schema(fields, metadata={"huggingface": encode_json({"info": {"features": features}})})


def _column(values: list[Any], field: pa.Field) -> pa.Array:
    if (field.metadata or {}) == JSON_MARK:
        values = [None if value is None else encode_json(value).decode() for value in values]
    return pa.array(values, field.type)
