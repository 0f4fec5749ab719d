"""The leaderboard as a page: ranks as ranges, ties in groups, intervals drawn, provenance on every row."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from medthink.board.ranking import BoardRow, Leaderboard, RankingKind
from medthink.board.results import PublishedResults
from medthink.board.submissions import LEVELS, PROVENANCE
from medthink.core.numbers import as_percent, count_of
from medthink.stats.estimate import Estimate, Measured, rank_range
from medthink.web.app.charts import BoardFigure, IntervalPosition, ShareAxis, fit_axis, shape_of
from medthink.web.app.query import begin_page
from medthink.web.app.rendering import NONE, tell_ends
from medthink.web.board.columns import (
    PROOF_WORDS,
    BoardCell,
    BoardColumn,
    BoardQuery,
    SortKey,
    accuracy_of,
    board_columns,
    chosen_columns,
    rival_name,
    sort_rows,
)
from medthink.web.board.figures import curve_figures, price_figure
from medthink.web.board.filters import (
    BoardChoice,
    RankingTab,
    board_chips,
    choose_rows,
    column_menu,
    lowest_provenance,
    provenance_choices,
    ranking_of,
    ranking_tabs,
)

PER_PAGE = 100
WIDE, NARROW = 240, 124
_RANKING_NOTES: dict[RankingKind, str] = {
    "unaided": "",
    "cued": "These models were shown expert cues, so they have a separate ranking.",
    "partial": "These models were shown only some of the images or no history, so they have a separate ranking.",
}


class AccuracyCell(msgspec.Struct, frozen=True, kw_only=True):
    """An accuracy with its interval, as text and on the two widths of the shared axis."""

    value: str
    ends: str
    wide: IntervalPosition | None
    narrow: IntervalPosition | None


class BoardLine(msgspec.Struct, frozen=True, kw_only=True):
    """One model on the board."""

    number: int
    rank: str
    group: int | None
    shape: int
    model: str
    effort: str
    team: str
    accuracy: AccuracyCell
    cells: tuple[BoardCell, ...]
    short: tuple[BoardCell, ...]
    flag: str
    orders: tuple[SortKey, ...] = ()
    starts: str = ""


class PlainLine(msgspec.Struct, frozen=True, kw_only=True):
    """A row next to the ranking: a guesser without images, or a total reported elsewhere."""

    name: str
    under: str
    accuracy: AccuracyCell
    note: str = ""


class WithdrawnLine(msgspec.Struct, frozen=True, kw_only=True):
    """A model that was taken off the ranking."""

    number: int
    model: str
    team: str
    day: str
    why: str


class LeaderboardPage(msgspec.Struct, frozen=True, kw_only=True):
    """A leaderboard, or `problem`, the reason why there is none."""

    query: BoardQuery
    problem: str = ""
    name: str = ""
    split: str = ""
    n_cases: int = 0
    fingerprint: str = ""
    as_of: str = ""
    lead: str = ""
    resolution: str = ""
    note: str = ""
    tabs: tuple[RankingTab, ...] = ()
    choices: tuple[tuple[str, tuple[BoardChoice, ...]], ...] = ()
    proofs: tuple[BoardChoice, ...] = ()
    menu: tuple[tuple[str, tuple[tuple[BoardColumn, bool], ...]], ...] = ()
    axis: ShareAxis = ShareAxis(low=0.0, high=1.0, width=WIDE)
    narrow_axis: ShareAxis = ShareAxis(low=0.0, high=1.0, width=NARROW)
    columns: tuple[BoardColumn, ...] = ()
    lines: tuple[BoardLine, ...] = ()
    is_grouped: bool = False
    is_ranking: bool = True
    shown: int = 0
    found: int = 0
    hidden: int = 0
    previous: str = ""
    next: str = ""
    rivals: tuple[PlainLine, ...] = ()
    figures: tuple[BoardFigure, ...] = ()
    withdrawn: tuple[WithdrawnLine, ...] = ()
    published: tuple[PlainLine, ...] = ()
    published_axis: ShareAxis = ShareAxis(low=0.0, high=1.0, width=WIDE)
    published_narrow: ShareAxis = ShareAxis(low=0.0, high=1.0, width=NARROW)
    published_cases: int = 0
    source: str = ""
    ladder: tuple[tuple[str, int, str], ...] = ()


def make_leaderboard_page(made: Leaderboard, published: PublishedResults, query: BoardQuery) -> LeaderboardPage:
    """The rows matching the query; ranks are those of the whole ranking."""
    kind = ranking_of(query)
    rows = made.ranking(kind)
    known = board_columns(rows)
    columns = chosen_columns(known, query)
    least = lowest_provenance(rows, query)
    chosen = sort_rows(choose_rows(rows, query, least), known, query)
    start, stop = _page_of(chosen, query)
    axis = fit_axis(_drawn(made, rows), WIDE)
    reported = fit_axis(map(published.accuracy, published.results), WIDE)
    is_grouped = query.sort in ("", "rank") and not query.down
    return LeaderboardPage(
        query=query,
        name=made.benchmark.name,
        split=made.benchmark.split,
        n_cases=made.benchmark.n_cases,
        fingerprint=made.benchmark.text_fingerprint[:8],
        as_of=made.as_of[:10],
        lead=tell_top(rows),
        resolution=tell_resolution(made) if kind == "unaided" else "",
        note=_RANKING_NOTES[kind],
        tabs=tuple(ranking_tabs(made, query, kind)),
        choices=tuple(board_chips(rows, query)),
        proofs=provenance_choices(rows, least),
        menu=column_menu(known, columns),
        axis=axis,
        narrow_axis=msgspec.structs.replace(axis, width=NARROW),
        columns=tuple(columns),
        lines=tuple(_lines(chosen[start:stop], columns, known, axis, is_grouped=is_grouped)),
        is_grouped=is_grouped,
        is_ranking=any(row.rank is not None for row in rows) or len(rows) < 2,
        shown=len(chosen),
        found=len(rows),
        hidden=sum(LEVELS.index(row.submission.provenance) < least for row in rows),
        previous=query.encode(page=str(start // PER_PAGE)) if start else "",
        next=query.encode(page=str(start // PER_PAGE + 2)) if stop < len(chosen) else "",
        rivals=tuple(_rivals(made, axis)) if kind == "unaided" else (),
        figures=tuple(_figures(made, rows)),
        withdrawn=tuple(_withdrawn(row) for row in made.withdrawn),
        published=tuple(_published(published, reported)),
        published_axis=reported,
        published_narrow=msgspec.structs.replace(reported, width=NARROW),
        published_cases=published.n_cases,
        source=published.source,
        ladder=tuple((PROOF_WORDS[level], place, PROVENANCE[level]) for place, level in enumerate(LEVELS))[::-1],
    )


def accuracy_cell(value: Measured, axis: ShareAxis, rival: Measured | None = None) -> AccuracyCell:
    """An accuracy as a cell of a table."""
    if value.value is None:
        return AccuracyCell(value=NONE, ends="", wide=None, narrow=None)
    ends = tell_ends(value) or "no interval"
    narrow = msgspec.structs.replace(axis, width=NARROW)
    return AccuracyCell(
        value=f"{value.value * 100:.1f}", ends=ends, wide=axis.place(value, rival), narrow=narrow.place(value, rival)
    )


def tell_rank(row: BoardRow) -> str:
    """`1–4`, `3`, or a dash for a row that is not ranked."""
    return NONE if row.rank is None or row.worst is None else rank_range(row.rank, row.worst)


def tell_top(rows: Sequence[BoardRow]) -> str:
    """The leaders, and the number of models not shown to beat a guesser, in a sentence or two."""
    if not rows or rows[0].group is None:
        return ""
    leaders = [row for row in rows if row.is_leader]
    first = rows[0]
    said = f"{first.submission.model} ({as_percent(accuracy_of(first).value or 0.0)})"
    words = (
        f"{said} is better than all others."
        if len(leaders) == 1
        else (f"{count_of(len(leaders), 'model')} may be first: none of them is shown to be worse than {said}.")
    )
    against = [row.gain.gain for row in rows if row.gain]
    weak = sum(not (isinstance(gain, Estimate) and gain.low > 0) for gain in against)
    if against and weak:
        words += f" {weak} of {count_of(len(against), 'model')} {'is' if weak == 1 else 'are'} not shown to beat the "
        words += "strongest rival without images."
    return words


def tell_resolution(made: Leaderboard) -> str:
    """The minimum detectable difference, in points."""
    if made.resolution is None:
        return ""
    low, high = (f"{100 * end:.1f}" for end in made.resolution)
    return low if low == high else f"{low} to {high}"


def _page_of(rows: Sequence[BoardRow], query: BoardQuery) -> tuple[int, int]:
    if query.rows == "all":
        return 0, len(rows)
    start = begin_page(query.page, len(rows), PER_PAGE)
    return start, start + PER_PAGE


def _drawn(made: Leaderboard, rows: Sequence[BoardRow]) -> list[Measured]:
    """Everything that must fit on the table's axis, regardless of filters."""
    rivals = [row.gain.rival_accuracy for row in rows if row.gain]
    return [*(accuracy_of(row) for row in rows), *rivals, *(rival.accuracy for rival in made.rivals)]


