"""A benchmark of any size whose images are noise of about 50 KB: 64 files, linked as often as needed."""

import io
import json
import os
import sys
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))
from small_benchmark import make_row as small_row

DISTINCT = 64
HISTORY = "A 54-year-old patient with chest pain. " * 20
FINDINGS, DISCUSSION = "Findings. " * 20, "Discussion. " * 100
CAPTION = "Axial image with a lesion in the right lobe. " * 3


def write_pictures(folder: Path) -> None:
    """`0.jpg` … `63.jpg`, about 50 KB each."""
    folder.mkdir(parents=True)
    for number in range(DISTINCT):
        pixels = np.random.default_rng(number).integers(0, 255, (268, 268), dtype=np.uint8)
        stream = io.BytesIO()
        Image.fromarray(pixels).save(stream, "JPEG", quality=85)
        (folder / f"{number}.jpg").write_bytes(stream.getvalue())


def write_cases(root: Path, pictures: Path, *, cases: int, images: float) -> Path:
    """A benchmark with one split, `test`, of so many cases with so many images each, on average."""
    root.mkdir(parents=True)
    used = 0
    with (root / "test.jsonl").open("w") as stream:
        for number in range(1, cases + 1):
            count = round(number * images) - used
            stream.write(json.dumps(make_row(number, count)) + "\n")
            folder = root / f"images/case{number:05d}"
            folder.mkdir(parents=True)
            for slot in range(count):
                os.link(pictures / f"{(used + slot) % DISTINCT}.jpg", folder / f"i{number}x{slot + 1}.jpg")
            used += count
    return root


def make_row(number: int, images: int) -> dict:
    """One row in the released form, its texts about as long as the released ones."""
    captions = {f"image_{slot:02d}_caption": CAPTION for slot in range(1, images + 1)}
    texts = {"CLINICAL_HISTORY": f"{HISTORY}Number {number}.", "IMAGING_FINDINGS": FINDINGS, "discussion": DISCUSSION}
    return small_row(number, images) | texts | captions
