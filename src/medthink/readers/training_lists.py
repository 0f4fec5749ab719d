"""Training as files: a list to fill in, the key beside the folder, and feedback on the answers."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random

import msgspec

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.core.digest import seed_from
from medthink.core.errors import DataError
from medthink.core.jsonio import write_json
from medthink.core.stored import read_stored
from medthink.core.tables import TableRow, read_table, write_table
from medthink.judge.exam.making import ExamPlan, make_exam
from medthink.judge.exam.sheets import ExamSheet
from medthink.judge.exam.sitting import EXAM_FILE, open_exam
from medthink.judge.kinds import KINDS
from medthink.judge.kinds.kind import Label
from medthink.judge.rubric import load_rubric
from medthink.readers.lists import LAYOUT, key_path, refuse_written, write_entries
from medthink.readers.training import Training, TrainingResult, TrainingTruth, mark_training
from medthink.runs.run import Run

FEEDBACK_COLUMNS = ("unit", "text", "said", "expected", "right", "why")


class TrainingKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The truth behind every code of every reader's training list."""

    seed: int
    rubric: str
    readers: dict[str, dict[str, TrainingTruth]]


class MarkedReader(msgspec.Struct, frozen=True, kw_only=True):
    """A reader's result, the texts of the items by code, and rows that could not be read."""

    reader: str
    result: TrainingResult
    texts: dict[str, str]
    problems: tuple[str, ...] = ()


def training_sheets(source: Path, split: str | None, seed: int) -> tuple[tuple[ExamSheet, ...], dict[int, Case]]:
    """The sheets of an exam, or of one made from a benchmark or a run's benchmark, and the cases they are about.

    By default the train split is used if there is one: a reader trained on a case would recognise it in the study.
    """
    if (source / EXAM_FILE).is_file():
        _, sheets, cases = open_exam(source)
        return sheets, cases
    place = Path(Run.open(source).manifest.benchmark) if (source / "run.json").is_file() else source
    opened = Benchmark.open(place)
    chosen = split or ("train" if "train" in opened.splits else opened.splits[0])
    cases = {case.id: case for case in opened[chosen]}
    return make_exam(cases.values(), ExamPlan(seed=seed)), cases


def write_training(
    out: Path, training: Training, cases: Mapping[int, Case], *, readers: Sequence[str], seed: int, form: str
) -> TrainingKey:
    """Write every reader's training list, each in its own order, and the key next to the folder."""
    refuse_written(out, readers, form)
    lists = {}
    truths: dict[str, dict[str, TrainingTruth]] = {}
    for reader in readers:
        items = list(training.items)
        Random(seed_from("training", seed, reader)).shuffle(items)
        lists[reader] = [item.entry(cases[item.case]) for item in items]
        codes = [entry.unit_code(seed, reader, entry.lines[0]) for entry in lists[reader]]
        truths[reader] = {code: training.truths[item.code] for code, item in zip(codes, items, strict=True)}
    write_entries(out, lists, seed, form=form)
    key = TrainingKey(seed=seed, rubric=load_rubric().version(), readers=truths)
    write_json(key_path(out), msgspec.to_builtins(key))
    return key


def read_training_key(path: Path) -> TrainingKey:
    """The key of training lists."""
    remedy = "give the key that medthink reading training wrote"
    return read_stored(path, TrainingKey, name="a key of training lists", remedy=remedy)


def mark_tables(tables: Iterable[Path], key: TrainingKey) -> list[MarkedReader]:
    """Mark every completed list."""
    return [_mark_table(path, key) for path in tables]


def write_feedback(path: Path, marked: MarkedReader) -> None:
    """Write what a reader is told about every item."""
    rows = [
        {
            "unit": one.code,
            "text": marked.texts.get(one.code, ""),
            "said": "" if one.said is None else one.said,
            "expected": one.expected,
            "right": "yes" if one.is_right else "no",
            "why": one.why,
        }
        for one in marked.result.feedback
    ]
    write_table(path, FEEDBACK_COLUMNS, rows, LAYOUT)


def _mark_table(path: Path, key: TrainingKey) -> MarkedReader:
    rows = [row for row in read_table(path, LAYOUT).rows if row.cells.get("unit", "").strip()]
    known = {code: reader for reader, truths in key.readers.items() for code in truths}
    readers = {known[code] for row in rows if (code := row.cells["unit"].strip()) in known}
    if len(readers) != 1:
        raise DataError(
            "not one reader's training list", file=path, remedy="give one list at a time, and the key written with it"
        )
    (reader,) = readers
    truths = key.readers[reader]
    answers: dict[str, Label | None] = {}
    problems = []
    for row in rows:
        code = row.cells["unit"].strip()
        if code not in truths:
            problems.append(f"{path}:{row.number}: no such item: {code}")
            continue
        try:
            answers[code] = _read_label(row, truths[code].what)
        except ValueError as error:
            problems.append(f"{path}:{row.number}: {error}")
    texts = {row.cells["unit"].strip(): row.cells.get("text", "") for row in rows}
    return MarkedReader(reader=reader, result=mark_training(truths, answers), texts=texts, problems=tuple(problems))


def _read_label(row: TableRow, what: str) -> Label | None:
    kind = KINDS[what]
    return kind.read_cells(row.cells.get("kind", ""), row.cells).get(kind.leading)
