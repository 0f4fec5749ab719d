"""The tables of judged scores; every number comes with the judge's agreement with readers."""

from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from medthink.cases.slices import SMALL
from medthink.core.markup import Table, one_line
from medthink.core.numbers import as_percent
from medthink.judge.edits import is_counted
from medthink.judge.exam.results import BELOW_FLOOR, LONGER, REWORDED, UNTOUCHED, ExamResult, KindGrades, describe_exam
from medthink.judge.judgement import PANEL, JudgeConfig, name_judges
from medthink.judge.kinds import KINDS
from medthink.judge.scores import COMPLETE_SHARE, Coverage, JudgeConfigScores, JudgedSlice, ScoreCell, ScoreTable
from medthink.readers.agreement import READERS, RaterPair, RunAgreement
from medthink.stats.estimate import Undefined, mean_cell, rate_cell

NO_READER = "not measured: no reader has judged this run"
OUTDATED = "out of date: the run was judged again after the comparison with readers; run medthink agreement again"
NO_PANEL = "not measured: readers are compared with single judges"
NO_SHARED = "not measured: no reader has judged the same units"
_LONGEST_NAME = 30

Scored = TypeVar("Scored", bound=JudgeConfigScores)


class JudgeRow(msgspec.Struct, Generic[Scored], frozen=True):
    """The scores that one judge gives one run; `judge` is its name among the judges of that run.

    `is_outdated` says that readers were compared with other judgements; `exams` are those of all judges.
    """

    run: str
    judge: str
    scores: Scored
    agreements: RunAgreement | None
    is_outdated: bool = False
    exams: tuple[ExamResult, ...] = ()

    @property
    def title(self) -> str:
        """The run and its judge."""
        return f"{self.run}, judged by {self.judge}"

    def agreement(self, *aspects: str) -> str:
        """The judge's agreement with readers on these aspects, over all cases, or the reason why it is unknown."""
        if self.is_outdated:
            return OUTDATED
        if self.agreements is None or all(pair.kind != "reader–judge" for pair in self.agreements.pairs):
            return NO_READER
        if self.scores.seat.judge == PANEL:
            return NO_PANEL
        found = {aspect: self._pairs(aspect, "", "") for aspect in aspects}
        if not any(found.values()):
            return NO_SHARED
        texts = {aspect: _pairs_text(pairs) for aspect, pairs in found.items()}
        return "; ".join(f"{aspect}: {text}" if len(texts) > 1 else text for aspect, text in texts.items())

    def slice_agreement(self, aspect: str, slicing: str, value: str) -> str:
        """Agreement within one slice; if it was not measured there, that of all cases, marked as such."""
        pairs = self._pairs(aspect, slicing, value)
        if pairs:
            return _pairs_text(pairs)
        whole = self.agreement(aspect)
        return f"all cases: {whole}" if self._pairs(aspect, "", "") else whole

    def exam(self, what: str) -> str:
        """The judge's exam result in this kind of judging in one line, and whether that is below the floor."""
        return describe_exam(self.exams, self.scores.seat, what)

    def is_below_floor(self, what: str) -> bool:
        """Whether the judge is below the floor of its exam in this kind: its numbers are grey and in no summary."""
        return self.exam(what).startswith(BELOW_FLOOR)

    def _pairs(self, aspect: str, slicing: str, value: str) -> list[RaterPair]:
        """Pairs with the readers' majority if there is one, else with each reader."""
        wanted = ("reader–judge", self.judge, aspect, slicing, value)
        pairs = self.agreements.pairs if self.agreements else ()
        own = [one for one in pairs if (one.kind, one.b, one.aspect, one.slicing, one.value) == wanted]
        return [one for one in own if one.a == READERS] or own


def judge_rows(
    run: str,
    found: Sequence[Scored],
    agreements: RunAgreement | None,
    *,
    is_outdated: bool = False,
    exams: tuple[ExamResult, ...] = (),
) -> list[JudgeRow[Scored]]:
    """The judges that gave verdicts, under the names that `medthink agreement` uses."""
    names = name_judges({one.seat: one.label for one in found if one.coverage.judged and one.seat.judge != PANEL})
    return [JudgeRow(run, names.get(one.seat, one.label), one, agreements, is_outdated, exams) for one in found]


