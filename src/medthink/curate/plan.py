"""The plan of a build: which stages, with which settings, in a TOML file.

```toml
work = "work"              # output folder, relative to the plan's
seed = 7                   # for everything random: distractors, letters, split, review sample
review_sample = 20         # automatic decisions of each stage to list on the review sheet
since = "release-1"        # a published release: its cases keep their split, options and letters

[ingest]
source = "cases.csv"
…
[leaks]
model = "openai/gpt-5-mini"
```

A table runs its stage, an empty one too; stages always run in the order of the registry.
"""

from pathlib import Path
from typing import Any

import msgspec

from medthink.core.errors import DataError, UsageError, suggest
from medthink.core.jsonio import read_json, read_toml, write_json
from medthink.curate.ask import CURATE_LEDGER
from medthink.curate.decision import StageCounts
from medthink.curate.settings import STAGES, StageSettings, read_stage_settings


class CurationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A plan; its paths are relative to `folder`."""

    folder: Path
    work: Path
    seed: int
    review_sample: int
    since: Path | None
    stages: dict[str, StageSettings]


_GENERAL = {"work": str, "seed": int, "review_sample": int, "since": str}


def read_plan(path: Path) -> CurationPlan:
    """The plan at this path, or DataError naming the field."""
    fields = read_toml(path, remedy="see docs/curate.md for an example")
    stages = {name: value for name, value in fields.items() if name in STAGES}
    general = {name: value for name, value in fields.items() if name not in STAGES}
    for name, value in general.items():
        _refuse_strange(name, value, path)
    if "work" not in general:
        raise DataError("the work folder is missing", file=path, field="work", remedy='write work = "FOLDER"')
    if not stages:
        raise DataError("the plan has no stage", file=path, remedy=f"add a table, such as [{next(iter(STAGES))}]")
    return CurationPlan(
        folder=path.parent,
        work=path.parent / general["work"],
        seed=general.get("seed", 0),
        review_sample=general.get("review_sample", 20),
        since=path.parent / general["since"] if general.get("since") else None,
        stages={name: _settings(name, stages[name], path) for name in STAGES if name in stages},
    )


def _refuse_strange(name: str, value: Any, path: Path) -> None:
    if name not in _GENERAL:
        remedy = suggest(name, [*STAGES, *_GENERAL], f"stages are: {', '.join(STAGES)}")
        raise DataError("no such stage or setting", file=path, field=name, remedy=remedy)
    kind = _GENERAL[name]
    if type(value) is not kind:
        due = "a text" if kind is str else "a whole number"
        raise DataError(f"expected {due}, found {value!r}", file=path, field=name, remedy="correct the plan")


def _settings(name: str, fields: Any, path: Path) -> StageSettings:
    if not isinstance(fields, dict):
        raise DataError("not a table", file=path, field=name, remedy=f"write [{name}]")
    try:
        return read_stage_settings(name, fields)
    except UsageError as error:
        raise DataError(error.problem, file=path, field=name, remedy=error.remedy) from None


class StageSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The summary of a finished stage; `key` is the digest of everything its outcome depends on."""

    stage: str
    key: str
    settings: dict[str, Any]
    counts: StageCounts
    not_covered: tuple[str, ...] = ()
    report: dict[str, Any] = {}
    stopped_by: str = ""


SUMMARY_FILE = "build.json"


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
    def changes(self) -> Path:
        """What is not as in the release that the build follows."""
        return self.path / "changes.csv"

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
        path = self.path / SUMMARY_FILE
        if not path.exists():
            return {}
        try:
            kept = msgspec.convert(read_json(path)["stages"], list[StageSummary])
        except (msgspec.ValidationError, KeyError, TypeError) as error:
            raise DataError(f"not a build's summary: {error}", file=path, remedy="delete it and build again") from None
        return {one.stage: one for one in kept}

    def write_summaries(self, summaries: dict[str, StageSummary]) -> None:
        """Write the finished stages."""
        write_json(self.path / SUMMARY_FILE, {"stages": [msgspec.to_builtins(one) for one in summaries.values()]})
