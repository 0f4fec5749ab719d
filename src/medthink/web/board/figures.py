"""Curves of accuracy: against the share of images, the effort, and the size of the model."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from medthink.board.ranking import BoardRow, Leaderboard, RivalRow
from medthink.core.numbers import as_usd
from medthink.report.series import Curve, CurveAxis, PlottedRun, PricedRun, Series, find_curves, free_note, price_runs
from medthink.scoring.scores import rate_text
from medthink.web.app.charts import (
    NARROW,
    SHAPES,
    WIDE,
    AcrossScale,
    BoardFigure,
    Chart,
    ChartLabel,
    ChartLine,
    ChartMarker,
    ChartPath,
    MarkerLabels,
    draw_path,
    log_scale,
    make_field,
    plot_row,
    shape_of,
    short_name,
    spread_heights,
)
from medthink.web.board.columns import rival_name

_NAMES_WIDTH = 150
_LEGEND_LINE = 16


class _Panel(NamedTuple):
    """The texts and the scale of a figure; `say` formats a position on its axis."""

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
        wide=_draw_panel(WIDE, panel, curves, has_names=True),
        narrow=_draw_panel(NARROW, panel, curves, has_names=False),
        columns=("Model", panel.axis, "Accuracy (95 %)"),
        rows=tuple((run.label, panel.say(x), rate_text(run.accuracy)) for curve in curves for x, run in curve.points),
    )


def _draw_panel(size: tuple[int, int], panel: _Panel, curves: Sequence[Curve], *, has_names: bool) -> Chart:
    """The curves, each named at its end or, if there is no room, below."""
    shown = [run.accuracy for curve in curves for _, run in curve.points]
    field = make_field(size, shown, panel.scale, names=_NAMES_WIDTH if has_names else 0)
    lines, words = field.frame()
    paths, marks, ends = [], [], []
    for hue, curve in enumerate(curves, 1):
        places = [field.place(*point) for point in curve.points]
        paths.append(ChartPath(draw_path(places), f"series t{hue}"))
        marks += [ChartMarker(x, y, hue, f"t{hue}", 4.5) for x, y in places]
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
        marks += [ChartMarker(field.box.left + 4, y - 4, hue, f"t{hue}", 4.0) for hue, y in enumerate(heights, 1)]
    return Chart(
        width=size[0],
        height=height,
        name=panel.title,
        lines=tuple(lines),
        paths=tuple(paths),
        marks=tuple(marks),
        words=tuple(words),
    )


def _names(curves: Sequence[Curve], x: float, heights: Sequence[float], *, longest: int) -> Iterator[ChartLabel]:
    for hue, (curve, y) in enumerate(zip(curves, heights, strict=True), 1):
        yield ChartLabel(x, round(y, 1), short_name(curve.name, longest), f"hued t{hue}")


def price_figure(rows: Sequence[BoardRow], rivals: Sequence[RivalRow]) -> BoardFigure | None:
    """Price horizontally, accuracy vertically; the Pareto set is filled, joined and named.

    None for fewer than two priced rows.
    """
    priced = price_runs([plot_row(row) for row in rows])
    drawn = [one for one in priced if one.usd > 0]
    if len(drawn) < 2:
        return None
    best = sum(one.is_best for one in priced)
    caption = (
        f"{best} of {len(priced)} models with a known price are Pareto optimal (filled and joined): no other is both "
        f"cheaper and more accurate.{free_note(priced)} Price of a case as traced, on a logarithmic axis. "
        "Lines: 95 % intervals."
    )
    return BoardFigure(
        key="price",
        title="Accuracy and price",
        caption=caption,
        wide=_draw_prices(WIDE, drawn, rivals),
        narrow=_draw_prices(NARROW, drawn, rivals),
        columns=("Model", "Price per case", "Accuracy (95 %)", "Pareto optimal"),
        rows=tuple(
            (
                one.run.label,
                as_usd(one.usd, is_least=one.run.is_least_usd),
                rate_text(one.run.accuracy),
                "yes" if one.is_best else "no",
            )
            for one in priced
        ),
    )


def _draw_prices(size: tuple[int, int], priced: Sequence[PricedRun], rivals: Sequence[RivalRow]) -> Chart:
    shown = [one.run.accuracy for one in priced] + [rival.accuracy for rival in rivals[:1]]
    field = make_field(size, shown, log_scale([one.usd for one in priced], as_usd))
    lines, words = field.frame()
    for rival in rivals[:1]:
        y = field.height(rival.accuracy.value or 0.0)
        lines.append(ChartLine(field.box.left, y, field.box.right, y, "ref-line"))
        words.append(ChartLabel(field.box.right, y + 14, rival_name(rival.name), "end"))
    labels, marks = MarkerLabels(field.box), []
    for one in priced:
        x, y = field.place(one.usd, one.run)
        shape = shape_of(one.run.group) or 1
        lines += field.whisker(x, one.run, shape if one.is_best else 0)
        look = f"t{shape}" if one.is_best else "t0 hollow"
        marks.append(ChartMarker(x, y, shape, look, 5.5 if one.is_best else 4.5))
        labels.avoid(x, y)
    front = [(*field.place(one.usd, one.run), one.run) for one in priced if one.is_best]
    named = (labels.put(x, y, short_name(run.label)) for x, y, run in front)
    return Chart(
        width=size[0],
        height=size[1],
        name="Accuracy against price per case",
        lines=tuple(lines),
        paths=(ChartPath(draw_path([(x, y) for x, y, _ in front], as_steps=True), "series step t0"),),
        marks=tuple(marks),
        words=(*words, *(one for one in named if one)),
    )
