"""How the scores of written steps spread over the cases."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from medthink.core.markup import Table
from medthink.core.numbers import as_percent
from medthink.metrics.registry import Metric, shown_in
from medthink.report.entries import Entry, Group
from medthink.report.figures.style import COLOURS, Drawing, wrapped
from medthink.report.tables import STEP_NAMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class _Spread(NamedTuple):
    entry: Entry
    n: int
    quantiles: tuple[float, ...]


def steps_drawings(group: Group) -> Iterator[Drawing]:
    """A figure for every metric that has one: how its values spread over the cases, step by step."""
    for metric in shown_in("figures"):
        spreads = {step: spread for step in STEP_NAMES if (spread := _spreads(group.entries, step, metric.name))}
        if spreads:
            yield _drawing(metric, spreads)


def _drawing(metric: Metric, spreads: dict[str, list[_Spread]]) -> Drawing:
    """One panel per step, one bar per run: thick over the middle half of the cases, thin over nine in ten."""
    tallest = [len(found) for found in spreads.values()]

    def draw(figure: "Figure") -> None:
        panels = figure.subplots(len(spreads), 1, squeeze=False, sharex=True, height_ratios=[n + 0.6 for n in tallest])
        for axes, (step, found), colour in zip(panels[:, 0], spreads.items(), COLOURS, strict=False):
            _draw(axes, found, colour)
            axes.set_title(STEP_NAMES[step])
        if math.isfinite(metric.low) and math.isfinite(metric.high):
            panels[-1, 0].set_xlim(metric.low, metric.high)
        panels[-1, 0].set_xlabel(f"{metric.title} of a case")

    rows = tuple(
        (one.entry.label, STEP_NAMES[step], f"{one.n:,}", *(f"{value:.3f}" for value in one.quantiles))
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
    return Drawing(f"steps-{metric.name}", title, message, draw, height, table)


def _spreads(entries: Sequence[Entry], step: str, metric: str) -> list[_Spread]:
    found = []
    for entry in entries:
        scored = next((one for one in entry.scores.steps if one.step == step), None)
        values = list(scored.case_values.get(metric, {}).values()) if scored else []
        if values:
            found.append(_Spread(entry, len(values), tuple(map(float, np.quantile(values, _QUANTILES)))))
    return found


def _draw(axes: "Axes", found: list[_Spread], colour: str) -> None:
    for row, one in enumerate(found):
        low, quarter, median, upper, high = one.quantiles
        axes.plot((low, high), (row, row), color=colour, linewidth=1.1, solid_capstyle="round")
        axes.plot((quarter, upper), (row, row), color=colour, linewidth=5, alpha=0.45, solid_capstyle="butt")
        axes.plot([median], [row], "o", color=colour, markersize=4.5)
    axes.set_yticks(range(len(found)), [wrapped(one.entry.label) for one in found])
    axes.set_ylim(len(found) - 0.45, -0.6)
    axes.grid(axis="y", visible=False)
