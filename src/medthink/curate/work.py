"""The work folder of a build: case files by stage with their images, decision logs, the ledger, the summary.

WORK/
  cases/STAGE.jsonl        the cases that passed the stage, in the benchmark's own form; cases/images/ their images
  decisions/STAGE.jsonl    one line per case: what was decided, why, on what evidence, and what changed
  ledger.sqlite            every model call
  build.json               the stages with their settings and counts
  review.csv               what a person is asked to decide or to check
"""

from pathlib import Path
from typing import Any

import msgspec

from medthink.core.errors import DataError
from medthink.core.jsonio import read_json, write_json
from medthink.curate.asking import CURATE_LEDGER
from medthink.curate.decision import StageCounts


class StageSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How a stage ended; `key` is the digest of everything its outcome depends on."""

    stage: str
    key: str
    settings: dict[str, Any]
    counts: StageCounts
    not_covered: tuple[str, ...] = ()
    report: dict[str, Any] = {}
    stopped_by: str = ""


class WorkFolder:
    """The folder of a build."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def cases(self) -> Path:
        """The folder of case files and of their `images/`."""
        return self.path / "cases"

    @property
    def ledger(self) -> Path:
        """Every model call."""
        return self.path / CURATE_LEDGER

    @property
    def review(self) -> Path:
        """The sheet for people."""
        return self.path / "review.csv"

    def case_file(self, stage: str) -> Path:
        """The cases that passed a stage."""
        return self.cases / f"{stage}.jsonl"

    def decision_file(self, stage: str) -> Path:
        """The decision log of a stage."""
        return self.path / "decisions" / f"{stage}.jsonl"

    def read_summaries(self) -> dict[str, StageSummary]:
        """The finished stages, by name and in order; empty if nothing was built."""
        path = self.path / "build.json"
        if not path.exists():
            return {}
        try:
            kept = msgspec.convert(read_json(path)["stages"], list[StageSummary])
        except (msgspec.ValidationError, KeyError, TypeError) as error:
            raise DataError(f"not a build's summary: {error}", file=path, remedy="delete it and build again") from None
        return {one.stage: one for one in kept}

    def write_summaries(self, summaries: dict[str, StageSummary]) -> None:
        """Write the finished stages."""
        write_json(self.path / "build.json", {"stages": [msgspec.to_builtins(one) for one in summaries.values()]})
