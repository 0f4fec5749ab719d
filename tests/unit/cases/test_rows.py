from pathlib import Path
from typing import Any

import msgspec
import pytest

from medthink.cases.case import Case, Image, Question
from medthink.cases.files.rows import COLUMNS, SLOT_COLUMNS, RowLocation, case_from_row, row_from_case
from medthink.cases.images.stores import NoImages
from medthink.core.errors import DataError

STORE = NoImages(Path())


def read(row: Any) -> Case:
    return case_from_row(row, split="test", store=STORE, place=RowLocation("f.jsonl", 4))


def refusal(row: Any) -> DataError:
    with pytest.raises(DataError) as caught:
        read(row)
    assert (caught.value.file, caught.value.row) == ("f.jsonl", 4)
    return caught.value


def test_a_row_becomes_a_case_and_the_same_row_again(row_maker: Any) -> None:
    row = row_maker(42, images=49, extra={"any": ["thing"]})
    case = read(row)
    assert (case.id, case.split, case.image_count) == (42, "test", 49)
    assert case.modalities == ("CT", "MRI")
    assert [image.slot for image in case.question.images] == list(range(1, 50))
    assert case.reference.images[48].caption == "Image 49 shows it."
    assert row_from_case(case) == row


def test_the_released_schema_is_whole() -> None:
    assert len(COLUMNS) == len(set(COLUMNS)) == 14
    assert len(SLOT_COLUMNS) == 49 * 5
    assert SLOT_COLUMNS[-1] == "image_49_sub_modality"


def test_nothing_withheld_can_be_reached_from_a_question(row_maker: Any) -> None:
    secret = "withheld"
    row = row_maker(1, images=3, note=secret)
    open_columns = {"title", "CLINICAL_HISTORY", "options", "is_longitudinal", "timepoint_count", "image_count"}
    for column, value in row.items():
        if isinstance(value, str) and column not in open_columns and not column.endswith(("_id", "_path")):
            row[column] = secret
    case = read(row)
    assert secret in str(msgspec.structs.asdict(case.reference))
    reached = [getattr(case.question, name) for name in Question.__struct_fields__]
    reached += [getattr(image, name) for image in case.question.images for name in Image.__struct_fields__]
    reached += [vars(image.store) for image in case.question.images]
    assert secret not in str(reached)


@pytest.mark.parametrize(
    ("title", "number"),
    [("Case number 7", 7), ("Case number 00007", 7), ("19254", 19254), ("Case 3.", 3), ("Fall Nr. 12", 12)],
)
def test_the_id_is_the_number_in_the_title(row_maker: Any, title: str, number: int) -> None:
    assert read(row_maker(1, title=title)).id == number


@pytest.mark.parametrize("title", ["", "no number", "Case 1 of 2", None, "Case " + "9" * 400])
def test_a_title_without_one_number_is_refused(row_maker: Any, title: Any) -> None:
    assert refusal(row_maker(1, title=title)).field == "title"


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("CLINICAL_HISTORY", 5),
        ("discussion", ["text"]),
        ("is_longitudinal", "true"),
        ("is_longitudinal", 1),
        ("is_longitudinal", None),
        ("timepoint_count", True),
        ("timepoint_count", 1.0),
        ("timepoint_count", 2**63),
        ("image_count", None),
        ("image_02_caption", {"a": 1}),
        ("image_49_id", 7),
        ("options", {"A": 1}),
    ],
)
def test_a_value_of_another_type_is_named(row_maker: Any, column: str, value: Any) -> None:
    error = refusal(row_maker(1, **{column: value}))
    assert error.field == column
    assert "expected " in error.problem


def test_the_largest_number_that_every_format_has_is_read(row_maker: Any) -> None:
    assert read(row_maker(1, timepoint_count=2**63 - 1)).reference.timepoint_count == 2**63 - 1


@pytest.mark.parametrize("row", [None, [], "text", 5])
def test_a_row_must_be_an_object(row: Any) -> None:
    assert "must be an object" in refusal(row).problem


def test_gaps_between_slots_are_kept(row_maker: Any) -> None:
    row = row_maker(1, images=1, image_07_caption="far off", image_49_path="images/x.jpg")
    case = read(row)
    assert [image.slot for image in case.question.images] == [1, 7, 49]
    kept = {name: value for name, value in row_from_case(case).items() if value or not name.startswith("image_")}
    assert kept == row


def test_null_and_empty_mean_the_same(row_maker: Any) -> None:
    row = row_maker(1, interval_text=None, image_03_id=None, image_04_id="", extra=None)
    assert read(row) == read(row_maker(1, interval_text=""))
