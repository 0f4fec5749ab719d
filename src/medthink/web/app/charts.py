"""Charts: an axis in steps of ten per cent shared by all rows of a table, and markers on it."""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from medthink.board.ranking import BoardRow
from medthink.report.series import PlottedRun, model_family
from medthink.stats.estimate import Measured, ends_of
from medthink.web.board.columns import accuracy_of, usd_per_case

_MARGIN = 8
SHAPES = 6


class Tick(msgspec.Struct, frozen=True):
    """A position on an axis and its label."""

    at: float
    words: str


class IntervalPosition(msgspec.Struct, frozen=True, kw_only=True):
    """A value with its interval on an axis, and the rival's position, if any."""

    dot: float
    low: float
    high: float
    tick: float | None = None


class ShareAxis(msgspec.Struct, frozen=True, kw_only=True):
    """An axis of shares from `low` to `high`, this many units wide."""

    low: float
    high: float
    width: int

    def x(self, share: float) -> float:
        """The position of a share, clipped to the axis."""
        inside = min(max(share, self.low), self.high)
        return round(_MARGIN + (inside - self.low) / (self.high - self.low) * (self.width - 2 * _MARGIN), 1)

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """Every ten per cent, or every twenty if that would be crowded."""
        step = 10 if self.high - self.low <= 0.65 else 20
        first = -(-round(self.low * 100) // step) * step
        return tuple(Tick(self.x(at / 100), str(at)) for at in range(first, round(self.high * 100) + 1, step))

    def place(self, value: Measured, rival: Measured | None = None) -> IntervalPosition | None:
        """The position of a value on this axis; None if there is none."""
        if value.value is None:
            return None
        low, high = ends_of(value) or (value.value, value.value)
        tick = None if rival is None or rival.value is None else self.x(rival.value)
        return IntervalPosition(dot=self.x(value.value), low=self.x(low), high=self.x(high), tick=tick)


def fit_axis(shown: Iterable[Measured], width: int) -> ShareAxis:
    """The axis around these values and their intervals, in steps of ten per cent."""
    ends: list[float] = []
    for one in shown:
        if one.value is not None:
            ends += ends_of(one) or [one.value]
    low = int(min(ends, default=0.0) * 10) / 10
    high = min(1.0, (int(max(ends, default=1.0) * 10 - 1e-9) + 1) / 10)
    return ShareAxis(low=low, high=max(high, low + 0.1), width=width)


def shape_of(number: int | None) -> int:
    """The shape and colour of the n-th group, 1 to 6 repeating; 0 for none."""
    return 0 if number is None else (number - 1) % SHAPES + 1


_LETTER_WIDTH = 6.6
_LINE_HEIGHT = 14


class ChartLine(msgspec.Struct, frozen=True):
    """A line between two points; `look` are its style classes."""

    x1: float
    y1: float
    x2: float
    y2: float
    look: str


class ChartPath(msgspec.Struct, frozen=True):
    """An SVG path made only of numbers."""

    d: str
    look: str


class ChartMarker(msgspec.Struct, frozen=True):
    """A dot, square, triangle, diamond, ring or cross."""

    x: float
    y: float
    shape: int
    look: str = ""
    size: float = 5.0


class ChartLabel(msgspec.Struct, frozen=True):
    """A text label."""

    x: float
    y: float
    words: str
    look: str = ""


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """A chart in pixels; `name` describes it for screen readers."""

    width: int
    height: int
    name: str
    lines: tuple[ChartLine, ...] = ()
    paths: tuple[ChartPath, ...] = ()
    marks: tuple[ChartMarker, ...] = ()
    words: tuple[ChartLabel, ...] = ()


class BoardFigure(msgspec.Struct, frozen=True, kw_only=True):
    """A chart for wide and for narrow pages, its caption, and its numbers as a table."""

    key: str
    title: str
    caption: str
    wide: Chart
    narrow: Chart
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class PlotBox(NamedTuple):
    """The plotting area of a chart."""

    left: float
    top: float
    right: float
    bottom: float

    def x(self, share: float) -> float:
        """The position at this share of the width."""
        return round(self.left + share * (self.right - self.left), 1)

    def y(self, share: float) -> float:
        """The position at this share of the height, from the bottom."""
        return round(self.bottom - share * (self.bottom - self.top), 1)


class MarkerLabels:
    """Labels next to markers: each is placed without overlap, or left out."""

    def __init__(self, box: PlotBox) -> None:
        self._box = box
        self._taken: list[tuple[float, float, float, float]] = []

    def avoid(self, x: float, y: float, size: float = 6.0) -> None:
        """Reserve the space of a marker."""
        self._taken.append((x - size, y - size, x + size, y + size))

    def put(self, x: float, y: float, words: str) -> ChartLabel | None:
        """The label next to a marker, or None if there is no space."""
        width = len(words) * _LETTER_WIDTH
        for look, dx, dy in (
            ("end", -9, -5),
            ("", 9, 16),
            ("", 9, -6),
            ("end", -9, 16),
            ("mid", 0, -14),
            ("mid", 0, 24),
        ):
            left = x + dx - (width if look == "end" else width / 2 if look == "mid" else 0)
            area = (left, y + dy - _LINE_HEIGHT + 3, left + width, y + dy + 3)
            if self._is_free(area):
                self._taken.append(area)
                return ChartLabel(round(x + dx, 1), round(y + dy, 1), words, f"{look} on".strip())
        return None

    def _is_free(self, area: tuple[float, float, float, float]) -> bool:
        left, top, right, bottom = area
        if left < self._box.left or right > self._box.right + 4 or top < 0 or bottom > self._box.bottom:
            return False
        return not any(
            left < other[2] and other[0] < right and top < other[3] and other[1] < bottom for other in self._taken
        )


def spread_heights(heights: Sequence[float], *, apart: float = _LINE_HEIGHT, lowest: float) -> list[float]:
    """The heights, moved as little as necessary so that no two are closer than `apart`, and none below `lowest`."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    placed = list(heights)
    for before, here in pairwise(order):
        placed[here] = max(placed[here], placed[before] + apart)
    over = max(0.0, max(placed, default=0.0) - lowest)
    for after, here in zip([None, *reversed(order)], reversed(order), strict=False):
        limit = lowest if after is None else placed[after] - apart
        placed[here] = min(placed[here], limit) if over else placed[here]
    return placed


WIDE, NARROW = (520, 340), (318, 300)
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 12, 12, 36
_TICK_WIDTH = 52


class AcrossScale(NamedTuple):
    """A horizontal axis: positions as shares of its width, and its ticks."""

    share: Callable[[float], float]
    ticks: list[tuple[float, str]]


class PlotArea(NamedTuple):
    """The plotting area: a box with accuracy vertically and a scale horizontally."""

    box: PlotBox
    up: ShareAxis
    across: AcrossScale

    def place(self, x: float, run: PlottedRun) -> tuple[float, float]:
        """The position of a run at this value of the scale."""
        return self.box.x(self.across.share(x)), self.height(run.value)

    def height(self, share: float) -> float:
        """The vertical position of an accuracy."""
        inside = min(max(share, self.up.low), self.up.high)
        return self.box.y((inside - self.up.low) / (self.up.high - self.up.low))

    def whisker(self, x: float, run: PlottedRun, hue: int) -> list[ChartLine]:
        """The vertical interval of an accuracy."""
        if run.ends is None:
            return []
        low, high = run.ends
        return [ChartLine(x, self.height(low), x, self.height(high), f"whisker thin t{hue}")]

    def frame(self) -> tuple[list[ChartLine], list[ChartLabel]]:
        """The grid lines, and the labels of both axes."""
        box, lines, words = self.box, [], []
        for tick in range(round(self.up.low * 100), round(self.up.high * 100) + 1, 10):
            y = self.height(tick / 100)
            lines.append(ChartLine(box.left, y, box.right, y, "grid-line"))
            words.append(ChartLabel(box.left - 8, y + 4, str(tick), "end"))
        most = max(2, int((box.right - box.left) // _TICK_WIDTH))
        step = max(1, -(-len(self.across.ticks) // most))
        words += [ChartLabel(box.x(at), box.bottom + 18, text, "mid") for at, text in self.across.ticks[::step]]
        return lines, words


def make_field(size: tuple[int, int], shown: Iterable[Measured], across: AcrossScale, *, names: int = 0) -> PlotArea:
    """A plot area for these accuracies, with space for names at its right."""
    box = PlotBox(_LEFT, _TOP, size[0] - max(_RIGHT, names), size[1] - _BOTTOM)
    return PlotArea(box, fit_axis(shown, 100), across)


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
    """A row for figures; its price is that of a case."""
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
        is_least_usd=usage is not None and usage.uncounted_replies > 0,
        group=row.group,
    )


def row_name(row: BoardRow) -> str:
    """A row's name in a figure: the model, and its effort if known."""
    effort = row.submission.about.effort
    return f"{row.submission.model} · {effort}" if effort else row.submission.model


def short_name(name: str, most: int = 26) -> str:
    """The last part of a path-like name, shortened if too long for a chart; the table below has it in full."""
    own = name.rpartition("/")[2]
    return own if len(own) <= most else own[: most - 1] + "…"
