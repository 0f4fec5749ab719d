"""Conversion of a benchmark row to a case and back, without loss.

A row is a flat dict with the released column names. Types are enforced here and only here; whether the values make
sense (five options, a letter among them …) is left to `check`, so that a defective case can be inspected.
"""

import re
from collections.abc import Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple

from medthink.cases.case import (
    ALL_LETTERS,
    LETTERS,
    MAX_IMAGES,
    Case,
    Image,
    ImageReference,
    ImageStore,
    Question,
    Reference,
)
from medthink.core.errors import DataError
from medthink.core.jsonio import parse_json

_TITLE = re.compile(r"\D*(\d{1,9})\D*")
_SLOT_PARTS = ("id", "path", "caption", "modality", "sub_modality")
_SLOT_COLUMNS = [tuple(f"image_{slot:02d}_{part}" for part in _SLOT_PARTS) for slot in range(1, MAX_IMAGES + 1)]

TEXT_COLUMNS = (
    "title",
    "CLINICAL_HISTORY",
    "IMAGING_FINDINGS",
    "discussion",
    "correct_answer",
    "correct_answer_text",
    "ICD Chapter",
    "ICD Block",
    "ICD Category",
    "interval_text",
)
COLUMNS = (
    *TEXT_COLUMNS[:4],
    "options",
    *TEXT_COLUMNS[4:9],
    "is_longitudinal",
    "timepoint_count",
    "interval_text",
    "image_count",
)
SLOT_COLUMNS = tuple(column for columns in _SLOT_COLUMNS for column in columns)
_OTHER_COLUMNS = tuple(column for column in COLUMNS if column not in TEXT_COLUMNS)
_REGULAR_COLUMNS = (*_OTHER_COLUMNS, *TEXT_COLUMNS, *SLOT_COLUMNS)
_REGULAR = [itemgetter(*_REGULAR_COLUMNS[: len(COLUMNS) + len(_SLOT_PARTS) * count]) for count in range(MAX_IMAGES + 1)]
EMBEDDED_COLUMNS = tuple(f"image_{slot:02d}" for slot in range(1, MAX_IMAGES + 1))
_SLOT_OF = {column: slot for slot, columns in enumerate(_SLOT_COLUMNS, start=1) for column in columns}
_REQUIRED = frozenset(COLUMNS)
_KNOWN = _REQUIRED | frozenset(SLOT_COLUMNS)
_ONLY_TEXT = frozenset({str})
_TEXT_OR_NOTHING = frozenset({str, type(None)})
_MOST = 2**63 - 1  # in 64 bits with a sign, which every format has
_LETTERS = [*LETTERS]


class RowLocation(NamedTuple):
    """The location of a row, for error messages."""

    file: str
    row: int


def case_from_row(row: dict[str, Any], *, split: str, store: ImageStore, place: RowLocation) -> Case:
    """Build a case from a row, or raise DataError naming the field."""
    if not isinstance(row, dict):
        raise DataError("a row must be an object", file=place.file, row=place.row, remedy="one JSON object per line")
    texts = _regular_texts(row) or _texts_of_any(row, place)
    title, history, findings, discussion, *labels, interval_text = texts.columns
    answer, answer_text, icd_chapter, icd_block, icd_category = labels
    ids, paths, captions, modalities, sub_modalities = [texts.of_slots[part :: len(_SLOT_PARTS)] for part in range(5)]
    # Tuples by unpacking, which knows their length: `tuple(map(…))` leaves thousands of spent ones for Python to keep.
    return Case(
        id=_case_number(title, place),
        title=title,
        split=split,
        question=Question(
            history=history,
            images=(*map(Image, texts.slots, ids, paths, repeat(store)),),
            options=_options(row, place),
        ),
        reference=Reference(
            images=(*map(ImageReference, captions, modalities, sub_modalities),),
            findings=findings,
            discussion=discussion,
            answer=answer,
            answer_text=answer_text,
            icd_chapter=icd_chapter,
            icd_block=icd_block,
            icd_category=icd_category,
            is_longitudinal=_flag(row, "is_longitudinal", place),
            timepoint_count=_whole_number(row, "timepoint_count", place),
            interval_text=interval_text,
        ),
        image_count=_whole_number(row, "image_count", place),
        extra=texts.extra,
    )


def row_from_case(case: Case) -> dict[str, Any]:
    """The row of this case, with the released column names; unfilled slots are left out."""
    reference = case.reference
    row: dict[str, Any] = {
        "title": case.title,
        "CLINICAL_HISTORY": case.question.history,
        "IMAGING_FINDINGS": reference.findings,
        "discussion": reference.discussion,
        "options": case.question.options,
        "correct_answer": reference.answer,
        "correct_answer_text": reference.answer_text,
        "ICD Chapter": reference.icd_chapter,
        "ICD Block": reference.icd_block,
        "ICD Category": reference.icd_category,
        "is_longitudinal": reference.is_longitudinal,
        "timepoint_count": reference.timepoint_count,
        "interval_text": reference.interval_text,
        "image_count": case.image_count,
    }
    for image, withheld in zip(case.question.images, reference.images, strict=True):
        values = (image.id, image.path, withheld.caption, withheld.modality, withheld.sub_modality)
        row.update(zip(_SLOT_COLUMNS[image.slot - 1], values, strict=True))
    return row | case.extra


