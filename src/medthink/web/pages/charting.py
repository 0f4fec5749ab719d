"""What the board's charts share: a frame with accuracy as the vertical axis, horizontal scales, whiskers, names."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from medthink.board.ranking import BoardRow
from medthink.report.labels import model_family
from medthink.report.series import PlottedRun
from medthink.stats.estimate import Measured
from medthink.web.pages.axis import ShareAxis, fit_axis
from medthink.web.pages.board_columns import accuracy_of, usd_per_case
from medthink.web.pages.drawing import Box, DrawnLine, DrawnWords

WIDE, NARROW = (520, 340), (318, 300)
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 12, 12, 36
_TICK_WIDTH = 52


class AcrossScale(NamedTuple):
    """A horizontal axis: positions as shares of its width, and its ticks."""

    share: Callable[[float], float]
    ticks: list[tuple[float, str]]


class Field(NamedTuple):
    """The plotting area: a box with accuracy vertically and a scale horizontally."""

    box: Box
    up: ShareAxis
    across: AcrossScale

    def place(self, x: float, run: PlottedRun) -> tuple[float, float]:
        """The position of a run at this value of the scale."""
        return self.box.x(self.across.share(x)), self.height(run.value)

    def height(self, share: float) -> float:
        """The vertical position of an accuracy."""
        inside = min(max(share, self.up.low), self.up.high)
        return self.box.y((inside - self.up.low) / (self.up.high - self.up.low))

    def whisker(self, x: float, run: PlottedRun, hue: int) -> list[DrawnLine]:
        """The vertical interval of an accuracy."""
        if run.ends is None:
            return []
        low, high = run.ends
        return [DrawnLine(x, self.height(low), x, self.height(high), f"whisker thin t{hue}")]

    def frame(self) -> tuple[list[DrawnLine], list[DrawnWords]]:
        """The grid lines, and the labels of both axes."""
        box, lines, words = self.box, [], []
        for tick in range(round(self.up.low * 100), round(self.up.high * 100) + 1, 10):
            y = self.height(tick / 100)
            lines.append(DrawnLine(box.left, y, box.right, y, "grid-line"))
            words.append(DrawnWords(box.left - 8, y + 4, str(tick), "end"))
        most = max(2, int((box.right - box.left) // _TICK_WIDTH))
        step = max(1, -(-len(self.across.ticks) // most))
        words += [DrawnWords(box.x(at), box.bottom + 18, text, "mid") for at, text in self.across.ticks[::step]]
        return lines, words


def make_field(size: tuple[int, int], shown: Iterable[Measured], across: AcrossScale, *, names: int = 0) -> Field:
    """A field that holds these accuracies, with room for names at its right."""
    box = Box(_LEFT, _TOP, size[0] - max(_RIGHT, names), size[1] - _BOTTOM)
    return Field(box, fit_axis(shown, 100), across)


def log_scale(values: Sequence[float], say: Callable[[float], str]) -> AcrossScale:
    """A logarithmic axis around the values, with ticks at 1 and 3 of every power of ten."""
    low, high = math.log10(min(values)) - 0.15, math.log10(max(values)) + 0.15

    def share(value: float) -> float:
        return (math.log10(value) - low) / (high - low)

    powers = range(math.floor(low), math.ceil(high) + 1)
    ticks = [factor * 10.0**power for power in powers for factor in (1, 3)]
    return AcrossScale(share, [(share(at), say(at)) for at in ticks if low <= math.log10(at) <= high])


def draw_path(places: Sequence[tuple[float, float]], *, as_steps: bool = False) -> str:
    """Positions joined by straight lines or steps, as an SVG path."""
    first, rest = places[0], places[1:]
    joined = (f"H{x:g}V{y:g}" if as_steps else f"L{x:g} {y:g}" for x, y in rest)
    return f"M{first[0]:g} {first[1]:g}{''.join(joined)}"


def plot_row(row: BoardRow) -> PlottedRun:
    """A row as figures know it; its price is that of a case."""
    submission, origin, usage = row.submission, row.scores.origin, row.scores.usage
    condition = origin.condition or {}
    return PlottedRun(
        label=row_name(row),
        model=submission.model,
        family=submission.about.family or model_family(submission.model),
        task=origin.task,
        condition=condition,
        effort=condition.get("effort") or submission.about.effort,
        accuracy=accuracy_of(row),
        team=submission.team,
        usd=usd_per_case(row),
        is_least_usd=usage is not None and usage.unseen_replies > 0,
        group=row.group,
    )


def row_name(row: BoardRow) -> str:
    """A row's name in a figure: the model, and its effort where it is said."""
    effort = row.submission.about.effort
    return f"{row.submission.model} · {effort}" if effort else row.submission.model


def short_name(name: str, most: int = 26) -> str:
    """The last part of a path-like name, shortened if too long for a chart; the table below has it in full."""
    own = name.rpartition("/")[2]
    return own if len(own) <= most else own[: most - 1] + "…"
