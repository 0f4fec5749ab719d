"""Export of a split for lmms-eval and VLMEvalKit, for models that only they can run.

Both show all images before the text, so the question refers to images by number only.
"""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pybase64

from medthink.bridges.targets import TargetOptions, TargetProgress, WrittenTarget
from medthink.cases.benchmark import Benchmark
from medthink.cases.case import LETTERS, Case
from medthink.cases.files.export import copy_as_shown
from medthink.cases.images.content import check_decodes
from medthink.core.errors import UsageError
from medthink.core.files import new_folder, open_for_writing
from medthink.core.jsonio import write_jsonl

_LMMS_TASK = """task: {name}
dataset_path: json
dataset_kwargs:
  data_files:
    {split}: {table}
test_split: {split}
output_type: generate_until
doc_to_visual: !function utils.read_images
doc_to_text: !function utils.write_question
doc_to_target: answer
process_results: !function utils.score
generation_kwargs:
  max_new_tokens: 1024
metric_list:
  - metric: accuracy
    aggregation: mean
    higher_is_better: true
metadata:
  - version: 1.0
"""

_LMMS_UTILS = '''"""How lmms-eval shows a case and reads its answer; written by medthink data export."""

from pathlib import Path

from medthink.models.request import Reply
from medthink.workflow.ask import Unparsed
from medthink.workflow.parsing import parse_answer
from PIL import Image

FOLDER = Path(__file__).parent


def read_images(doc):
    return [Image.open(FOLDER / path).convert("RGB") for path in doc["images"]]


def write_question(doc, lmms_eval_specific_kwargs=None):
    return doc["question"]


def score(doc, results):
    """1 for the right letter, read as medthink score reads it; a reply that commits to none counts as wrong."""
    choice = parse_answer(Reply(text=results[0]), {option["letter"]: option["text"] for option in doc["options"]})
    return {"accuracy": float(not isinstance(choice, Unparsed) and choice.letter == doc["answer"])}
'''


def write_lmms(benchmark: Benchmark, out: Path, options: TargetOptions, progress: TargetProgress) -> WrittenTarget:
    """Write a folder with a task, its table and its images, for `--include_path`."""
    split = benchmark[options.split]
    name = _task_name(out)
    with new_folder(out) as folder:
        table = f"{options.split}.jsonl"
        write_jsonl(folder / table, (_row(case, folder) for case in _told(split, progress)))
        place = (out.resolve() / table).as_posix()
        (folder / f"{name}.yaml").write_text(
            _LMMS_TASK.format(name=name, split=options.split, table=place), encoding="utf-8"
        )
        (folder / "utils.py").write_text(_LMMS_UTILS, encoding="utf-8")
    return WrittenTarget(
        lines=(
            f"{len(split):,} cases → {out}",
            f"python -m lmms_eval --model MODEL --tasks {name} --include_path {out}",
        ),
        warnings=(
            "the task names its table by an absolute path: export again after moving the folder",
            "the task reads replies with medthink: install it in lmms-eval's environment",
        ),
    )


def write_vlmevalkit(
    benchmark: Benchmark, out: Path, options: TargetOptions, progress: TargetProgress
) -> WrittenTarget:
    """Write a table with the images inside, for VLMEvalKit's data folder."""
    if out.suffix != ".tsv":
        raise UsageError(f"{out} would not be found by VLMEvalKit", remedy="give a name that ends in .tsv")
    split = benchmark[options.split]
    letters = sorted({*LETTERS, *(letter for case in split for letter in case.question.options)})
    columns = ["index", "image", "question", *letters, "answer", "category", "split"]
    without = 0
    with open_for_writing(out) as stream:
        stream.write(_tsv_line(columns))
        for case in _told(split, progress):
            without += not case.question.images
            stream.write(_tsv_line([_cell(case, column) for column in columns]))
    return WrittenTarget(
        lines=(
            f"{len(split):,} cases → {out}",
            f"LMUData={out.parent} python run.py --data {out.stem} --model MODEL",
        ),
        warnings=(_OWN_READING, *([_leaves_out(without)] if without else [])),
    )


_OWN_READING = "VLMEvalKit reads replies by its own rules, so that its scores are not those of medthink score"


def _leaves_out(cases: int) -> str:
    has, them = ("1 case has", "it") if cases == 1 else (f"{cases:,} cases have", "them")
    return f"{has} no image: VLMEvalKit leaves {them} out of its score"


def _told(split: Benchmark, progress: TargetProgress) -> Iterator[Case]:
    total = len(split)
    for case in split:
        progress("cases", total)
        for image in case.question.images:
            check_decodes(image.read(), name=image.path)
        yield case


def _task_name(out: Path) -> str:
    name = "".join(char if char.isascii() and char.isalnum() else "_" for char in out.name)
    return name if name.startswith("medthink") else f"medthink_{name}"


def _row(case: Case, folder: Path) -> dict[str, Any]:
    for image in case.question.images:
        copy_as_shown(image, folder)
    options = [{"letter": letter, "text": text} for letter, text in case.question.options.items()]
    listed = "\n".join(f"{one['letter']}. {one['text']}" for one in options)
    return {
        "case": case.id,
        "question": f"{_question(case)}\n\n{listed}\n\nReply with the letter of the right option alone.",
        "options": options,
        "images": [image.path for image in case.question.images],
        "answer": case.reference.answer,
    }


def _cell(case: Case, column: str) -> str:
    match column:
        case "index":
            return str(case.id)
        case "image":
            pictures = [pybase64.b64encode(image.as_shown().data).decode() for image in case.question.images]
            # Several images are written as a Python list, which is parsed there; an empty list is not.
            return repr(pictures) if len(pictures) > 1 else "".join(pictures)
        case "question":
            return _question(case)
        case "answer":
            return case.reference.answer
        case "category":
            return case.reference.icd_chapter or "none"
        case "split":
            return case.split
    return case.question.options.get(column, "")


def _question(case: Case) -> str:
    count = len(case.question.images)
    images = f"The {count} images belong to one patient." if count > 1 else "The image belongs to the patient."
    history = case.question.history
    return f"{history}\n\n{images if count else ''} Which is the most likely diagnosis?".strip()


def _tsv_line(cells: list[str]) -> bytes:
    line = io.StringIO()
    csv.writer(line, delimiter="\t", lineterminator="\n").writerow(cells)
    return line.getvalue().encode()
