"""Questions ruled on in any order, with builds and edits in between, end in the benchmark of one fresh build."""

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from medthink.core.tables import csv_text
from medthink.curate.build import build
from medthink.curate.plan import read_plan
from medthink.curate.review import SHEET, answer_row, read_rows
from medthink.curate.rulings import UNDECIDED, Answer, ReviewRow, append_to_journal, read_journal

PLAN = """work = "work"
seed = 3
review_sample = 2
[ingest]
source = "raw.jsonl"
[aliases]
[options]
[leaks]
[balance]
max_rank_share = 1.0
[modality]
infer_from_case = false
unknown = "hold"
[split]
max_rank_share = 1.0
test_share = 0.5
[export]
"""
HISTORIES = (
    "Fever since 12 March 2021, seen by Mr. Schmidt.",
    "Fever with telangiectasias. No lipoma was seen. MRN 4711882.",
    "Patient 1: pain. Patient 2: fever.",
    "Fever and pain for some days.",
)
LISTS = ("Lipoma; A a; B b; C c; D d; E e", "A a; B b; C c; D d; E e", "Lipoma, benign type; A a; B b; C c; D d; E e")
# What a person may write, useful or not, by the reason of the question.
VALUES = {"no-licence": ("CC0", ""), "modality-unknown": ("CT", "1=MRI", "scan"), "gold-proposed": ("", "A a", "Aa")}
Move = tuple[str, int, int]
MOVES = ("rule", "rule", "rule", "sheet", "sheet", "late sheet", "build", "edit", "picture", "lose")


def rows() -> list[dict[str, Any]]:
    """Eight raw cases that raise questions at several stages."""
    return [
        {
            "id": number,
            "clinical_history": HISTORIES[number % 4] + f" Number {number} of the day." * 2,
            "final_diagnosis": "Lipoma" if number % 5 else "Hereditary telangiectasia",
            "differential_diagnosis": LISTS[number % 3].split("; "),
            "licence": "CC0" if number % 2 else "",
            "images": [f"{number}.png"],
            "image1_caption": "A CT." if number % 3 else "A nodule.",
        }
        for number in range(1, 9)
    ]


def prepare(folder: Path, raw: list[dict[str, Any]]) -> Path:
    (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
    (folder / "raw.jsonl").write_text("".join(json.dumps(row) + "\n" for row in raw), encoding="utf-8")
    for number in range(1, 9):
        draw(folder, number, number)
    return folder / "plan.toml"


def draw(folder: Path, number: int, seed: int) -> None:
    noise = np.random.default_rng(seed).integers(0, 255, (24, 24), dtype=np.uint8)
    Image.fromarray(noise).save(folder / f"{number}.png")


EDITS: tuple[Callable[[dict[str, Any]], Any], ...] = (
    lambda row: row.update(clinical_history=row["clinical_history"] + " Later edited."),
    lambda row: row.update(clinical_history="Pain for a week."),
    lambda row: row.update(licence="" if row["licence"] else "CC BY 4.0"),
    lambda row: row.update(differential_diagnosis=[*row["differential_diagnosis"], "F f"]),
    lambda row: row.update(image1_caption="A nodule."),
)


def fill_in(work: Path, place: int, choice: int, before: bytes | None) -> None:
    """Answer in the sheet, as a spreadsheet does that may have been opened long before."""
    sheet = work / SHEET
    if before is not None:
        sheet.write_bytes(before)
    rows = list(csv.DictReader(io.StringIO(sheet.read_text(encoding="utf-8-sig"))))
    if rows:
        row = rows[place % len(rows)]
        given = (
            Answer(ruling=("in", "out", "", "yes")[choice % 4]) if row["asked"] == UNDECIDED else Answer(is_right="no")
        )
        row |= {"ruling": given.ruling, "is_right": given.is_right}
        sheet.write_text(csv_text(list(row), rows), encoding="utf-8-sig")


def decide(row: ReviewRow, choice: int) -> Answer:
    if not row.is_undecided:
        return Answer(is_right=("yes", "no")[choice % 2])
    values = VALUES.get(row.reason, ("",))
    return Answer(ruling="out" if choice % 4 == 3 else "in", value=values[choice % len(values)])


def carry_out(folder: Path, raw: list[dict[str, Any]], pictures: dict[int, int], early: bytes, move: Move) -> None:
    kind, which, choice = move
    work = folder / "work"
    match kind:
        case "build":
            build(read_plan(folder / "plan.toml"))
        case "edit":
            EDITS[choice % len(EDITS)](raw[which % len(raw)])
            (folder / "raw.jsonl").write_text("".join(json.dumps(row) + "\n" for row in raw), encoding="utf-8")
        case "picture":
            pictures[which % 8 + 1] = 100 + choice
            draw(folder, which % 8 + 1, 100 + choice)
        case "lose":
            shutil.rmtree(work / ("benchmark" if choice % 2 else "cases/images"), ignore_errors=True)
        case "sheet" | "late sheet":
            fill_in(work, which, choice, early if kind == "late sheet" else None)
        case "rule":
            if asked := read_rows(work):
                row = asked[which % len(asked)]
                answer_row(work, row.question, decide(row, choice), who="cora")


def settle_all(folder: Path) -> None:
    """Answer whatever is still asked, so that it can be used, until nothing waits."""
    for _ in range(30):
        end = build(read_plan(folder / "plan.toml"))
        odd = {cell.row for cell in end.odd}
        asked = list(enumerate(read_rows(folder / "work"), start=2))
        waiting = [row for number, row in asked if row.is_undecided and (not row.is_answered or number in odd)]
        if not waiting:
            assert end.waiting == 0 and not odd
            return
        for row in waiting:
            value = {"no-licence": "CC0", "modality-unknown": "CT"}.get(row.reason, "")
            answer_row(folder / "work", row.question, Answer(ruling="in", value=value), who="cora")
    raise AssertionError("questions never end")


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def give_at_once(answered: Path, fresh: Path) -> None:
    """The last answer to every question, in another order than they were given in."""
    last = {entry.row.question: entry for entry in read_journal(answered)}
    fresh.mkdir()
    append_to_journal(fresh, [last[question] for question in sorted(last)])


moves = st.tuples(st.sampled_from(MOVES), st.integers(0, 40), st.integers(0, 11))


@settings(max_examples=6)
@given(st.lists(moves, max_size=14))
def test_rulings_in_any_order_end_like_one_fresh_build(given_moves: list[Move]) -> None:
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        first, fresh, raw, pictures = Path(one), Path(other), rows(), dict[int, int]()
        prepare(first, raw)
        build(read_plan(first / "plan.toml"))
        early = (first / "work" / SHEET).read_bytes()
        for move in given_moves:
            carry_out(first, raw, pictures, early, move)
        settle_all(first)
        prepare(fresh, raw)
        for number, seed in pictures.items():
            draw(fresh, number, seed)
        give_at_once(first / "work", fresh / "work")
        end = build(read_plan(fresh / "plan.toml"))
        assert end.waiting == 0
        assert content(first / "work/benchmark") == content(fresh / "work/benchmark")
        assert content(fresh / "work/benchmark")
