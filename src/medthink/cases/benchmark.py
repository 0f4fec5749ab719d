"""A benchmark: its cases, streamed from their files, and its fingerprint."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from medthink.cases.case import Case, Image, ImageStore
from medthink.cases.files.layout import find_images, find_tables
from medthink.cases.files.rows import RowLocation, case_from_row, row_from_case
from medthink.cases.files.tables import CaseTable, SourceRow, prefetch
from medthink.cases.images.fact_cache import CachingImageStore, StampedStore
from medthink.core.digest import digest_bytes, digest_value
from medthink.core.errors import DataError, UsageError
from medthink.core.numbers import count_of

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Predicate = Callable[[Case], bool]
_NUMBERS_SHOWN = 8


class Fingerprints(NamedTuple):
    """The two digests that identify a benchmark: of everything, and of its texts alone."""

    whole: str
    texts: str


class Benchmark:
    """The cases of one or more splits; the files are read again each time it is iterated.

    `benchmark["test"]` and `benchmark.filter(…)` give smaller benchmarks over the same files.
    """

    def __init__(
        self, path: Path, tables: tuple[CaseTable, ...], images: ImageStore, keep: tuple[Predicate, ...] = ()
    ) -> None:
        self.path = path
        self.tables = tables
        self.images = images
        self._keep = keep
        self._index: dict[int, tuple[CaseTable, int, int]] | None = None
        self._unreadable = 0

    @classmethod
    def open(cls, path: str | Path) -> "Benchmark":
        """Open a benchmark folder, or a single `.jsonl` or `.parquet` file."""
        path = Path(path)
        tables = find_tables(path)
        return cls(path, tables, find_images(path, tables))

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits, in reading order."""
        return tuple(table.split for table in self.tables)

    @property
    def is_whole(self) -> bool:
        """Whether these are all the cases of a folder, so that its images are theirs."""
        return self.path.is_dir() and not self._keep and len(self.tables) == len(find_tables(self.path))

    @property
    def is_filtered(self) -> bool:
        """Whether `filter` leaves out cases of its splits."""
        return bool(self._keep)

    @property
    def sources(self) -> str:
        """The files that are read, as text for a person."""
        return f"{', '.join(table.path.name for table in self.tables)}; images: {self.images}"

    def __iter__(self) -> Iterator[Case]:
        """Every case, split by split, in the order of the files; the first defective row raises."""
        for found in self.rows_or_errors():
            if isinstance(found, DataError):
                raise found
            yield found

    def rows_or_errors(self) -> Iterator[Case | DataError]:
        """Every case, or the error of a row that is not a valid case; only an unreadable file raises."""
        for table in self.tables:
            for row in prefetch(table.rows()):
                found = row if isinstance(row, DataError) else self._case_or_error(table, row)
                if isinstance(found, DataError) or self._is_kept(found):
                    yield found

    def __len__(self) -> int:
        if self._keep:
            return sum(1 for _ in self)
        return sum(table.count() for table in self.tables)

    def __getitem__(self, split: str) -> "Benchmark":
        return self.split(split)

    def split(self, name: str) -> "Benchmark":
        """The benchmark with only this split."""
        tables = tuple(table for table in self.tables if table.split == name)
        if not tables:
            raise UsageError(f"{self.path}: no split {name!r}", remedy=f"known: {', '.join(self.splits)}")
        return Benchmark(self.path, tables, self.images, self._keep)

    def case(self, case_id: int) -> Case:
        """The case with this number; the first call reads all cases once, later ones only that row."""
        if self._index is None:
            self._index = self._build_index()
        if case_id not in self._index:
            raise self._no_case(case_id, self._index)
        table, number, position = self._index[case_id]
        found = self._case_or_error(table, table.row_at(position, number))
        if isinstance(found, DataError):
            raise found
        if found.id != case_id:
            raise DataError("the file has changed since it was opened", file=table.path, remedy="open it again")
        return found

    def filter(
        self, predicate: Predicate | None = None, *, modality: str | None = None, longitudinal: bool | None = None
    ) -> "Benchmark":
        """The cases that match all conditions: a predicate, a level-1 modality among the images, the timeline."""
        keep = self._keep
        if predicate is not None:
            keep += (predicate,)
        if modality is not None:
            keep += (lambda case: modality in case.modalities,)
        if longitudinal is not None:
            keep += (lambda case: case.reference.is_longitudinal is longitudinal,)
        return Benchmark(self.path, self.tables, self.images, keep)

    def fingerprint(self) -> str:
        """A digest of every field and every image's bytes; the same whatever format, file or order they come in."""
        return self.fingerprints().whole

    def text_fingerprint(self) -> str:
        """A digest of every field without the images: enough to know that the references are the same."""
        return fingerprint_texts(self)

    def fingerprints(self) -> Fingerprints:
        """Both fingerprints in one pass."""
        return self.pass_prints().finish()

    def remembering(self, *, rehash: bool = False) -> "Benchmark":
        """The same, with digests of unchanged images cached between sessions; `rehash` computes them again."""
        store = CachingImageStore(self.images, rehash=rehash) if isinstance(self.images, StampedStore) else self.images
        return Benchmark(self.path, self.tables, store, self._keep)

    def pass_prints(self, note: "NotePrint | None" = None) -> "FingerprintBuilder":
        """The cases in one pass that also builds the fingerprints; `note` is called with that of each case."""
        return FingerprintBuilder(self, note)

    def to_arrow(self) -> "pa.Table":
        """All cases as one Arrow table with the released columns and `split`."""
        from medthink.cases.files.export import table_from_cases

        return table_from_cases(self)

    def to_pandas(self) -> "pd.DataFrame":
        """All cases as a data frame with the released columns and `split`."""
        table = self.to_arrow()
        try:
            return table.to_pandas()
        except ImportError:
            raise UsageError("pandas is not installed", remedy="pip install pandas, or use to_arrow()") from None

    def __repr__(self) -> str:
        part = ", filtered" if self._keep else ""
        return f"Benchmark({str(self.path)!r}: {', '.join(self.splits)}{part})"

    def _repr_html_(self) -> str:
        from medthink.cases.notebook import benchmark_card

        return benchmark_card(self)

    def _case_or_error(self, table: CaseTable, row: SourceRow) -> Case | DataError:
        place = RowLocation(str(table.path), row.number)
        try:
            return case_from_row(row.values, split=table.split, store=self.images, place=place)
        except DataError as error:
            return error

    def _is_kept(self, case: Case) -> bool:
        return not self._keep or all(keep(case) for keep in self._keep)

    def _no_case(self, case_id: int, index: dict[int, tuple[CaseTable, int, int]]) -> DataError:
        there = _describe_numbers(case_id, {number: table.split for number, (table, *_) in index.items()})
        if self._unreadable:
            problem = f"no case {case_id} among the rows that can be read; {self._unreadable} cannot"
            return DataError(problem, file=self.path, remedy=f"{there}; medthink data check lists the others")
        return DataError(f"no case {case_id}", file=self.path, remedy=there)

    def _build_index(self) -> dict[int, tuple[CaseTable, int, int]]:
        self._unreadable = 0
        index: dict[int, tuple[CaseTable, int, int]] = {}
        for table in self.tables:
            for row in table.rows():
                found = row if isinstance(row, DataError) else self._case_or_error(table, row)
                if isinstance(row, DataError) or isinstance(found, DataError):
                    self._unreadable += 1
                elif self._is_kept(found):
                    index.setdefault(found.id, (table, row.number, row.position))
        return index


