"""Figures of judges' verdicts: error types in reasoning steps, and correctness and education value of discussions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from medthink.cases.sections import SECTIONS
from medthink.core.markup import Table
from medthink.judge.kinds.discussion import DiscussionScores
from medthink.judge.kinds.step_scores import StepScores
from medthink.judge.rubric import DIMENSIONS, ERROR_TYPES, SENTENCE_LABELS
from medthink.report.figures.style import COLOURS, INK, MARKS, FigureSpec, percent_axis
from medthink.report.judged_tables import AGREEMENT, JudgeRow
from medthink.stats.estimate import Measured, ends_of, mean_cell, rate_cell, value_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STEP_KINDS = {True: "critical steps", False: "other steps"}
_FULL_SCORE = 2


class _Series(NamedTuple):
    label: str
    colour: str
    mark: str
    values: tuple[Measured, ...]


def profile_drawing(one: JudgeRow[StepScores], number: int) -> FigureSpec:
    """One row per error type: its share of the critical steps and of the other ones."""
    cells = {(cell.error_type, cell.critical): cell for cell in one.scores.profile}
    series = [
        _Series(
            f"{name} (n = {cells[ERROR_TYPES[0], critical].of_steps.n:,})", colour, mark,
            tuple(cells[kind, critical].of_steps for kind in ERROR_TYPES),
        )
        for (critical, name), colour, mark in zip(_STEP_KINDS.items(), (COLOURS[1], COLOURS[0]), MARKS, strict=False)
    ]  # fmt: skip

    ends = [(ends_of(cell.of_steps) or (0, value_of(cell.of_steps) or 0))[1] for cell in one.scores.profile]
    widest = max(0.05, *ends)

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        _draw_series(axes, series, [_words(kind) for kind in ERROR_TYPES], most=1)
        axes.set(xlabel="share of these steps with the error (%)", xlim=(-0.02 * widest, 1.12 * widest))
        percent_axis(axes, along="x")
        figure.legend(loc="outside lower center", ncols=2)

    message = (
        f"How often a step of the rationale has each type of error; a step may have several"
        f"{_untyped(one.scores.untyped)}. Intervals are clustered by case. "
        f"{AGREEMENT}: {one.agreement('factual', 'critical')}."
    )
    title = f"Error profile: {one.title}"
    return FigureSpec(f"errors-{number}", title, message, draw, 0.95 + 0.42 * len(ERROR_TYPES), _profile_table(one))


def discussion_drawing(one: JudgeRow[DiscussionScores], number: int) -> FigureSpec:
    """Education value by dimension above, the labels of sentences by section below."""
    scores = one.scores
    values = [_Series("", COLOURS[0], "o", tuple(scores.education[name] for name in DIMENSIONS))]
    labels = [
        _Series(label, colour, mark, tuple(scores.by_section[name][label] for name in SECTIONS))
        for label, colour, mark in zip(
            SENTENCE_LABELS, (COLOURS[2], COLOURS[1], COLOURS[4], COLOURS[3]), MARKS, strict=False
        )
    ]

    def draw(figure: "Figure") -> None:
        above, below = figure.subplots(2, 1, height_ratios=(len(DIMENSIONS), 1.6 * len(SECTIONS)))
        _draw_series(above, values, [_words(name) for name in DIMENSIONS], most=_FULL_SCORE)
        above.set(title="Education value by dimension", xlabel="mean score (0–2)", xlim=(-0.03, _FULL_SCORE + 0.03))
        above.set_xticks((0, 0.5, 1, 1.5, _FULL_SCORE))
        _draw_series(below, labels, [_words(name) for name in SECTIONS], most=1)
        below.set(title="Sentences by section", xlabel="share of sentences (%)", xlim=(-0.015, 1.03))
        percent_axis(below, along="x")
        figure.legend(loc="outside lower center", ncols=3)

    message = (
        "What discussions teach, 0 to 2 in each of five dimensions, and how their sentences are labelled in each of "
        f"six sections. Intervals are clustered by case. "
        f"{AGREEMENT}: {one.agreement('sentence', 'education')}."
    )
    title = f"Discussions: {one.title}"
    return FigureSpec(f"discussions-{number}", title, message, draw, 5.6, _discussion_table(one))


def _draw_series(axes: "Axes", series: Sequence[_Series], names: Sequence[str], *, most: int) -> None:
    """Dots with intervals, one row per name, the series of a row one above the other, each with its number."""
    spread = 0.7 / len(series)
    for place, one in enumerate(series):
        for row, measured in enumerate(one.values):
            y = row + (place - (len(series) - 1) / 2) * spread
            _draw_dot(axes, measured, y, one, most=most)
        if one.label:
            axes.plot([], [], one.mark, color=one.colour, label=one.label, markersize=4)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)


def _draw_dot(axes: "Axes", measured: Measured, y: float, one: _Series, *, most: int) -> None:
    value, ends = value_of(measured), ends_of(measured)
    if value is None:
        return
    if ends:
        axes.plot(ends, (y, y), color=one.colour, linewidth=1.4, alpha=0.6, solid_capstyle="round")
    axes.plot([value], [y], one.mark, color=one.colour, markersize=4.2, markerfacecolor=one.colour if ends else "none")
    left, right = ends or (value, value)
    # Beyond the end of the scale there is no room for the number.
    is_far = right > 0.9 * most
    axes.annotate(
        f"{value * 100:.1f}" if most == 1 else f"{value:.2f}",
        (left if is_far else right, y), (-5 if is_far else 5, 0), textcoords="offset points",
        ha="right" if is_far else "left", va="center", fontsize=6.5, color=INK,
    )  # fmt: skip


def _profile_table(one: JudgeRow[StepScores]) -> Table:
    rows = tuple(
        (
            _words(cell.error_type),
            _STEP_KINDS[cell.critical],
            f"{cell.count:,}",
            rate_cell(cell.of_steps),
            rate_cell(cell.of_errors),
            one.agreement(f"error: {_words(cell.error_type)}"),
        )
        for cell in one.scores.profile
    )
    columns = ("Error", "Among", "Steps with it", "Share of these steps", "Share of their wrong steps", AGREEMENT)
    return Table(columns, rows, frozenset({2, 3, 4}), frozenset({5}))


def _discussion_table(one: JudgeRow[DiscussionScores]) -> Table:
    scores, taught, said = one.scores, one.agreement("education"), one.agreement("sentence")
    education = [
        (_words(name), "mean score (0–2)", mean_cell(scores.education[name], 2), _levels(scores.levels[name]), taught)
        for name in DIMENSIONS
    ]
    sections = [
        (_words(name), label, rate_cell(found[label]), _missing(scores.missing_sections[name]), said)
        for name, found in scores.by_section.items()
        for label in SENTENCE_LABELS
    ]
    columns = ("Dimension or section", "What", "Value", "Discussions", AGREEMENT)
    return Table(columns, (*education, *sections), frozenset({2}), frozenset({4}))


def _missing(count: int) -> str:
    return f"{count:,} lack the section" if count else "all have the section"


def _levels(counts: dict[int, int]) -> str:
    return ", ".join(f"{count:,} with {level}" for level, count in counts.items())


def _untyped(count: int) -> str:
    return f", and {count:,} wrong steps have no type" if count else ""


def _words(name: str) -> str:
    return name.replace("_", " ")
