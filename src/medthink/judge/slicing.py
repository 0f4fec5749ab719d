"""Judged scores and agreement within slices of the cases."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

import msgspec

from medthink.judge.coverage import Units
from medthink.judge.judgement import Judgement

# A case's values by the name of the slicing; a case may be in several slices of one kind.
Slices = Mapping[int, Mapping[str, Sequence[str]]]

Row = TypeVar("Row")
Scored = TypeVar("Scored")


class Slice(msgspec.Struct, Generic[Scored], frozen=True, kw_only=True):
    """The scores of the cases in one slice: the same as those of all cases, but for slices of their own."""

    slicing: str
    value: str
    cases: int
    scores: Scored


def group_by_slice(rows: Iterable[tuple[int, Row]], slices: Slices) -> dict[tuple[str, str], list[Row]]:
    """The rows, each given with its case, by slicing and value, in the order of these."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for case, row in rows:
        for slicing, values in slices.get(case, {}).items():
            for value in values:
                groups.setdefault((slicing, value), []).append(row)
    return dict(sorted(groups.items()))


def score_slices(
    rows: Sequence[Judgement], units: Units, slices: Slices, score: Callable[[Sequence[Judgement], Units], Scored]
) -> tuple[Slice[Scored], ...]:
    """The scores of every slice, made by the function that scores all cases."""
    found = []
    for (slicing, value), group in group_by_slice(((row.case, row) for row in rows), slices).items():
        cases = {row.case for row in group}
        own = {key: one for key, one in units.items() if one.case in cases}
        found.append(Slice(slicing=slicing, value=value, cases=len(cases), scores=score(group, own)))
    return tuple(found)
