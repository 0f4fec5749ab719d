"""Questions ruled on in any order, with builds and edits in between, end in the benchmark of one fresh build."""

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from medthink.curate.build import build
from medthink.curate.plan import read_plan
from medthink.curate.review import answer_row, read_rows
from medthink.curate.rulings import JOURNAL, Answer, ReviewRow

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
        noise = np.random.default_rng(number).integers(0, 255, (24, 24), dtype=np.uint8)
        Image.fromarray(noise).save(folder / f"{number}.png")
    return folder / "plan.toml"


def decide(row: ReviewRow, choice: int) -> Answer:
    if not row.is_undecided:
        return Answer(is_right=("yes", "no")[choice % 2])
    values = VALUES.get(row.reason, ("",))
    return Answer(ruling="out" if choice % 4 == 3 else "in", value=values[choice % len(values)])


def carry_out(folder: Path, raw: list[dict[str, Any]], move: Move) -> None:
    kind, which, choice = move
    if kind == "build":
        build(read_plan(folder / "plan.toml"))
    elif kind == "edit":
        raw[which % len(raw)]["clinical_history"] += " Later edited."
        prepare(folder, raw)
    elif asked := read_rows(folder / "work"):
        row = asked[which % len(asked)]
        answer_row(folder / "work", row.question, decide(row, choice), who="cora")


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


moves = st.tuples(st.sampled_from(("rule", "rule", "rule", "build", "edit")), st.integers(0, 40), st.integers(0, 11))


@settings(max_examples=8)
@given(st.lists(moves, max_size=14))
def test_rulings_in_any_order_end_like_one_fresh_build(given_moves: list[Move]) -> None:
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        first, fresh, raw = Path(one), Path(other), rows()
        prepare(first, raw)
        build(read_plan(first / "plan.toml"))
        for move in given_moves:
            carry_out(first, raw, move)
        settle_all(first)
        prepare(fresh, raw)
        (fresh / "work").mkdir()
        shutil.copy(first / "work" / JOURNAL, fresh / "work" / JOURNAL)
        end = build(read_plan(fresh / "plan.toml"))
        assert end.waiting == 0
        assert content(first / "work/benchmark") == content(fresh / "work/benchmark")
        assert content(fresh / "work/benchmark")
