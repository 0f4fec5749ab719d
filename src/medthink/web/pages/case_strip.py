"""Cases as squares from the easiest to the hardest: what a model got right, without revealing which case is which."""

from collections.abc import Sequence
from math import ceil, sqrt

import msgspec

from medthink.board.ranking import BoardRow

_PITCH, _SIDE = 12, 10
# Width-to-height ratio.
_WIDE, _NARROW = 9.0, 1.6


class CaseStrip(msgspec.Struct, frozen=True, kw_only=True):
    """One square per case, as one path for each result."""

    width: int
    height: int
    right: str
    wrong: str
    silent: str


class CaseStrips(msgspec.Struct, frozen=True, kw_only=True):
    """The same cases for wide and narrow pages, and how many have each result."""

    wide: CaseStrip
    narrow: CaseStrip
    right: int
    wrong: int
    silent: int


def draw_cases(row: BoardRow, rows: Sequence[BoardRow]) -> CaseStrips:
    """The cases of a row, ordered by how many rows get them right."""
    shares = right_shares(row, rows)
    order = sorted(range(len(row.result.cases)), key=lambda place: -shares[place])
    results = [_result(row, place) for place in order]
    return CaseStrips(
        wide=_draw(results, _WIDE),
        narrow=_draw(results, _NARROW),
        right=results.count("right"),
        wrong=results.count("wrong"),
        silent=results.count("silent"),
    )


def right_shares(row: BoardRow, rows: Sequence[BoardRow]) -> list[float]:
    """The share of rows that get each case of a row right; only this row if no other has the same cases."""
    alike = [other.result.rights for other in rows if other.result.cases == row.result.cases] or [row.result.rights]
    return [sum(rights) / len(alike) for rights in zip(*alike, strict=True)]


def _result(row: BoardRow, place: int) -> str:
    if row.result.states[place] != "ok":
        return "silent"
    return "right" if row.result.rights[place] >= 0.5 else "wrong"


def _draw(results: Sequence[str], shape: float) -> CaseStrip:
    """Column by column, so that the ends of the strip are easy and hard."""
    rows = max(1, ceil(sqrt(len(results) / shape)))
    paths: dict[str, list[str]] = {"right": [], "wrong": [], "silent": []}
    for place, result in enumerate(results):
        x, y = place // rows * _PITCH, place % rows * _PITCH
        paths[result].append(f"M{x + 1} {y + 1}h{_SIDE}v{_SIDE}h-{_SIDE}z")
    columns = ceil(len(results) / rows)
    drawn = {name: "".join(parts) for name, parts in paths.items()}
    return CaseStrip(width=columns * _PITCH, height=rows * _PITCH, **drawn)
