"""Measured numbers as tables and pages write them."""

from medthink.core.numbers import as_percent, as_rate
from medthink.stats.estimate import Estimate, Measured


def rank_range(rank: int, worst: int) -> str:
    """`2–5`, or `1` for a rank that is certain."""
    return str(rank) if rank == worst else f"{rank}–{worst}"


def share(measured: Measured) -> str:
    """`57.2 % (53.6–60.8)`; why there is no interval would make a column too wide."""
    if isinstance(measured, Estimate):
        return as_rate(measured.value, measured.low, measured.high)
    return "–" if measured.value is None else f"{as_percent(measured.value)} (no interval)"


def mean(measured: Measured, digits: int) -> str:
    """`1.17 (1.09–1.25)` with so many digits."""
    if isinstance(measured, Estimate):
        return f"{measured.value:.{digits}f} ({measured.low:.{digits}f}–{measured.high:.{digits}f})".replace("-", "−")
    return "–" if measured.value is None else f"{measured.value:.{digits}f} (no interval)".replace("-", "−")
