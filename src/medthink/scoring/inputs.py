"""Input of scoring: predictions from a run or a submission, with their cases."""

from collections import Counter
from collections.abc import Sequence, Set
from functools import cache
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from medthink.cases.benchmark import HeldSplit
from medthink.cases.case import Case
from medthink.core.errors import DataError, UsageError
from medthink.runs.manifest import Manifest
from medthink.runs.run import PREDICTIONS_FILE, Run, refuse_altered
from medthink.runs.selection import ReadSelected, Selection, read_selected
from medthink.scoring.scores import PartialRun
from medthink.scoring.submission_file import read_submission, refuse_problems
from medthink.workflow.prediction import Prediction
from medthink.workflow.tasks import has_letters, task_named
from medthink.workflow.view import show_under_condition
from medthink.workflow.written_text import STEPS, Pairing, TextPair, WrittenText

SUBMISSION = "submission"
"""The task name shown for predictions that were made elsewhere."""


class ScoringInput(NamedTuple):
    """Predictions and their cases; `manifest` is None for predictions made elsewhere.

    `missing` are the cases that a stopped or running run has not finished.
    """

    name: str
    manifest: Manifest | None
    text_fingerprint: str
    cases: dict[int, Case]
    predictions: list[Prediction]
    missing: frozenset[int] = frozenset()

    @property
    def partial(self) -> PartialRun | None:
        """The progress, if some cases are missing."""
        return PartialRun(len(self.cases), len(self.due)) if self.missing else None

    @property
    def due(self) -> frozenset[int]:
        """All cases it should cover."""
        return self.missing.union(self.cases)

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
        """The task, or that this is a submission file."""
        return SUBMISSION if self.manifest is None else self.manifest.task

    @property
    def texts(self) -> tuple[WrittenText, ...]:
        """What the model wrote itself about the cases' own images."""
        if self.manifest is None:
            return STEPS if any(one.prediction_twi is not None for one in self.predictions) else ()
        condition = self.manifest.condition
        return tuple(text for text in task_named(self.task).texts if text.is_scored(condition))

    @property
    def note(self) -> str:
        """What the task says with its scores."""
        return "" if self.manifest is None else task_named(self.task).note

    def letter_shown(self, case_id: int) -> str:
        """The letter under which the right option of a case was shown; the file's, of predictions made elsewhere."""
        case = self.cases[case_id]
        if self.manifest is None or self.manifest.condition.option_order == "as_is":
            return case.reference.answer
        shown = show_under_condition(replace(self.manifest.condition, swap_images=False), case.question)
        return next((letter for letter, original in shown.letters.items() if original == case.reference.answer), "")

    def pairs(self, pairing: Pairing) -> list[TextPair]:
        """The texts of all predictions, paired with the expert's."""
        return [pair for one in self.predictions for pair in pairing(one, self.cases[one.case])]


def load_run(path: Path, data: Path | None = None) -> ScoringInput:
    """A run with its references, from its original path or from `data`; changed texts are refused."""
    return load_runs([path], data)[0]


def load_runs(paths: Sequence[Path], data: Path | None = None) -> list[ScoringInput]:
    """Several runs with their references; cases that runs share are read once."""
    read = cache(read_selected)
    return [_load(Run.open(path), data, read) for path in paths]


def load_all(paths: Sequence[Path], data: Path | None = None, *, split: str = "test") -> list[ScoringInput]:
    """Runs and submission files, in the order given; a file belongs to the `split` of `data`."""
    read = cache(read_selected)
    return [_load_either(path, data, split, read) for path in paths]


def _load_either(path: Path, data: Path | None, split: str, read: ReadSelected) -> ScoringInput:
    if path.is_dir():
        return _load(Run.open(path), data, read)
    if not path.exists():
        raise UsageError(f"{path}: no such run or file", remedy="check the path")
    if data is None:
        raise UsageError(
            f"{path} is a file of predictions and does not name its benchmark", remedy="name it with --data"
        )
    return _load_submission(path, read(data, Selection(split=split)))


def _load(run: Run, data: Path | None, read: ReadSelected) -> ScoringInput:
    refuse_unanswered(run)
    refuse_altered(run.path, run.manifest)
    cases, predictions = run.cases(data, read=read), list(run.predictions())
    whole = ScoringInput(str(run.path), run.manifest, run.manifest.text_fingerprint, cases, predictions)
    # A case counts once all of its samples are there.
    made, samples = Counter(one.case for one in predictions), run.manifest.condition.samples
    if strange := sorted(case_id for case_id, count in made.items() if case_id not in cases or count > samples):
        raise DataError(
            f"{made[strange[0]]} predictions of case {strange[0]}, which has {samples if strange[0] in cases else 0}",
            file=run.path / PREDICTIONS_FILE,
            remedy="run the same command again",
        )
    material = restrict_to_cases(whole, {case_id for case_id in cases if made[case_id] == samples})
    if not material.cases:
        raise DataError("no case is finished yet", file=run.path, remedy="run the same command again")
    return material


def refuse_unanswered(run: Run) -> None:
    """Raise DataError, with the reason, for a run in which nothing was answered: it has no score."""
    progress = run.manifest.progress
    if progress is not None and progress.is_unanswered:
        why = f": {progress.stopped_by}" if progress.stopped_by else ""
        again = progress.remedy or f"medthink show {run.path} --failed says why"
        raise DataError(
            f"nothing was answered, so there is no score{why}",
            file=run.path,
            remedy=f"{again}; medthink run with other flags may use the same --out",
        )


def restrict_to_cases(material: ScoringInput, kept: Set[int]) -> ScoringInput:
    """The input restricted to these cases; the others count as missing."""
    if material.cases.keys() <= kept:
        return material
    return material._replace(
        cases={case_id: case for case_id, case in material.cases.items() if case_id in kept},
        predictions=[one for one in material.predictions if one.case in kept],
        missing=material.due - kept,
    )


def refuse_partial(material: ScoringInput) -> ScoringInput:
    """The input, or UsageError if cases are missing."""
    if material.partial is not None:
        raise UsageError(
            f"{material.name} is not finished: it has {material.partial}",
            remedy="run its command again until it is finished",
        )
    return material


def _load_submission(path: Path, selected: HeldSplit) -> ScoringInput:
    """Predictions made elsewhere, in the card's submission format; any answer key in them is ignored."""
    submission = read_submission(path, selected.cases)
    refuse_problems(path, submission.problems)
    return ScoringInput(str(path), None, selected.text_fingerprint, selected.cases, list(submission.predictions))
