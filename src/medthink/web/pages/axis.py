"""Positions on a chart: an axis in steps of ten per cent shared by all rows of a table, and the marks on it."""

from collections.abc import Iterable

import msgspec

from medthink.report.entries import ends_of
from medthink.stats.estimate import Measured

_MARGIN = 8
SHAPES = 6


class Tick(msgspec.Struct, frozen=True):
    """A position on an axis and its label."""

    at: float
    words: str


class IntervalMark(msgspec.Struct, frozen=True, kw_only=True):
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

    def place(self, value: Measured, rival: Measured | None = None) -> IntervalMark | None:
        """A value on this axis; None where there is none."""
        if value.value is None:
            return None
        low, high = ends_of(value) or (value.value, value.value)
        tick = None if rival is None or rival.value is None else self.x(rival.value)
        return IntervalMark(dot=self.x(value.value), low=self.x(low), high=self.x(high), tick=tick)


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
