"""Predictions made elsewhere, in the card's submission format: read line by line, every problem named.

A line names its case by `title` (or `case`) and has `prediction`, and optionally `prediction_rationale`,
`prediction_twi` and `sample`. All released columns may be present; the withheld ones among them are never read. The
columns that a model may see are compared with ours, because a file about other options or another history is about
another version of the benchmark.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from medthink.cases.case import Case
from medthink.core.errors import DataError
from medthink.core.jsonio import parse_line, read_lines
from medthink.workflow.prediction import Prediction, TwiSteps

MAX_BYTES = 256 * 1024 * 1024
MAX_SAMPLES = 100
# A file with this many problems has a deeper one, and a hostile file has millions.
MAX_PROBLEMS = 10_000
_TELL_EVERY = 50

ProblemCode = Literal[
    "file", "line", "case", "twice", "version", "letter", "text", "steps", "images", "sample", "missing"
]
# A wrong letter, a missing case, and too few or too many findings have their own states: such a file can be scored.
SCORABLE: frozenset[ProblemCode] = frozenset({"letter", "images", "missing"})


class SubmissionProblem(msgspec.Struct, frozen=True, kw_only=True):
    """One problem of a submission; `line` is None if it concerns the whole file."""

    code: ProblemCode
    line: int | None
    field: str
    message: str
    remedy: str

    @property
    def advice(self) -> str:
        """The remedy as a sentence."""
        words = f"{self.remedy[:1].upper()}{self.remedy[1:]}"
        return words if words.endswith("…") else f"{words}."

    def __str__(self) -> str:
        place = ", ".join([*([f"line {self.line}"] if self.line else []), *([self.field] if self.field else [])])
        return f"{place}: {self.message}" if place else self.message


class SubmissionFile(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a file: a prediction for every case and sample, and every problem by line.

    A case without a line has a prediction in the state `failed`; a wrong letter gives the state `unparsed`.
    """

    predictions: tuple[Prediction, ...]
    problems: tuple[SubmissionProblem, ...]
    n_lines: int


def read_submission(
    path: Path,
    cases: Mapping[int, Case],
    *,
    max_bytes: int = MAX_BYTES,
    tell: Callable[[int, int], None] = lambda *_: None,
) -> SubmissionFile:
    """Read a file of predictions about these cases; problems are returned, not raised.

    `tell` is called from time to time with the lines read and the problems found.
    """
    reader = _Reader(path, cases)
    size = path.stat().st_size
    if size > max_bytes:
        reader.tell(
            "file", None, "", f"the file has {size:,} bytes; at most {max_bytes:,} are accepted", "send less text"
        )
        return reader.result(0)
    n_lines = 0
    try:
        for line in read_lines(path):
            n_lines = line.number
            if n_lines % _TELL_EVERY == 0:
                tell(n_lines, reader.problems)
            if reader.problems >= MAX_PROBLEMS:
                said = f"there are more than {MAX_PROBLEMS:,} problems; the lines from here on were not read"
                reader.tell("file", n_lines, "", said, "fix the first ones and check again")
                return reader.result(0)
            try:
                reader.take(line.number, parse_line(line, file=path))
            except DataError as error:
                reader.tell("line", line.number, error.field, error.problem, error.remedy)
    except DataError as error:
        reader.tell("file", error.row, error.field, error.problem, error.remedy)
    return reader.result(n_lines)


