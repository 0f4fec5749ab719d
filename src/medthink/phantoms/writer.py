"""A phantom benchmark on disk: planned, painted and written completely or not at all."""

import os
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from functools import cache, partial
from math import log
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from medthink.cases.case import LETTERS
from medthink.cases.icd import who_tree
from medthink.core.digest import seed_from
from medthink.core.errors import DataError, UsageError
from medthink.core.files import new_folder
from medthink.core.jsonio import encode_json
from medthink.phantoms.atlas import families
from medthink.phantoms.defects import FEWEST_CASES, plant_defects, plant_shortcuts
from medthink.phantoms.expert_texts import write_caption, write_discussion, write_findings, write_history
from medthink.phantoms.plan import answer_place, image_count, plan_case

TEST_CASES = 720
MAX_CASES = 99_999
_CHUNK = 16
# Test cases have more images than train cases (8.1 against 6.5): cases are drawn for the test split by this power.
_SIZE_BIAS = 0.7
_README = """# Phantom benchmark

Drawn images and made-up cases in the schema of MedThinkVQA, made by `medthink data synth`. No patient, no clinic, no
medical truth: the signs are stylised, so that several images together decide between the five options and neither the
text nor a single image does. For tests, demonstrations and teaching of the toolkit only.

cases: {cases} ({train} train, {test} test) · seed: {seed} · shortcut: {shortcut} · defects: {defects}
"""


class WrittenCounts(NamedTuple):
    """What was written."""

    train: int
    test: int
    images: int


