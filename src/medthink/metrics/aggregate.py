"""From values of pairs to one number: sums are independent of order, and unknown values are counted."""

import math
from collections.abc import Iterable

import msgspec


class Mean(msgspec.Struct, frozen=True):
    """A mean over the known values, and how many were unknown."""

    value: float | None
    n: int
    unknown: int


def mean_of(values: Iterable[float | None]) -> Mean:
    """The mean of the known values; none when nothing is known."""
    listed = list(values)
    known = [value for value in listed if value is not None]
    return Mean(math.fsum(known) / len(known) if known else None, len(known), len(listed) - len(known))
