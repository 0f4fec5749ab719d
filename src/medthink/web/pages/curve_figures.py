"""Accuracy against what was varied: the share of images, the effort, the size of the model."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from medthink.board.ranking import BoardRow, Leaderboard
from medthink.report.figures.curves import EFFORTS
from medthink.report.labels import model_family, model_size
from medthink.scoring.scores import percent
from medthink.web.pages.axis import SHAPES
from medthink.web.pages.board_columns import accuracy_of
from medthink.web.pages.charting import (
    NARROW,
    WIDE,
    AcrossScale,
    draw_path,
    log_scale,
    make_field,
    row_name,
    short_name,
)
from medthink.web.pages.drawing import BoardFigure, Chart, DrawnMark, DrawnPath, DrawnWords, spread_heights

_NAMES_WIDTH = 150
_LEGEND_LINE = 16


class RowAt(NamedTuple):
    """A row at its position on the axis of a curve."""

    x: float
    row: BoardRow


class RowCurve(NamedTuple):
    """Rows that differ in what the axis shows, and in nothing else."""

    name: str
    points: list[RowAt]

    def ordered(self) -> list[RowAt]:
        """The points from left to right."""
        return sorted(self.points, key=lambda point: point.x)


class _Panel(NamedTuple):
    """A figure before it is drawn; `say` formats a position on its axis."""

    key: str
    title: str
    axis: str
    caption: str
    curves: list[RowCurve]
    scale: AcrossScale
    say: Callable[[float], str]


def curve_figures(made: Leaderboard, rows: Sequence[BoardRow]) -> list[BoardFigure]:
    """The figures with at least one curve; `rows` are those of the ranking shown."""
    panels = (_share_panel([*made.rows, *made.partial]), _effort_panel(rows), _size_panel(rows))
    return [_figure(panel) for panel in panels if panel.curves]


def _share_panel(rows: Sequence[BoardRow]) -> _Panel:
    curves = _grow(rows, "image_share", lambda row: _condition(row).get("image_share"))
    ticks = [(share / 100, f"{share} %") for share in (0, 20, 40, 60, 80, 100)]
    return _Panel(
        key="share",
        title="Accuracy and share of images",
        axis="Share of images",
        caption="Accuracy with only a part of each case's images; rows that differ in nothing else are joined.",
        curves=_best(curves),
        scale=AcrossScale(float, ticks),
        say=lambda x: f"{x * 100:g} %",
    )


def _effort_panel(rows: Sequence[BoardRow]) -> _Panel:
    curves = _best(_grow(rows, "effort", _effort, lambda row: row.submission.model))
    used = sorted({point.x for curve in curves for point in curve.points})
    last = max(1, len(used) - 1)
    return _Panel(
        key="effort",
        title="Accuracy and effort",
        axis="Reasoning effort",
        caption="Accuracy by the reasoning effort asked for; rows that differ in nothing else are joined.",
        curves=curves,
        scale=AcrossScale(lambda x: used.index(x) / last, [(at / last, EFFORTS[int(x)]) for at, x in enumerate(used)]),
        say=lambda x: EFFORTS[int(x)],
    )


def _effort(row: BoardRow) -> float | None:
    effort = _condition(row).get("effort") or row.submission.about.effort
    return float(EFFORTS.index(effort)) if effort in EFFORTS else None


def _size_panel(rows: Sequence[BoardRow]) -> _Panel:
    found: dict[tuple[Any, ...], RowCurve] = {}
    for row in rows:
        size = model_size(row.submission.model)
        if size is not None:
            family = row.submission.about.family or model_family(row.submission.model)
            key = (row.submission.team, family, row.scores.origin.task, *_rest(row, ""))
            effort = row.submission.about.effort
            name = f"{family} · {effort}" if effort else family
            found.setdefault(key, RowCurve(name, [])).points.append(RowAt(size, row))
    curves = _best(list(found.values()))
    sizes = [point.x for curve in curves for point in curve.points]
    return _Panel(
        key="size",
        title="Accuracy and size",
        axis="Parameters",
        caption="Accuracy against the number of parameters in the model's name, in billions; families are joined.",
        curves=curves,
        scale=log_scale(sizes, lambda size: f"{size:g} B") if sizes else AcrossScale(float, []),
        say=lambda x: f"{x:g} B",
    )


def _grow(
    rows: Sequence[BoardRow],
    varied: str,
    place: Callable[[BoardRow], float | None],
    name: Callable[[BoardRow], str] = row_name,
) -> list[RowCurve]:
    """Rows of the same team and model that differ only in the field varied."""
    found: dict[tuple[Any, ...], RowCurve] = {}
    for row in rows:
        x = place(row)
        if x is not None:
            key = (row.submission.team, row.submission.model, row.scores.origin.task, *_rest(row, varied))
            found.setdefault(key, RowCurve(name(row), [])).points.append(RowAt(x, row))
    return list(found.values())


def _best(curves: Sequence[RowCurve]) -> list[RowCurve]:
    """Curves with at least two positions, highest first, as many as there are colours."""
    joined = [curve for curve in curves if len({point.x for point in curve.points}) > 1]
    return sorted(joined, key=_highest, reverse=True)[:SHAPES]


def _highest(curve: RowCurve) -> float:
    return max(accuracy_of(point.row).value or 0.0 for point in curve.points)


def _condition(row: BoardRow) -> dict[str, Any]:
    return row.scores.origin.condition or {}


def _rest(row: BoardRow, varied: str) -> Iterator[tuple[str, str]]:
    """Every field of the condition except one."""
    return ((name, str(value)) for name, value in sorted(_condition(row).items()) if name != varied)


def _figure(panel: _Panel) -> BoardFigure:
    return BoardFigure(
        key=panel.key,
        title=panel.title,
        caption=panel.caption,
        wide=_draw(WIDE, panel, has_names=True),
        narrow=_draw(NARROW, panel, has_names=False),
        columns=("Model", panel.axis, "Accuracy (95 %)"),
        rows=tuple(
            (row_name(point.row), panel.say(point.x), percent(accuracy_of(point.row)))
            for curve in panel.curves
            for point in curve.ordered()
        ),
    )


def _draw(size: tuple[int, int], panel: _Panel, *, has_names: bool) -> Chart:
    """The curves, each named at its end or, if there is no room, below."""
    shown = [accuracy_of(point.row) for curve in panel.curves for point in curve.points]
    field = make_field(size, shown, panel.scale, names=_NAMES_WIDTH if has_names else 0)
    lines, words = field.frame()
    paths, marks, ends = [], [], []
    for hue, curve in enumerate(panel.curves, 1):
        places = [field.place(point.x, point.row) for point in curve.ordered()]
        paths.append(DrawnPath(draw_path(places), f"series t{hue}"))
        marks += [DrawnMark(x, y, hue, f"t{hue}", 4.5) for x, y in places]
        for (x, _), point in zip(places, curve.ordered(), strict=True):
            lines += field.whisker(x, accuracy_of(point.row), hue)
        ends.append(places[-1][1] + 4)
    height = size[1]
    if has_names:
        heights = spread_heights(ends, lowest=field.box.bottom)
        words += _names(panel.curves, field.box.right + 10, heights, longest=20)
    else:
        height += _LEGEND_LINE * len(ends)
        heights = [size[1] + 6.0 + _LEGEND_LINE * place for place in range(len(ends))]
        words += _names(panel.curves, field.box.left + 14, heights, longest=38)
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


def _names(curves: Sequence[RowCurve], x: float, heights: Sequence[float], *, longest: int) -> Iterator[DrawnWords]:
    for hue, (curve, y) in enumerate(zip(curves, heights, strict=True), 1):
        yield DrawnWords(x, round(y, 1), short_name(curve.name, longest), f"hued t{hue}")
