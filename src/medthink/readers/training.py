"""Training of readers on the items of the judge's exam: sentences whose truth is known, feedback, and a pass mark.

Nothing here touches files or pages. The item shown to a reader (`TrainingItem`) does not contain the truth
(`TrainingTruth`), so that it cannot be shown before the reader has answered.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random

import msgspec

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.core.digest import digest_value, seed_from
from medthink.core.errors import DataError
from medthink.core.jsonio import read_stored, write_json
from medthink.core.tables import TableRow, read_table, write_table
from medthink.judge.edits import EDITS, INVENTED, OPTION
from medthink.judge.exam.grading import is_right_label
from medthink.judge.exam.make import ExamPlan, make_exam
from medthink.judge.exam.results import REWORDED, UNTOUCHED, ExamEdit, ExamText, join_sentences
from medthink.judge.exam.run import EXAM_FILE, open_exam
from medthink.judge.judgement import DEFAULT_SIGHT, gather_evidence
from medthink.judge.kinds import KINDS
from medthink.judge.kinds.kind import Label
from medthink.judge.rubric import load_rubric
from medthink.judge.units import SENTENCES, UnitSet, UnitSource, unit_set
from medthink.readers.assignment import ListEntry, ListLine
from medthink.readers.lists import LAYOUT, key_path, refuse_written, write_entries
from medthink.readers.mismatches import WrittenRow, find_mismatches, refuse_mismatches
from medthink.runs.run import Run
from medthink.workflow.carried import Piece
from medthink.workflow.condition import Condition
from medthink.workflow.view import show_under_condition as show_question

PASS_MARK = 0.8
DEFAULT_ITEMS = 10
TRAINING = "training"
NOT_DESCRIBED = "not described"


class NoTrainingMaterial(DataError):
    """There is nothing to train on; no other error says that a reader needs no training."""


class TrainingItem(msgspec.Struct, frozen=True, kw_only=True):
    """One sentence of a text about a case, to be judged; `units` holds that sentence alone."""

    code: str
    case: int
    source: UnitSource
    units: UnitSet

    def entry(self, case: Case) -> ListEntry:
        """The item as an entry of a reader's list, with its case."""
        items = KINDS[self.source.what].items(self.units)[:1]
        return ListEntry(
            run=TRAINING,
            case=case,
            evidence=gather_evidence(case, show_question(Condition(), case.question), (*DEFAULT_SIGHT, "images")),
            source=self.source,
            units=self.units,
            supported=frozenset(),
            lines=tuple(ListLine(self.code, item.form, item.part, item.text) for item in items),
        )


