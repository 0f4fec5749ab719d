"""Accuracy of every run of a group with its interval."""

from typing import TYPE_CHECKING

from medthink.core.markup import Table
from medthink.report.entries import Group, ends_of, value_of
from medthink.report.figures.style import COLOURS, INK, MARKS, SOFT, Drawing, percent_axis, wrapped
from medthink.report.tables import rank_range
from medthink.scoring.scores import percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Approximate width of a number on an axis of shares.
_NUMBER_WIDTH = 0.1


def chance(group: Group) -> float:
    """The expected accuracy of a random guess among the options."""
    # A case without options, which only a defective file has, is not guessed right either.
    counts = [len(case.question.options) for case in group.entries[0].material.cases.values()]
    return sum(1 / count for count in counts if count) / len(counts)


def accuracy_drawing(group: Group) -> Drawing | None:
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
        (entry.label, percent(entry.accuracy), rank_range(places[entry.label].rank, places[entry.label].worst))
        if entry.label in places
        else (entry.label, percent(entry.accuracy), "–")
        for entry in entries
    )
    message = f"Accuracy over all {group.n_cases:,} cases with 95 % intervals."
    if len({place.tier for place in places.values()}) > 1:
        message += " A colour is a tier: each of its runs is better than every run of a lower tier, beyond chance."
    table = Table(("Run", "Accuracy (95 % interval)", "Rank"), rows, frozenset({1, 2}))
    return Drawing("accuracy", "Accuracy by run", message, draw, 0.8 + 0.29 * len(entries), table)


def _beside(end: float, line: float) -> float:
    """Where to print the number: at the end of the interval, or past the chance line if that would cross it."""
    return line if end < line < end + _NUMBER_WIDTH else end
