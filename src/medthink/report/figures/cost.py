"""What accuracy costs, and which runs no other run beats in both."""

from typing import TYPE_CHECKING

from medthink.core.markup import Table, one_line
from medthink.core.numbers import as_usd
from medthink.report.entries import Group
from medthink.report.figures.style import COLOURS, INK, MARKS, SOFT, Drawing, log_axis, percent_axis
from medthink.report.series import plot_entry, price_runs
from medthink.scoring.scores import percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def cost_drawing(group: Group) -> Drawing | None:
    """Cost across, accuracy up; the runs of the Pareto set are joined and named."""
    priced = price_runs([plot_entry(entry) for entry in group.lettered])
    if len(priced) < 2:
        return None
    best = [one for one in priced if one.is_best]

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.step([one.usd for one in best], [one.run.value for one in best], where="post", color=SOFT, linewidth=1)
        numbers = {one.run.label: str(number) for number, one in enumerate(best, 1)}
        for one in priced:
            colour, mark = (COLOURS[0], MARKS[0]) if one.is_best else (COLOURS[1], MARKS[1])
            if ends := one.run.ends:
                axes.plot((one.usd, one.usd), ends, color=colour, linewidth=0.9, alpha=0.55)
            axes.plot([one.usd], [one.run.value], mark, color=colour, markersize=5)
            number = numbers.get(one.run.label, "")
            axes.annotate(number, (one.usd, one.run.value), (4, 4), textcoords="offset points", fontsize=7, color=INK)
        for label, number in numbers.items():
            axes.plot([], [], " ", label=f"{number}  {one_line(label, 38)}")
        figure.legend(loc="outside lower center", ncols=2, handlelength=0, handletextpad=0)
        log_axis(axes, [one.usd for one in priced], as_usd)
        axes.set(xlabel="cost of the run (US dollars)", ylabel="accuracy (%)", ylim=(0, None))
        percent_axis(axes, along="y")

    rows = tuple(
        (
            one.run.label,
            as_usd(one.usd, is_least=one.run.is_least_usd),
            percent(one.run.accuracy),
            "yes" if one.is_best else "no",
        )
        for one in priced
    )
    message = (
        f"{len(best)} of {len(priced)} runs with a known cost are in the Pareto set (blue, joined, numbered): no "
        "other is both cheaper and more accurate. Small differences between neighbours may be within their intervals."
    )
    columns = ("Run", "Cost", "Accuracy (95 % interval)", "In the Pareto set")
    table = Table(columns, rows, frozenset({1, 2}))
    return Drawing("cost", "Accuracy and cost", message, draw, 2.8 + 0.17 * ((len(best) + 1) // 2), table)
