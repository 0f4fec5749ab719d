"""Slices: groups of cases for which a score is reported separately.

A slicing is one entry of `SLICINGS`: its name, and what a case is in it. Everything that scores, judges, compares and
draws by slices walks over these entries.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from medthink.cases.case import Case

SMALL = 30
"""A slice of fewer cases is marked: its interval is valid, its rank among slices is not."""

_IMAGE_BINS = ((1, 4), (5, 8), (9, 16), (17, 49))
_MOST_MODALITIES = 4

# A case's values by the name of the slicing; a case may be in several slices of one kind.
Slices = Mapping[int, Mapping[str, Sequence[str]]]
Row = TypeVar("Row")


def _number_of_modalities(case: Case) -> str:
    count = len(case.modalities)
    return str(count) if count < _MOST_MODALITIES else f"{_MOST_MODALITIES}+"


def _images_per_case(case: Case) -> str:
    count = len(case.question.images)
    return next((f"{low}–{high}" for low, high in _IMAGE_BINS if low <= count <= high), "none")


def _length_rank(case: Case) -> str:
    """1 when no option is longer than the right one; ties count for it."""
    right = len(case.question.options.get(case.reference.answer, "").strip())
    longer = sum(len(text.strip()) > right for text in case.question.options.values())
    return "1 (longest)" if longer == 0 else str(longer + 1)


SLICINGS: dict[str, Callable[[Case], tuple[str, ...]]] = {
    "modality": lambda case: case.modalities,
    "sub-modality": lambda case: tuple(dict.fromkeys(image.sub_modality for image in case.reference.images)),
    "number of modalities": lambda case: (_number_of_modalities(case),),
    "images per case": lambda case: (_images_per_case(case),),
    "longitudinal": lambda case: ("yes" if case.reference.is_longitudinal else "no",),
    "ICD chapter": lambda case: (case.reference.icd_chapter or "none",),
    "length rank of the right option": lambda case: (_length_rank(case),),
}


def slice_cases(cases: Iterable[Case]) -> Slices:
    """The slices of every case, by case number."""
    return {case.id: {name: values(case) for name, values in SLICINGS.items()} for case in cases}


def group_by_slice(rows: Iterable[tuple[int, Row]], slices: Slices) -> dict[tuple[str, str], list[Row]]:
    """The rows, each given with its case, by slicing and value; the rows of a case with two modalities are in both."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for case, row in rows:
        for slicing, values in slices.get(case, {}).items():
            for value in values:
                groups.setdefault((slicing, value), []).append(row)
    return groups


def sort_slices(groups: dict[tuple[str, str], list[Row]]) -> dict[tuple[str, str], list[Row]]:
    """The groups, slicing by slicing; within one by the number its values begin with, if any, then by name."""
    order = list(dict.fromkeys(slicing for slicing, _ in groups))
    return dict(sorted(groups.items(), key=lambda item: (order.index(item[0][0]), _place(item[0][1]))))


def _place(value: str) -> tuple[int, str]:
    number = re.match(r"\d+", value)
    return (int(number[0]) if number else 0, value)
