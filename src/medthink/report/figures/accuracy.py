"""Accuracy of every run of a group with its interval."""

from typing import TYPE_CHECKING

from medthink.core.markup import Table, one_line
from medthink.report.figures.slices import one_per_model
from medthink.report.figures.style import COLOURS, INK, LINE, MARKS, SOFT, FigureSpec, percent_axis, wrapped
from medthink.report.runs import ComparableGroup, answer_pairs
from medthink.scoring.scores import AnswerScores, rate_text
from medthink.stats.estimate import ends_of, rank_range, value_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Approximate width of a number on an axis of shares.
_NUMBER_WIDTH = 0.1


def chance(group: ComparableGroup) -> float:
    """The expected accuracy of a random guess among the options."""
    # A case without options, which only a defective file has, counts as not guessed.
    counts = [len(case.question.options) for case in group.entries[0].material.cases.values()]
    return sum(1 / count for count in counts if count) / len(counts)


def accuracy_drawing(group: ComparableGroup) -> FigureSpec | None:
    """One mark and interval per run, best at the top, tiers by colour and shape; a single run needs no figure."""
    entries = group.lettered
    if len(entries) < 2:
        return None
    places = {entry.label: place for entry, place in group.ranked()}
    tiers = [places[entry.label].tier if entry.label in places else 1 for entry in entries]

    line = chance(group)

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        for row, (entry, tier) in enumerate(zip(entries, tiers, strict=True)):
            colour, mark = COLOURS[(tier - 1) % len(COLOURS)], MARKS[(tier - 1) % len(MARKS)]
            ends, value = ends_of(entry.accuracy), value_of(entry.accuracy)
            if ends:
                axes.plot(ends, (row, row), color=colour, linewidth=2.2, solid_capstyle="round")
            if value is not None:
                axes.plot([value], [row], mark, color=colour, markersize=5.5)
                axes.annotate(
                    f"{value * 100:.1f}", (_beside(ends[1] if ends else value, line), row), (5, 0), va="center",
                    textcoords="offset points", fontsize=7, color=INK,
                )  # fmt: skip
        axes.axvline(line, color=SOFT, linewidth=0.9, linestyle=(0, (3, 2)))
        axes.set_yticks(range(len(entries)), [wrapped(entry.label) for entry in entries])
        axes.set_ylim(len(entries) - 0.4, -0.75)
        axes.grid(axis="y", visible=False)
        axes.set(xlabel="accuracy (%); dashed: chance", xlim=(0, None))
        percent_axis(axes, along="x")

    rows = tuple(
        (entry.label, rate_text(entry.accuracy), rank_range(places[entry.label].rank, places[entry.label].worst))
        if entry.label in places
        else (entry.label, rate_text(entry.accuracy), "–")
        for entry in entries
    )
    message = f"Accuracy over all {group.n_cases:,} cases with 95 % intervals."
    if len({place.tier for place in places.values()}) > 1:
        message += " A colour is a tier: each of its runs is shown to be better (95 %) than every run of a lower tier."
    table = Table(("Run", "Accuracy (95 % interval)", "Rank"), rows, frozenset({1, 2}))
    return FigureSpec("accuracy", "Accuracy by run", message, draw, 0.8 + 0.29 * len(entries), table)


def _beside(end: float, line: float) -> float:
    """Where to print the number: at the end of the interval, or past the chance line if that would cross it."""
    return line if end < line < end + _NUMBER_WIDTH else end


_ACROSS = 2
# State names would overlap under such narrow columns; they are in the table.
_NO_LETTER = "none"


def letters_drawing(group: ComparableGroup) -> FigureSpec | None:
    """One square per run: right letters down, given letters (and none) across."""
    scored = list(answer_pairs(group.entries))
    if not scored:
        return None
    chosen = one_per_model(group.lettered)
    shown = [pair for pair in scored if pair[0] in chosen]
    across = min(_ACROSS, len(shown))
    down = -(-len(shown) // across)

    def draw(figure: "Figure") -> None:
        panels = list(figure.subplots(down, across, squeeze=False).flat)
        for axes, (entry, answers) in zip(panels, shown, strict=False):
            _draw(axes, answers)
            axes.set_title(one_line(entry.label, 32), fontsize=7)
        for axes in panels[len(shown) :]:
            axes.remove()

    columns = _columns([answers for _, answers in scored])
    rows = tuple(
        (entry.label, gold, *(str(answers.confusion[gold].get(column, 0)) for column in columns))
        for entry, answers in scored
        for gold in answers.confusion
    )
    message = "Rows: the right letter; columns: the letter given; numbers are counts of predictions."
    if len(scored) > len(shown):
        message += f" Drawn for {len(shown)} runs; the table has all {len(scored)}."
    table = Table(("Run", "Right letter", *columns), rows, frozenset(range(2, 2 + len(columns))))
    return FigureSpec("letters", "Confusion matrix of letters", message, draw, 0.3 + 1.75 * down, table)


def _columns(answers: list[AnswerScores]) -> list[str]:
    """Letters first, then the states that gave none."""
    found = {column for one in answers for row in one.confusion.values() for column in row}
    found |= {gold for one in answers for gold in one.confusion}
    return sorted(found, key=lambda column: (len(column) > 1, column))


def _draw(axes: "Axes", answers: AnswerScores) -> None:
    from matplotlib.patches import Rectangle

    golds, columns = list(answers.confusion), _columns([answers])
    letters = [column for column in columns if len(column) == 1]
    columns = letters + [_NO_LETTER] * (len(columns) > len(letters))
    for y, gold in enumerate(golds):
        row = answers.confusion[gold]
        total = sum(row.values())
        without = total - sum(row.get(letter, 0) for letter in letters)
        for x, column in enumerate(columns):
            count = without if column == _NO_LETTER else row.get(column, 0)
            colour = COLOURS[2] if column == gold else COLOURS[1]
            axes.add_patch(
                Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, alpha=0.75 * count / total, edgecolor=LINE)
            )
            axes.text(x, y, str(count), ha="center", va="center", fontsize=7, color=INK)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(golds)), golds)
    axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(golds) - 0.5, -0.5), xlabel="given", ylabel="right")
    axes.grid(visible=False)
