"""One of every defect that `medthink data check` finds, planted in a benchmark on disk and recorded in `planted.json`.

Three are left out: a file that the system refuses to read (`image-unreadable`), a row that is not a case
(`row-unreadable`), which would block every other command, and a second form of a split (`forms-differ`), which would
have to repeat all other defects.
"""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeAlias

from PIL import Image

from medthink.core.jsonio import read_jsonl, write_json, write_jsonl

Row: TypeAlias = dict[str, Any]

_PATH = "image_01_path"
_PARTS = ("id", "path", "caption", "modality", "sub_modality")
_START_BYTES = 20  # the JPEG's start marker and JFIF segment
_COMMENT = b"\xff\xfe\x00\x0eJane Example"
_HUGE = (8000, 6300)


def other_letter(row: Row) -> str:
    """The first letter that is not the answer's."""
    return min(str(letter) for letter in row["options"] if letter != row["correct_answer"])


def _overwrite(field: str, value: Callable[[Row], Any]) -> Callable[[Row], str]:
    def spoil(row: Row) -> str:
        row[field] = value(row)
        return field

    return spoil


def _spoil_option(value: Callable[[Row], str]) -> Callable[[Row], str]:
    def spoil(row: Row) -> str:
        letter = other_letter(row)
        row["options"] = row["options"] | {letter: value(row)}
        return f"options.{letter}"

    return spoil


def _repeat_answer(row: Row) -> str:
    """Two equal options, the later of which is the one that the check names."""
    letter = other_letter(row)
    row["options"] = row["options"] | {letter: row["correct_answer_text"]}
    return f"options.{max(letter, row['correct_answer'])}"


def _drop_option(row: Row) -> str:
    letter = other_letter(row)
    row["options"] = {key: text for key, text in row["options"].items() if key != letter}
    return "options"


def _open_gap(row: Row) -> str:
    """The last image moves one slot up."""
    last = row["image_count"]
    for part in _PARTS:
        row[f"image_{last + 1:02d}_{part}"] = row.pop(f"image_{last:02d}_{part}")
    return f"image_{last:02d}_id"


def _other_chapter(row: Row) -> str:
    first = "Chapter I - Certain infectious and parasitic diseases"
    return "Chapter II - Neoplasms" if row["ICD Chapter"] == first else first


def _repeat_caption(row: Row) -> str:
    for slot in range(1, row["image_count"] + 1):
        row[f"image_{slot:02d}_caption"] = "The findings are shown."
    return "image_01_caption"


def _count_timepoints(row: Row) -> str:
    row |= {"is_longitudinal": True, "timepoint_count": row["image_count"] + 1, "interval_text": "one year each"}
    return "timepoint_count"


IN_ROW: tuple[tuple[str, Callable[[Row], str]], ...] = (
    ("history-empty", _overwrite("CLINICAL_HISTORY", lambda _: "")),
    ("image-count-wrong", _overwrite("image_count", lambda row: row["image_count"] + 1)),
    ("slot-gap", _open_gap),
    ("options-not-five", _drop_option),
    ("option-empty", _spoil_option(lambda _: "")),
    ("options-not-distinct", _repeat_answer),
    ("answer-not-an-option", _overwrite("correct_answer", lambda _: "F")),
    ("answer-text-differs", _overwrite("correct_answer_text", lambda row: row["options"][other_letter(row)])),
    ("modality-unknown", _overwrite("image_01_modality", lambda _: "Computed tomography")),
    ("modality-not-stated", _overwrite("image_01_modality", lambda _: "unknown")),
    ("image-column-unknown", _overwrite("image_7_caption", lambda _: "A caption in a slot that is none")),
    ("caption-repeated", _repeat_caption),
    ("timepoints-exceed-images", _count_timepoints),
    ("icd-missing", _overwrite("ICD Category", lambda _: "")),
    ("icd-malformed", _overwrite("ICD Category", lambda row: row["ICD Category"].replace(" - ", ": "))),
    ("icd-unknown", _overwrite("ICD Category", lambda _: "J83 - No such category")),
    ("icd-contradiction", _overwrite("ICD Chapter", _other_chapter)),
    ("icd-title-differs", _overwrite("ICD Category", lambda row: row["ICD Category"][:3] + " - Another title")),
    ("longitudinal-contradiction", _overwrite("is_longitudinal", lambda row: not row["is_longitudinal"])),
    ("reference-empty", _overwrite("IMAGING_FINDINGS", lambda _: " ")),
    (
        "answer-in-history",
        _overwrite(
            "CLINICAL_HISTORY",
            lambda row: f"{row['CLINICAL_HISTORY']} The referral mentioned {row['correct_answer_text']}.",
        ),
    ),
)


def _move(path: Callable[[Row], str]) -> Callable[[Row, Path], str]:
    """A path that leaves the benchmark; the file it used to name goes, so that no stray file is left."""

    def spoil(row: Row, folder: Path) -> str:
        (folder / row[_PATH]).unlink()
        row[_PATH] = path(row)
        return _PATH

    return spoil


def _rewrite(change: Callable[[bytes], bytes], suffix: str = ".jpg") -> Callable[[Row, Path], str]:
    """Replace the content of the first image; the name is changed to match if only the content should be wrong."""

    def spoil(row: Row, folder: Path) -> str:
        file = folder / row[_PATH]
        data = change(file.read_bytes())
        file.unlink()
        row[_PATH] = row[_PATH].removesuffix(".jpg") + suffix
        (folder / row[_PATH]).write_bytes(data)
        return _PATH

    return spoil


