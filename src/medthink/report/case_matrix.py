"""Cases × runs: which run was right where, with links to the cases shown below."""

from collections.abc import Sequence
from typing import NamedTuple

from medthink.core.markup import Markup, joined, tag
from medthink.report.entries import Group

_MEANING = (
    "A column is a case, the hardest on the left; a row is a run, the best on top. Filled: wrong or no letter; half: "
    "some samples wrong; empty: right. Cases that can be opened below have a mark under their column."
)
_ROW, _LEAST_WIDTH, _MOST_WIDTH, _FULL = 16, 1.2, 28.0, 960.0
MOST_ROWS = 40


class _Grid(NamedTuple):
    cases: tuple[int, ...]
    width: float


def order_by_difficulty(group: Group) -> list[int]:
    """The cases, those that most runs missed first."""
    right = {one.case: 0.0 for one in group.lettered[0].scores.cases}
    for entry in group.lettered:
        for one in entry.scores.cases:
            right[one.case] += one.right
    return sorted(right, key=lambda case: (right[case], case))


def case_matrix_markup(group: Group, shown: Sequence[int], prefix: str) -> Markup:
    """The matrix of a group; `shown` are the cases that can be opened on the page."""
    cases = order_by_difficulty(group)
    grid = _Grid(tuple(cases), max(_LEAST_WIDTH, min(_MOST_WIDTH, _FULL / len(cases))))
    entries = group.lettered[:MOST_ROWS]
    width, height = round(grid.width * len(cases), 1), _ROW * len(entries)
    rows = (_row(entry.label, {one.case: one.right for one in entry.scores.cases}, place, grid)
            for place, entry in enumerate(entries))  # fmt: skip
    links = (_link(grid, cases.index(case), case, height, prefix) for case in shown)
    svg = Markup(
        f'<svg class="matrix" viewBox="0 0 {width} {height + 10}" width="{width}" height="{height + 10}" role="img" '
        f'aria-label="Right and wrong by case and run">{joined(rows)}{joined(links)}</svg>'
    )
    names = tag("ol", *(tag("li", entry.label) for entry in entries), class_="matrix-names")
    box = tag("div", svg, class_="box matrix-box", role="region", aria_label="Cases by runs", tabindex=0)
    more = len(group.lettered) - len(entries)
    note = f"{_MEANING} The {more} lowest runs are not drawn." if more else _MEANING
    return tag("div", tag("div", names, box, class_="matrix-row"), tag("p", note, class_="soft small"))


def _row(label: str, right: dict[int, float], place: int, grid: _Grid) -> Markup:
    """All wrong cells of a run as one path, and those half wrong as another: thousands of cells in a few bytes each."""
    top, size = place * _ROW + 1, _ROW - 2
    whole = [number for number, case in enumerate(grid.cases) if right[case] == 0]
    half = [number for number, case in enumerate(grid.cases) if 0 < right[case] < 1]
    parts = [
        Markup(f'<path class="{kind}" d="{"".join(_square(grid, number, top, size) for number in numbers)}"/>')
        for kind, numbers in (("wrong", whole), ("half", half))
        if numbers
    ]
    told = f"{label}: {len(whole)} wrong or without a letter, {len(half)} wrong in some samples"
    frame = Markup(
        f'<rect class="row" x="0" y="{top}" width="{round(grid.width * len(grid.cases), 1)}" height="{size}"/>'
    )
    return tag("g", tag("title", told), frame, *parts)


def _square(grid: _Grid, number: int, top: int, size: int) -> str:
    gap = 0.5 if grid.width > 4 else 0.0
    left, width = round(number * grid.width + gap, 1), round(grid.width - 2 * gap, 1)
    return f"M{left} {top}h{width}v{size}h-{width}z"


def _link(grid: _Grid, number: int, case: int, height: int, prefix: str) -> Markup:
    left, width = round(number * grid.width, 1), round(max(grid.width, 3), 1)
    cell = Markup(f'<rect x="{left}" y="0" width="{width}" height="{height + 9}" class="hit"/>')
    mark = Markup(f'<rect x="{left}" y="{height + 2}" width="{max(1.0, width - 1)}" height="5" class="open"/>')
    return tag("a", tag("title", f"Case {case}"), mark, cell, href=f"#{prefix}-case-{case}")
