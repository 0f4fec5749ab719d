"""Each defect of the table, planted alone in a sound benchmark, is found, and nothing else is."""

import io
import os
import resource
import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from medthink.cases.benchmark import Benchmark
from medthink.cases.check import DEFECTS, check_benchmark, image_files
from medthink.cases.files.export import export_benchmark
from medthink.core.jsonio import write_jsonl

STORY = (
    "fever cough dyspnoea ankle swelling trauma fall headache vertigo nausea rash fatigue weight loss pain knee hip "
    "shoulder smoker farmer teacher pilot dancer baker sailor previously healthy admitted referred examined sudden "
    "gradual nightly morning palpable mass effusion stiffness numbness weakness blurred vision"
)


def picture(seed: int, *, channels: int = 3, side: int = 8) -> Image.Image:
    image_files = np.random.default_rng(seed).integers(0, 256, (side, side, channels), dtype=np.uint8)
    return Image.fromarray(image_files)


def encoded(image: Image.Image, format_: str = "JPEG", **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, format_, **options)
    return stream.getvalue()


def sound_row(number: int, images: int = 2) -> dict[str, Any]:
    chosen = np.random.default_rng(number).choice(STORY.split(), 30)
    letter = "ABCDE"[number % 5]
    row: dict[str, Any] = {
        "title": f"Case number {number}",
        "CLINICAL_HISTORY": f"Patient {number}: " + " ".join(chosen),
        "IMAGING_FINDINGS": "A lesion is seen.",
        "discussion": "Background\nThe lesion is discussed.",
        "options": {each: f"Disease {each} of type {number}" for each in "ABCDE"},
        "correct_answer": letter,
        "correct_answer_text": f"Disease {letter} of type {number}",
        "ICD Chapter": "Chapter II - Neoplasms",
        "ICD Block": "C30-C39 - Malignant neoplasms of respiratory and intrathoracic organs",
        "ICD Category": "C34 - Malignant neoplasm of bronchus and lung",
        "is_longitudinal": False,
        "timepoint_count": 1,
        "interval_text": "",
        "image_count": images,
    }
    for slot in range(1, images + 1):
        row |= slot_fields(number, slot)
    return row


def slot_fields(number: int, slot: int) -> dict[str, str]:
    id_ = f"img_{number}-{slot}"
    values = {
        "id": id_,
        "path": f"images/case{number:05d}/{id_}.jpg",
        "caption": f"Axial image {slot} with a lesion.",
        "modality": "CT",
        "sub_modality": "HRCT / Thin-slice CT",
    }
    return {f"image_{slot:02d}_{name}": value for name, value in values.items()}


