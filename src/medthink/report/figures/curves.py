"""Curves of accuracy: against the share of images, effort, output tokens, and the size of the model."""

from typing import TYPE_CHECKING, NamedTuple

from medthink.core.markup import Table, one_line
from medthink.core.numbers import as_usd
from medthink.report.figures.style import COLOURS, INK, MARKS, SOFT, FigureSpec, log_axis, percent_axis
from medthink.report.runs import ComparableGroup
from medthink.report.series import CurveAxis, Point, Series, find_curves, free_note, plot_entry, price_runs
from medthink.scoring.scores import rate_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Panel(NamedTuple):
    """One axis of a curve figure, with its texts."""

    key: CurveAxis
    title: str
    axis: str
    message: str
    series: Series


_WORDS: dict[CurveAxis, tuple[str, str, str]] = {
    "share": (
        "Share of images",
        "share of images (%)",
        "Accuracy when a run is shown only a part of each case's images.",
    ),
    "effort": ("Effort", "reasoning effort", "Accuracy by the requested reasoning effort."),
    "tokens": (
        "Output tokens",
        "output tokens per case",
        "Accuracy against mean output tokens per case, including thinking. Runs that differ only in effort are "
        "joined, with the effort at each point; single runs are grey.",
    ),
    "size": (
        "Model size",
        "parameters (billions)",
        "Accuracy against the number of parameters that the model's name states; models whose name gives no size are "
        "omitted; models with only one size are grey.",
    ),
}


def curve_panels(group: ComparableGroup) -> list[Panel]:
    """The panels that these runs have data for; a curve needs at least two positions on the axis."""
    return [panel for axis in _WORDS if (panel := curve_panel(axis, group)) is not None]


def curve_panel(axis: CurveAxis, group: ComparableGroup) -> Panel | None:
    """The curves along one axis, as many as there are colours."""
    entries = group.lettered if axis == "share" else group.unhindered
    series = find_curves(axis, [plot_entry(entry) for entry in entries], len(COLOURS))
    return series and Panel(axis, *_WORDS[axis], series)


def curves_drawing(panel: Panel) -> FigureSpec:
    """A panel as a figure of its own."""
    count = len(panel.series.curves)

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        draw_curves(axes, panel)
        if count:
            figure.legend(loc="outside lower center", ncols=min(2, count))

    title = f"Accuracy and {panel.title[0].lower()}{panel.title[1:]}"
    return FigureSpec(panel.key, title, panel.message, draw, 2.4 + 0.17 * ((count + 1) // 2), _table(panel))


def draw_curves(axes: "Axes", panel: Panel) -> None:
    """Draw the curves with their intervals."""
    for x, run in panel.series.alone:
        axes.plot([x], [run.value], "o", color=SOFT, markersize=3.5)
        _draw_interval(axes, Point(x, run), SOFT, linewidth=0.8, alpha=0.5)
    for number, curve in enumerate(panel.series.curves):
        colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
        xs, ys = [point.x for point in curve.points], [point.run.value for point in curve.points]
        label = one_line(curve.name, 40)
        axes.plot(xs, ys, f"-{mark}", color=colour, linewidth=1.4, markersize=4.5, label=label)
        for point in curve.points:
            _draw_interval(axes, point, colour, linewidth=0.9, alpha=0.55)
            if panel.key == "tokens" and point.run.effort:
                place = (point.x, point.run.value)
                axes.annotate(point.run.effort, place, (5, 4), textcoords="offset points", fontsize=6.5, color=SOFT)
    _set_axes(axes, panel)


def _draw_interval(axes: "Axes", point: Point, colour: str, *, linewidth: float, alpha: float) -> None:
    if ends := point.run.ends:
        axes.plot((point.x, point.x), ends, color=colour, linewidth=linewidth, alpha=alpha)


def _set_axes(axes: "Axes", panel: Panel) -> None:
    axes.set(xlabel=panel.axis, ylabel="accuracy (%)")
    axes.set_ylim(bottom=0)
    percent_axis(axes, along="y")
    if panel.key == "share":
        percent_axis(axes, along="x")
    elif panel.key == "effort":
        axes.set_xticks(range(len(panel.series.ticks)), panel.series.ticks)
    else:
        log_axis(axes, [point.x for point in panel.series.points], "{:,.6g}".format)


def _table(panel: Panel) -> Table:
    def place(x: float) -> str:
        if panel.key == "effort":
            return panel.series.ticks[int(x)]
        if panel.key == "share":
            return f"{x * 100:g}"
        return f"{x:,.0f}" if x >= 1000 else f"{x:.4g}"

    rows = tuple((run.label, place(x), rate_text(run.accuracy)) for x, run in panel.series.points)
    return Table(("Run", panel.axis.capitalize(), "Accuracy (95 % interval)"), rows, frozenset({1, 2}))


def cost_drawing(group: ComparableGroup) -> FigureSpec | None:
    """Cost across, accuracy up; the runs of the Pareto set are joined and named."""
    priced = price_runs([plot_entry(entry) for entry in group.lettered])
    drawn = [one for one in priced if one.usd > 0]
    if len(drawn) < 2:
        return None
    best = [one for one in drawn if one.is_best]

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.step([one.usd for one in best], [one.run.value for one in best], where="post", color=SOFT, linewidth=1)
        numbers = {one.run.label: str(number) for number, one in enumerate(best, 1)}
        for one in drawn:
            colour, mark = (COLOURS[0], MARKS[0]) if one.is_best else (COLOURS[1], MARKS[1])
            if ends := one.run.ends:
                axes.plot((one.usd, one.usd), ends, color=colour, linewidth=0.9, alpha=0.55)
            axes.plot([one.usd], [one.run.value], mark, color=colour, markersize=5)
            number = numbers.get(one.run.label, "")
            axes.annotate(number, (one.usd, one.run.value), (4, 4), textcoords="offset points", fontsize=7, color=INK)
        for label, number in numbers.items():
            axes.plot([], [], " ", label=f"{number}  {one_line(label, 38)}")
        figure.legend(loc="outside lower center", ncols=2, handlelength=0, handletextpad=0)
        log_axis(axes, [one.usd for one in drawn], as_usd)
        axes.set(xlabel="cost of the run (US dollars)", ylabel="accuracy (%)", ylim=(0, None))
        percent_axis(axes, along="y")

    rows = tuple(
        (
            one.run.label,
            as_usd(one.usd, is_least=one.run.is_least_usd),
            rate_text(one.run.accuracy),
            "yes" if one.is_best else "no",
        )
        for one in priced
    )
    message = (
        f"{sum(one.is_best for one in priced)} of {len(priced)} runs with a known cost are in the Pareto set (blue, "
        f"joined, numbered): no other is both cheaper and more accurate.{free_note(priced)} Small differences between "
        "neighbours may be within their intervals."
    )
    columns = ("Run", "Cost", "Accuracy (95 % interval)", "In the Pareto set")
    table = Table(columns, rows, frozenset({1, 2}))
    return FigureSpec("cost", "Accuracy and cost", message, draw, 2.8 + 0.17 * ((len(best) + 1) // 2), table)