class _Texts(NamedTuple):
    """The texts of a row: of the plain columns, and of the slots that are filled, five to each."""

    columns: Sequence[str]
    slots: Sequence[int]
    of_slots: Sequence[str]
    extra: dict[str, Any]


def _regular_texts(row: dict[str, Any]) -> _Texts | None:
    """The texts of a row that fills the first slots, as many as it says, and has no other column; else None.

    Nearly every row is such a one, and taking its texts at one stroke makes reading a benchmark a third faster.
    """
    count = row.get("image_count")
    if type(count) is not int or not 0 <= count <= MAX_IMAGES or len(row) != len(COLUMNS) + len(_SLOT_PARTS) * count:
        return None
    try:
        texts = _REGULAR[count](row)[len(_OTHER_COLUMNS) :]
    except KeyError:
        return None
    of_slots = texts[len(TEXT_COLUMNS) :]
    if {*map(type, texts)} != _ONLY_TEXT or not all(of_slots):
        return None
    return _Texts(texts[: len(TEXT_COLUMNS)], range(1, count + 1), of_slots, {})


def _texts_of_any(row: dict[str, Any], place: RowLocation) -> _Texts:
    """The texts of any row, or DataError."""
    _refuse_missing_columns(row, place)
    # One pass over what is filled, instead of asking for each of the 245 slot columns.
    slots = sorted({_SLOT_OF[column] for column, value in row.items() if value and column in _SLOT_OF})
    of_slots = [text for slot in slots for text in _texts(row, _SLOT_COLUMNS[slot - 1], place)]
    return _Texts(_texts(row, TEXT_COLUMNS, place), slots, of_slots, _extra(row))


def _extra(row: dict[str, Any]) -> dict[str, Any]:
    """The columns that are not in the schema, sorted."""
    if row.keys() <= _KNOWN:
        return {}
    return {column: row[column] for column in sorted(row.keys() - _KNOWN) if row[column] is not None}


def _refuse_missing_columns(row: dict[str, Any], place: RowLocation) -> None:
    """Raise DataError for missing columns: an absent column is not the same as an empty one."""
    if row.keys() >= _REQUIRED:
        return
    missing = [column for column in COLUMNS if column not in row]
    problem = "the column is missing" if len(missing) == 1 else f"these columns are missing: {', '.join(missing)}"
    raise DataError(problem, file=place.file, row=place.row, field=missing[0], remedy="every row needs them")


def _options(row: dict[str, Any], place: RowLocation) -> dict[str, str]:
    """The options by letter, sorted, from an object, a list of texts or of pairs, or a JSON string of one of these."""
    value = row["options"]
    if type(value) is dict and [*value] == _LETTERS and {*map(type, value.values())} == _ONLY_TEXT:
        return value  # as released: nothing to sort or to leave out
    if isinstance(value, str):
        value = _options_from_text(value, place)
    if isinstance(value, list):
        value = _options_by_letter(value)
    if not isinstance(value, dict) or not _TEXT_OR_NOTHING.issuperset(map(type, value.values())):
        raise _wrong_type(place, "options", "an object of letter to text", row["options"])
    return {letter: value[letter] for letter in sorted(value) if value[letter] is not None}


def _options_from_text(text: str, place: RowLocation) -> Any:
    try:
        return parse_json(text.encode())
    except DataError as error:
        problem = f"the text is not an object of letter to text: {error.problem}"
        raise DataError(
            problem, file=place.file, row=place.row, field="options", remedy='write it as {"A": "…", "B": "…"}'
        ) from None


def _options_by_letter(value: list[Any]) -> dict[str, Any] | None:
    if len(value) <= len(ALL_LETTERS) and all(isinstance(text, str) for text in value):
        return dict(zip(ALL_LETTERS, value, strict=False))
    if all(isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in value):
        letters = dict(value)
        return letters if len(letters) == len(value) else None
    return None


def _case_number(title: str, place: RowLocation) -> int:
    match = _TITLE.fullmatch(title)
    if match is None:
        raise DataError(
            f"no single case number in {title[:60]!r}",
            file=place.file, row=place.row, field="title", remedy='expected a title such as "Case number 123"',
        )  # fmt: skip
    return int(match[1])


def _texts(row: dict[str, Any], columns: tuple[str, ...], place: RowLocation) -> list[str]:
    values: list[Any] = [*map(row.get, columns)]
    if {*map(type, values)} == _ONLY_TEXT:
        return values
    return [_text(row, column, place) for column in columns]


def _text(row: dict[str, Any], column: str, place: RowLocation) -> str:
    value = row.get(column)
    if isinstance(value, str):
        return value
    if value is not None:
        raise _wrong_type(place, column, "a text", value)
    return ""


def _flag(row: dict[str, Any], column: str, place: RowLocation) -> bool:
    value = row.get(column)
    if not isinstance(value, bool):
        raise _wrong_type(place, column, "true or false", value)
    return value


def _whole_number(row: dict[str, Any], column: str, place: RowLocation) -> int:
    value = row.get(column)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong_type(place, column, "a whole number", value)
    if value > _MOST:
        raise _wrong_type(place, column, "a smaller number", value)
    return value


def _wrong_type(place: RowLocation, column: str, due: str, value: object) -> DataError:
    found = "nothing" if value is None else ascii(value)[:60]
    return DataError(
        f"expected {due}, found {found}", file=place.file, row=place.row, field=column, remedy="correct the row"
    )
