"""Accuracy in the slices of the benchmark, a few runs side by side."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from medthink.cases.slices import SMALL
from medthink.core.markup import Table, one_line
from medthink.core.numbers import as_percent
from medthink.metrics.registry import Metric, shown_in
from medthink.report.figures.style import COLOURS, LINE, MARKS, FigureSpec, percent_axis, wrapped
from medthink.report.runs import ComparableGroup, ReportRun
from medthink.scoring.scores import SliceScore, rate_text
from medthink.stats.estimate import ends_of, value_of
from medthink.workflow.tasks import known_texts

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


def slices_drawing(group: ComparableGroup) -> FigureSpec | None:
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
        f"Slices of fewer than {_FEWEST_DRAWN} cases and sub-modalities are only in the table."
    )
    height = 1.1 + 0.225 * (len(drawn) + len({row.by for row in drawn})) + 0.1 * len(shown)
    return FigureSpec("slices", "Accuracy in slices", message, draw, height, _table(entries, rows))


def one_per_model(entries: Sequence[ReportRun]) -> list[ReportRun]:
    """The best run of each of the best models, then other runs while there is room."""
    first = list({entry.manifest.model: entry for entry in reversed(entries)}.values())
    ordered = [entry for entry in entries if entry in first] + [entry for entry in entries if entry not in first]
    chosen = ordered[:SHOWN]
    return [entry for entry in entries if entry in chosen]


def _rows(entries: Sequence[ReportRun]) -> list[_Row]:
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


def _table(entries: Sequence[ReportRun], rows: list[_Row]) -> Table:
    cells = tuple(
        (
            f"{row.by}: {row.value}",
            f"{row.n:,}{' (small)' if row.n < SMALL else ''}",
            *(rate_text(one.accuracy) if one else "–" for one in row.found),
        )
        for row in rows
    )
    columns = ("Slice", "Cases", *(entry.label for entry in entries))
    return Table(columns, cells, frozenset(range(1, len(columns))))


_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class _Spread(NamedTuple):
    entry: ReportRun
    n: int
    quantiles: tuple[float, ...]


def steps_drawings(group: ComparableGroup) -> Iterator[FigureSpec]:
    """A figure for every metric that has one: how its values spread over the cases, step by step."""
    for metric in shown_in("figures"):
        spreads = {step: spread for step in known_texts() if (spread := _spreads(group.entries, step, metric.name))}
        if spreads:
            yield _drawing(metric, spreads)


def _drawing(metric: Metric, spreads: dict[str, list[_Spread]]) -> FigureSpec:
    """One panel per step, one bar per run: thick over the middle half of the cases, thin over nine in ten."""
    tallest, texts = [len(found) for found in spreads.values()], known_texts()

    def draw(figure: "Figure") -> None:
        panels = figure.subplots(len(spreads), 1, squeeze=False, sharex=True, height_ratios=[n + 0.6 for n in tallest])
        for axes, (step, found), colour in zip(panels[:, 0], spreads.items(), COLOURS, strict=False):
            _draw_spreads(axes, found, colour)
            axes.set_title(texts[step].title)
        if math.isfinite(metric.low) and math.isfinite(metric.high):
            panels[-1, 0].set_xlim(metric.low, metric.high)
        panels[-1, 0].set_xlabel(f"{metric.title} of a case")

    rows = tuple(
        (one.entry.label, texts[step].title, f"{one.n:,}", *(f"{value:.3f}" for value in one.quantiles))
        for step, found in spreads.items()
        for one in found
    )
    columns = ("Run", "Text", "Cases", *(as_percent(quantile, 0) for quantile in _QUANTILES))
    message = (
        f"{metric.title} of the model's words against the expert's, case by case: dot at the median, thick bar over "
        f"the middle half, thin bar over nine cases in ten. {metric.explain()}"
    )
    height = 0.5 + sum(0.55 + 0.26 * n for n in tallest)
    table = Table(columns, rows, frozenset(range(2, len(columns))))
    title = f"{metric.title} of written steps, case by case"
    return FigureSpec(f"steps-{metric.name}", title, message, draw, height, table)


def _spreads(entries: Sequence[ReportRun], step: str, metric: str) -> list[_Spread]:
    found = []
    for entry in entries:
        scored = next((one for one in entry.scores.steps if one.step == step), None)
        values = list(scored.case_values.get(metric, {}).values()) if scored else []
        if values:
            found.append(_Spread(entry, len(values), tuple(map(float, np.quantile(values, _QUANTILES)))))
    return found


def _draw_spreads(axes: "Axes", found: list[_Spread], colour: str) -> None:
    for row, one in enumerate(found):
        low, quarter, median, upper, high = one.quantiles
        axes.plot((low, high), (row, row), color=colour, linewidth=1.1, solid_capstyle="round")
        axes.plot((quarter, upper), (row, row), color=colour, linewidth=5, alpha=0.45, solid_capstyle="butt")
        axes.plot([median], [row], "o", color=colour, markersize=4.5)
    axes.set_yticks(range(len(found)), [wrapped(one.entry.label) for one in found])
    axes.set_ylim(len(found) - 0.45, -0.6)
    axes.grid(axis="y", visible=False)
