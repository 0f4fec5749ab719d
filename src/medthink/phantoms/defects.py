"""One of every defect that `medthink data check` finds, planted in a benchmark on disk and recorded in `planted.json`.

Three are left out: a file that the system refuses to read (`image-unreadable`), a row that is not a case
(`row-unreadable`), which would block every other command, and a second form of a split (`forms-differ`), which would
have to repeat all other defects.
"""

from pathlib import Path
from typing import NamedTuple

from PIL import Image

from medthink.core.jsonio import read_jsonl, write_json, write_jsonl
from medthink.phantoms.shortcuts import lengthen_answer
from medthink.phantoms.spoilers import IN_FILES, IN_ROW, Row

FEWEST_CASES = 80
_PATH = "image_01_path"


class Planted(NamedTuple):
    """What was planted, and where the check must find it; no case for a defect of a split or a stray file."""

    code: str
    split: str
    case: int | None
    field: str


def plant_defects(folder: Path) -> list[Planted]:
    """Plant them all, each in its own case, and record where."""
    train, test = ([line.value for line in read_jsonl(folder / f"{split}.jsonl")] for split in ("train", "test"))
    planted = [*_skew(train), _drop_headings(train[-1]), _stray_file(folder)]
    fresh = iter(train)
    for code, spoil_row in IN_ROW:
        planted.append(_planted(code, row := next(fresh), spoil_row(row)))
    for code, spoil_files in IN_FILES:
        planted.append(_planted(code, row := next(fresh), spoil_files(row, folder)))
    planted.append(_share_picture(next(fresh), next(fresh), folder))
    planted.append(_share_history(next(fresh), next(fresh)))
    planted.append(_redraw_border(next(fresh), next(fresh), folder))
    planted.append(_share_number(next(fresh), next(fresh), folder))
    planted += _share_across_splits(next(fresh), test, folder)
    write_jsonl(folder / "train.jsonl", train)
    write_jsonl(folder / "test.jsonl", test)
    write_json(folder / "planted.json", [defect._asdict() for defect in planted])
    return planted


def _skew(rows: list[Row]) -> list[Planted]:
    """Letter A is right in most cases, and the longest option too."""
    for at, row in enumerate(rows):
        if at % 3:
            options, letter = row["options"], row["correct_answer"]
            row["options"] = options | {"A": options[letter], letter: options["A"]}
            row["correct_answer"] = "A"
        if at % 2:
            row |= lengthen_answer(row, "with a characteristic and unmistakable appearance on all imaging modalities")
    return [
        Planted("letters-skewed", "train", None, "correct_answer"),
        Planted("longest-option-right", "train", None, "options"),
    ]


def _drop_headings(row: Row) -> Planted:
    """A discussion in one paragraph."""
    row["discussion"] = "The appearance is typical and rarely needs a biopsy."
    return Planted("discussion-unsectioned", "train", None, "discussion")


def _stray_file(folder: Path) -> Planted:
    path = "images/case00001/stray.jpg"
    (folder / path).write_bytes(b"")
    return Planted("image-file-extra", "", None, path)


def _share_picture(first: Row, second: Row, folder: Path) -> Planted:
    """The same picture in two cases; the check names whichever it meets later."""
    (folder / second[_PATH]).write_bytes((folder / first[_PATH]).read_bytes())
    return _planted("image-duplicate-across-cases", second, _PATH)


def _share_history(first: Row, second: Row) -> Planted:
    """The same history in two cases of a split."""
    second["CLINICAL_HISTORY"] = first["CLINICAL_HISTORY"]
    return _planted("history-duplicate-in-split", second, "CLINICAL_HISTORY")


def _redraw_border(first: Row, second: Row, folder: Path) -> Planted:
    """A picture of another case with a footer of its own."""
    with Image.open(folder / first[_PATH]) as picture:
        copied = picture.convert("RGB")
    copied.paste((255, 255, 255), (0, copied.height - 4, copied.width // 2, copied.height))
    copied.save(folder / second[_PATH], "JPEG", quality=92)
    return _planted("image-look-alike", second, _PATH)


def _share_number(first: Row, second: Row, folder: Path) -> Planted:
    """The second case under the first one's number, its files moved along."""
    home, number = folder / f"images/case{_number(second):05d}", _number(first)
    for slot in range(1, second["image_count"] + 1):
        path = f"images/case{number:05d}/{second[f'image_{slot:02d}_id']}.jpg"
        (folder / second[f"image_{slot:02d}_path"]).rename(folder / path)
        second[f"image_{slot:02d}_path"] = path
    home.rmdir()
    second["title"] = first["title"]
    return _planted("id-duplicate", second, "title")


def _share_across_splits(train: Row, tests: list[Row], folder: Path) -> list[Planted]:
    """A history and a picture of the train split that turn up in the test split."""
    tests[0]["CLINICAL_HISTORY"] = train["CLINICAL_HISTORY"]
    (folder / tests[1][_PATH]).write_bytes((folder / train[_PATH]).read_bytes())
    return [
        Planted("history-duplicate-across-splits", "test", _number(tests[0]), "CLINICAL_HISTORY"),
        Planted("image-duplicate-across-splits", "test", _number(tests[1]), _PATH),
    ]


def _planted(code: str, row: Row, field: str) -> Planted:
    return Planted(code, "train", _number(row), field)


def _number(row: Row) -> int:
    return int(row["title"].removeprefix("Case number "))