def write_benchmark(
    out: Path, *, cases: int, seed: int, shortcut: bool = False, defects: bool = False, processes: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> WrittenCounts:  # fmt: skip
    """Write a phantom benchmark into a new folder; `progress` is called with the number of cases done."""
    out = out.resolve()
    fewest = FEWEST_CASES if defects else 2
    if not fewest <= cases <= MAX_CASES:
        raise UsageError(f"cannot make {cases} cases of this kind", remedy=f"ask for {fewest} to {MAX_CASES:,}")
    with new_folder(out) as part:
        counts = _write(part, cases, seed, (shortcut, processes), progress)
        if defects:
            plant_defects(part)
        about = {"cases": cases, "train": counts.train, "test": counts.test, "seed": seed}
        text = _README.format(**about, shortcut=shortcut, defects=defects)
        (part / "README.md").write_text(text, encoding="utf-8")
    return counts


def numbers_of_test(cases: int, seed: int) -> frozenset[int]:
    """Which cases are the test split: a quarter, at most 720, as many of each letter as can be."""
    wanted = max(1, min(TEST_CASES, cases // 4))
    by_letter: dict[int, list[int]] = {letter: [] for letter in range(5)}
    for number in sorted(range(1, cases + 1), key=lambda number: _late(number, seed)):
        by_letter[answer_place(seed, number, "letter")].append(number)
    # Letters take turns, so that the split is as even as its size allows.
    turns = [number for row in _rows(list(by_letter.values())) for number in row]
    return frozenset(turns[:wanted])


def make_phantom_row(seed: int, number: int, shortcut: bool) -> dict[str, Any]:
    """The row of a case, without painting its images."""
    plan = plan_case(seed, number)
    chance = Random(seed_from("words", seed, number))
    chapter, block, category = _icd(plan.disease.icd)
    row: dict[str, Any] = {
        "title": f"Case number {number}",
        "CLINICAL_HISTORY": write_history(chance, families()[plan.family]),
        "IMAGING_FINDINGS": write_findings(chance, plan),
        "discussion": write_discussion(chance, plan),
        "options": {letter: disease.name for letter, disease in zip(LETTERS, plan.options, strict=True)},
        "correct_answer": LETTERS[plan.answer],
        "correct_answer_text": plan.disease.name,
        "ICD Chapter": chapter,
        "ICD Block": block,
        "ICD Category": category,
        "is_longitudinal": bool(plan.intervals),
        "timepoint_count": len(plan.intervals) + 1,
        "interval_text": ", ".join(dict.fromkeys(plan.intervals)),
        "image_count": len(plan.shots),
    }
    for slot, shot in enumerate(plan.shots, start=1):
        row |= {
            f"image_{slot:02d}_id": shot.id,
            f"image_{slot:02d}_path": f"images/case{number:05d}/{shot.id}.jpg",
            f"image_{slot:02d}_caption": write_caption(chance, plan, shot),
            f"image_{slot:02d}_modality": shot.view.modality,
            f"image_{slot:02d}_sub_modality": shot.view.sub,
        }
    return plant_shortcuts(row, chance) if shortcut else row


def _write(
    folder: Path, cases: int, seed: int, how: tuple[bool, int | None], progress: Callable[[int], None] | None
) -> WrittenCounts:
    shortcut, processes = how
    test, images = numbers_of_test(cases, seed), 0
    make = partial(_make_case, folder, seed, shortcut)
    with (
        (folder / "train.jsonl").open("wb") as train_file,
        (folder / "test.jsonl").open("wb") as test_file,
        # Closed explicitly: no process may still be painting when a failed folder is removed.
        closing(_rows_made(folder, cases, make, processes)) as rows,
    ):
        for number, row in enumerate(rows, start=1):
            (test_file if number in test else train_file).write(encode_json(row) + b"\n")
            images += row["image_count"]
            if progress is not None:
                progress(number)
    return WrittenCounts(cases - len(test), len(test), images)


def _rows_made(
    folder: Path, cases: int, make: Callable[[int], dict[str, Any]], processes: int | None
) -> Generator[dict[str, Any], None, None]:
    """The rows in the order of their numbers, made by all cores or by the number of processes asked for."""
    (folder / "images").mkdir()
    workers = min(processes or os.cpu_count() or 1, -(-cases // _CHUNK))
    if workers == 1:
        yield from map(make, range(1, cases + 1))
        return
    # Spawned, not forked: the caller may have threads (a progress bar), and a forked copy of them can hang.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        try:
            yield from pool.map(make, range(1, cases + 1), chunksize=_CHUNK)
        except BrokenProcessPool:
            raise DataError("a worker process died", file=folder, remedy="check that there is enough memory") from None


def _make_case(folder: Path, seed: int, shortcut: bool, number: int) -> dict[str, Any]:
    """Paint and write the images of a case, and give its row."""
    from medthink.phantoms.painters import paint_jpeg
    from medthink.phantoms.painters.scene import ImageSpec

    row, plan = make_phantom_row(seed, number, shortcut), plan_case(seed, number)
    # The patient's left lies on the picture's right.
    side = 1 if plan.side == "left" else -1
    (folder / f"images/case{number:05d}").mkdir()
    for slot, shot in enumerate(plan.shots, start=1):
        look = ImageSpec(shot.sign, side, shot.size)
        data = paint_jpeg(shot.view.painter, look, seed_from("pixels", seed, number, slot))
        (folder / row[f"image_{slot:02d}_path"]).write_bytes(data)
    return row


def _late(number: int, seed: int) -> float:
    """The case's place in the draw for the test split; cases with more images tend to come first."""
    luck = Random(seed_from("split", seed, number)).random()
    return -log(1 - luck) / float(image_count(seed, number) ** _SIZE_BIAS)


def _rows(columns: list[list[int]]) -> Iterator[list[int]]:
    for at in range(max(map(len, columns))):
        yield [column[at] for column in columns if at < len(column)]


@cache
def _icd(category: str) -> tuple[str, str, str]:
    """The labels of chapter, block and category in the released form."""
    tree = who_tree()
    block, *_, chapter = tree.get_ancestors(category)
    title = tree.get_description
    return f"Chapter {chapter} - {title(chapter)}", f"{block} - {title(block)}", f"{category} - {title(category)}"
