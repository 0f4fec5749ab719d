"""The tables of judged scores; every number comes with the judge's agreement with readers."""

from collections.abc import Iterable, Sequence
from typing import Any

from medthink.cases.slices import SMALL
from medthink.core.markup import Table
from medthink.core.numbers import as_percent
from medthink.judge.coverage import COMPLETE_SHARE, Coverage
from medthink.judge.kinds import KINDS
from medthink.judge.scores import JudgedSlice, ScoreTable
from medthink.report.seated import Seated, cell_text
from medthink.stats.words import share

AGREEMENT = "Agreement with readers"
EXAM = "Exam of the judge"
_WHO = ("Run", "Judge", AGREEMENT, EXAM)
_SLICE = ("Slice", "Cases", "Judged")

Seats = Sequence[Seated[Any]]


def kind_tables(what: str, seats: Seats) -> dict[str, tuple[str, Table]]:
    """The tables of one kind by heading, each with its note, and the rows of all seats."""
    found: dict[str, list[tuple[Seated[Any], ScoreTable]]] = {}
    for one in seats:
        for table in KINDS[what].tables(one.scores):
            if table.in_report and table.rows:
                found.setdefault(table.heading, []).append((one, table))
    tables = {}
    for place, (heading, parts) in enumerate(found.items()):
        tables[heading] = (parts[0][1].note, _join(what, parts, with_coverage=place == 0))
    return tables


def coverage_table(seats: Iterable[tuple[str, Seated[Any]]]) -> Table:
    """What should be judged, what was, and why the rest was not."""
    rows = tuple(
        (
            one.run,
            one.judge,
            what,
            _judged(one.scores.coverage),
            share(one.scores.coverage.share),
            _reasons(one.scores.coverage),
            f"{one.scores.coverage.absent:,}",
            "complete" if one.scores.coverage.is_complete else f"incomplete: under {as_percent(COMPLETE_SHARE, 0)}",
        )
        for what, one in seats
    )
    columns = ("Run", "Judge", "Of", "Judged", "Share judged", "Why not", "Nothing to judge", "Scores are")
    return Table(columns, rows, frozenset({3, 4, 6}), frozenset({1, 5}))


def slices_table(what: str, one: Seated[Any]) -> Table:
    """The scores of one seat by slice, each followed by the agreement in that slice."""
    kind = KINDS[what]
    aspects = [aspect.name for aspect in kind.aspects if aspect.is_main]
    rows = []
    for part in one.scores.slices:
        cells = map(cell_text, kind.slice_cells(part.scores).values())
        agreement = (one.slice_agreement(aspect, part.slicing, part.value) for aspect in aspects)
        rows.append((*_slice(part), *cells, *agreement))
    names = kind.slice_cells(one.scores)
    agreements = [AGREEMENT if len(aspects) == 1 else f"{AGREEMENT}: {aspect}" for aspect in aspects]
    columns = (*_SLICE, *names, *agreements)
    first = len(columns) - len(agreements)
    return Table(columns, tuple(rows), frozenset(range(1, first)), frozenset(range(first, len(columns))))


def _join(what: str, parts: Sequence[tuple[Seated[Any], ScoreTable]], *, with_coverage: bool) -> Table:
    """One table of all seats, whose rows name the seat, its agreement and its exam before its numbers."""
    names = parts[0][1].rows[0]
    columns = (*_WHO, *(("Judged",) if with_coverage else ()), *names)
    rows = tuple(
        (
            one.run,
            one.judge,
            one.agreement(*table.aspects),
            one.exam(what),
            *((_judged(one.scores.coverage),) if with_coverage else ()),
            *map(cell_text, row.values()),
        )
        for one, table in parts
        for row in table.rows
    )
    return Table(columns, rows, frozenset(range(len(_WHO), len(columns))), frozenset({1, 2, 3}))


def _slice(part: JudgedSlice) -> tuple[str, str, str]:
    return (f"{part.slicing}: {part.value}", _cases(part.cases), _judged(part.scores.coverage))


def _judged(coverage: Coverage) -> str:
    return f"{coverage.judged:,} of {coverage.due:,}{'' if coverage.is_complete else ' (incomplete)'}"


def _cases(count: int) -> str:
    return f"{count:,}{' (small)' if count < SMALL else ''}"


def _reasons(coverage: Coverage) -> str:
    counts = {**coverage.unjudged, "never asked": coverage.missing}
    return ", ".join(f"{count:,} {why.replace('_', ' ')}" for why, count in counts.items() if count) or "–"
