"""How the scores of written steps spread over the cases."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from medthink.core.percent import as_percent
from medthink.metrics.rouge import Rouge
from medthink.report.entries import Entry, Group
from medthink.report.figures.style import COLOURS, Drawing, wrapped
from medthink.report.tables import STEP_NAMES, Table
from medthink.scoring.material import Material
from medthink.scoring.pairs import TextPair, discussion_pairs, finding_pairs, summary_pairs
from medthink.scoring.texts import case_means

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_METRIC: Literal["rougeL"] = "rougeL"
_PAIRS: dict[str, Callable[[Material], Iterator[TextPair]]] = {
    "findings": finding_pairs,
    "summary": summary_pairs,
    "discussion": discussion_pairs,
}
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class _Spread(NamedTuple):
    entry: Entry
    n: int
    quantiles: tuple[float, ...]


def steps_drawing(group: Group) -> Drawing | None:
    """A panel a step, a bar a run: the middle half of the cases thick, nine in ten thin, the median a dot."""
    spreads = {step: spread for step in _PAIRS if (spread := _spreads(group.entries, step))}
    if not spreads:
        return None
    tallest = [len(found) for found in spreads.values()]

    def draw(figure: "Figure") -> None:
        panels = figure.subplots(len(spreads), 1, squeeze=False, sharex=True, height_ratios=[n + 0.6 for n in tallest])
        for axes, (step, found), colour in zip(panels[:, 0], spreads.items(), COLOURS, strict=False):
            _draw(axes, found, colour)
            axes.set_title(STEP_NAMES[step])
        panels[-1, 0].set_xlabel("ROUGE-L F1 of a case")

    rows = tuple(
        (one.entry.label, STEP_NAMES[step], f"{one.n:,}", *(f"{value:.3f}" for value in one.quantiles))
        for step, found in spreads.items()
        for one in found
    )
    columns = ("Run", "Text", "Cases", *(as_percent(quantile, 0) for quantile in _QUANTILES))
    message = (
        "ROUGE-L of the model's words against the expert's, case by case: dot at the median, thick bar over the middle "
        "half, thin bar over nine cases in ten. It counts shared words and does not see a negation."
    )
    height = 0.5 + sum(0.55 + 0.26 * n for n in tallest)
    table = Table(columns, rows, frozenset(range(2, len(columns))))
    return Drawing("steps", "Written steps, case by case", message, draw, height, table)


def _spreads(entries: Sequence[Entry], step: str) -> list[_Spread]:
    found = []
    for entry in entries:
        if any(one.step == step for one in entry.scores.steps):
            usable = [pair for pair in _PAIRS[step](entry.material) if pair.state == "ok"]
            overlaps = Rouge((_METRIC,)).score_all([p.reference for p in usable], [p.candidate for p in usable])
            values: list[float | None] = [overlap[_METRIC].f1 for overlap in overlaps]
            means = list(case_means({_METRIC: values}, [pair.case for pair in usable])[_METRIC].values())
            if means:
                found.append(_Spread(entry, len(means), tuple(map(float, np.quantile(means, _QUANTILES)))))
    return found


def _draw(axes: "Axes", found: list[_Spread], colour: str) -> None:
    for row, one in enumerate(found):
        low, quarter, median, upper, high = one.quantiles
        axes.plot((low, high), (row, row), color=colour, linewidth=1.1, solid_capstyle="round")
        axes.plot((quarter, upper), (row, row), color=colour, linewidth=5, alpha=0.45, solid_capstyle="butt")
        axes.plot([median], [row], "o", color=colour, markersize=4.5)
    axes.set_yticks(range(len(found)), [wrapped(one.entry.label) for one in found])
    axes.set_ylim(len(found) - 0.45, -0.6)
    axes.set_xlim(0, 1)
    axes.grid(axis="y", visible=False)
