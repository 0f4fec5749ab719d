"""A handful of rows with every kind of value, and the same benchmark in each form it may come in."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from medthink.core.jsonio import write_jsonl


def _tiny_jpeg() -> bytes:
    stream = io.BytesIO()
    Image.new("L", (8, 8), 128).save(stream, "JPEG")
    return stream.getvalue()


JPEG = _tiny_jpeg()


def make_row(number: int, *, images: int = 2, **changes: Any) -> dict[str, Any]:
    """One row in the released form."""
    row: dict[str, Any] = {
        "title": f"Case number {number}",
        "CLINICAL_HISTORY": f"A {number}-year-old with pain\u2028and a second line.",
        "IMAGING_FINDINGS": "A lesion of 3 µm – seen twice.",
        "discussion": "Background. " * 5,
        "options": {letter: f"Diagnosis {letter} of {number}" for letter in "ABCDE"},
        "correct_answer": "B",
        "correct_answer_text": f"Diagnosis B of {number}",
        "ICD Chapter": "Chapter II - Neoplasms",
        "ICD Block": "C00-C14 - Lip",
        "ICD Category": "C00 - Lip",
        "is_longitudinal": number % 2 == 0,
        "timepoint_count": 1 + (number % 2 == 0),
        "interval_text": "two weeks" if number % 2 == 0 else "",
        "image_count": images,
    }
    for slot in range(1, images + 1):
        name = f"image_{slot:02d}"
        row[f"{name}_id"] = f"{number}_{slot}"
        row[f"{name}_path"] = f"images/case{number:05d}/{number}_{slot}.jpg"
        row[f"{name}_caption"] = f"Image {slot} shows it."
        row[f"{name}_modality"] = "CT" if slot == 1 else "MRI"
        row[f"{name}_sub_modality"] = "HRCT / Thin-slice CT"
    return row | changes


def image_bytes(path: str) -> bytes:
    """What stands in the image of this path: a picture, and behind its end what no other has."""
    return JPEG + path.encode()


def image_paths(rows: list[dict[str, Any]]) -> list[str]:
    """Every path the rows name."""
    return [value for row in rows for key, value in row.items() if key.endswith("_path")]


def write_folder(root: Path, splits: dict[str, list[dict[str, Any]]], *, zipped: bool = False) -> Path:
    """A benchmark folder of JSON Lines, with its images as files or in a zip."""
    root.mkdir(parents=True, exist_ok=True)
    paths = [path for rows in splits.values() for path in image_paths(rows)]
    for split, rows in splits.items():
        write_jsonl(root / f"{split}.jsonl", rows)
    if zipped:
        with zipfile.ZipFile(root / "images.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for path in dict.fromkeys(paths):
                archive.writestr(path, image_bytes(path))
        return root
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(image_bytes(path))
    return root


@pytest.fixture
def tiny_rows() -> dict[str, list[dict[str, Any]]]:
    """Two splits; ids of one to five digits, one to 49 images, extra columns of several kinds."""
    return {
        "train": [
            make_row(7, images=1, source="a", note={"deep": [1, None, "x"]}),
            make_row(19254, images=49, source="b", weight=0.5),
            make_row(12, images=3, tags=["one", "two"], note="plain"),
        ],
        "test": [make_row(300, images=2), make_row(301, images=4, source="c")],
    }


@pytest.fixture
def tiny_folder(tmp_path: Path, tiny_rows: dict[str, list[dict[str, Any]]]) -> Path:
    """The rows as a benchmark folder."""
    return write_folder(tmp_path / "tiny", tiny_rows)


@pytest.fixture
def row_maker() -> Callable[..., dict[str, Any]]:
    """`make_row`, for tests that need their own rows."""
    return make_row


@pytest.fixture
def folder_maker() -> Callable[..., Path]:
    """`write_folder`, for tests that need their own folder."""
    return write_folder
