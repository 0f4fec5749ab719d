"""A benchmark of any size whose images are noise of about 50 KB: 64 files, linked as often as needed."""

import io
import json
import os
from pathlib import Path

import numpy as np
from PIL import Image

DISTINCT = 64
HISTORY = "A 54-year-old patient with chest pain. " * 20


def write_pictures(folder: Path) -> None:
    """`0.jpg` … `63.jpg`, about 50 KB each."""
    folder.mkdir(parents=True)
    for number in range(DISTINCT):
        pixels = np.random.default_rng(number).integers(0, 255, (268, 268), dtype=np.uint8)
        stream = io.BytesIO()
        Image.fromarray(pixels).save(stream, "JPEG", quality=85)
        (folder / f"{number}.jpg").write_bytes(stream.getvalue())


def write_cases(root: Path, pictures: Path, *, cases: int, images: int) -> Path:
    """A benchmark with one split, `test`, of so many cases with so many images each."""
    root.mkdir(parents=True)
    with (root / "test.jsonl").open("w") as stream:
        for number in range(cases):
            stream.write(json.dumps(make_row(number + 1, images)) + "\n")
            folder = root / f"images/case{number + 1:05d}"
            folder.mkdir(parents=True)
            for slot in range(images):
                picture = pictures / f"{(number * images + slot) % DISTINCT}.jpg"
                os.link(picture, folder / f"i{slot + 1}.jpg")
    return root


def make_row(number: int, images: int) -> dict:
    """One row in the released form."""
    row = {
        "title": f"Case number {number}",
        "CLINICAL_HISTORY": f"{HISTORY}Number {number}.",
        "IMAGING_FINDINGS": "Findings. " * 20,
        "discussion": "Discussion. " * 100,
        "options": {letter: f"Disease {letter}{number}" for letter in "ABCDE"},
        "correct_answer": "ABCDE"[number % 5],
        "correct_answer_text": f"Disease {'ABCDE'[number % 5]}{number}",
        "ICD Chapter": "Chapter II - Neoplasms",
        "ICD Block": "C15-C26 - Malignant neoplasms of digestive organs",
        "ICD Category": "C18 - Malignant neoplasm of colon",
        "is_longitudinal": False,
        "timepoint_count": 1,
        "interval_text": "",
        "image_count": images,
    }
    for slot in range(1, images + 1):
        name = f"image_{slot:02d}"
        row |= {
            f"{name}_id": f"i{slot}",
            f"{name}_path": f"images/case{number:05d}/i{slot}.jpg",
            f"{name}_caption": "Axial image with a lesion in the right lobe. " * 3,
            f"{name}_modality": "CT",
            f"{name}_sub_modality": "CT - Abdomen",
        }
    return row
