"""Write a benchmark as a folder of JSON Lines or parquet, losing nothing.

The folder is made beside its place and moved there when it is whole. The copy has the fingerprint of the original.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case, Image
from medthink.cases.images import check_decodes
from medthink.cases.rows import COLUMNS, EMBEDDED_COLUMNS, SLOT_COLUMNS, row_from_case
from medthink.core.errors import DataError
from medthink.core.files import new_folder
from medthink.core.jsonio import write_jsonl

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
    """What an export wrote, and the path of every image with a problem, and which.

    `absent` ones are missing or may not be opened; `damaged` ones were copied as they are, but do not decode.
    """

    cases: int
    images: int
    absent: dict[str, str]
    damaged: dict[str, str]


class _Tally:
    """What has been written so far, told on as it grows."""

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

    from medthink.cases.arrow import batch_from_cases, plan_schema, windows

    schema = plan_schema(benchmark, embed_images=embed_images)
    size = _GROUP_CASES_WITH_IMAGES if embed_images else _GROUP_CASES
    options = {"compression": "zstd", "use_dictionary": _DICTIONARY_COLUMNS, "write_page_checksum": True}
    with pq.ParquetWriter(path, schema, write_statistics=False, **options) as writer:
        for window in windows(benchmark, size):
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


def copy_images(case: Case, folder: Path) -> dict[str, str]:
    """Copy the case's images to the same paths below the folder; those that are not there or may not be, and why."""
    absent = _absent_images(case)
    for image in case.question.images:
        if image.path not in absent:
            copy_image(image, folder)
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


def copy_image(image: Image, folder: Path) -> None:
    """Copy an image to the same path below the folder, unless it is there, or DataError when it cannot be read."""
    data = image.read()
    target = folder / image.path
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
