"""Accuracy against what was varied: the share of images, effort, output tokens, the size of the model."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from medthink.core.markup import one_line
from medthink.report.entries import Entry, Group, ends_of, value_of
from medthink.report.figures.style import COLOURS, MARKS, SOFT, Drawing, log_axis, percent_axis
from medthink.report.labels import model_family, model_size, short_models
from medthink.report.tables import Table, tokens_per_case
from medthink.scoring.scores import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")


class _Alike(NamedTuple):
    """Runs of a model that differ only in the field varied."""

    model: str
    points: list["Point"]


class Point(NamedTuple):
    """One run at its position on the axis; `note` is written next to it."""

    x: float
    entry: Entry
    note: str = ""


class Curve(NamedTuple):
    """Runs that differ in what the axis shows, and in nothing else."""

    label: str
    points: tuple[Point, ...]


class Curves(NamedTuple):
    """A panel: its curves, single runs, and captions."""

    key: str
    short_title: str
    axis: str
    message: str
    curves: tuple[Curve, ...]
    alone: tuple[Point, ...] = ()
    ticks: tuple[str, ...] = ()
    is_log: bool = False

    @property
    def points(self) -> list[Point]:
        """Every point of the panel."""
        return [*(point for curve in self.curves for point in curve.points), *self.alone]


def curve_panels(group: Group) -> list[Curves]:
    """The panels that these runs have data for; a curve needs at least two positions on the axis."""
    panels = (share_curves(group), effort_curves(group), token_curves(group), size_curves(group))
    return [panel for panel in panels if panel is not None]


def share_curves(group: Group) -> Curves | None:
    """Accuracy against the share of images shown."""
    found = _grow(group.lettered, "image_share", lambda entry: entry.manifest.condition.image_share)
    message = "Accuracy when a run is shown only a part of each case's images."
    panel = _panel("share", "Share of images", "share of images (%)", message, found)
    return panel and _only_curves(panel)


def effort_curves(group: Group) -> Curves | None:
    """Accuracy against the effort asked for."""
    efforts = {entry.manifest.condition.effort for entry in group.unhindered}
    ticks = tuple(effort for effort in EFFORTS if effort in efforts)

    def place(entry: Entry) -> float | None:
        effort = entry.manifest.condition.effort
        return None if effort is None else float(ticks.index(effort))

    found = _grow(group.unhindered, "effort", place)
    panel = _panel("effort", "Effort", "reasoning effort", "Accuracy by the reasoning effort asked for.", found)
    return panel and _only_curves(panel._replace(ticks=ticks))


def token_curves(group: Group) -> Curves | None:
    """Accuracy against output tokens per case; runs of one model at several efforts are joined."""
    found = _grow(group.unhindered, "effort", tokens_per_case, note=lambda entry: entry.manifest.condition.effort or "")
    message = (
        "Accuracy against mean output tokens per case, including thinking. Runs that differ only in effort are "
        "joined, with the effort at each point; single runs are grey."
    )
    panel = _panel("tokens", "Output tokens", "output tokens per case", message, found)
    return panel and panel._replace(is_log=True)


def size_curves(group: Group) -> Curves | None:
    """Accuracy against the size that a model's name states; runs under one condition are joined by family."""
    found: dict[tuple[str, ...], _Alike] = {}
    for entry in group.unhindered:
        size = model_size(entry.manifest.model)
        if size is not None:
            family = model_family(entry.manifest.model)
            key = (family, entry.manifest.task, entry.manifest.condition.digest())
            found.setdefault(key, _Alike(family, [])).points.append(Point(size, entry))
    message = (
        "Accuracy against the number of parameters that the model's name states; models whose name states none are "
        "left out, models without other sizes are grey."
    )
    panel = _panel("size", "Model size", "parameters (billions)", message, list(found.values()))
    return panel and panel._replace(is_log=True)


