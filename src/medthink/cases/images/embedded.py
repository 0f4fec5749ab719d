"""Images embedded in the `image_NN` columns of parquet files."""

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from medthink.cases.files.tables import embedded_columns, parquet_file, reading_parquet
from medthink.cases.images.fact_cache import Stamp, StampedStore, stamp_of
from medthink.cases.images.stores import MAX_IMAGE_BYTES, MISSING, list_by_folder, path_problem, refusal, too_large

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_CACHE_BYTES = 256 * 1024 * 1024


class _Spot(NamedTuple):
    """The location of one image: file, row group, column, and the row inside the group."""

    file: Path
    group: int
    column: str
    row: int


class ParquetImages(StampedStore):
    """Images inside parquet files, found by the path their row gives them; safe to use from several threads.

    Parquet can only be read a column chunk at a time, so the last chunks are kept: cases read in order cost each
    chunk once.
    """

    def __init__(self, files: tuple[Path, ...]) -> None:
        self.files = files
        self._lock = threading.Lock()
        self._index: dict[str, _Spot] | None = None
        self._files: dict[Path, pq.ParquetFile] = {}
        self._stamps: dict[Path, Stamp] = {}
        self._chunks: OrderedDict[tuple[Path, int, str], pa.ChunkedArray] = OrderedDict()

    def __reduce__(self) -> tuple[Any, ...]:
        return ParquetImages, (self.files,)

    def open(self) -> None:
        """Find every image now, or raise DataError."""
        self._spots()

    @property
    def place(self) -> str:
        """The real paths of the files, links resolved."""
        return "\n".join(os.path.realpath(file) for file in self.files)

    def stamp(self, path: str) -> Stamp:
        """The stamp of the image's file when it was opened, and the image's position in it."""
        spot = self._spots().get(path)
        stamp = () if spot is None else self._stamps[spot.file]
        return (*stamp, spot.group, spot.row) if spot is not None and stamp else ()

    def read_stamped(self, path: str) -> tuple[bytes, Stamp]:
        """The image's bytes, or DataError, and their stamp."""
        if problem := self.problem(path):
            raise refusal(problem, self.files[0].parent, path)
        spot = self._spots()[path]
        with self._lock:
            value = self._chunk(spot)[spot.row]
        if not value.is_valid:
            raise refusal("the row holds no bytes for it", spot.file, path)
        if value.as_buffer().size > MAX_IMAGE_BYTES:
            raise too_large(spot.file, path)
        data: bytes = value.as_py()
        return data, self.stamp(path)

    def problem(self, path: str) -> str:
        """Why the image cannot be read, or "" when it can."""
        return path_problem(path) or ("" if path in self._spots() else MISSING)

    def listing(self) -> dict[str, list[str]]:
        """The paths of every embedded image, by folder."""
        return list_by_folder(self._spots())

    def _spots(self) -> dict[str, _Spot]:
        with self._lock:
            if self._index is None:
                # Before they are opened: a file that is replaced meanwhile has another stamp the next time.
                self._stamps = {path: stamp_of(path.stat()) for path in self.files if path.is_file()}
                self._files = {path: parquet_file(path) for path in self.files}
                self._index = self._find()
            return self._index

    def _find(self) -> dict[str, _Spot]:
        """Where each image lies, or DataError for a path that two files give to a picture of their own."""
        index: dict[str, _Spot] = {}
        for path in self.files:
            for name, spot in _find_images(path, self._files[path]):
                earlier = index.setdefault(name, spot)
                if earlier.file != path:
                    problem = f"an image of this path is in {earlier.file.name}, too"
                    raise refusal(problem, path, name, remedy="give every image a path of its own")
        return index

    def _chunk(self, spot: _Spot) -> "pa.ChunkedArray":
        key = spot[:3]
        if key in self._chunks:
            self._chunks.move_to_end(key)
            return self._chunks[key]
        with reading_parquet(spot.file):
            table = self._files[spot.file].read_row_group(spot.group, columns=[spot.column], use_threads=False)
        chunk = _bytes_of(table.column(0))
        while self._chunks and chunk.nbytes + sum(kept.nbytes for kept in self._chunks.values()) > _CACHE_BYTES:
            self._chunks.popitem(last=False)
        self._chunks[key] = chunk
        return chunk

    def __str__(self) -> str:
        return "embedded in " + ", ".join(file.name for file in self.files)


def _find_images(path: Path, file: "pq.ParquetFile") -> Iterator[tuple[str, _Spot]]:
    """Every embedded image of a file by its row's path; the bytes themselves are not read where that can be helped."""
    schema = file.schema_arrow
    columns = [name for name in embedded_columns(schema) if f"{name}_path" in schema.names]
    wanted = [leaf for column in columns for leaf in (f"{column}_path", _small_leaf(schema, column))]
    with reading_parquet(path):
        for group in range(file.metadata.num_row_groups):
            table = file.read_row_group(group, columns=wanted, use_threads=False)
            for column in columns:
                present = table.column(column).is_valid().to_pylist()
                for row, name in enumerate(table.column(f"{column}_path").to_pylist()):
                    if name and present[row]:
                        yield name, _Spot(path, group, column, row)


def _small_leaf(schema: "pa.Schema", column: str) -> str:
    """The smallest part of an image column that shows which rows are null: its `path` if it has one."""
    import pyarrow.types as types

    kind = schema.field(column).type
    return f"{column}.path" if types.is_struct(kind) and kind.get_field_index("path") >= 0 else column


def _bytes_of(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    import pyarrow.compute as compute
    import pyarrow.types as types

    return compute.struct_field(column, "bytes") if types.is_struct(column.type) else column
