"""A toy benchmark: eight diseases told apart by three signs, each image showing one of them."""

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.core.jsonio import write_jsonl
from medthink.workflow.condition import Condition
from medthink.workflow.view import show_under_condition

SIGNS = (
    {"ring": ("ring shaped lesion", "hollow round lesion"), "disc": ("solid disc lesion", "filled round lesion")},
    {"stripes": ("striped pattern", "parallel bands"), "dots": ("dotted pattern", "scattered speckles")},
    {"upper": ("bright upper half", "raised signal above"), "lower": ("bright lower half", "raised signal below")},
)
NAMES = ("Albinoma", "Brontosis", "Cryptitis", "Dendropathy", "Ectasia", "Fibrellosis", "Gliderma", "Hyalitis")
DISEASES = dict(zip(NAMES, itertools.product(*SIGNS), strict=True))
DISCUSSION = """Background: {name} is a toy.
Clinical Perspective: Patients are drawn.
Imaging Perspective: It shows {signs}.
Clinical Significance: None at all.
Outcome: The patient was well.
Teaching Points: Look at every image."""


def draw(sign: str, rng: random.Random) -> Image.Image:
    """A small grey picture of one sign, at a place that varies, under noise."""
    down, across = np.mgrid[-1:1:64j, -1:1:64j]
    radius = np.hypot(down - rng.uniform(-0.2, 0.2), across - rng.uniform(-0.2, 0.2))
    shift = rng.uniform(0, 6)
    planes = {
        "ring": np.abs(radius - 0.5) < 0.12,
        "disc": radius < 0.5,
        "stripes": np.sin(across * 20 + shift) > 0,
        "dots": (np.sin(across * 20 + shift) > 0.3) & (np.sin(down * 20 + shift) > 0.3),
        "upper": down < rng.uniform(-0.2, 0.2),
        "lower": down > rng.uniform(-0.2, 0.2),
    }
    noise = np.random.default_rng(rng.getrandbits(32)).normal(0, 0.08, (64, 64))
    return Image.fromarray((np.clip(planes[sign] * 0.7 + 0.15 + noise, 0, 1) * 255).astype(np.uint8))


def make_row(number: int, root: Path | None, *, shortcut: bool = False) -> dict[str, Any]:
    """One toy case; its pictures are drawn where a folder is given."""
    rng = random.Random(number)
    five = rng.sample(NAMES, 5)
    right = five[rng.randrange(5)]
    texts = {name: f"{name} of the {rng.choice(('left', 'right'))} side" for name in five}
    if shortcut and rng.random() < 0.8:
        texts[right] += ", with extension into the neighbouring tissue"
    letter = "ABCDE"[five.index(right)]
    row: dict[str, Any] = {
        "title": f"Case number {number}",
        "CLINICAL_HISTORY": f"A {rng.randrange(20, 80)}-year-old with {rng.choice(('pain', 'fever', 'a cough'))}.",
        "IMAGING_FINDINGS": "",
        "discussion": DISCUSSION.format(name=right, signs=", ".join(DISEASES[right])),
        "options": dict(zip("ABCDE", texts.values(), strict=True)),
        "correct_answer": letter,
        "correct_answer_text": texts[right],
        "ICD Chapter": "Chapter II - Neoplasms",
        "ICD Block": "C00-C14 - Lip",
        "ICD Category": "C00 - Lip",
        "is_longitudinal": False,
        "timepoint_count": 1,
        "interval_text": "",
        "image_count": 3,
    }
    captions = []
    for slot, (sign, axis) in enumerate(zip(DISEASES[right], SIGNS, strict=True), start=1):
        path = f"images/case{number:05d}/{number}_{slot}.png"
        captions.append(f"Image with a {rng.choice(axis[sign])}.")
        row |= {
            f"image_{slot:02d}_id": f"{number}_{slot}",
            f"image_{slot:02d}_path": path,
            f"image_{slot:02d}_caption": captions[-1],
            f"image_{slot:02d}_modality": "CT",
            f"image_{slot:02d}_sub_modality": "HRCT / Thin-slice CT",
        }
        if root is not None:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            draw(sign, rng).save(root / path)
    return row | {"IMAGING_FINDINGS": " ".join(captions)}


def write_toy(root: Path, sizes: dict[str, int], *, shortcut: bool = False, pictures: bool = False) -> Benchmark:
    """A toy benchmark of splits of these sizes."""
    root.mkdir(parents=True, exist_ok=True)
    first = 1
    for split, size in sizes.items():
        numbers = range(first, first + size)
        rows = [make_row(number, root if pictures else None, shortcut=shortcut) for number in numbers]
        write_jsonl(root / f"{split}.jsonl", rows)
        first += size
    return Benchmark.open(root)


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    """Clean, with pictures."""
    return write_toy(tmp_path_factory.mktemp("toy"), {"train": 160, "test": 60}, pictures=True)


@pytest.fixture(scope="session")
def clean_texts(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    """Clean, without pictures, larger."""
    return write_toy(tmp_path_factory.mktemp("clean"), {"train": 400, "test": 300})


@pytest.fixture(scope="session")
def leaky_texts(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    """The same with a longer right option in four cases of five."""
    return write_toy(tmp_path_factory.mktemp("leaky"), {"train": 400, "test": 300}, shortcut=True)


@pytest.fixture
def show() -> Callable[..., Case]:
    """Show a case's question under a condition."""

    def shown(case: Case, **condition: Any) -> Any:
        return show_under_condition(Condition(**condition), case.question).question

    return shown
