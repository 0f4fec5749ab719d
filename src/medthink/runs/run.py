"""A run on disk, opened for reading."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.core.errors import DataError, UsageError
from medthink.core.stored import read_stored_rows
from medthink.runs.index import PREDICTIONS_FILE, is_killed
from medthink.runs.manifest import Manifest, read_manifest
from medthink.runs.prediction import Prediction
from medthink.runs.records import LEDGER, Records
from medthink.runs.selection import ReadSelected, read_selected
from medthink.runs.survey import find_changed

if TYPE_CHECKING:
    import pandas as pd


class Run:
    """A finished or unfinished run: what was asked, and the results."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest: Manifest = read_manifest(path)

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open a run's folder."""
        return cls(Path(path))

    def predictions(self) -> Iterator[Prediction]:
        """Every prediction, by case and sample; for a killed run, those in its ledger."""
        return iter(self._on_record()) if is_killed(self.path) else self._on_file()

    def _on_file(self) -> Iterator[Prediction]:
        path = self.path / PREDICTIONS_FILE
        if path.stat().st_size == 0:
            raise self._no_result()
        yield from read_stored_rows(path, Prediction, name="a prediction", remedy="run the same command again")

    def _on_record(self) -> list[Prediction]:
        if not (self.path / LEDGER).is_file():
            raise self._no_result()
        with closing(Records.open(self.path)) as records:
            found = list(records.predictions_as(Prediction))
        if not found:
            raise self._no_result()
        return found

    def _no_result(self) -> DataError:
        progress = self.manifest.progress
        if progress is not None and progress.cases == 0:
            return DataError("the run has no case", file=self.path, remedy="an empty shard: merge it with the others")
        return DataError(
            "the run was stopped before it had results", file=self.path, remedy="run the same command again"
        )

    def cases(self, data: Path | None = None, *, read: ReadSelected = read_selected) -> dict[int, Case]:
        """The run's cases by number, from its original path or from `data`; a benchmark with other texts is refused."""
        place = self._find_benchmark(data)
        found = read(place, self.manifest.selection)
        self._refuse_other_benchmark(place, is_same=found.text_fingerprint == self.manifest.text_fingerprint)
        return found.cases

    def split(self, data: Path | None = None) -> Benchmark:
        """The run's whole split, for showing images: other texts or images are refused."""
        place = self._find_benchmark(data)
        split = Benchmark.open(place)[self.manifest.selection.split].remembering()
        self._refuse_other_benchmark(place, is_same=split.fingerprint() == self.manifest.fingerprint)
        return split

    def split_and_changes(self, data: Path | None = None) -> tuple[Benchmark, frozenset[int]]:
        """The whole split, and the cases whose images have changed; other texts are refused."""
        place = self._find_benchmark(data)
        split = Benchmark.open(place)[self.manifest.selection.split].remembering()
        digests: dict[int, str] = {}
        prints = split.pass_prints(lambda case, made: digests.update({case.id: made.digest})).finish()
        is_same = prints.whole == self.manifest.fingerprint
        changed = None if is_same else find_changed(self.path, digests)
        is_known = prints.texts == self.manifest.text_fingerprint and changed is not None
        self._refuse_other_benchmark(place, is_same=is_same or is_known)
        return split, frozenset(changed or ())

    def _find_benchmark(self, data: Path | None) -> Path:
        place = data or Path(self.manifest.benchmark)
        if not place.exists():
            raise UsageError(f"{self.path}: its benchmark is no longer at {place}", remedy="give its path with --data")
        return place

    def _refuse_other_benchmark(self, place: Path, *, is_same: bool) -> None:
        if not is_same:
            raise UsageError(
                f"{place} is not the benchmark that {self.path} was made on: its fingerprint differs",
                remedy="give the right one with --data",
            )

    def to_pandas(self) -> "pd.DataFrame":
        """The predictions as a data frame, one row per case and sample."""
        try:
            import pandas as pd
        except ImportError:
            raise UsageError("pandas is not installed", remedy="pip install pandas, or use predictions()") from None
        return pd.DataFrame.from_records([msgspec.to_builtins(one) for one in self.predictions()])

    def __repr__(self) -> str:
        manifest = self.manifest
        return f"Run({str(self.path)!r}: {manifest.model}, {manifest.task}, {manifest.condition.label()})"

    def _repr_html_(self) -> str:
        from medthink.runs.card import run_card

        return run_card(self)


RunOrPath = Run | str | Path


def path_of(run: RunOrPath) -> Path:
    """The folder of a run, given as a path or an open run."""
    return run.path if isinstance(run, Run) else Path(run)
