"""What we export loads with Hugging Face `datasets`, and equals what we read ourselves."""

import io
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from medthink.bridges.targets import TargetOptions, write_target
from medthink.bridges.trainers import TRAINERS
from medthink.cases.benchmark import Benchmark
from medthink.cases.files.export import export_benchmark
from medthink.cases.files.rows import RowLocation, case_from_row, row_from_case
from medthink.core.jsonio import write_jsonl


@pytest.fixture
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The library, offline and with a cache of its own."""
    for name, value in {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}.items():
        monkeypatch.setenv(name, value)
    library = pytest.importorskip("datasets")
    library.disable_progress_bars()
    return library


def png(shade: int) -> bytes:
    """A 2 × 2 grey picture."""
    from PIL import Image

    stream = io.BytesIO()
    Image.new("L", (2, 2), shade).save(stream, "PNG")
    return stream.getvalue()


def row(number: int, images: int) -> dict[str, Any]:
    made: dict[str, Any] = dict.fromkeys(
        ("IMAGING_FINDINGS", "discussion", "ICD Chapter", "ICD Block", "ICD Category"), "Text – with µ\u2028."
    )
    made |= {"title": f"Case number {number}", "CLINICAL_HISTORY": "", "interval_text": "", "correct_answer": "A"}
    made |= {"options": dict.fromkeys("ABCDE", "x"), "correct_answer_text": "x", "is_longitudinal": False}
    made |= {"timepoint_count": 1, "image_count": images, "source": f"s{number}", "weight": number / 2}
    for slot in range(1, images + 1):
        for part in ("id", "caption", "modality", "sub_modality"):
            made[f"image_{slot:02d}_{part}"] = f"{part} {slot}"
        made[f"image_{slot:02d}_path"] = f"images/case{number:05d}/{slot}.jpg"
    return made


@pytest.fixture
def benchmark(tmp_path: Path) -> Benchmark:
    root = tmp_path / "in"
    rows = {"train": [row(1, 1), row(20, 49), row(3, 2)], "test": [row(400, 3)]}
    for split, made in rows.items():
        write_jsonl(root / f"{split}.jsonl", made)
        for path in (value for one in made for key, value in one.items() if key.endswith("_path")):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(png(zlib.crc32(path.encode()) % 256))
    return Benchmark.open(root)


def rows_by_datasets(library: ModuleType, folder: Path, form: str, split: str, cache: Path) -> Any:
    file = str(folder / f"{split}.{form}")
    builder = "json" if form == "jsonl" else "parquet"
    return library.load_dataset(builder, data_files={split: file}, split=split, cache_dir=str(cache))


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("form", "embed"), [("jsonl", False), ("parquet", False), ("parquet", True)])
def test_datasets_reads_the_same_cases(
    datasets: ModuleType, benchmark: Benchmark, tmp_path: Path, form: Any, embed: bool
) -> None:
    export_benchmark(benchmark, tmp_path / "out", format=form, embed_images=embed)
    ours = Benchmark.open(tmp_path / "out")
    for split in benchmark.splits:
        theirs = rows_by_datasets(datasets, tmp_path / "out", form, split, tmp_path / "cache")
        pictures = {name: theirs.features[name] for name in theirs.column_names if name[-2:].isdigit()}
        text = theirs.remove_columns(list(pictures))
        place = RowLocation("datasets", 0)
        seen = [case_from_row(one, split=split, store=ours.images, place=place) for one in text]
        assert [row_from_case(case) for case in seen] == [row_from_case(case) for case in ours[split]]
        assert seen == list(ours[split])
        assert len(pictures) == (49 if embed else 0)
        assert all(isinstance(feature, datasets.Image) for feature in pictures.values())


@pytest.mark.filterwarnings("default")
def test_datasets_decodes_the_embedded_images(datasets: ModuleType, benchmark: Benchmark, tmp_path: Path) -> None:
    export_benchmark(benchmark, tmp_path / "out", format="parquet", embed_images=True)
    theirs = rows_by_datasets(datasets, tmp_path / "out", "parquet", "train", tmp_path / "cache")
    for found, case in zip(theirs, benchmark["train"], strict=True):
        for image in case.question.images:
            decoded = found[f"image_{image.slot:02d}"]
            assert decoded.getpixel((0, 0)) == zlib.crc32(image.path.encode()) % 256
        empty = range(len(case.question.images) + 1, 50)
        assert all(found[f"image_{slot:02d}"] is None for slot in empty)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("trainer", "purpose"), [(name, purpose) for name, form in TRAINERS.items() for purpose in form.purposes]
)
def test_datasets_reads_training_examples(
    datasets: ModuleType, benchmark: Benchmark, tmp_path: Path, trainer: Any, purpose: str
) -> None:
    options = TargetOptions(trainer=trainer, task="twi")
    write_target(purpose, benchmark["train"], tmp_path / "out", options, lambda *_: None)
    file = tmp_path / "out" / TRAINERS[trainer].file
    theirs = rows_by_datasets(datasets, file.parent, file.suffix[1:], "train", tmp_path / "cache")
    assert len(theirs) == 3
    for one in theirs:
        messages = one.get("messages") or one["prompt"]
        assert messages[1]["role"] == "user" and messages[1]["content"]
        if file.suffix == ".parquet":
            assert all(picture.size == (2, 2) for picture in one["images"])
    if purpose == "rl" and trainer == "neutral":
        assert [pair["letter"] for pair in theirs[0]["solution"]["options"]] == list("ABCDE")
