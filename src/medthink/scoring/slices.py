"""Slices: the groups of cases that a score is also given for."""

import re
from collections.abc import Iterable
from typing import TypeVar

from medthink.cases.case import Case

SMALL = 30
"""A slice of fewer cases is marked: its interval is honest, its rank among slices is not."""

_IMAGE_BINS = ((1, 4), (5, 8), (9, 16), (17, 49))


def slice_values(case: Case) -> dict[str, tuple[str, ...]]:
    """What a case is in every slice; a case with two modalities is in both."""
    return {
        "modality": case.modalities,
        "sub-modality": tuple(dict.fromkeys(image.sub_modality for image in case.reference.images)),
        "number of modalities": (_at_most(len(case.modalities), 4),),
        "images per case": (_image_bin(len(case.question.images)),),
        "longitudinal": ("yes" if case.reference.is_longitudinal else "no",),
        "ICD chapter": (case.reference.icd_chapter or "none",),
        "length rank of the right option": (_length_rank(case),),
    }


Row = TypeVar("Row")


def group_by_slice(rows: Iterable[tuple[Case, Row]]) -> dict[tuple[str, str], list[Row]]:
    """What belongs to the cases of every slice, by its kind and value; a row of two modalities is in both."""
    members: dict[tuple[str, str], list[Row]] = {}
    for case, row in rows:
        for by, values in slice_values(case).items():
            for value in values:
                members.setdefault((by, value), []).append(row)
    return members


def slice_order(value: str) -> tuple[int, str]:
    """The place of a slice among those of its kind: by its number, where it begins with one, then by its name."""
    number = re.match(r"\d+", value)
    return (int(number[0]) if number else 0, value)


def _at_most(number: int, most: int) -> str:
    return str(number) if number < most else f"{most}+"


def _image_bin(count: int) -> str:
    return next((f"{low}–{high}" for low, high in _IMAGE_BINS if low <= count <= high), "none")


def _length_rank(case: Case) -> str:
    """1 when no option is longer than the right one; ties count for it."""
    right = len(case.question.options.get(case.reference.answer, "").strip())
    longer = sum(len(text.strip()) > right for text in case.question.options.values())
    return "1 (longest)" if longer == 0 else str(longer + 1)
