"""What accuracy costs, and which runs no other run beats in both."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from medthink.core.markup import one_line
from medthink.core.numbers import as_usd
from medthink.report.entries import Entry, Group, answer_pairs, ends_of
from medthink.report.figures.style import COLOURS, INK, MARKS, SOFT, Drawing, log_axis, percent_axis
from medthink.report.tables import Table
from medthink.scoring.scores import cost, percent
from medthink.stats.pareto import pareto_set

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Priced(NamedTuple):
    """A run with its cost and its accuracy."""

    entry: Entry
    usd: float
    accuracy: float


def priced_runs(group: Group) -> list[Priced]:
    """The runs whose total cost is known and not zero, cheapest first."""
    found = []
    for entry, answers in answer_pairs(group.entries):
        cost = entry.scores.usage.cost_usd.value if entry.scores.usage else None
        if cost and answers.accuracy.value is not None:
            found.append(Priced(entry, cost, answers.accuracy.value))
    return sorted(found, key=lambda one: (one.usd, -one.accuracy))


def pareto_runs(priced: Sequence[Priced]) -> list[Priced]:
    """The runs that no other run beats on one of cost and accuracy without losing on the other."""
    return [priced[i] for i in pareto_set([one.usd for one in priced], [one.accuracy for one in priced])]


def cost_drawing(group: Group) -> Drawing | None:
    """Cost across, accuracy up; the runs of the Pareto set are joined and named."""
    priced = priced_runs(group)
    if len(priced) < 2:
        return None
    best = pareto_runs(priced)

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.step([one.usd for one in best], [one.accuracy for one in best], where="post", color=SOFT, linewidth=1)
        numbers = {one.entry.label: str(number) for number, one in enumerate(best, 1)}
        for one in priced:
            colour, mark = (COLOURS[0], MARKS[0]) if one in best else (COLOURS[1], MARKS[1])
            if ends := ends_of(one.entry.accuracy):
                axes.plot((one.usd, one.usd), ends, color=colour, linewidth=0.9, alpha=0.55)
            axes.plot([one.usd], [one.accuracy], mark, color=colour, markersize=5)
            number = numbers.get(one.entry.label, "")
            axes.annotate(number, (one.usd, one.accuracy), (4, 4), textcoords="offset points", fontsize=7, color=INK)
        for label, number in numbers.items():
            axes.plot([], [], " ", label=f"{number}  {one_line(label, 38)}")
        figure.legend(loc="outside lower center", ncols=2, handlelength=0, handletextpad=0)
        log_axis(axes, [one.usd for one in priced], as_usd)
        axes.set(xlabel="cost of the run (US dollars)", ylabel="accuracy (%)", ylim=(0, None))
        percent_axis(axes, along="y")

    rows = tuple(
        (one.entry.label, cost(one.entry.scores.usage), percent(one.entry.accuracy), "yes" if one in best else "no")
        for one in priced
    )
    message = (
        f"{len(best)} of {len(priced)} runs with a known cost are in the Pareto set (blue, joined, numbered): no "
        "other is both cheaper and more accurate. Small differences between neighbours may be within their intervals."
    )
    columns = ("Run", "Cost", "Accuracy (95 % interval)", "In the Pareto set")
    table = Table(columns, rows, frozenset({1, 2}))
    return Drawing("cost", "Accuracy and cost", message, draw, 2.8 + 0.17 * ((len(best) + 1) // 2), table)
