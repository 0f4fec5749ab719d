"""Accuracy against price: which models no other beats in both."""

from collections.abc import Sequence

from medthink.board.ranking import BoardRow, RivalRow
from medthink.core.numbers import as_usd
from medthink.report.series import PricedRun, price_runs
from medthink.scoring.scores import percent
from medthink.web.pages.axis import shape_of
from medthink.web.pages.board_columns import rival_name
from medthink.web.pages.charting import NARROW, WIDE, draw_path, log_scale, make_field, plot_row, short_name
from medthink.web.pages.drawing import BoardFigure, Chart, DrawnLine, DrawnMark, DrawnPath, DrawnWords, MarkNames


def price_figure(rows: Sequence[BoardRow], rivals: Sequence[RivalRow]) -> BoardFigure | None:
    """Price horizontally, accuracy vertically; the Pareto set is filled, joined and named.

    None for fewer than two priced rows.
    """
    priced = price_runs([plot_row(row) for row in rows])
    if len(priced) < 2:
        return None
    best = sum(one.is_best for one in priced)
    caption = (
        f"{best} of {len(priced)} models with a known price are Pareto optimal (filled and joined): no other is both "
        "cheaper and more accurate. Price of a case as traced, on a logarithmic axis. Lines: 95 % intervals."
    )
    return BoardFigure(
        key="price",
        title="Accuracy and price",
        caption=caption,
        wide=_draw(WIDE, priced, rivals),
        narrow=_draw(NARROW, priced, rivals),
        columns=("Model", "Price per case", "Accuracy (95 %)", "Pareto optimal"),
        rows=tuple(
            (
                one.run.label,
                as_usd(one.usd, is_least=one.run.is_least_usd),
                percent(one.run.accuracy),
                "yes" if one.is_best else "no",
            )
            for one in priced
        ),
    )


def _draw(size: tuple[int, int], priced: Sequence[PricedRun], rivals: Sequence[RivalRow]) -> Chart:
    shown = [one.run.accuracy for one in priced] + [rival.accuracy for rival in rivals[:1]]
    field = make_field(size, shown, log_scale([one.usd for one in priced], as_usd))
    lines, words = field.frame()
    for rival in rivals[:1]:
        y = field.height(rival.accuracy.value or 0.0)
        lines.append(DrawnLine(field.box.left, y, field.box.right, y, "ref-line"))
        words.append(DrawnWords(field.box.right, y + 14, rival_name(rival.name), "end"))
    labels, marks = MarkNames(field.box), []
    for one in priced:
        x, y = field.place(one.usd, one.run)
        shape = shape_of(one.run.group) or 1
        lines += field.whisker(x, one.run, shape if one.is_best else 0)
        look = f"t{shape}" if one.is_best else "t0 hollow"
        marks.append(DrawnMark(x, y, shape, look, 5.5 if one.is_best else 4.5))
        labels.avoid(x, y)
    front = [(*field.place(one.usd, one.run), one.run) for one in priced if one.is_best]
    named = (labels.put(x, y, short_name(run.label)) for x, y, run in front)
    return Chart(
        width=size[0],
        height=size[1],
        name="Accuracy against price per case",
        lines=tuple(lines),
        paths=(DrawnPath(draw_path([(x, y) for x, y, _ in front], as_steps=True), "series step t0"),),
        marks=tuple(marks),
        words=(*words, *(one for one in named if one)),
    )
