"""Write a benchmark as a folder of JSON Lines or parquet without loss.

The folder is written next to its destination and renamed when complete. The copy has the fingerprint of the original.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import pyarrow as pa

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import LETTERS, Case, Image
from medthink.cases.files.rows import COLUMNS, EMBEDDED_COLUMNS, SLOT_COLUMNS, row_from_case
from medthink.cases.files.tables import JSON_MARK
from medthink.cases.images.content import check_decodes
from medthink.core.errors import DataError
from medthink.core.files import new_folder
from medthink.core.jsonio import encode_json, write_jsonl

if TYPE_CHECKING:
    import pyarrow as pa

Format = Literal["jsonl", "parquet"]

# Few groups: a reader holds the description of every column of every group, and there are 259 columns.
_GROUP_CASES = 4096
# Images are read a column of a row group at a time, so that a group with images must be small.
_GROUP_CASES_WITH_IMAGES = 64
_DICTIONARY_COLUMNS = [
    "correct_answer",
    "ICD Chapter",
    "ICD Block",
    "ICD Category",
    *(column for column in SLOT_COLUMNS if column.endswith("modality")),
]


class Exported(msgspec.Struct, frozen=True):
    """The result of an export, with the path and problem of every faulty image.

    `absent` ones are missing or may not be opened; `damaged` ones were copied unchanged but cannot be decoded.
    """

    cases: int
    images: int
    absent: dict[str, str]
    damaged: dict[str, str]


class _Tally:
    """Counts of what has been written so far, reported to the progress callback."""

    def __init__(self, progress: Callable[[], None] | None) -> None:
        self._progress = progress
        self.cases = self.images = 0
        self.absent: dict[str, str] = {}
        self.damaged: dict[str, str] = {}

    def add(self, case: Case, absent: dict[str, str]) -> None:
        self.cases += 1
        self.images += len(case.question.images) - len(absent)
        self.absent |= absent
        self.damaged |= {
            image.path: problem
            for image in case.question.images
            if image.path not in absent and (problem := decoding_problem(image))
        }
        if self._progress:
            self._progress()

    def result(self) -> Exported:
        return Exported(self.cases, self.images, self.absent, self.damaged)


def export_benchmark(
    benchmark: Benchmark,
    out: Path,
    *,
    format: Format,
    embed_images: bool = False,
    progress: Callable[[], None] | None = None,
) -> Exported:
    """Write the benchmark into the folder `out`, which must not exist or be empty; `progress` is called per case."""
    tally = _Tally(progress)
    with new_folder(out) as folder:
        for split in benchmark.splits:
            part, before = benchmark.split(split), tally.cases
            path = folder / f"{split}.{format}"
            if format == "parquet":
                _write_parquet(part, path, embed_images=embed_images, tally=tally)
            else:
                _write_jsonl(part, path, tally)
            if tally.cases == before:
                path.unlink()  # a filter left nothing of it, and a file without rows is no split
    return tally.result()


def _write_jsonl(benchmark: Benchmark, path: Path, tally: _Tally) -> None:
    extras = sorted({name for case in benchmark for name in case.extra})
    # Every row names every column, since `datasets` takes the columns and their types from the first rows.
    blank = dict.fromkeys(COLUMNS) | dict.fromkeys(SLOT_COLUMNS, "") | dict.fromkeys(extras)

    def rows() -> Iterator[dict[str, Any]]:
        for case in benchmark:
            tally.add(case, copy_images(case, path.parent))
            yield blank | row_from_case(case)

    write_jsonl(path, rows())


def _write_parquet(benchmark: Benchmark, path: Path, *, embed_images: bool, tally: _Tally) -> None:
    import pyarrow.parquet as pq

    schema = plan_schema(benchmark, embed_images=embed_images)
    size = _GROUP_CASES_WITH_IMAGES if embed_images else _GROUP_CASES
    options = {"compression": "zstd", "use_dictionary": _DICTIONARY_COLUMNS, "write_page_checksum": True}
    with pq.ParquetWriter(path, schema, write_statistics=False, **options) as writer:
        for window in batches_of(benchmark, size):
            batch = batch_from_cases(window, schema)
            if embed_images:
                batch = _embed(batch, window, schema, tally)
            else:
                for case in window:
                    tally.add(case, copy_images(case, path.parent))
            writer.write_batch(batch)


def _embed(batch: "pa.RecordBatch", cases: list[Case], schema: "pa.Schema", tally: _Tally) -> "pa.RecordBatch":
    """The batch with the cases' images in its `image_NN` columns."""
    import pyarrow as pa

    slots: list[list[dict[str, Any] | None]] = [[None] * len(cases) for _ in EMBEDDED_COLUMNS]
    for row, case in enumerate(cases):
        absent = _absent_images(case)
        for image in case.question.images:
            if image.path not in absent:
                slots[image.slot - 1][row] = {"bytes": image.read(), "path": image.path}
        tally.add(case, absent)
    kind = schema.field(EMBEDDED_COLUMNS[0]).type
    columns = [*batch.columns, *(pa.array(values, kind) for values in slots)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def copy_image(image: Image, folder: Path) -> None:
    """Copy an image's file to the same path below the folder, or DataError when it cannot be read."""
    _write_once(folder / image.path, image.read())


def copy_as_shown(image: Image, folder: Path) -> None:
    """Write an image as it is shown to the same path below the folder, or DataError when it cannot be decoded."""
    _write_once(folder / image.path, image.as_shown().data)


def _write_once(target: Path, data: bytes) -> None:
    """Write the file, unless it holds these very bytes: a file of that name may be an earlier one."""
    if not target.is_file() or target.stat().st_size != len(data) or target.read_bytes() != data:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def copy_images(case: Case, folder: Path, copy: Callable[[Image, Path], None] = copy_image) -> dict[str, str]:
    """Copy the case's images to the same paths below the folder; those that are not there or may not be, and why."""
    absent = _absent_images(case)
    for image in case.question.images:
        if image.path not in absent:
            copy(image, folder)
    return absent


def _absent_images(case: Case) -> dict[str, str]:
    """The images that a store does not hold or will not open; one that is there but damaged is an error instead."""
    problems = {image.path: image.store.problem(image.path) for image in case.question.images}
    return {path: problem for path, problem in problems.items() if problem}


def decoding_problem(image: Image) -> str:
    """Why an image cannot be read or decoded, or ""."""
    try:
        check_decodes(image.read(), name=image.path)
    except DataError as error:
        return error.problem
    return ""


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
    for window in batches_of(cases, _BATCH_CASES):
        batches.append(batch_from_cases(window, schema))
        splits += [case.split for case in window]
    table = pa.Table.from_batches(batches, schema)
    return table if "split" in table.column_names else table.append_column("split", pa.array(splits, pa.string()))


def batches_of(cases: Iterable[Case], size: int) -> Iterator[list[Case]]:
    """The cases in lists of this size, the last one shorter."""
    stream = iter(cases)
    while window := list(islice(stream, size)):
        yield window


def _type_of(value: Any) -> type:
    """The Python type of a value that an Arrow column can store unchanged, else `object`."""
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
    """Add the image columns, and the metadata by which `datasets` recognises images."""
    if taken := sorted(set(extras) & set(EMBEDDED_COLUMNS)):
        raise DataError(f"a column of this name exists already: {taken[0]}", remedy="export without embedded images")
    features = {name: {"_type": "Image"} for name in EMBEDDED_COLUMNS}
    fields = fields + [pa.field(name, _IMAGE) for name in EMBEDDED_COLUMNS]
    return pa.schema(fields, metadata={"huggingface": encode_json({"info": {"features": features}})})


def _column(values: list[Any], field: pa.Field) -> pa.Array:
    if (field.metadata or {}) == JSON_MARK:
        values = [None if value is None else encode_json(value).decode() for value in values]
    return pa.array(values, field.type)
