"""Accuracy against what was varied: the share of images, the effort, the size of the model."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from medthink.board.ranking import BoardRow, Leaderboard
from medthink.report.series import Curve, CurveAxis, PlottedRun, Series, find_curves
from medthink.scoring.scores import percent
from medthink.web.pages.axis import SHAPES
from medthink.web.pages.charting import (
    NARROW,
    WIDE,
    AcrossScale,
    draw_path,
    log_scale,
    make_field,
    plot_row,
    short_name,
)
from medthink.web.pages.drawing import BoardFigure, Chart, DrawnMark, DrawnPath, DrawnWords, spread_heights

_NAMES_WIDTH = 150
_LEGEND_LINE = 16


class _Panel(NamedTuple):
    """The words and the scale of a figure; `say` formats a position on its axis."""

    title: str
    axis: str
    caption: str
    scale: AcrossScale
    say: Callable[[float], str]


def curve_figures(made: Leaderboard, rows: Sequence[BoardRow]) -> Iterator[BoardFigure]:
    """The figures with at least one curve; `rows` are those of the ranking shown."""
    shown = [plot_row(row) for row in rows]
    panels: tuple[tuple[CurveAxis, Sequence[PlottedRun], Callable[[Series], _Panel]], ...] = (
        ("share", [plot_row(row) for row in (*made.rows, *made.partial)], _share_panel),
        ("effort", shown, _effort_panel),
        ("size", shown, _size_panel),
    )
    for axis, runs, make_panel in panels:
        series = find_curves(axis, runs, SHAPES)
        if series and series.curves:
            yield _figure(axis, make_panel(series), series.curves)


def _share_panel(_: Series) -> _Panel:
    return _Panel(
        title="Accuracy and share of images",
        axis="Share of images",
        caption="Accuracy with only a part of each case's images; rows that differ in nothing else are joined.",
        scale=AcrossScale(float, [(share / 100, f"{share} %") for share in (0, 20, 40, 60, 80, 100)]),
        say=lambda x: f"{x * 100:g} %",
    )


def _effort_panel(series: Series) -> _Panel:
    last = len(series.ticks) - 1
    return _Panel(
        title="Accuracy and effort",
        axis="Reasoning effort",
        caption="Accuracy by the reasoning effort asked for; rows that differ in nothing else are joined.",
        scale=AcrossScale(lambda x: x / last, [(at / last, effort) for at, effort in enumerate(series.ticks)]),
        say=lambda x: series.ticks[int(x)],
    )


def _size_panel(series: Series) -> _Panel:
    return _Panel(
        title="Accuracy and size",
        axis="Parameters",
        caption="Accuracy against the number of parameters in the model's name, in billions; families are joined.",
        scale=log_scale([x for curve in series.curves for x, _ in curve.points], "{:g} B".format),
        say="{:g} B".format,
    )


def _figure(axis: CurveAxis, panel: _Panel, curves: Sequence[Curve]) -> BoardFigure:
    return BoardFigure(
        key=axis,
        title=panel.title,
        caption=panel.caption,
        wide=_draw(WIDE, panel, curves, has_names=True),
        narrow=_draw(NARROW, panel, curves, has_names=False),
        columns=("Model", panel.axis, "Accuracy (95 %)"),
        rows=tuple((run.label, panel.say(x), percent(run.accuracy)) for curve in curves for x, run in curve.points),
    )


def _draw(size: tuple[int, int], panel: _Panel, curves: Sequence[Curve], *, has_names: bool) -> Chart:
    """The curves, each named at its end or, if there is no room, below."""
    shown = [run.accuracy for curve in curves for _, run in curve.points]
    field = make_field(size, shown, panel.scale, names=_NAMES_WIDTH if has_names else 0)
    lines, words = field.frame()
    paths, marks, ends = [], [], []
    for hue, curve in enumerate(curves, 1):
        places = [field.place(*point) for point in curve.points]
        paths.append(DrawnPath(draw_path(places), f"series t{hue}"))
        marks += [DrawnMark(x, y, hue, f"t{hue}", 4.5) for x, y in places]
        for (x, _), point in zip(places, curve.points, strict=True):
            lines += field.whisker(x, point.run, hue)
        ends.append(places[-1][1] + 4)
    height = size[1]
    if has_names:
        heights = spread_heights(ends, lowest=field.box.bottom)
        words += _names(curves, field.box.right + 10, heights, longest=20)
    else:
        height += _LEGEND_LINE * len(ends)
        heights = [size[1] + 6.0 + _LEGEND_LINE * place for place in range(len(ends))]
        words += _names(curves, field.box.left + 14, heights, longest=38)
        marks += [DrawnMark(field.box.left + 4, y - 4, hue, f"t{hue}", 4.0) for hue, y in enumerate(heights, 1)]
    return Chart(
        width=size[0],
        height=height,
        name=panel.title,
        lines=tuple(lines),
        paths=tuple(paths),
        marks=tuple(marks),
        words=tuple(words),
    )


def _names(curves: Sequence[Curve], x: float, heights: Sequence[float], *, longest: int) -> Iterator[DrawnWords]:
    for hue, (curve, y) in enumerate(zip(curves, heights, strict=True), 1):
        yield DrawnWords(x, round(y, 1), short_name(curve.name, longest), f"hued t{hue}")
