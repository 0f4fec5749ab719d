"""Numbers as a page shows them: words, and positions on a chart's axis."""

import msgspec

from medthink.core.numbers import as_percent, as_usd
from medthink.report.entries import ends_of
from medthink.scoring.scores import percent, points
from medthink.stats.estimate import Estimate, Measured

WIDTH = 160
NONE = "–"

STATE_WORDS = {
    "ok": "answered",
    "unparsed": "no letter",
    "refused": "refused",
    "truncated": "truncated",
    "failed": "failed",
    "waiting": "not yet",
}
"""Every state of a case, with the word used on pages."""


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A rate in words, and its dot, whisker and the rival's tick on an axis from 0 to 100 %."""

    words: str
    dot: float
    low: float
    high: float
    tick: float | None = None


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A difference in points; `tone` is "up" or "down" if the interval excludes zero, else ""."""

    value: str
    interval: str
    tone: str

    @property
    def words(self) -> str:
        """`+2.7 points (−2.7 to +8.0)`."""
        return f"{self.value} points {self.interval}"


def place_rate(rate: Measured, *, rival: Measured | None = None) -> Interval | None:
    """A rate with the rival's; None if there is no value."""
    if rate.value is None:
        return None
    low, high = ends_of(rate) or (rate.value, rate.value)
    tick = None if rival is None or rival.value is None else _x(rival.value)
    return Interval(words=percent(rate), dot=_x(rate.value), low=_x(low), high=_x(high), tick=tick)


def tell_ends(rate: Measured) -> str:
    """`53.6–60.8`, the ends of the interval in per cent; nothing where there is none."""
    ends = ends_of(rate)
    return f"{ends[0] * 100:.1f}–{ends[1] * 100:.1f}" if ends else ""


def tell_share(rate: Measured) -> str:
    """`57.2 %`, or a dash where there is no value."""
    return NONE if rate.value is None else as_percent(rate.value)


def tell_difference(gain: Measured) -> Difference:
    """A difference of rates in points."""
    tone = ""
    if isinstance(gain, Estimate):
        tone = "up" if gain.low > 0 else "down" if gain.high < 0 else ""
    value, _, interval = points(gain).partition(" points ")
    return Difference(value=value, interval=interval if isinstance(gain, Estimate) else "(no interval)", tone=tone)


def tell_money(usd: float | None, *, is_least: bool = False) -> str:
    """`$0.03`, or a dash where the price is not known."""
    return NONE if usd is None else as_usd(usd, is_least=is_least)


def tell_tokens(input_tokens: int | None, output_tokens: int | None) -> str:
    """`1,052 + 21`, or a dash where the provider does not count."""
    if input_tokens is None or output_tokens is None:
        return NONE
    return f"{input_tokens:,} + {output_tokens:,}"


def tell_time(seconds: float | None) -> str:
    """`12 s`, `3 min 20 s`, `2 h 5 min`."""
    if seconds is None:
        return "not known"
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _x(share: float) -> float:
    return round(share * WIDTH, 1)
