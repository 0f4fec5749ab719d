"""A run on disk, opened for reading."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from medthink.core.errors import DataError
from medthink.core.jsonio import read_jsonl
from medthink.runs.manifest import Manifest, read_manifest
from medthink.runs.prediction import Prediction


class Run:
    """A finished or unfinished run: what was asked, and what came out."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest: Manifest = read_manifest(path)

    @classmethod
    def open(cls, path: str | Path) -> "Run":
        """Open a run's folder."""
        return cls(Path(path))

    def predictions(self) -> Iterator[Prediction]:
        """Every prediction, by case and sample."""
        path = self.path / "predictions.jsonl"
        if not path.exists():
            raise DataError(
                "the run was stopped before it had results", file=self.path, remedy="run the same command again"
            )
        if path.stat().st_size == 0:
            raise DataError("the run has no case", file=self.path, remedy="an empty shard: merge it with the others")
        for line in read_jsonl(path):
            try:
                yield msgspec.convert(line.value, Prediction)
            except msgspec.ValidationError as error:
                raise DataError(
                    f"not a prediction: {error}", file=path, row=line.number, remedy="run the same command again"
                ) from None

    def __repr__(self) -> str:
        return (
            f"Run({str(self.path)!r}: {self.manifest.model}, {self.manifest.task}, {self.manifest.condition.label()})"
        )
