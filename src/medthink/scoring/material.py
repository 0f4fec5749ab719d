"""What is scored: predictions, from a run or a submission, beside the cases they are about."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from medthink.cases.case import Case
from medthink.core.errors import UsageError
from medthink.runs.manifest import Manifest
from medthink.runs.prediction import Prediction
from medthink.runs.run import Run
from medthink.runs.selection import ReadSelected, SelectedCases, Selection, read_selected
from medthink.scoring.submission import read_submission, refuse_problems
from medthink.workflow.tasks import has_letters


class Material(NamedTuple):
    """Predictions and the cases they are about; `manifest` is None for predictions made elsewhere."""

    name: str
    manifest: Manifest | None
    text_fingerprint: str
    cases: dict[int, Case]
    predictions: list[Prediction]

    @property
    def has_options(self) -> bool:
        """Whether the options were shown, so that letters were asked for."""
        return self.manifest is None or self.manifest.condition.show_options

    @property
    def has_letters(self) -> bool:
        """Whether letters were asked for: answers can be right or wrong."""
        return self.manifest is None or has_letters(self.manifest.task, self.manifest.condition)

    @property
    def task(self) -> str:
        """The task, or "submission"."""
        return "submission" if self.manifest is None else self.manifest.task


def load_run(path: Path, data: Path | None = None) -> Material:
    """A run with its references, from where it was made or from `data`; other texts than then are refused."""
    return load_runs([path], data)[0]


def load_runs(paths: Sequence[Path], data: Path | None = None) -> list[Material]:
    """Several runs with their references; cases that runs share are read once."""
    read = cache(read_selected)
    return [_load(Run.open(path), data, read) for path in paths]


def load_all(
    paths: Sequence[Path], data: Path | None = None, *, split: str = "test", is_finished: bool = True
) -> list[Material]:
    """Runs and submission files alike, in the order given; a file is about the `split` of `data`.

    A run that is not finished is refused, unless `is_finished` is false.
    """
    read = cache(read_selected)
    return [_load_either(path, data, split, read, is_finished=is_finished) for path in paths]


def _load_either(path: Path, data: Path | None, split: str, read: ReadSelected, *, is_finished: bool) -> Material:
    if path.is_dir():
        return _load(Run.open(path), data, read, is_finished=is_finished)
    if not path.exists():
        raise UsageError(f"{path}: no such run or file", remedy="check the path")
    if data is None:
        raise UsageError(
            f"{path} is a file of predictions and does not say for which benchmark", remedy="name it with --data"
        )
    return _load_submission(path, read(data, Selection(split=split)))


def _load(run: Run, data: Path | None, read: ReadSelected, *, is_finished: bool = True) -> Material:
    cases, predictions = run.cases(data, read=read), list(run.predictions())
    if is_finished:
        _refuse_gaps(run.path, cases, predictions, run.manifest.condition.samples)
    return Material(str(run.path), run.manifest, run.manifest.text_fingerprint, cases, predictions)


def load_submission(path: Path, data: Path, split: str) -> Material:
    """Predictions made elsewhere, in the card's submission format; whatever gold they carry is ignored."""
    return _load_submission(path, read_selected(data, Selection(split=split)))


def _load_submission(path: Path, selected: SelectedCases) -> Material:
    submission = read_submission(path, selected.cases)
    refuse_problems(path, submission.problems)
    return Material(str(path), None, selected.text_fingerprint, selected.cases, list(submission.predictions))


def _refuse_gaps(path: Path, cases: dict[int, Case], predictions: list[Prediction], samples: int) -> None:
    if len(predictions) != len(cases) * samples or {one.case for one in predictions} != cases.keys():
        raise UsageError(
            f"{path} is not finished: {len(predictions)} predictions for {len(cases) * samples} due",
            remedy="run its command again first",
        )
