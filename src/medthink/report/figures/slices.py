"""Accuracy in the slices of the benchmark, a few runs side by side."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from medthink.cases.slices import SMALL
from medthink.core.markup import Table, one_line
from medthink.report.entries import Entry, Group, ends_of, value_of
from medthink.report.figures.style import COLOURS, LINE, MARKS, Drawing, percent_axis
from medthink.scoring.scores import SliceScore, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = 4
# Too many values to draw; they are in the table.
_TABLE_ONLY = frozenset({"sub-modality"})
_FEWEST_DRAWN = 5


class _Row(NamedTuple):
    by: str
    value: str
    n: int
    found: tuple[SliceScore | None, ...]


def slices_drawing(group: Group) -> Drawing | None:
    """One row per slice and one dot per run: at most four runs are drawn, all are in the table."""
    entries = group.lettered
    rows = _rows(entries)
    drawn = [row for row in rows if row.by not in _TABLE_ONLY and row.n >= _FEWEST_DRAWN]
    if not drawn:
        return None
    shown = one_per_model(entries)

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        _draw(axes, drawn, [entries.index(entry) for entry in shown], [entry.label for entry in shown])
        figure.legend(loc="outside lower center", ncols=1 if len(shown) < 3 else 2)

    names = ", ".join(entry.label for entry in shown)
    message = (
        f"Accuracy in slices of the cases, for {names}. Hollow marks: fewer than {SMALL} cases, too few to rely on. "
        f"Slices of fewer than {_FEWEST_DRAWN} cases and sub-modalities stand in the table alone."
    )
    height = 1.1 + 0.225 * (len(drawn) + len({row.by for row in drawn})) + 0.1 * len(shown)
    return Drawing("slices", "Accuracy in slices", message, draw, height, _table(entries, rows))


def one_per_model(entries: Sequence[Entry]) -> list[Entry]:
    """The best run of each of the best models, then other runs while there is room."""
    first = list({entry.manifest.model: entry for entry in reversed(entries)}.values())
    ordered = [entry for entry in entries if entry in first] + [entry for entry in entries if entry not in first]
    chosen = ordered[:SHOWN]
    return [entry for entry in entries if entry in chosen]


def _rows(entries: Sequence[Entry]) -> list[_Row]:
    found: dict[tuple[str, str], list[SliceScore | None]] = {}
    for place, entry in enumerate(entries):
        for one in entry.scores.slices:
            found.setdefault((one.by, one.value), [None] * len(entries))[place] = one
    return [_Row(by, value, max(one.n for one in row if one), tuple(row)) for (by, value), row in found.items()]


def _draw(axes: "Axes", rows: list[_Row], places: list[int], labels: list[str]) -> None:
    height, ticks, names = 0.0, [], []
    spread = 0.62 / max(1, len(places))
    previous = ""
    for row in rows:
        if row.by != previous:
            height += 0.45
            axes.text(0.01, height, row.by, transform=axes.get_yaxis_transform(), fontweight="bold", va="center")
            axes.axhline(height - 0.55, color=LINE, linewidth=0.6)
            previous, height = row.by, height + 1
        for number, place in enumerate(places):
            y = height + (number - (len(places) - 1) / 2) * spread
            _dot(axes, row.found[place], y, COLOURS[number], MARKS[number])
        ticks.append(height)
        names.append(f"{one_line(row.value.removeprefix('Chapter '), 27)} ({row.n:,})")
        height += 1
    for number, label in enumerate(labels):
        axes.plot([], [], MARKS[number], color=COLOURS[number], label=label, markersize=4)
    axes.set_yticks(ticks, names)
    axes.set_ylim(height - 0.3, -0.2)
    axes.grid(axis="y", visible=False)
    axes.set(xlabel="accuracy (%); cases in brackets", xlim=(-0.015, 1.015))
    percent_axis(axes, along="x")


def _dot(axes: "Axes", one: SliceScore | None, y: float, colour: str, mark: str) -> None:
    value = value_of(one.accuracy) if one else None
    if one is None or value is None:
        return
    if ends := ends_of(one.accuracy):
        axes.plot(ends, (y, y), color=colour, linewidth=1, alpha=0.6)
    filling = "none" if one.is_small else colour
    axes.plot([value], [y], mark, color=colour, markerfacecolor=filling, markersize=3.6)


def _table(entries: Sequence[Entry], rows: list[_Row]) -> Table:
    cells = tuple(
        (
            f"{row.by}: {row.value}",
            f"{row.n:,}{' (small)' if row.n < SMALL else ''}",
            *(percent(one.accuracy) if one else "–" for one in row.found),
        )
        for row in rows
    )
    columns = ("Slice", "Cases", *(entry.label for entry in entries))
    return Table(columns, cells, frozenset(range(1, len(columns))))
