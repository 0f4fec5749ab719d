"""What is scored: predictions, from a run or a submission, beside the cases they are about."""

import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.core.errors import DataError, UsageError
from medthink.core.jsonio import Line, read_jsonl
from medthink.runs.manifest import Manifest, Selection
from medthink.runs.prediction import Prediction, TwiSteps
from medthink.runs.run import Run
from medthink.runs.session import select_cases


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
    def task(self) -> str:
        """The task, or "submission"."""
        return "submission" if self.manifest is None else self.manifest.task


def load_run(path: Path, data: Path | None = None) -> Material:
    """A run with its references, from where it was made or from `data`; other texts than then are refused."""
    return load_runs([path], data)[0]


def load_runs(paths: Sequence[Path], data: Path | None = None) -> list[Material]:
    """The same of several runs; the cases that some of them share are read once."""
    read = cache(_read_selection)
    return [_load(Run.open(path), data, read) for path in paths]


def load_all(paths: Sequence[Path], data: Path | None = None, *, split: str = "test") -> list[Material]:
    """Runs and submission files alike, in the order given; a file is about the `split` of `data`."""
    read = cache(_read_selection)
    return [_load_either(path, data, split, read) for path in paths]


def _load_either(path: Path, data: Path | None, split: str, read: "_Reader") -> Material:
    if path.is_dir():
        return _load(Run.open(path), data, read)
    if not path.exists():
        raise UsageError(f"{path}: no such run or file", remedy="check the path")
    if data is None:
        raise UsageError(
            f"{path} is a file of predictions and does not say for which benchmark", remedy="name it with --data"
        )
    return _load_submission(path, read(data, Selection(split=split)), split)


def _load(run: Run, data: Path | None, read: "_Reader") -> Material:
    manifest = run.manifest
    place = data or Path(manifest.benchmark)
    if not place.exists():
        raise UsageError(f"{run.path}: its benchmark is not at {place} any more", remedy="say where it is with --data")
    found = read(place, manifest.selection)
    if found.text_fingerprint != manifest.text_fingerprint:
        raise UsageError(
            f"{place} is not the benchmark that {run.path} was made on", remedy="give the right one by --data"
        )
    predictions = list(run.predictions())
    _refuse_gaps(run.path, found.cases, predictions, manifest.condition.samples)
    return Material(str(run.path), manifest, found.text_fingerprint, found.cases, predictions)


class _Selected(NamedTuple):
    """The cases of a selection, and the fingerprint of their whole split."""

    text_fingerprint: str
    cases: dict[int, Case]


_Reader = Callable[[Path, Selection], _Selected]


def _read_selection(place: Path, selection: Selection) -> _Selected:
    benchmark = Benchmark.open(place)
    cases = {case.id: case for case in select_cases(benchmark, selection)}
    return _Selected(benchmark[selection.split].text_fingerprint(), cases)


def load_submission(path: Path, data: Path, split: str) -> Material:
    """Predictions made elsewhere, in the card's submission format; whatever gold they carry is ignored."""
    return _load_submission(path, _read_selection(data, Selection(split=split)), split)


def _load_submission(path: Path, selected: _Selected, split: str) -> Material:
    found: dict[tuple[int, int], Prediction] = {}
    for line in read_jsonl(path):
        prediction = _read_submitted(line, path, selected.cases)
        key = (prediction.case, prediction.sample)
        if key in found:
            raise DataError(
                f"case {prediction.case} has two lines for sample {prediction.sample}",
                file=path,
                row=line.number,
                remedy='keep one line per case, or number repeated answers with "sample": 0, 1, …',
            )
        found[key] = prediction
    samples = sorted({sample for _, sample in found}) or [0]
    due = ((number, sample) for number in sorted(selected.cases) for sample in samples)
    predictions = [found.get(key) or _absent(selected.cases[key[0]], key[1], split) for key in due]
    return Material(str(path), None, selected.text_fingerprint, selected.cases, predictions)


def _absent(case: Case, sample: int, split: str) -> Prediction:
    detail = "no line for this case"
    return Prediction(case=case.id, split=split, sample=sample, state="failed", detail=detail, slots=_slots(case))


def _refuse_gaps(path: Path, cases: dict[int, Case], predictions: list[Prediction], samples: int) -> None:
    if len(predictions) != len(cases) * samples or {one.case for one in predictions} != cases.keys():
        raise UsageError(
            f"{path} is not finished: {len(predictions)} predictions for {len(cases) * samples} due",
            remedy="run its command again first",
        )


def _read_submitted(line: Line, path: Path, cases: dict[int, Case]) -> Prediction:
    row: Any = line.value
    if not isinstance(row, dict):
        raise DataError("a line must be an object", file=path, row=line.number, remedy="one JSON object per line")
    case = cases.get(_case_number(row, path, line.number))
    if case is None:
        raise DataError(
            "no such case in this split", file=path, row=line.number, field="title", remedy="check --split and --data"
        )
    letter = row.get("prediction")
    is_letter = isinstance(letter, str) and letter in case.question.options
    return Prediction(
        case=case.id,
        split=case.split,
        sample=_sample_number(row, path, line.number),
        state="ok" if is_letter else "unparsed",
        detail="" if is_letter else f"prediction {letter!r} is not one of {', '.join(case.question.options)}",
        prediction=letter if is_letter else None,
        prediction_rationale=_text_or_none(row.get("prediction_rationale")),
        prediction_twi=_read_steps(row.get("prediction_twi"), path, line.number),
        slots=_slots(case),
    )


def _slots(case: Case) -> tuple[int, ...]:
    return tuple(image.slot for image in case.question.images)


def _case_number(row: dict[str, Any], path: Path, number: int) -> int:
    """The one number that a line names its case by; of two numbers ("12.0", "12 (2)") none is guessed at."""
    field = "case" if "case" in row else "title"
    value = row.get(field)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    # Longer ones are no case's number, and the longest no number that Python reads.
    found = re.findall(r"\d{1,18}", value, re.ASCII) if isinstance(value, str) else []
    if len(found) != 1:
        raise DataError("no case number", file=path, row=number, field=field, remedy='keep "title" as in the data')
    return int(found[0])


def _sample_number(row: dict[str, Any], path: Path, number: int) -> int:
    value = row.get("sample", 0)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise DataError(
            f"not the number of a sample: {value!r}", file=path, row=number, field="sample", remedy="count from 0"
        )
    return value


def _read_steps(value: Any, path: Path, number: int) -> TwiSteps | None:
    if value is None:
        return None
    try:
        return msgspec.convert(value, TwiSteps)
    except msgspec.ValidationError as error:
        raise DataError(
            f"not the three steps: {error}", file=path, row=number, field="prediction_twi",
            remedy="step1_per_image_findings is a list of texts, step 2 and 3 are texts",
        ) from None  # fmt: skip


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None
