"""The leaderboard's filters: rankings, provenance levels, chips, the column menu."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from medthink.board.ranking import RANKINGS, BoardRow, Leaderboard, RankingKind
from medthink.board.submissions import LEVELS, LISTED, SHOWN_FROM
from medthink.web.board.columns import PROOF_WORDS, BoardColumn, BoardQuery

RANKING_WORDS: dict[RankingKind, str] = {
    "unaided": "Whole cases",
    "cued": "With expert cues",
    "partial": "A part of each case",
}
RANKING_FOLDERS: dict[RankingKind, str] = {"unaided": "", "cued": "cued/", "partial": "partial/"}
"""The paths of the rankings in a static site."""
_LEAST = LEVELS.index(SHOWN_FROM)
_WEIGHTS = {"open": "Open weights", "closed": "Closed weights"}


class BoardChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A filter that can be switched, with its number of rows."""

    name: str
    value: str
    words: str
    count: int
    is_on: bool


class RankingTab(msgspec.Struct, frozen=True, kw_only=True):
    """One of the rankings."""

    words: str
    count: int
    link: str
    folder: str
    is_here: bool


def ranking_of(query: BoardQuery) -> RankingKind:
    return next((kind for kind in RANKINGS if kind == query.ranking), "unaided")


def lowest_provenance(rows: Sequence[BoardRow], query: BoardQuery) -> int:
    """The minimum level shown: the requested one, else traced; all levels if no row has that."""
    if query.proof.isdecimal() and len(query.proof) == 1:
        return min(int(query.proof), len(LEVELS) - 1)
    return _LEAST if any(LEVELS.index(row.submission.provenance) >= _LEAST for row in rows) else 0


def _searched(row: BoardRow) -> str:
    one = row.submission
    parts = (one.model, one.team, *(getattr(one.about, name) for name in LISTED), one.about.mode)
    return " ".join([*parts, row.scores.origin.condition_label]).casefold()


def choose_rows(rows: Sequence[BoardRow], query: BoardQuery, least: int) -> list[BoardRow]:
    """The rows that match the filters, in ranking order."""
    return [
        row
        for row in rows
        if LEVELS.index(row.submission.provenance) >= least
        and (not query.weights or weights_of(row) in query.weights)
        and (not query.mode or row.submission.about.mode in query.mode)
        and all(word in _searched(row) for word in query.words)
    ]


def weights_of(row: BoardRow) -> str:
    """Whether the model's weights are "open", "closed", or "" if unknown."""
    is_open = row.submission.about.is_open_weights
    return "" if is_open is None else "open" if is_open else "closed"


def ranking_tabs(made: Leaderboard, query: BoardQuery, here: RankingKind) -> list[RankingTab]:
    """The rankings that have rows."""
    kept = BoardQuery(as_of=query.as_of, col=query.col)
    return [
        RankingTab(
            words=RANKING_WORDS[kind],
            count=len(made.ranking(kind)),
            link=kept.encode(ranking="" if kind == "unaided" else kind) or "?",
            folder=RANKING_FOLDERS[kind],
            is_here=kind == here,
        )
        for kind in RANKINGS
        if made.ranking(kind) or kind == "unaided"
    ]


def board_chips(rows: Sequence[BoardRow], query: BoardQuery) -> list[tuple[str, tuple[BoardChoice, ...]]]:
    """The filters that can be switched on and off, in groups; a group with one value is left out."""
    weights = Counter(weights_of(row) for row in rows)
    modes = Counter(row.submission.about.mode for row in rows)
    groups = {
        "Weights": [_chip("weights", value, words, weights, query.weights) for value, words in _WEIGHTS.items()],
        "Mode": [_chip("mode", mode, mode, modes, query.mode) for mode in sorted(modes) if mode],
    }
    made = [(title, tuple(one for one in found if one.count)) for title, found in groups.items()]
    return [(title, found) for title, found in made if len(found) > 1 or any(one.is_on for one in found)]


def provenance_choices(rows: Sequence[BoardRow], least: int) -> tuple[BoardChoice, ...]:
    """The provenance levels, each with the number of rows at that level or higher; the lowest first."""
    found = [LEVELS.index(row.submission.provenance) for row in rows]
    return tuple(
        BoardChoice(
            name="proof",
            value=str(level) if level != _LEAST else "",
            words=PROOF_WORDS[LEVELS[level]] + ("" if level == len(LEVELS) - 1 else " or better"),
            count=sum(one >= level for one in found),
            is_on=level == max(1, least),
        )
        for level in range(1, len(LEVELS))
    )


def _chip(name: str, value: str, words: str, counts: Counter[str], chosen: Sequence[str]) -> BoardChoice:
    return BoardChoice(name=name, value=value, words=words, count=counts[value], is_on=value in chosen)


def column_menu(
    known: dict[str, BoardColumn], chosen: Sequence[BoardColumn]
) -> tuple[tuple[str, tuple[tuple[BoardColumn, bool], ...]], ...]:
    keys = {column.key for column in chosen}
    groups: dict[str, list[tuple[BoardColumn, bool]]] = {}
    for column in known.values():
        groups.setdefault(column.group, []).append((column, column.key in keys))
    return tuple((group, tuple(columns)) for group, columns in groups.items())