def _remove_file(row: Row, folder: Path) -> str:
    (folder / row[_PATH]).unlink()
    return _PATH


def _link_outside(row: Row, folder: Path) -> str:
    (folder / row[_PATH]).unlink()
    (folder / row[_PATH]).symlink_to("../../../outside.jpg")
    return _PATH


def _name_other_case(row: Row, folder: Path) -> str:
    path = f"images/case99999/{row['image_01_id']}.jpg"
    (folder / path).parent.mkdir()
    (folder / row[_PATH]).rename(folder / path)
    row[_PATH] = path
    return _PATH


def _repeat_path(row: Row, folder: Path) -> str:
    (folder / row["image_02_path"]).unlink()
    row |= {"image_02_id": row["image_01_id"], "image_02_path": row[_PATH]}
    return "image_02_path"


def _repeat_picture(row: Row, folder: Path) -> str:
    (folder / row["image_02_path"]).write_bytes((folder / row[_PATH]).read_bytes())
    return "image_02_path"


def _remove_images(row: Row, folder: Path) -> str:
    for slot in range(1, row["image_count"] + 1):
        (folder / row[f"image_{slot:02d}_path"]).unlink()
        for part in _PARTS:
            del row[f"image_{slot:02d}_{part}"]
    row["image_count"] = 0
    return _PATH


def _encoded(picture: Image.Image, form: str) -> bytes:
    out = BytesIO()
    picture.save(out, form)
    return out.getvalue()


def _see_through(data: bytes) -> bytes:
    picture = Image.open(BytesIO(data)).convert("RGBA")
    picture.putalpha(128)
    return _encoded(picture, "PNG")


def _zero(data: bytes) -> bytes:
    """Overwrite a kilobyte of the picture with zeros; small pictures are enlarged first."""
    whole = _encoded(Image.effect_noise((256, 256), 64).convert("RGB"), "JPEG") if len(data) < 8000 else data
    middle = len(whole) // 2
    return whole[:middle] + bytes(1024) + whole[middle + 1024 :]


def _as(form: str, mode: str = "RGB") -> Callable[[bytes], bytes]:
    return lambda data: _encoded(Image.open(BytesIO(data)).convert(mode), form)


IN_FILES: tuple[tuple[str, Callable[[Row, Path], str]], ...] = (
    ("image-none", _remove_images),
    ("image-path-unsafe", _move(lambda row: row[_PATH].replace("images/", "images/../../", 1))),
    ("image-path-unsafe", _move(lambda row: "/" + row[_PATH])),
    ("image-path-unsafe", _move(lambda row: "https://example.org/" + row[_PATH])),
    ("image-path-unsafe", _move(lambda row: row[_PATH] + "\0.jpg")),
    ("image-path-unsafe", _link_outside),
    ("image-path-disagrees", _name_other_case),
    ("image-file-missing", _remove_file),
    ("image-path-repeated", _repeat_path),
    ("image-duplicate-in-case", _repeat_picture),
    ("image-format-refused", _rewrite(_as("GIF"))),
    ("image-format-differs", _rewrite(_as("PNG"))),
    ("image-alpha", _rewrite(_see_through, ".png")),
    ("image-blank", _rewrite(lambda _: _encoded(Image.new("L", (64, 64), 30), "JPEG"))),
    ("image-tiny", _rewrite(lambda _: _encoded(Image.new("L", (1, 1), 90), "JPEG"))),
    ("image-zeroed", _rewrite(_zero)),
    ("image-too-large", _rewrite(lambda _: _encoded(Image.new("1", _HUGE), "PNG"), ".png")),
    ("image-truncated", _rewrite(lambda data: data[: len(data) // 2])),
    ("image-undecodable", _rewrite(lambda data: data[:_START_BYTES] + data[-2:])),
    ("image-metadata", _rewrite(lambda data: data[:_START_BYTES] + _COMMENT + data[_START_BYTES:])),
)


LONGEST_SHARE = 0.7
HISTORY_SHARE = 0.25
_TAILS = (
    "with typical imaging features and an unremarkable family history",
    "in its classical form with characteristic involvement",
    "confirmed by a characteristic appearance on imaging",
)
_MENTIONS = (
    "The referring physician already suspected {name}.",
    "There was a known history of {name}.",
    "The patient was a known case of {name}.",
)


def plant_shortcuts(row: Row, chance: Random) -> Row:
    """The row with both shortcuts, each in its share of the cases."""
    planted = dict(row)
    if chance.random() < HISTORY_SHARE:
        planted["CLINICAL_HISTORY"] += " " + chance.choice(_MENTIONS).format(name=row["correct_answer_text"])
    return planted | lengthen_answer(row, chance.choice(_TAILS)) if chance.random() < LONGEST_SHARE else planted


def lengthen_answer(row: Row, tail: str) -> Row:
    """The fields of the right option, made longer."""
    text = f"{row['correct_answer_text']} {tail}"
    return {"options": row["options"] | {row["correct_answer"]: text}, "correct_answer_text": text}


FEWEST_CASES = 80


class Planted(NamedTuple):
    """A planted defect, and where the check must find it; no case for a defect of a split or a stray file."""

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