def score_cell_text(cell: ScoreCell) -> str:
    """A cell of a score table."""
    if isinstance(cell.value, int):
        return f"{cell.value:,}"
    if isinstance(cell.value, str):
        return cell.value
    return rate_cell(cell.value) if cell.digits is None else mean_cell(cell.value, cell.digits)


def _pairs_text(pairs: Sequence[RaterPair]) -> str:
    return ", ".join(map(_pair_text, pairs)) or "not measured"


def _pair_text(pair: RaterPair) -> str:
    """κ with its interval, weighted for ordered labels, its n, and whether it misleads."""
    name, measured = ("weighted κ", pair.ordered.kappa_quadratic) if pair.ordered else ("κ", pair.nominal.kappa)
    kappa = (
        f"{name} {mean_cell(measured, 2)}" if measured.value is not None else f"{name} undefined ({measured.reason})"
    )
    caution = f", AC1 {mean_cell(pair.nominal.ac1, 2)} because labels are unbalanced" if pair.nominal.caution else ""
    whom = "" if pair.a == READERS else f" with {one_line(pair.a, _LONGEST_NAME)}"
    return f"{kappa}{caution}, n = {pair.nominal.n:,}{whom}".replace("n = ", "n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")


AGREEMENT = "Agreement with readers"
EXAM = "Exam of the judge"
_WHO = ("Run", "Judge", AGREEMENT, EXAM)
_SLICE = ("Slice", "Cases", "Judged")

Seats = Sequence[JudgeRow[Any]]


def kind_tables(what: str, seats: Seats) -> dict[str, tuple[str, Table]]:
    """The tables of one kind by heading, each with its note, and the rows of all judges."""
    found: dict[str, list[tuple[JudgeRow[Any], ScoreTable]]] = {}
    for one in seats:
        for table in KINDS[what].tables(one.scores):
            if table.in_report and table.rows:
                found.setdefault(table.heading, []).append((one, table))
    tables = {}
    for place, (heading, parts) in enumerate(found.items()):
        tables[heading] = (parts[0][1].note, _join(what, parts, with_coverage=place == 0))
    return tables


def coverage_table(seats: Iterable[tuple[str, JudgeRow[Any]]]) -> Table:
    """The coverage of judging: expected and reached verdicts, and the reasons for missing ones."""
    rows = tuple(
        (
            one.run,
            one.judge,
            what,
            _judged(one.scores.coverage),
            rate_cell(one.scores.coverage.share),
            _reasons(one.scores.coverage),
            f"{one.scores.coverage.absent:,}",
            "complete" if one.scores.coverage.is_complete else f"incomplete: under {as_percent(COMPLETE_SHARE, 0)}",
        )
        for what, one in seats
    )
    columns = ("Run", "Judge", "Of", "Judged", "Share judged", "Why not", "Nothing to judge", "Scores are")
    return Table(columns, rows, frozenset({3, 4, 6}), frozenset({1, 5}))


def slices_table(what: str, one: JudgeRow[Any]) -> Table:
    """The scores of one judge by slice, each followed by the agreement in that slice."""
    kind = KINDS[what]
    aspects = [aspect.name for aspect in kind.aspects if aspect.is_main]
    rows = []
    for part in one.scores.slices:
        cells = map(score_cell_text, kind.slice_cells(part.scores).values())
        agreement = (one.slice_agreement(aspect, part.slicing, part.value) for aspect in aspects)
        rows.append((*_slice(part), *cells, *agreement))
    names = kind.slice_cells(one.scores)
    agreements = [AGREEMENT if len(aspects) == 1 else f"{AGREEMENT}: {aspect}" for aspect in aspects]
    columns = (*_SLICE, *names, *agreements)
    first = len(columns) - len(agreements)
    grey = frozenset(range(len(rows)) if one.is_below_floor(what) else ())
    return Table(columns, tuple(rows), frozenset(range(1, first)), frozenset(range(first, len(columns))), grey=grey)


