"""How the judges of the runs did in their exams."""

from collections.abc import Iterable

from medthink.core.markup import Table
from medthink.judge.edits import is_counted
from medthink.judge.exam.results import ExamResult, KindMarks
from medthink.judge.exam.sheets import LONGER, REWORDED, UNTOUCHED
from medthink.judge.exam.standing import BELOW_FLOOR
from medthink.judge.judgement import Seat
from medthink.stats.estimate import Undefined
from medthink.stats.words import mean, share

_NONE = Undefined(reason="not measured", n=0)


def exams_table(results: Iterable[ExamResult]) -> Table:
    """What each judge finds and accepts, kind by kind, how consistent it is, and whether it is above the floor."""
    rows = [(_label(one), what, *_cells(marks)) for one in results for what, marks in one.kinds.items()]
    accepted = (f"Accepts {name}" for name in (UNTOUCHED, REWORDED, LONGER))
    constant = ("Same again", "κ with itself", "Same in reverse order")
    columns = ("Judge", "In", "Floor", "Sheets judged", "Finds errors", *accepted, *constant)
    return Table(columns, tuple(rows), frozenset(range(3, len(columns))), frozenset({0}))


def shortfall_lines(results: Iterable[ExamResult]) -> list[str]:
    """Why judges are below the floor, a line for each kind."""
    return [
        f"{_label(one)} in {what}, below the floor: {'; '.join(reasons)}."
        for one in results
        for what, reasons in one.shortfalls.items()
    ]


def edits_table(results: Iterable[ExamResult]) -> Table:
    """What each judge finds, edit by edit."""
    rows = [
        (_label(one), what, edit, "counts" if is_counted(edit) else "apart", share(found), f"{found.n:,}")
        for one in results
        for what, marks in one.kinds.items()
        for edit, found in marks.found.items()
    ]
    return Table(("Judge", "In", "Edit", "Floor", "Found", "Units"), tuple(rows), frozenset({4, 5}), frozenset({0}))


def leanings_table(results: Iterable[ExamResult]) -> Table:
    """How order, length and its own wording bias each judge's preference."""
    pairs = [(one, one.pairs) for one in results if one.pairs is not None]
    rows = tuple(
        (
            _label(one),
            f"{marks.pairs:,}",
            *map(share, (marks.same_swapped, marks.first, marks.longer, marks.own, marks.own_by_others)),
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


def _cells(marks: KindMarks) -> tuple[str, ...]:
    accepted = (share(marks.accepted.get(name, _NONE)) for name in (UNTOUCHED, REWORDED, LONGER))
    return (
        BELOW_FLOOR if marks.shortfalls() else "above",
        f"{marks.judged:,} of {marks.asked:,}",
        share(marks.sensitivity),
        *accepted,
        share(marks.same_again),
        mean(marks.kappa_again, 2),
        share(marks.same_reversed),
    )


def _label(one: ExamResult) -> str:
    return Seat(judge=one.judge, setting=one.setting, prompt="").label()