class TrainingTruth(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The truth about an item: the edit of the expert's sentence, and its original wording.

    `text` and `sheet` are those of its row on a reader's list.
    """

    what: str
    change: ExamEdit
    text: str = ""
    sheet: str = ""

    @property
    def expected(self) -> Label:
        """The label that is right by the rubric."""
        kind = KINDS[self.what]
        if self.change.is_true:
            return kind.true_label
        if self.change.edit == INVENTED:
            return NOT_DESCRIBED
        assert kind.wrong_label is not None
        return kind.wrong_label


class Training(msgspec.Struct, frozen=True, kw_only=True):
    """A set of items, and the truth of each by its code."""

    items: tuple[TrainingItem, ...]
    truths: dict[str, TrainingTruth]


class Feedback(msgspec.Struct, frozen=True, kw_only=True):
    """The feedback on a reader's answer: whether it was right, and why."""

    code: str
    said: Label | None
    expected: Label
    is_right: bool
    why: str


class TrainingResult(msgspec.Struct, frozen=True, kw_only=True):
    """A reader's training: the feedback on every item, and whether enough was right. Unanswered counts as wrong."""

    feedback: tuple[Feedback, ...]
    right: int
    needed: int
    is_passed: bool


def fits_training(what: str) -> bool:
    """Whether a kind of judging has a label for each sort of item: true, false, and invented."""
    kind = KINDS[what]
    return any(aspect.name == kind.leading and NOT_DESCRIBED in aspect.categories for aspect in kind.aspects)


def draw_training(
    sheets: Iterable[ExamText], *, items: int = DEFAULT_ITEMS, seed: int = 0, what: str = "steps"
) -> Training:
    """Draw items from an exam in random order: half made false by different edits, half reworded or untouched.

    One of the false ones is an invention, if there is any; its right label is "not described".
    """
    chance = Random(seed_from(TRAINING, seed))
    usable = [one for one in sheets if one.form == "statements" and one.reverses is None]
    chance.shuffle(usable)
    if not usable:
        raise NoTrainingMaterial("the exam has no sentences to train on", remedy="make it from texts in English")
    invented = [one for one in usable if _edit_of(one) == INVENTED]
    false = _spread(usable, math.ceil(items / 2), first=invented[:1])
    cases = {sheet.case for sheet in false}
    rest = [one for one in usable if one.case not in cases] or usable
    drawn = [(sheet, _false_change(sheet)) for sheet in false]
    drawn += [(sheet, _true_change(sheet, number)) for number, sheet in enumerate(_spread(rest, items // 2))]
    chance.shuffle(drawn)
    made = [_make_item(sheet, what, change, seed=seed) for sheet, change in drawn]
    return Training(items=tuple(item for item, _ in made), truths={item.code: truth for item, truth in made})


def give_feedback(code: str, truth: TrainingTruth, said: Label | None) -> Feedback:
    """Whether a label is right, and why."""
    return Feedback(
        code=code,
        said=said,
        expected=truth.expected,
        is_right=said is not None and is_right_label(truth.what, truth.change, said),
        why=_explain(truth.change),
    )


def mark_training(truths: Mapping[str, TrainingTruth], answers: Mapping[str, Label | None]) -> TrainingResult:
    """Mark a reader's labels, by code."""
    feedback = tuple(give_feedback(code, truth, answers.get(code)) for code, truth in truths.items())
    right, needed = sum(one.is_right for one in feedback), math.ceil(PASS_MARK * len(truths))
    return TrainingResult(feedback=feedback, right=right, needed=needed, is_passed=right >= needed > 0)


def _spread(sheets: Sequence[ExamText], wanted: int, first: Sequence[ExamText] = ()) -> list[ExamText]:
    """This many exam texts, from as many edits and cases as possible, certainly false ones first."""
    chosen = list(first)
    left = [one for one in sheets if one not in chosen]
    while left and len(chosen) < wanted:
        edits = [_edit_of(one) for one in chosen]
        cases = [one.case for one in chosen]
        best = min(left, key=lambda one: (edits.count(_edit_of(one)), cases.count(one.case), _rank(_edit_of(one))))
        left.remove(best)
        chosen.append(best)
    return chosen


def _edit_of(sheet: ExamText) -> str:
    return _false_change(sheet).edit


def _false_change(sheet: ExamText) -> ExamEdit:
    return next(change for change in sheet.changes if not change.is_true)


def _true_change(sheet: ExamText, number: int) -> ExamEdit:
    """Alternately a harmless change, if there is one, and no change."""
    false = _false_change(sheet)
    untouched = ExamEdit(place=false.place if false.before else 0, edit=UNTOUCHED, is_true=True, before="")
    twins = [change for change in sheet.changes if change.edit == REWORDED and number % 2 == 0]
    return twins[0] if twins else untouched


def _rank(edit: str) -> int:
    """Certainly false first, then an option and an invention, then what a reader might dispute."""
    if edit in EDITS:
        return 0 if EDITS[edit].is_counted else 2
    return 1


def _make_item(sheet: ExamText, what: str, kept: ExamEdit, *, seed: int) -> tuple[TrainingItem, TrainingTruth]:
    """The exam text with only one change, or with none."""
    texts = {
        place: sheet.texts[0][start:end] if kept == sheet.change_of(place) else _restore(sheet, place)
        for place, (start, end) in enumerate(sheet.spans)
    }
    left = {place: text for place, text in texts.items() if text}
    text, spans = join_sentences(list(left.values()))
    span, kind = spans[list(left).index(kept.place)], KINDS[what]
    source = UnitSource(
        run=TRAINING,
        case=sheet.case,
        sample=sheet.number,
        what=what,
        parts={kind.exam_part: text},
        answer=sheet.answer if kind.shows_answer else "",
    )
    units = unit_set(source, [source.unit(kind.exam_part, Piece(*span))], splitter=SENTENCES)
    code = "t" + digest_value([TRAINING, seed, sheet.case, sheet.number, text, span])[:12]
    return TrainingItem(code=code, case=sheet.case, source=source, units=units), TrainingTruth(what=what, change=kept)


def _restore(sheet: ExamText, place: int) -> str:
    """A sentence as the expert wrote it; an invented one is gone."""
    change = sheet.change_of(place)
    start, end = sheet.spans[place]
    return sheet.texts[0][start:end] if change.edit == UNTOUCHED else change.before


def _explain(change: ExamEdit) -> str:
    """Why a sentence is true or not, in the words of the rubric."""
    if change.edit == INVENTED:
        return "The expert, who describes these images, does not mention this finding: it is not described."
    if change.edit == OPTION:
        return f"The diagnosis is a different one. The expert writes: “{change.before}”"
    if change.edit == UNTOUCHED:
        return "The expert writes the same."
    if change.is_true:
        return f"The same in other words. The expert writes: “{change.before}”"
    return f"Changed here: {change.edit}. The expert writes: “{change.before}”"


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


def training_sheets(
    source: Path, split: str | None, seed: int, data: Path | None = None
) -> tuple[tuple[ExamText, ...], dict[int, Case]]:
    """The texts of an exam, or of one made from a benchmark or a run's benchmark, and their cases.

    By default the train split is used if there is one: a reader trained on a case would recognise it in the study.
    """
    if (source / EXAM_FILE).is_file():
        _, sheets, cases = open_exam(source, data)
        return sheets, cases
    place = Run.open(source).benchmark_path(data) if (source / "run.json").is_file() else source
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
        truths[reader] = {
            entry.unit_code(seed, reader, entry.lines[0]): msgspec.structs.replace(
                training.truths[item.code], text=entry.lines[0].text, sheet=entry.sheet_code(seed, reader)
            )
            for entry, item in zip(lists[reader], items, strict=True)
        }
    write_entries(out, lists, seed, form=form)
    key = TrainingKey(seed=seed, rubric=load_rubric().version(), readers=truths)
    write_json(key_path(out), msgspec.to_builtins(key))
    return key


def read_training_key(path: Path) -> TrainingKey:
    """The key of training lists."""
    remedy = "give the key that medthink reading training wrote"
    return read_stored(path, TrainingKey, name="a key of training lists", remedy=remedy)


def mark_tables(tables: Sequence[Path], key: TrainingKey, accept: Sequence[str] = ()) -> list[MarkedReader]:
    """Mark every completed list; rows that do not fit their code are refused but for those of `accept`."""
    written = {
        code: WrittenRow(truth.text, "1", frozenset({truth.sheet} - {""}))
        for truths in key.readers.values()
        for code, truth in truths.items()
    }
    found = [one for path in tables for one in find_mismatches(read_table(path, LAYOUT).rows, written, path)]
    refuse_mismatches(found, accept)
    return [_mark_table(path, key) for path in tables]


def write_feedback(path: Path, marked: MarkedReader) -> None:
    """Write the feedback on every item."""
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