def _join(what: str, parts: Sequence[tuple[JudgeRow[Any], ScoreTable]], *, with_coverage: bool) -> Table:
    """One table of all judges, whose rows have the judge, its agreement and its exam before its numbers."""
    names = parts[0][1].rows[0]
    columns = (*_WHO, *(("Judged",) if with_coverage else ()), *names)
    rows = tuple(
        (
            one.run,
            one.judge,
            one.agreement(*table.aspects),
            one.exam(what),
            *((_judged(one.scores.coverage),) if with_coverage else ()),
            *map(score_cell_text, row.values()),
        )
        for one, table in parts
        for row in table.rows
    )
    listed = [one for one, table in parts for _ in table.rows]
    grey = frozenset(place for place, one in enumerate(listed) if one.is_below_floor(what))
    return Table(columns, rows, frozenset(range(len(_WHO), len(columns))), frozenset({1, 2, 3}), grey=grey)


def _slice(part: JudgedSlice) -> tuple[str, str, str]:
    return (f"{part.slicing}: {part.value}", _cases(part.cases), _judged(part.scores.coverage))


def _judged(coverage: Coverage) -> str:
    return f"{coverage.judged:,} of {coverage.due:,}{'' if coverage.is_complete else ' (incomplete)'}"


def _cases(count: int) -> str:
    return f"{count:,}{' (small)' if count < SMALL else ''}"


def _reasons(coverage: Coverage) -> str:
    counts = {**coverage.unjudged, "never asked": coverage.missing}
    return ", ".join(f"{count:,} {why.replace('_', ' ')}" for why, count in counts.items() if count) or "–"


_NONE = Undefined(reason="not measured", n=0)


def exams_table(results: Iterable[ExamResult]) -> Table:
    """Each judge's grades by kind, its consistency, and whether it is above the floor."""
    rows = [(_label(one), what, *_cells(marks)) for one in results for what, marks in one.kinds.items()]
    accepted = (f"Accepts {name}" for name in (UNTOUCHED, REWORDED, LONGER))
    constant = ("Same again", "κ with itself", "Same in reverse order")
    columns = ("Judge", "In", "Floor", "Sheets judged", "Finds errors", *accepted, *constant)
    return Table(columns, tuple(rows), frozenset(range(3, len(columns))), frozenset({0}))


def shortfall_lines(results: Iterable[ExamResult]) -> list[str]:
    """The reasons why judges are below the floor, one line per kind."""
    return [
        f"{_label(one)} in {what}, below the floor: {'; '.join(reasons)}."
        for one in results
        for what, reasons in one.shortfalls.items()
    ]


def edits_table(results: Iterable[ExamResult]) -> Table:
    """The share of errors that each judge finds, by edit."""
    rows = [
        (_label(one), what, edit, "counts" if is_counted(edit) else "apart", rate_cell(found), f"{found.n:,}")
        for one in results
        for what, marks in one.kinds.items()
        for edit, found in marks.found.items()
    ]
    return Table(("Judge", "In", "Edit", "Floor", "Found", "Units"), tuple(rows), frozenset({4, 5}), frozenset({0}))


def judge_bias_table(results: Iterable[ExamResult]) -> Table:
    """The biases of each judge's preference: order, length and its own wording."""
    pairs = [(one, one.pairs) for one in results if one.pairs is not None]
    rows = tuple(
        (
            _label(one),
            f"{marks.pairs:,}",
            *map(rate_cell, (marks.same_swapped, marks.first, marks.longer, marks.own, marks.own_by_others)),
        )
        for one, marks in pairs
    )
    columns = (
        "Judge",
        "Pairs",
        "Same when swapped",
        "First position",
        "Longer text",
        "Own wording",
        "The same, by others",
    )
    return Table(columns, rows, frozenset(range(1, 7)), frozenset({0}))


def _cells(marks: KindGrades) -> tuple[str, ...]:
    accepted = (rate_cell(marks.accepted.get(name, _NONE)) for name in (UNTOUCHED, REWORDED, LONGER))
    return (
        BELOW_FLOOR if marks.shortfalls() else "above",
        f"{marks.judged:,} of {marks.asked:,}",
        rate_cell(marks.sensitivity),
        *accepted,
        rate_cell(marks.same_again),
        mean_cell(marks.kappa_again, 2),
        rate_cell(marks.same_reversed),
    )


def _label(one: ExamResult) -> str:
    return JudgeConfig(judge=one.judge, setting=one.setting, prompt="").label()