def curves_drawing(panel: Curves) -> Drawing:
    """A panel as a figure of its own."""

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        draw_curves(axes, panel)
        if panel.curves:
            figure.legend(loc="outside lower center", ncols=min(2, len(panel.curves)))

    title = f"Accuracy and {panel.short_title[0].lower()}{panel.short_title[1:]}"
    return Drawing(panel.key, title, panel.message, draw, 2.4 + 0.17 * ((len(panel.curves) + 1) // 2), _table(panel))


def draw_curves(axes: "Axes", panel: Curves) -> None:
    """Draw the curves with their intervals."""
    _draw_alone(axes, panel.alone)
    for number, curve in enumerate(panel.curves):
        colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
        xs = [point.x for point in curve.points]
        ys = [value_of(point.entry.accuracy) or 0.0 for point in curve.points]
        axes.plot(xs, ys, f"-{mark}", color=colour, linewidth=1.4, markersize=4.5, label=curve.label)
        for point, y in zip(curve.points, ys, strict=True):
            if ends := ends_of(point.entry.accuracy):
                axes.plot((point.x, point.x), ends, color=colour, linewidth=0.9, alpha=0.55)
            if point.note:
                axes.annotate(point.note, (point.x, y), (5, 4), textcoords="offset points", fontsize=6.5, color=SOFT)
    _set_axes(axes, panel)


def _draw_alone(axes: "Axes", alone: Sequence[Point]) -> None:
    for point in alone:
        axes.plot([point.x], [value_of(point.entry.accuracy) or 0.0], "o", color=SOFT, markersize=3.5)
        if ends := ends_of(point.entry.accuracy):
            axes.plot((point.x, point.x), ends, color=SOFT, linewidth=0.8, alpha=0.5)


def _set_axes(axes: "Axes", panel: Curves) -> None:
    axes.set(xlabel=panel.axis, ylabel="accuracy (%)")
    axes.set_ylim(bottom=0)
    percent_axis(axes, along="y")
    if panel.is_log:
        log_axis(axes, [point.x for point in panel.points], "{:,.6g}".format)
    elif panel.ticks:
        used = sorted({int(point.x) for point in panel.points})
        axes.set_xticks(used, [panel.ticks[place] for place in used])
    else:
        percent_axis(axes, along="x")


def _grow(
    entries: Sequence[Entry],
    varied: str,
    place: Callable[[Entry], float | None],
    note: Callable[[Entry], str] | None = None,
) -> list[_Alike]:
    """The runs grouped by everything except the field varied."""
    found: dict[tuple[Any, ...], _Alike] = {}
    for entry in entries:
        x = place(entry)
        if x is not None:
            condition = msgspec.to_builtins(entry.manifest.condition)
            rest = tuple(sorted((name, str(value)) for name, value in condition.items() if name != varied))
            key = (entry.manifest.model, entry.manifest.task, rest)
            alike = found.setdefault(key, _Alike(entry.manifest.model, []))
            alike.points.append(Point(x, entry, note(entry) if note else ""))
    return list(found.values())


def _panel(key: str, title: str, axis: str, message: str, found: list[_Alike]) -> Curves | None:
    """The panel, or None if all runs are at one position; a curve needs two, and the number of colours is limited."""
    if len({point.x for alike in found for point in alike.points}) < 2:
        return None
    joined = [alike for alike in found if len({point.x for point in alike.points}) > 1][: len(COLOURS)]
    alone = tuple(point for alike in found if alike not in joined for point in alike.points)
    return Curves(key, title, axis, message, _name_curves(joined), alone)


def _name_curves(joined: list[_Alike]) -> tuple[Curve, ...]:
    """The curves by model; where one model has two of them, by the label of the first run."""
    models = [alike.model for alike in joined]
    short = short_models(models)
    curves = []
    for model, points in joined:
        ordered = sorted(points, key=lambda point: (point.x, point.entry.label))
        name = short[model] if models.count(model) == 1 else ordered[0].entry.label
        curves.append(Curve(one_line(name, 40), tuple(ordered)))
    return tuple(curves)


def _only_curves(panel: Curves) -> Curves | None:
    """The panel without single runs: at one position of such an axis they show nothing."""
    return panel._replace(alone=()) if panel.curves else None


def _table(panel: Curves) -> Table:
    def place(x: float) -> str:
        if panel.ticks:
            return panel.ticks[int(x)]
        if panel.key == "share":
            return f"{x * 100:g}"
        return f"{x:,.0f}" if x >= 1000 else f"{x:.4g}"

    rows = tuple((point.entry.label, place(point.x), percent(point.entry.accuracy)) for point in panel.points)
    return Table(("Run", panel.axis.capitalize(), "Accuracy (95 % interval)"), rows, frozenset({1, 2}))