def _describe_numbers(sought: int, splits: dict[int, str]) -> str:
    """The range of case numbers in each split, and the cases with the nearest numbers."""
    if not splits:
        return "there is no case"
    parts = []
    for split in dict.fromkeys(splits.values()):
        numbers = sorted(number for number, where in splits.items() if where == split)
        shown = ", ".join(map(str, numbers)) if len(numbers) <= _NUMBERS_SHOWN else f"{numbers[0]} to {numbers[-1]}"
        parts.append(f"{split} {shown} ({count_of(len(numbers), 'case')})")
    there = f"there are: {'; '.join(parts)}"
    if len(splits) <= _NUMBERS_SHOWN:
        return there
    near = sorted(sorted(splits, key=lambda number: (abs(number - sought), number))[:3])
    return f"{there}; nearest: {', '.join(map(str, near))}"


def fingerprint_texts(cases: Iterable[Case]) -> str:
    """A digest of every field of the cases without their images, in whatever order they come."""
    return _digest_lines(_line(case, row_from_case(case)) for case in cases)


class CaseFingerprint(NamedTuple):
    """A case's lines in the two fingerprints: all of it, and its texts alone; and its images' digests, or null."""

    whole: str
    texts: str
    images: tuple[str | None, ...] = ()

    @property
    def missing_images(self) -> int:
        """How many images cannot be read."""
        return self.images.count(None)

    @property
    def digest(self) -> str:
        """The digest of texts and images."""
        return self.whole.rstrip("\n").rpartition("\t")[2]


NotePrint = Callable[[Case, CaseFingerprint], None]


class FingerprintBuilder:
    """Passes the cases of a benchmark on and builds its fingerprints from them."""

    def __init__(self, benchmark: Benchmark, note: NotePrint | None) -> None:
        self._note = note
        self._images = benchmark.images
        self._lines: list[CaseFingerprint] = []
        self.cases = self._pass(benchmark)

    def _pass(self, benchmark: Benchmark) -> Iterator[Case]:
        # No threads: with images of 50 KB they hand the interpreter to and fro, at twice the CPU and no gain in time.
        for case in benchmark:
            made = _print_of(case)
            self._lines.append(made._replace(images=()))
            if self._note is not None:
                self._note(case, made)
            yield case

    def finish(self) -> Fingerprints:
        """Read the cases that are left, then return both fingerprints."""
        for _ in self.cases:
            pass
        if isinstance(self._images, CachingImageStore):
            self._images.save()
        whole, texts = (one.whole for one in self._lines), (one.texts for one in self._lines)
        return Fingerprints(_digest_lines(whole), _digest_lines(texts))


def _print_of(case: Case) -> CaseFingerprint:
    row = row_from_case(case)
    images = [_digest_or_none(image) for image in case.question.images]
    content: dict[str, Any] = {"row": row, "images": images}
    return CaseFingerprint(_line(case, content), _line(case, row), tuple(images))


def _line(case: Case, content: dict[str, Any]) -> str:
    return f"{case.split}\t{case.id}\t{digest_value(content)}\n"


def _digest_or_none(image: Image) -> str | None:
    try:
        return image.digest()
    except DataError:
        # One image concerns its case alone; a store that cannot be opened at all raises here.
        image.store.has(image.path)
        return None


def _digest_lines(lines: Iterable[str]) -> str:
    return digest_bytes("".join(sorted(lines)).encode())


class HeldSplit(msgspec.Struct, frozen=True, kw_only=True):
    """Cases of a split by number, all or some, and the fingerprint of the texts of the whole split."""

    split: Benchmark
    cases: dict[int, Case]
    text_fingerprint: str


def hold_split(split: Benchmark) -> HeldSplit:
    """Read a split once, without its images."""
    cases = list(split)
    return HeldSplit(split=split, cases={case.id: case for case in cases}, text_fingerprint=fingerprint_texts(cases))
