"""The results of a judge's exam, and the floor below which its verdicts do not count."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from medthink.core.jsonio import read_stored, read_stored_rows, write_json, write_jsonl
from medthink.core.numbers import as_percent
from medthink.judge.edits import DELETED, is_counted
from medthink.judge.judgement import PANEL, JudgeConfig, JudgeSettings
from medthink.judge.kinds import KINDS
from medthink.judge.kinds.preference import QUESTION
from medthink.judge.units import SENTENCES, Unit, UnitSet, UnitSource, split_source, unit_set
from medthink.stats.estimate import Estimate, Measured, Undefined, rate_cell
from medthink.workflow.carried import Piece

SheetForm = Literal["statements", "omission", "pair"]
SHEETS_FILE = "sheets.jsonl"
UNTOUCHED = "untouched"
REWORDED = "reworded"
LONGER = "longer"


class ExamEdit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The edit of one unit, whether the unit is still true, and its original wording.

    `is_rephrased` says that a false unit was also put in other words, like a true one.
    """

    place: int
    edit: str
    is_true: bool
    before: str
    is_rephrased: bool = False


class ExamText(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One text to judge.

    `statements`: sentences of a text, at `spans`, changed as in `changes`; with `reverses`, the text of that number
    with its units in reverse order. `omission`: a text to be searched for `finding`. `pair`: two texts, of which the
    one called `contender` (longer, or the author of a rewording) is first or second.
    """

    number: int
    case: int
    form: SheetForm
    texts: tuple[str, ...]
    spans: tuple[tuple[int, int], ...] = ()
    changes: tuple[ExamEdit, ...] = ()
    reverses: int | None = None
    finding: str = ""
    contender: str = ""
    is_first: bool = False
    answer: str = ""

    def source(self, what: str) -> UnitSource:
        """The exam text as a text to judge by this kind."""
        kind = KINDS[what]
        names = ("first", "second") if self.form == "pair" else (kind.exam_part,)
        return UnitSource(
            run="exam",
            case=self.case,
            sample=self.number,
            what=what,
            parts=dict(zip(names, self.texts, strict=True)),
            answer=self.answer if kind.shows_answer else "",
            findings=((self.finding, True),) if self.finding else (),
            question=QUESTION if self.form == "pair" else "",
        )

    def units(self, source: UnitSource) -> UnitSet:
        """The units of that text, in the order in which a judge is given them."""
        if self.form != "statements":
            return split_source(source)
        ((part, _),) = source.parts.items()
        units: list[Unit] = [source.unit(part, Piece(*span)) for span in self.spans]
        return unit_set(source, units[::-1] if self.reverses is not None else units, splitter=SENTENCES)

    def change_of(self, place: int) -> ExamEdit:
        """The edit of the unit at a position."""
        untouched = ExamEdit(place=place, edit=UNTOUCHED, is_true=True, before="")
        return next((one for one in self.changes if one.place == place), untouched)

    @property
    def base(self) -> int:
        """The number of the exam text whose units it has."""
        return self.number if self.reverses is None else self.reverses

    def suits(self, what: str) -> bool:
        """Whether this kind of judging can be examined with this text."""
        return self.form == form_of(what)


def form_of(what: str) -> SheetForm | None:
    """The form of exam texts that examine a kind of judging; None if there is none."""
    kind = KINDS[what]
    if kind.is_pairwise:
        return "pair"
    if not kind.exam_part:
        return None
    return "omission" if kind.uses_decisive else "statements"


def sheets_due(sheets: Sequence[ExamText], what: str) -> Iterator[tuple[ExamText, int]]:
    """Every sheet that a kind is examined by, and which time it is asked: one with a reversed copy is asked twice."""
    reversed_too = {sheet.reverses for sheet in sheets}
    for sheet in sheets:
        if sheet.suits(what):
            yield sheet, 0
            if sheet.number in reversed_too:
                yield sheet, 1


def join_sentences(sentences: Sequence[str]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The sentences as one text, and the position of each in it."""
    spans, start = [], 0
    for sentence in sentences:
        spans.append((start, start + len(sentence)))
        start += len(sentence) + 1
    return " ".join(sentences), tuple(spans)


def read_sheets(exam: Path) -> tuple[ExamText, ...]:
    """The texts of an exam."""
    remedy = "restore the original file, or use the release that wrote it Make a new exam in another folder"
    return tuple(read_stored_rows(exam / SHEETS_FILE, ExamText, name="a sheet", remedy=remedy, may_lack=False))


def write_sheets(exam: Path, sheets: Iterable[ExamText]) -> None:
    """Write the exam texts into the exam's folder."""
    write_jsonl(exam / SHEETS_FILE, (msgspec.to_builtins(sheet) for sheet in sheets))


RESULTS_FILE = "results.json"
EXAMS_FILE = "exams.json"

# With 320 edited and 320 true units these lie a point or two below what a careful reader reaches.
LEAST_SENSITIVITY = 0.85
LEAST_PER_EDIT = 0.75
LEAST_SPECIFICITY = 0.90
LEAST_JUDGED = 0.99
_HALF = 0.5
_TRUE_UNITS = (UNTOUCHED, REWORDED)


class KindGrades(msgspec.Struct, frozen=True, kw_only=True):
    """A judge's grades in one kind of judging.

    `found` is, by edit, the share of false units labelled false; `sensitivity` is the same over all counted edits.
    `accepted` is the share of true units labelled true: untouched, reworded, longer. `same_again` is how often it
    repeats its label when asked again (`kappa_again` corrects for chance), `same_reversed` when the units come in
    reverse order. `asked` counts every sheet of the exam, also those that the judge has not reached. `guesser` is the
    share right of a guesser that sits the same exam: the source-free one of sentences, the verbatim one of omissions.
    """

    asked: int
    judged: int
    sensitivity: Measured
    found: dict[str, Measured]
    accepted: dict[str, Measured]
    same_again: Measured
    kappa_again: Measured
    same_reversed: Measured
    guesser: Measured

    @property
    def guesser_name(self) -> str:
        """Which guesser sat the exam."""
        return "verbatim" if DELETED in self.found else "source-free"

    @property
    def guesser_fault(self) -> str:
        """What a guesser's figure says against the exam; empty if nothing.

        Without the case, true and false sentences cannot be told apart; a finding that is looked for word for word is
        not found often enough to pass.
        """
        if not isinstance(self.guesser, Estimate):
            return ""
        if DELETED in self.found:
            return "the verbatim guesser reaches the floor" if self.guesser.value >= LEAST_SENSITIVITY else ""
        contains_half = self.guesser.low is None or self.guesser.low <= _HALF <= (self.guesser.high or 1.0)
        return "" if contains_half else "the exam can be guessed without the case"

    @property
    def specificity(self) -> Measured:
        """The share of true units accepted: the lower of untouched and reworded."""
        found = [self.accepted[name] for name in _TRUE_UNITS if name in self.accepted]
        return min(found, key=lambda one: one.value or 0.0) if found else Undefined(reason="no such units", n=0)

    def shortfalls(self) -> tuple[str, ...]:
        """The reasons why the judge is below the floor; empty if it is not."""
        # There are too few deletions for confidence limits, so their point values are compared.
        by_limit = DELETED not in self.found
        found = [
            *_below("finds", self.sensitivity, LEAST_SENSITIVITY, by_limit=by_limit),
            *(
                text
                for name, one in self.found.items()
                if name != DELETED and is_counted(name) and one.value is not None
                for text in _below(f"finds {name}", one, LEAST_PER_EDIT, by_limit=False)
            ),
            *(
                text
                for name in _TRUE_UNITS
                if name in self.accepted
                for text in _below(f"accepts {name}", self.accepted[name], LEAST_SPECIFICITY, by_limit=by_limit)
            ),
        ]
        found += [self.guesser_fault] if self.guesser_fault else []
        if self.judged < LEAST_JUDGED * self.asked:
            found.append(f"judged {self.judged:,} of {self.asked:,} sheets")
        return tuple(found)


class PairGrades(msgspec.Struct, frozen=True, kw_only=True):
    """A judge's comparisons of two texts of equal content.

    `same_swapped` is how often it keeps its preference when the order is swapped, `first` the share of first places
    among the preferences it gives. `longer` and `own` are 1 where the longer text, or the one in its own words, is
    preferred in both orders, 0 where the other is, else a half; `own_by_others` is the same from other judges'
    preferences on the same pairs.
    """

    pairs: int
    same_swapped: Measured
    first: Measured
    longer: Measured
    own: Measured
    own_by_others: Measured


class ExamResult(msgspec.Struct, frozen=True, kw_only=True):
    """The exam of one judge in one setting; `exam` is the digest of its sheets, `prompts` of its prompts by kind."""

    judge: str
    setting: JudgeSettings
    exam: str
    benchmark: str
    prompts: dict[str, str]
    models: tuple[str, ...]
    is_smoke_test: bool
    kinds: dict[str, KindGrades]
    pairs: PairGrades | None

    @property
    def shortfalls(self) -> dict[str, tuple[str, ...]]:
        """The reasons why the judge is below the floor, by kind."""
        found = {what: marks.shortfalls() for what, marks in self.kinds.items()}
        return {what: reasons for what, reasons in found.items() if reasons}

    def is_of(self, seat: JudgeConfig) -> bool:
        """Whether it is the exam of this judge in this setting."""
        return (self.judge, self.setting) == (seat.judge, seat.setting)


def _below(name: str, measured: Measured, least: float, *, by_limit: bool) -> list[str]:
    """The reason why a share is below the minimum, by its lower confidence limit or its value."""
    reached = measured.low if by_limit and isinstance(measured, Estimate) else measured.value
    if reached is None:
        return [f"{name}: not measured"]
    if reached >= least:
        return []
    word = "lower limit " if by_limit else ""
    return [f"{name} {word}{as_percent(reached)}, under {as_percent(least, 0)}"]


def read_results(path: Path) -> tuple[ExamResult, ...]:
    """The results of an exam, or those stored with a run; empty if there are none."""
    if not path.exists():
        return ()
    remedy = "run medthink exam again"
    return read_stored(path, tuple[ExamResult, ...], name="results of an exam", remedy=remedy)


def keep_results(path: Path, results: Iterable[ExamResult]) -> tuple[ExamResult, ...]:
    """Add results to those in a file; a new result replaces the old one of the same judge and setting."""
    merged = {(one.judge, msgspec.json.encode(one.setting)): one for one in (*read_results(path), *results)}
    kept = tuple(merged[key] for key in sorted(merged))
    write_json(path, msgspec.to_builtins(kept))
    return kept


NO_EXAM = "not examined; run medthink exam RUN"
NO_PANEL_EXAM = "the panel was not examined as a whole; its judges were examined individually"
NO_SETTING_EXAM = "not examined under this setting"
BELOW_FLOOR = "BELOW THE FLOOR"


def describe_exam(exams: Sequence[ExamResult], seat: JudgeConfig, what: str) -> str:
    """The judge's exam result in this kind of judging in one line, and whether that is below the floor."""
    if seat.judge == PANEL:
        return NO_PANEL_EXAM
    own = [one for one in exams if one.judge == seat.judge]
    result = next((one for one in own if one.is_of(seat)), None)
    if result is None:
        return NO_SETTING_EXAM if own else NO_EXAM
    told = _marks_text(result, what)
    is_earlier = told and result.prompts.get(what) != seat.prompt
    return f"{told}; with an earlier version of the prompt" if is_earlier else told or f"not examined in {what}"


def _marks_text(result: ExamResult, what: str) -> str:
    """The judge's grades, or its comparisons of pairs; empty if it was not examined in this kind."""
    if KINDS[what].is_pairwise:
        if result.pairs is None:
            return ""
        return f"same in both orders {rate_cell(result.pairs.same_swapped)}; own wording {rate_cell(result.pairs.own)}"
    if what not in result.kinds:
        return ""
    marks = result.kinds[what]
    mark = f"{BELOW_FLOOR}: " if marks.shortfalls() else "passed: "
    told = f"{mark}finds {rate_cell(marks.sensitivity)}, accepts {rate_cell(marks.specificity)}"
    guesser = f"; the {marks.guesser_name} guesser is right in {rate_cell(marks.guesser)}"
    return told + guesser if isinstance(marks.guesser, Estimate) else told