def _lines(
    rows: Sequence[BoardRow],
    columns: Sequence[BoardColumn],
    known: dict[str, BoardColumn],
    axis: ShareAxis,
    *,
    is_grouped: bool,
) -> list[BoardLine]:
    sizes = Counter(row.group for row in rows)
    lines, last = [], None
    for row in rows:
        starts = ""
        if is_grouped and row.group is not None and row.group != last:
            starts, last = _tell_group(sizes[row.group]), row.group
        lines.append(_line(row, columns, known, axis, starts))
    return lines


def _tell_group(size: int) -> str:
    return "one model" if size == 1 else f"{size} models"


def _line(
    row: BoardRow, columns: Sequence[BoardColumn], known: dict[str, BoardColumn], axis: ShareAxis, starts: str
) -> BoardLine:
    one = row.submission
    rival = row.gain.rival_accuracy if row.gain else None
    return BoardLine(
        number=one.id,
        rank=tell_rank(row),
        group=row.group,
        shape=shape_of(row.group),
        model=one.model,
        effort=one.about.effort,
        team=" · ".join(part for part in (one.team, one.about.organisation) if part),
        accuracy=accuracy_cell(accuracy_of(row), axis, rival),
        cells=tuple(column.cell(row) for column in columns),
        short=tuple(known[key].cell(row) for key in ("gain", "cost", "proof")),
        flag=one.flag,
        orders=tuple(column.order(row) if column.order else None for column in columns),
        starts=starts,
    )


def _rivals(made: Leaderboard, axis: ShareAxis) -> list[PlainLine]:
    return [
        PlainLine(name=rival_name(rival.name), under=rival.source, accuracy=accuracy_cell(rival.accuracy, axis))
        for rival in made.rivals
    ]


def _figures(made: Leaderboard, rows: Sequence[BoardRow]) -> list[BoardFigure]:
    priced = price_figure(rows, made.rivals)
    return [*([priced] if priced else []), *curve_figures(made, rows)]


def _withdrawn(row: BoardRow) -> WithdrawnLine:
    one = row.submission
    return WithdrawnLine(
        number=one.id, model=one.model, team=one.team, day=(one.withdrawn_at or "")[:10], why=one.reason
    )


def _published(published: PublishedResults, axis: ShareAxis) -> list[PlainLine]:
    return [
        PlainLine(
            name=one.model,
            under=", ".join(part for part in (one.mode, one.effort) if part),
            accuracy=accuracy_cell(published.accuracy(one), axis),
            note=one.note,
        )
        for one in published.results
    ]