class Draft:
    """Rows by split and files by path, to be spoiled before they are written."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.rows = {"train": [sound_row(99), sound_row(12345)], "test": [sound_row(7)]}
        self.files: dict[str, bytes] = {}
        self.draw()

    def draw(self) -> None:
        """Give every slot that has none its own picture."""
        for row in self.all_rows():
            for name, path in row.items():
                if name.endswith("_path"):
                    number, slot = int(row["title"].split()[-1]), int(name.split("_")[1])
                    self.files.setdefault(path, encoded(picture(number * 100 + slot)))

    def all_rows(self) -> list[dict[str, Any]]:
        return [row for rows in self.rows.values() for row in rows]

    def path(self, number: int = 99, slot: int = 1) -> str:
        """The file of a sound slot."""
        return slot_fields(number, slot)[f"image_{slot:02d}_path"]

    def write(self) -> Benchmark:
        for split, rows in self.rows.items():
            write_jsonl(self.root / f"{split}.jsonl", rows)
        for path, data in self.files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_bytes(data)
        return Benchmark.open(self.root)


@pytest.fixture
def draft(tmp_path: Path) -> Draft:
    return Draft(tmp_path / "bench")


Plant = Callable[..., None]
PLANTS: dict[str, list[Plant]] = {}


def plants(code: str) -> Callable[[Plant], Plant]:
    def keep(plant: Plant) -> Plant:
        PLANTS.setdefault(code, []).append(plant)
        return plant

    return keep


def set_fields(code: str, *, row: int = 0, **fields: object) -> None:
    def plant(draft: Draft) -> None:
        draft.rows["train"][row].update(fields)

    plant.__name__ = f"{code}:{fields}"[:80]
    PLANTS.setdefault(code, []).append(plant)


set_fields("row-unreadable", timepoint_count="two")
set_fields("row-unreadable", title="A case without a number")
set_fields("history-empty", CLINICAL_HISTORY=" \n")
set_fields("history-empty", CLINICAL_HISTORY="")
set_fields("history-empty", CLINICAL_HISTORY="—")
set_fields("image-count-wrong", image_count=3)
set_fields("image-count-wrong", image_count=0)
set_fields("answer-not-an-option", correct_answer="F")
set_fields("answer-not-an-option", correct_answer="")
set_fields("answer-text-differs", correct_answer_text="Disease X")
set_fields("modality-unknown", image_01_modality="ct")
set_fields("modality-unknown", image_02_modality="")
set_fields("modality-not-stated", image_02_modality="unknown")
set_fields("icd-malformed", **{"ICD Chapter": "II - Neoplasms"})
set_fields("icd-malformed", **{"ICD Block": "C30 - Malignant neoplasms"})
set_fields("icd-malformed", **{"ICD Category": "C34.1 - Upper lobe, bronchus or lung"})
set_fields("icd-missing", **{"ICD Category": ""})
set_fields("icd-missing", **{"ICD Chapter": " ", "ICD Block": "", "ICD Category": ""})
set_fields("icd-unknown", **{"ICD Category": "C99 - Something"})
set_fields("icd-unknown", **{"ICD Block": "C31-C33 - Something"})
set_fields("icd-contradiction", **{"ICD Category": "C50 - Malignant neoplasm of breast"})
set_fields("icd-contradiction", **{"ICD Chapter": "Chapter X - Diseases of the respiratory system"})
set_fields("icd-title-differs", **{"ICD Category": "C34 - Lung cancer"})
set_fields("longitudinal-contradiction", is_longitudinal=True)
set_fields("longitudinal-contradiction", timepoint_count=2)
set_fields("longitudinal-contradiction", timepoint_count=0)
set_fields("longitudinal-contradiction", interval_text="three months")
set_fields("longitudinal-contradiction", is_longitudinal=True, timepoint_count=2)
set_fields("reference-empty", IMAGING_FINDINGS="")
set_fields("reference-empty", discussion="  ")
set_fields("reference-empty", image_02_caption=" ")
set_fields("timepoints-exceed-images", is_longitudinal=True, timepoint_count=3, interval_text="two weeks each")
set_fields("caption-repeated", image_01_caption="The lesion.", image_02_caption="The lesion.")
set_fields("image-column-unknown", image_50_path="images/case00099/x.jpg")
set_fields("image-column-unknown", image_7_id="x")
set_fields("answer-in-history", CLINICAL_HISTORY="Known DISEASE e, of Type-99; comes for follow-up.")


@plants("id-duplicate")
def same_id_in_one_split(draft: Draft) -> None:
    twin = sound_row(99) | {"CLINICAL_HISTORY": "Another story altogether, told at length."}
    draft.rows["train"].append({name: value for name, value in twin.items() if not name.startswith("image_0")})
    draft.rows["train"][-1] |= {name.replace("01", "01"): value for name, value in slot_fields(99, 3).items()}
    draft.rows["train"][-1] = {name.replace("_03_", "_01_"): value for name, value in draft.rows["train"][-1].items()}
    draft.rows["train"][-1]["image_count"] = 1
    draft.draw()


@plants("slot-gap")
def gap(draft: Draft) -> None:
    row = draft.rows["train"][0]
    row |= slot_fields(99, 4)
    row["image_count"] = 3
    draft.draw()


@plants("image-none")
def no_image(draft: Draft) -> None:
    draft.rows["train"][0] = sound_row(99, images=0)
    for slot in (1, 2):
        del draft.files[draft.path(99, slot)]


def unsafe(path: str) -> None:
    @plants("image-path-unsafe")
    def plant(draft: Draft) -> None:
        draft.rows["train"][0]["image_01_path"] = path
        del draft.files[draft.path()]

    plant.__name__ = repr(path)[:40]


for bad in (
    "../../etc/passwd", "/etc/passwd", "images/../../x.jpg", "file:///etc/passwd", "http://127.0.0.1/x.jpg",
    "data:image/png;base64,AAAA", "images/a\0b.jpg", "images\\..\\x.jpg", "//host/share/x.jpg", "x" * 4096,
    "images/case00099/./img_99-1.jpg",
):  # fmt: skip
    unsafe(bad)


@plants("image-path-unsafe")
def symbolic_link_out(draft: Draft) -> None:
    outside = draft.root.parent / "outside.jpg"
    outside.parent.mkdir(parents=True, exist_ok=True)
    outside.write_bytes(draft.files.pop(draft.path()))
    link = draft.root / draft.path()
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)


@plants("image-path-disagrees")
def other_case_in_path(draft: Draft) -> None:
    draft.files["images/case00098/img_99-1.jpg"] = draft.files.pop(draft.path())
    draft.rows["train"][0]["image_01_path"] = "images/case00098/img_99-1.jpg"


@plants("image-path-disagrees")
def other_id_in_path(draft: Draft) -> None:
    draft.rows["train"][0]["image_01_id"] = "somebody_else"


@plants("image-path-disagrees")
def longer_id_in_path(draft: Draft) -> None:
    draft.files["images/case00099/img_99-1.b.jpg"] = draft.files.pop(draft.path())
    draft.rows["train"][0]["image_01_path"] = "images/case00099/img_99-1.b.jpg"


@plants("image-path-disagrees")
def other_layout(draft: Draft) -> None:
    draft.files["images/img_99-1.jpg"] = draft.files.pop(draft.path())
    draft.rows["train"][0]["image_01_path"] = "images/img_99-1.jpg"


@plants("image-file-missing")
def file_missing(draft: Draft) -> None:
    del draft.files[draft.path()]


@plants("image-file-extra")
def file_extra(draft: Draft) -> None:
    draft.files["images/case00099/nobody.jpg"] = encoded(picture(5))


@plants("image-path-repeated")
def path_repeated(draft: Draft) -> None:
    del draft.files[draft.path(99, 2)]
    row = draft.rows["train"][0]
    row["image_02_path"], row["image_02_id"] = row["image_01_path"], row["image_01_id"]


@plants("options-not-five")
def four_options(draft: Draft) -> None:
    row = draft.rows["train"][0]
    row["options"] = {letter: text for letter, text in row["options"].items() if letter != "A"}


@plants("options-not-five")
def other_letters(draft: Draft) -> None:
    options = draft.rows["train"][0]["options"]
    options["F"] = options.pop("A")


@plants("option-empty")
def option_empty(draft: Draft) -> None:
    draft.rows["train"][0]["options"]["A"] = "  "


@plants("forms-differ")
def parquet_says_otherwise(draft: Draft) -> None:
    table = draft.write()["train"].to_arrow().drop_columns(["split"])
    answers = pa.array(["A", *table["correct_answer"].to_pylist()[1:]])
    place = table.schema.get_field_index("correct_answer")
    pq.write_table(table.set_column(place, "correct_answer", answers), draft.root / "train.parquet")


def test_a_parquet_file_that_says_the_same_is_no_problem(draft: Draft) -> None:
    pq.write_table(draft.write()["train"].to_arrow().drop_columns(["split"]), draft.root / "train.parquet")
    assert check_benchmark(Benchmark.open(draft.root)).problems == ()


def test_a_form_that_lacks_a_case_is_told(draft: Draft) -> None:
    table = draft.write()["train"].to_arrow().drop_columns(["split"])
    pq.write_table(table.slice(1), draft.root / "train.parquet")
    [problem] = check_benchmark(Benchmark.open(draft.root)).problems
    assert (problem.code, problem.case, problem.detail) == ("forms-differ", 99, "in train.jsonl, not in train.parquet")


@plants("options-not-distinct")
def options_alike(draft: Draft) -> None:
    options = draft.rows["train"][0]["options"]
    options["A"] = options["B"].upper() + " "


@pytest.mark.parametrize("other", ["{} ", " {}", "{}.", "{}\u200b", "{}\u00a0", "{}  "])
def test_options_that_only_look_different_are_the_same(draft: Draft, other: str) -> None:
    options = draft.rows["train"][0]["options"]
    options["A"] = other.format(options["B"])
    assert "options-not-distinct" in find(draft, "options-not-distinct").counts


def test_composed_and_decomposed_letters_are_the_same(draft: Draft) -> None:
    options = draft.rows["train"][0]["options"]
    options["A"], options["B"] = "Ménière disease", "Me\u0301nie\u0300re disease"
    assert "options-not-distinct" in find(draft, "options-not-distinct").counts


@pytest.mark.parametrize(
    ("answer", "written"),
    [("Liver cyst", "two liver cysts"), ("Metastasis", "known metastases"), ("Lipoma", "several lipomata"),
     ("Biopsy", "repeated biopsies"), ("Abscess", "abscesses")],
)  # fmt: skip
def test_the_plural_of_the_answer_in_the_history_is_a_leak(draft: Draft, answer: str, written: str) -> None:
    row = draft.rows["train"][0]
    row["options"][row["correct_answer"]] = row["correct_answer_text"] = answer
    row["CLINICAL_HISTORY"] = f"A patient with {written}."
    assert "answer-in-history" in find(draft, "answer-in-history").counts


@plants("history-duplicate-in-split")
def same_history_in_split(draft: Draft) -> None:
    draft.rows["train"][1]["CLINICAL_HISTORY"] = draft.rows["train"][0]["CLINICAL_HISTORY"].upper()


@plants("discussion-unsectioned")
def no_heading(draft: Draft) -> None:
    draft.rows["train"][0]["discussion"] = "The background is not a heading here."


@plants("history-duplicate-across-splits")
def same_history(draft: Draft) -> None:
    draft.rows["test"][0]["CLINICAL_HISTORY"] = draft.rows["train"][0]["CLINICAL_HISTORY"] + " Smoker!"


@plants("letters-skewed")
def always_a(draft: Draft) -> None:
    draft.rows["train"] = [sound_row(5 * number + 1000, 1) for number in range(12)]
    only_pictures_of_slots(draft)


@plants("longest-option-right")
def longest(draft: Draft) -> None:
    draft.rows["train"] = [sound_row(number + 1000, 1) for number in range(12)]
    for row in draft.rows["train"]:
        row["correct_answer_text"] += ", with complications"
        row["options"][row["correct_answer"]] = row["correct_answer_text"]
    only_pictures_of_slots(draft)


def only_pictures_of_slots(draft: Draft) -> None:
    draft.files.clear()
    draft.draw()


@plants("image-unreadable")
def file_too_big(draft: Draft) -> None:
    draft.files[draft.path()] = bytes(64 * 1024 * 1024 + 1)


def replace_file(code: str, name: str, make: Callable[[bytes], bytes]) -> None:
    def plant(draft: Draft) -> None:
        draft.files[draft.path()] = make(draft.files[draft.path()])

    plant.__name__ = name
    PLANTS.setdefault(code, []).append(plant)


def png_chunks(side: int) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = (b"\0" * (1 + (side + 7) // 8)) * side
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def without_tables(data: bytes) -> bytes:
    return data[: data.index(b"\xff\xdb")] + data[data.index(b"\xff\xc0") :]


replace_file("image-format-refused", "gif", lambda data: encoded(picture(9), "GIF"))
replace_file("image-format-refused", "html", lambda data: b"<html>404</html>")
replace_file("image-format-refused", "empty", lambda data: b"")
replace_file("image-truncated", "cut", lambda data: data[: len(data) * 3 // 4])
replace_file("image-undecodable", "without_tables", without_tables)
replace_file("image-format-differs", "png", lambda data: encoded(picture(9), "PNG"))
replace_file("image-metadata", "comment", lambda data: encoded(picture(9), comment=b"Jane Doe"))


def png_without_end(data: bytes) -> bytes:
    hidden = b"tEXtPatient\0Jane Doe"
    whole = encoded(picture(9), "PNG")
    return whole[:-12] + struct.pack(">I", len(hidden) - 4) + hidden + struct.pack(">I", zlib.crc32(hidden))


def one_colour(side: int) -> bytes:
    return encoded(Image.new("RGB", (side, side), (20, 20, 20)))


def zeroed(data: bytes) -> bytes:
    whole = encoded(picture(9, side=200))
    middle = len(whole) // 2
    return whole[:middle] + bytes(2000) + whole[middle + 2000 :]


replace_file("image-blank", "one_colour", lambda data: one_colour(8))
replace_file("image-tiny", "one_pixel", lambda data: one_colour(1))
replace_file("image-zeroed", "zeroed", zeroed)


@plants("image-truncated")
def png_hides_text_after_its_picture(draft: Draft) -> None:
    as_png(draft, png_without_end(b""))


def as_png(draft: Draft, data: bytes) -> None:
    row = draft.rows["train"][0]
    row["image_01_path"] = row["image_01_path"].replace(".jpg", ".png")
    del draft.files[draft.path()]
    draft.files[row["image_01_path"]] = data


@plants("image-look-alike")
def footer_apart(draft: Draft) -> None:
    drawn = np.random.default_rng(1).integers(0, 255, (6, 6), dtype=np.uint8)
    shades = np.asarray(Image.fromarray(drawn).resize((256, 256), Image.Resampling.BICUBIC))
    other = shades.copy()
    other[-8:, :100] = 255
    draft.files[draft.path(99, 1)] = encoded(Image.fromarray(shades))
    draft.files[draft.path(12345, 1)] = encoded(Image.fromarray(other))


def test_opaque_alpha_is_no_alarm(draft: Draft) -> None:
    opaque = picture(9).convert("RGBA")
    as_png(draft, encoded(opaque, "PNG"))
    assert check_benchmark(draft.write(), images=True).problems == ()


@plants("image-too-large")
def bomb(draft: Draft) -> None:
    as_png(draft, png_chunks(7_200))


@plants("image-alpha")
def alpha(draft: Draft) -> None:
    as_png(draft, encoded(picture(9, channels=4), "PNG"))


@plants("image-duplicate-in-case")
def twice_in_case(draft: Draft) -> None:
    draft.files[draft.path(99, 2)] = draft.files[draft.path(99, 1)]


@plants("image-duplicate-across-cases")
def twice_in_split(draft: Draft) -> None:
    draft.files[draft.path(12345, 1)] = draft.files[draft.path(99, 1)]


@plants("image-duplicate-across-splits")
def twice_in_benchmark(draft: Draft) -> None:
    shades = np.full((16, 16), 77, dtype=np.uint8)
    shades[8:] = 78  # two flat halves, which every quality keeps: other bytes, same pixels
    grey = Image.fromarray(shades)
    draft.files[draft.path(99, 1)] = encoded(grey, quality=90)
    draft.files[draft.path(7, 1)] = encoded(grey.convert("RGB"), quality=91)


def test_every_defect_of_the_table_has_a_plant() -> None:
    assert PLANTS.keys() == DEFECTS.keys()


def test_a_sound_benchmark_has_no_problem(draft: Draft) -> None:
    report = check_benchmark(draft.write(), images=True)
    assert report.problems == ()
    assert (report.cases, report.images, report.pixels_checked) == (3, 6, True)


def find(draft: Draft, code: str):
    return check_benchmark(draft.write(), images=DEFECTS[code].needs_pixels)


@pytest.mark.parametrize(("code", "plant"), [(code, plant) for code, all_ in PLANTS.items() for plant in all_])
def test_a_planted_defect_is_found_and_nothing_else(draft: Draft, code: str, plant: Plant) -> None:
    plant(draft)
    report = find(draft, code)
    assert set(report.counts) == {code}, report.problems
    problem = report.problems[0]
    assert problem.severity == DEFECTS[code].severity
    assert problem.detail and problem.remedy
    assert problem.split in ("train", "test") or code == "image-file-extra"


@pytest.mark.parametrize("number", [1, 99, 12345, 123456])
def test_zero_padding_is_no_disagreement(draft: Draft, number: int) -> None:
    draft.rows["train"] = [sound_row(number)]
    draft.files.clear()
    draft.draw()
    assert check_benchmark(draft.write()).problems == ()


def test_unpadded_folders_agree_too(draft: Draft) -> None:
    for slot in (1, 2):
        path = draft.path(99, slot).replace("case00099", "case99")
        draft.files[path] = draft.files.pop(draft.path(99, slot))
        draft.rows["train"][0][f"image_{slot:02d}_path"] = path
    assert check_benchmark(draft.write()).problems == ()


def test_all_problems_of_one_benchmark_are_found_at_once_errors_first(draft: Draft) -> None:
    for plant in (four_options, file_extra, gap, same_history):
        plant(draft)
    report = check_benchmark(draft.write())
    assert list(report.counts) == [
        "slot-gap", "options-not-five", "history-duplicate-across-splits", "image-file-extra",
    ]  # fmt: skip
    assert len(report.errors) == 3 and len(report.warnings) == 1


def test_rows_that_cannot_be_read_are_listed_in_the_order_of_the_file(draft: Draft) -> None:
    draft.rows["train"] += [draft.rows["train"][0] | {"title": f"no case {n} {n}"} for n in range(12)]
    problems = check_benchmark(draft.write()).problems
    assert [problem.detail.split(":")[1] for problem in problems] == [*map(str, range(3, 15))]


def test_columns_that_a_whole_file_lacks_are_told_once_and_all(draft: Draft) -> None:
    for row in draft.rows["train"]:
        del row["ICD Block"], row["interval_text"]
    [problem] = find(draft, "row-unreadable").errors
    assert problem.detail == "train.jsonl:1: these columns are missing: ICD Block, interval_text (and 1 more rows)"


def test_a_duplicate_id_across_splits_names_the_other_split(draft: Draft) -> None:
    draft.rows["test"][0]["title"] = "Case number 99"
    details = [problem.detail for problem in check_benchmark(draft.write()).problems if problem.code == "id-duplicate"]
    assert details == ["case 99 is already in train"]


def test_a_word_inside_a_word_is_no_leak(draft: Draft) -> None:
    row = draft.rows["train"][0]
    row["options"]["E"] = row["correct_answer_text"] = "Gout"
    row["CLINICAL_HISTORY"] = "The patient is a goutier man than most and likes ragouts."
    assert check_benchmark(draft.write()).problems == ()


def test_images_in_a_zip_are_looked_at_too(draft: Draft) -> None:
    twice_in_case(draft)
    draft.write()
    with zipfile.ZipFile(draft.root / "images.zip", "w") as archive:
        for path in draft.files:
            archive.write(draft.root / path, path)
            (draft.root / path).unlink()
    for folder in sorted((draft.root / "images").iterdir()):
        folder.rmdir()
    report = check_benchmark(Benchmark.open(draft.root), images=True)
    assert set(report.counts) == {"image-duplicate-in-case"}


@pytest.mark.parametrize("path", ["images/../../a.jpg", "images/case00099/a\\b.jpg", "images/case00099/img_99-1./../a"])
def test_an_unsafe_path_is_found_though_the_zip_holds_it(draft: Draft, path: str) -> None:
    draft.rows["train"][0]["image_01_path"] = path
    data = draft.files.pop(draft.path())
    for split, rows in draft.rows.items():
        write_jsonl(draft.root / f"{split}.jsonl", rows)
    with zipfile.ZipFile(draft.root / "images.zip", "w") as archive:
        for name, content in {**draft.files, path: data}.items():
            archive.writestr(name, content)
    assert check_benchmark(Benchmark.open(draft.root)).counts == {"image-path-unsafe": 1}


def test_an_unsafe_path_is_found_though_the_parquet_file_embeds_it(draft: Draft) -> None:
    export_benchmark(draft.write(), draft.root / "out", format="parquet", embed_images=True)
    file = draft.root / "out/test.parquet"
    table = pq.read_table(file)
    at = table.column_names.index("image_01_path")
    pq.write_table(table.set_column(at, "image_01_path", pa.array(["/etc/hostname"])), file)
    assert check_benchmark(Benchmark.open(file)).counts == {"image-path-unsafe": 1}


@pytest.mark.parametrize(("linked", "named"), [("images", "images"), ("images/case00099", "images/case00099")])
def test_a_linked_folder_is_named_once_as_what_it_is(draft: Draft, linked: str, named: str) -> None:
    draft.write()
    (draft.root / linked).rename(draft.root.parent / "elsewhere")
    (draft.root / linked).symlink_to(draft.root.parent / "elsewhere")
    for images in (False, True):
        report = check_benchmark(Benchmark.open(draft.root), images=images)
        assert [(one.code, one.detail) for one in report.problems] == [
            ("image-path-unsafe", f"a symbolic link leads out of images/: '{named}'")
        ]


def test_members_of_a_zip_with_unsafe_names_are_named(draft: Draft) -> None:
    draft.write()
    with zipfile.ZipFile(draft.root / "images.zip", "w") as archive:
        for path, data in draft.files.items():
            archive.writestr(path, data)
        for name in ("../evil.jpg", "/abs.jpg", "images/../../up.jpg", "images\\win.jpg"):
            archive.writestr(name, b"x")
    shutil.rmtree(draft.root / "images")
    report = check_benchmark(Benchmark.open(draft.root))
    assert {one.code for one in report.problems} == {"image-path-unsafe"}
    names = ["../evil.jpg", "/abs.jpg", "images/../../up.jpg", "images\\win.jpg"]
    assert sorted(one.field for one in report.problems) == sorted(names)
    assert all("no slot names it" in one.detail for one in report.problems)


def test_the_images_of_other_splits_are_not_extra(draft: Draft) -> None:
    file_extra(draft)
    benchmark = draft.write()
    assert check_benchmark(benchmark).counts == {"image-file-extra": 1}
    for part in (Benchmark.open(draft.root / "test.jsonl"), benchmark["test"], benchmark.filter(lambda _: False)):
        assert check_benchmark(part).problems == ()


def test_a_file_whose_name_is_no_unicode_can_be_reported(draft: Draft) -> None:
    draft.write()
    Path(os.fsdecode(os.fsencode(draft.root) + b"/images/\xff.jpg")).touch()
    report = check_benchmark(Benchmark.open(draft.root))
    assert b"udcff.jpg" in msgspec.json.encode(report)


def test_progress_is_told_of_every_case_and_image(draft: Draft) -> None:
    told: list[tuple[str, int]] = []
    check_benchmark(draft.write(), images=True, progress=lambda stage, total: told.append((stage, total)))
    assert told == [("cases", 3)] * 3 + [("images", 6)] * 6


def test_images_are_looked_at_on_all_cores_within_a_limit_of_memory(
    draft: Draft, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    class OneProcess(ProcessPoolExecutor):
        def __init__(self, workers: int, context: BaseContext, start: Callable[[], None]) -> None:
            asked.append(workers)
            super().__init__(1, context, start)
            assert self.submit(resource.getrlimit, resource.RLIMIT_AS).result()[0] == 4 * 1024**3

    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    monkeypatch.setattr(image_files, "_CHUNK", 1)
    monkeypatch.setattr(image_files, "_FEW", 0)
    monkeypatch.setattr(image_files, "ProcessPoolExecutor", OneProcess)
    assert check_benchmark(draft.write(), images=True).problems == ()
    assert asked == [3]


def test_docs_list_every_code_with_its_severity() -> None:
    text = (Path(__file__).parents[3] / "docs" / "checks.md").read_text()
    for defect in DEFECTS.values():
        assert f"| `{defect.code}` | {defect.meaning} | {defect.remedy} |" in text, defect.code


def test_files_checked_in_an_earlier_session_are_not_decoded_again(draft, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    benchmark = draft.write()
    file = min((draft.root / "images").rglob("*.jpg"))
    file.write_bytes(file.read_bytes()[:-40])
    first = check_benchmark(benchmark, images=True).problems
    assert first
    monkeypatch.setattr(image_files, "check_image_file", lambda *_: pytest.fail("a picture was decoded again"))
    assert check_benchmark(benchmark, images=True).problems == first


def test_a_file_that_changed_is_checked_again(draft, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    benchmark = draft.write()
    assert check_benchmark(benchmark, images=True).problems == ()
    file = min((draft.root / "images").rglob("*.jpg"))
    file.write_bytes(b"no picture")
    assert [problem.code for problem in check_benchmark(benchmark, images=True).problems] == ["image-format-refused"]
