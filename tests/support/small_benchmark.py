"""A small benchmark with real pictures, and a mark in every withheld field."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image


def picture(seed: int) -> bytes:
    """A small JPEG that no other seed gives."""
    pixels = np.random.default_rng(seed).integers(0, 255, (24, 24), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG")
    return stream.getvalue()


def make_row(number: int, images: int) -> dict[str, Any]:
    """One row in the released form, a mark in every withheld field."""
    row = {
        "title": f"Case number {number}",
        "CLINICAL_HISTORY": f"A patient, number {number} of the clinic, with pain.",
        "IMAGING_FINDINGS": f"WITHHELD findings {number}",
        "discussion": f"WITHHELD discussion {number}",
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
            f"{name}_id": f"i{number}x{slot}",
            f"{name}_path": f"images/case{number:05d}/i{number}x{slot}.jpg",
            f"{name}_caption": f"WITHHELD caption {number}.{slot}",
            f"{name}_modality": "CT",
            f"{name}_sub_modality": "WITHHELD sub",
        }
    return row


def write_benchmark(root: Path, cases: int, images: int = 2) -> Path:
    """A train split of 4 and a test split of so many cases."""
    root.mkdir()
    for split, numbers in (("train", range(1, 5)), ("test", range(100, 100 + cases))):
        rows = [make_row(number, images) for number in numbers]
        (root / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        for number in numbers:
            folder = root / f"images/case{number:05d}"
            folder.mkdir(parents=True)
            for slot in range(1, images + 1):
                (folder / f"i{number}x{slot}.jpg").write_bytes(picture(number * 100 + slot))
    return root
