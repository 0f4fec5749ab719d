"""Rows grouped by the slices of their cases."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

# A case's values by the name of the slicing; a case may be in several slices of one kind.
Slices = Mapping[int, Mapping[str, Sequence[str]]]

Row = TypeVar("Row")


def group_by_slice(rows: Iterable[tuple[int, Row]], slices: Slices) -> dict[tuple[str, str], list[Row]]:
    """The rows, each given with its case, by slicing and value, in the order of these."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for case, row in rows:
        for slicing, values in slices.get(case, {}).items():
            for value in values:
                groups.setdefault((slicing, value), []).append(row)
    return dict(sorted(groups.items()))
