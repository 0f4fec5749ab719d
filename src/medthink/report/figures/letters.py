"""The confusion matrix of letters: a bias towards one letter shows as a dark column."""

from typing import TYPE_CHECKING

from medthink.core.markup import Table, one_line
from medthink.report.entries import Group, answer_pairs
from medthink.report.figures.slices import one_per_model
from medthink.report.figures.style import COLOURS, INK, LINE, Drawing
from medthink.scoring.scores import AnswerScores

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ACROSS = 2
# State names would overlap under such narrow columns; they are in the table.
_NO_LETTER = "none"


def letters_drawing(group: Group) -> Drawing | None:
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
    message = "Rows: the right letter; columns: what was given; numbers count predictions."
    if len(scored) > len(shown):
        message += f" Drawn for {len(shown)} runs; the table has all {len(scored)}."
    table = Table(("Run", "Right letter", *columns), rows, frozenset(range(2, 2 + len(columns))))
    return Drawing("letters", "Confusion matrix of letters", message, draw, 0.3 + 1.75 * down, table)


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