class _Reader:
    """The predictions and problems found so far."""

    def __init__(self, path: Path, cases: Mapping[int, Case]) -> None:
        self._path = path
        self._cases = cases
        self._found: dict[tuple[int, int], Prediction] = {}
        self._lines: dict[tuple[int, int], int] = {}
        self._problems: list[SubmissionProblem] = []

    @property
    def problems(self) -> int:
        """How many problems were found so far."""
        return len(self._problems)

    def tell(self, code: ProblemCode, line: int | None, field: str, message: str, remedy: str) -> None:
        """Record a problem."""
        self._problems.append(SubmissionProblem(code=code, line=line, field=field, message=message, remedy=remedy))

    def take(self, number: int, row: Any) -> None:
        """Read one line, recording all of its problems."""
        if not isinstance(row, dict):
            self.tell("line", number, "", "a line must be an object", "write one JSON object per line")
            return
        case = self._case(number, row)
        sample = self._sample(number, row)
        if case is None or sample is None:
            return
        self._compare(number, row, case)
        prediction = self._prediction(number, row, case, sample)
        first = self._lines.setdefault((case.id, sample), number)
        if first != number:
            said = f"case {case.id} has two lines for sample {sample}, the first is line {first}"
            self.tell("twice", number, "title", said, 'keep one, or number repeated answers: "sample": 0, 1, …')
            return
        self._found[case.id, sample] = prediction

    def result(self, n_lines: int) -> SubmissionFile:
        """Everything read, including cases without a line."""
        samples = sorted({sample for _, sample in self._found}) or [0]
        due = [(case, sample) for case in self._cases for sample in samples]
        if n_lines:
            self._tell_missing([key for key in due if key not in self._found], is_single=samples == [0])
        predictions = (self._found.get(key) or _absent(self._cases[key[0]], key[1]) for key in due)
        return SubmissionFile(
            predictions=tuple(sorted(predictions, key=lambda one: (one.case, one.sample))),
            problems=tuple(self._problems),
            n_lines=n_lines,
        )

    def _tell_missing(self, missing: list[tuple[int, int]], *, is_single: bool) -> None:
        for case, sample in missing:
            which = f"case {case}" if is_single else f"case {case}, sample {sample}"
            self.tell("missing", None, "", f"no line for {which}", "give every case of the split a line")

    def _case(self, number: int, row: dict[str, Any]) -> Case | None:
        field = "case" if "case" in row else "title"
        case_id = _case_number(row.get(field))
        if case_id is None:
            self.tell("case", number, field, "no case number", 'copy "title" unchanged from the data')
            return None
        if case_id not in self._cases:
            self.tell("case", number, field, f"no such case in this split: {case_id}", "check --split and --data")
            return None
        return self._cases[case_id]

    def _sample(self, number: int, row: dict[str, Any]) -> int | None:
        value = row.get("sample", 0)
        if type(value) is int and 0 <= value < MAX_SAMPLES:
            return value
        said = f"not the number of a sample: {_shown(value)}"
        self.tell("sample", number, "sample", said, f"count the samples of a case from 0 to {MAX_SAMPLES - 1}")
        return None

    def _compare(self, number: int, row: dict[str, Any], case: Case) -> None:
        """Columns a model may see must equal ours; withheld columns are not read."""
        question = case.question
        for field, ours in (("options", question.options), ("CLINICAL_HISTORY", question.history)):
            if row.get(field) is not None and row[field] != ours:
                said = f"differs from case {case.id} of this benchmark"
                self.tell("version", number, field, said, "use the released version, its options in their order")

    def _prediction(self, number: int, row: dict[str, Any], case: Case, sample: int) -> Prediction:
        letter, detail = self._letter(number, row, case)
        return Prediction(
            case=case.id,
            split=case.split,
            sample=sample,
            state="ok" if letter else "unparsed",
            detail=detail,
            prediction=letter,
            prediction_rationale=self._rationale(number, row),
            prediction_twi=self._steps(number, row, case),
            slots=_slots(case),
        )

    def _letter(self, number: int, row: dict[str, Any], case: Case) -> tuple[str | None, str]:
        """The letter, or None with the reason; null states explicitly that there is no answer."""
        letters = ", ".join(case.question.options)
        if "prediction" not in row:
            self.tell("letter", number, "prediction", "the field is missing", f"give one of {letters}, or null")
            return None, "no prediction"
        value = row["prediction"]
        if value is None:
            return None, "no answer"
        letter = value.strip().upper() if isinstance(value, str) else None
        if letter in case.question.options:
            return letter, ""
        said = f"{_shown(value)} is not one of {letters}"
        self.tell("letter", number, "prediction", said, "give one letter, or null if the model gave no answer")
        return None, said

    def _rationale(self, number: int, row: dict[str, Any]) -> str | None:
        value = row.get("prediction_rationale")
        if value is None or isinstance(value, str):
            return value
        self.tell("text", number, "prediction_rationale", f"{_shown(value)} is not a string", "give a string, or null")
        return None

    def _steps(self, number: int, row: dict[str, Any], case: Case) -> TwiSteps | None:
        field = "prediction_twi"
        if row.get(field) is None:
            return None
        try:
            steps = msgspec.convert(row[field], TwiSteps)
        except msgspec.ValidationError as error:
            said = f"not the three steps: {error}"
            self.tell(
                "steps", number, field, said, "step1_per_image_findings is a list of strings, 2 and 3 are strings"
            )
            return None
        written, images = len(steps.step1_per_image_findings or ()), len(case.question.images)
        if steps.step1_per_image_findings is not None and written != images:
            said = f"{written} findings for {images} images"
            self.tell(
                "images", number, field, said, "give a finding for each image of the case, in order; null for none"
            )
        return steps


def refuse_problems(path: Path, problems: tuple[SubmissionProblem, ...]) -> None:
    """Raise DataError for the first problem that keeps a file from being scored."""
    blocking = [problem for problem in problems if problem.code not in SCORABLE]
    if not blocking:
        return
    first, others = blocking[0], len(blocking) - 1
    more = f" ({others} more: medthink submission check lists them all)" if others else ""
    raise DataError(first.message + more, file=path, row=first.line, field=first.field, remedy=first.remedy)


def problem_lines(problems: tuple[SubmissionProblem, ...]) -> Iterator[str]:
    """Every problem in one line each, for a terminal or a file."""
    for problem in problems:
        yield f"{problem}. {problem.advice}"


def _absent(case: Case, sample: int) -> Prediction:
    said = "no line for this case"
    return Prediction(
        case=case.id, split=case.split, sample=sample, state="failed", detail=said, slots=_slots(case)
    )  # fmt: skip


def _slots(case: Case) -> tuple[int, ...]:
    return tuple(image.slot for image in case.question.images)


def _case_number(value: Any) -> int | None:
    """The one number that a line names its case by; if it has two ("12.0", "12 (2)"), it is refused."""
    if type(value) is int:
        return value
    # Longer ones are not case numbers, and Python refuses to parse the longest.
    found = re.findall(r"\d{1,18}", value, re.ASCII) if isinstance(value, str) else []
    return int(found[0]) if len(found) == 1 else None


def _shown(value: Any) -> str:
    text = f"“{value}”" if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
