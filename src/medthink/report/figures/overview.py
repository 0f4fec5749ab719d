"""The overview of a benchmark in one figure: accuracy by model above; share of images, effort and size below."""

from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

from medthink.core.errors import UsageError
from medthink.core.markup import Table, one_line
from medthink.core.numbers import count_of
from medthink.report.figures.accuracy import chance
from medthink.report.figures.curves import Panel, curve_panel, draw_curves
from medthink.report.figures.style import COLOURS, INK, SOFT, FigureSpec, percent_axis
from medthink.report.runs import ComparableGroup, ReportRun
from medthink.scoring.scores import rate_text
from medthink.stats.estimate import ends_of, value_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_NUMBERED = 24
# Inches: the panels below, and a bar of the panel above.
_PANEL_HEIGHT, _BAR, _CROWDED_BAR = 2.5, 0.2, 0.11


class _Panels(NamedTuple):
    present: tuple[Panel, ...]
    missing: tuple[str, ...]


def overview_drawing(groups: list[ComparableGroup]) -> FigureSpec:
    """The figure of the largest unaided group that has letters; runs that are left out are named below it."""
    lettered = [group for group in groups if group.lettered]
    if not lettered:
        raise UsageError("no run has letters, so there is no overview", remedy="leave out --figure")
    group = next((group for group in lettered if group.kind == "unaided"), lettered[0])
    entries = list(group.unhindered)
    panels = _find_panels(group)
    note = _note(groups, group, entries, panels)
    above = 0.75 + len(entries) * (_CROWDED_BAR if len(entries) > _MOST_NUMBERED else _BAR)

    def draw(figure: "Figure") -> None:
        rows: Any = figure.subfigures(2, 1, height_ratios=(above, _PANEL_HEIGHT)) if panels.present else [figure]
        _draw_models(rows[0].subplots(), group, entries)
        if panels.present:
            below = rows[1].subplots(1, len(panels.present), squeeze=False)[0]
            for letter, axes, panel in zip("bcd", below, panels.present, strict=False):
                draw_curves(axes, panel)
                axes.set_title(f"{letter}  {panel.title}", fontsize=8)
                if len(panel.series.curves) > 1:
                    axes.legend(fontsize=5.5, handlelength=1.4, loc="lower right")
        if note:
            figure.supxlabel(fill(note, 150), fontsize=6, color=SOFT, x=0.01, ha="left")

    rows = tuple((entry.label, rate_text(entry.accuracy)) for entry in entries)
    message = f"{group.title}. {note}".strip()
    height = above + (_PANEL_HEIGHT if panels.present else 0.0)
    table = Table(("Run", "Accuracy (95 % interval)"), rows, frozenset({1}))
    return FigureSpec("overview", "Overview", message, draw, height, table, width=7.6)


def _find_panels(group: ComparableGroup) -> _Panels:
    wanted = (
        ("share of images", curve_panel("share", group)),
        ("effort or output tokens", curve_panel("tokens", group) or curve_panel("effort", group)),
        ("model size", curve_panel("size", group)),
    )
    present = tuple(panel for _, panel in wanted if panel is not None)
    return _Panels(present, tuple(name for name, panel in wanted if panel is None))


def _note(groups: list[ComparableGroup], group: ComparableGroup, entries: list[ReportRun], panels: _Panels) -> str:
    notes = []
    if panels.missing:
        notes.append(f"Left out, because no runs vary in it: {', '.join(panels.missing)}.")
    if len(entries) < len(group.lettered):
        has_shares = any(panel.key == "share" for panel in panels.present)
        where = "are only in the panel of shares" if has_shares else "are not drawn"
        notes.append(f"Runs that saw less than all of each case {where}.")
    others = sum(len(other.entries) for other in groups) - len(group.lettered)
    if others:
        verb = "is" if others == 1 else "are"
        notes.append(f"{count_of(others, 'run')} of other groups or without letters {verb} not drawn.")
    return " ".join(notes)


def _draw_models(axes: "Axes", group: ComparableGroup, entries: list[ReportRun]) -> None:
    is_crowded = len(entries) > _MOST_NUMBERED
    for place, entry in enumerate(entries):
        value = value_of(entry.accuracy)
        axes.barh([place], [value or 0], 0.72, color=COLOURS[0], alpha=0.85)
        ends = ends_of(entry.accuracy)
        if ends:
            axes.plot(ends, (place, place), color=INK, linewidth=0.9)
        if value is not None and not is_crowded:
            end = ends[1] if ends else value
            axes.annotate(
                f"{value * 100:.1f}", (end, place), (4, 0), textcoords="offset points", va="center", fontsize=6.5
            )
    axes.axvline(chance(group), color=SOFT, linewidth=0.9, linestyle=(0, (3, 2)))
    axes.set_yticks(range(len(entries)), [one_line(entry.label, 48) for entry in entries])
    axes.tick_params(axis="y", labelsize=5 if is_crowded else 7)
    axes.set(
        xlabel="accuracy (%)",
        title=f"a  Accuracy by model, {group.n_cases:,} cases (lines: 95 % intervals; dashed: chance)",
        ylim=(len(entries) - 0.45, -0.55),
        xlim=(0, None),
    )
    axes.grid(axis="y", visible=False)
    percent_axis(axes, along="x")
