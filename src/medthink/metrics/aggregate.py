"""From values of pairs to one number: sums that do not depend on order, and unknowns that stay counted."""

import math
from collections.abc import Hashable, Iterable, Sequence

import msgspec


class Mean(msgspec.Struct, frozen=True):
    """A mean over what is known, and how much was not."""

    value: float | None
    n: int
    unknown: int


def mean_of(values: Iterable[float | None]) -> Mean:
    """The mean of the known values; none when nothing is known."""
    listed = list(values)
    known = [value for value in listed if value is not None]
    return Mean(math.fsum(known) / len(known) if known else None, len(known), len(listed) - len(known))


def mean_by_group(values: Sequence[float | None], groups: Sequence[Hashable]) -> dict[Hashable, Mean]:
    """The mean of every group, in the order groups first appear: image values to case values."""
    members: dict[Hashable, list[float | None]] = {}
    for value, group in zip(values, groups, strict=True):
        members.setdefault(group, []).append(value)
    return {group: mean_of(listed) for group, listed in members.items()}
