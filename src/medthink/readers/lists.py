"""Reading lists as files for radiologists: a table to fill in, the cases and their images; the key is stored elsewhere.

A reading list shows no model, no condition, no case number and no unit id, only codes that are valid for one reader.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

import msgspec

from medthink.core.errors import UsageError
from medthink.core.files import claim_folder, write_atomic
from medthink.core.jsonio import read_stored, write_json
from medthink.core.tables import Layout, write_table
from medthink.judge.kinds import KINDS
from medthink.judge.rubric import load_rubric
from medthink.judge.units import NOT_SHOWN
from medthink.readers.assignment import ListEntry, ReadingKey, ReadingPlan, Sheet, assign_lists

_WIDTH = 120


def reading_instructions() -> str:
    """The instructions for a list, followed by the rubric."""
    page = (Path(__file__).parent / "how_to_read.txt").read_text(encoding="utf-8").strip()
    return f"{page.replace('{{forms}}', _forms())}\n\n{load_rubric().page}\n"


def _forms() -> str:
    """What to fill in, as a list of forms."""
    forms = {form: text for kind in KINDS.values() for form, text in kind.forms.items()}
    indent = max(map(len, forms)) + 4
    lines = [
        line
        for form, text in forms.items()
        for line in wrap(f"{f'- {form}:':<{indent}}{text}", _WIDTH, subsequent_indent=" " * indent)
    ]
    return "\n".join(lines)


_FILLED_IN = dict.fromkeys(column.name for kind in KINDS.values() for column in kind.columns)
COLUMNS = ("reader", "sheet", "unit", "number", "kind", "part", "text", *_FILLED_IN, "note")
CASE_COLUMNS = (
    "sheet", "images", "history", "options", "captions", "findings", "discussion", "diagnosis", "answer", "whole_text",
)  # fmt: skip
LAYOUT = Layout(
    choices={column.name: column.choices for kind in KINDS.values() for column in kind.columns if column.choices},
    widths={
        "text": 70, "history": 60, "findings": 60, "discussion": 80, "captions": 60, "error_types": 30, "note": 40,
    },
    merged=("reader", "annotator", "rater", "case", "title", "sheet"),
)  # fmt: skip
HOW_TO_FILE = "how-to-read.txt"


def write_lists(out: Path, sheets: Sequence[Sheet], plan: ReadingPlan, *, form: str = "csv") -> ReadingKey:
    """Write every reader's list, case table and images, the instructions, and the key; returns the key."""
    if not sheets:
        raise UsageError(
            "there is nothing to read", remedy="run medthink judge first: it splits the run's texts into units"
        )
    refuse_written(out, plan.readers, form)
    lists = assign_lists(sheets, plan)
    write_entries(out, lists, plan.seed, form=form)
    codes = {
        code: one
        for reader, entries in lists.items()
        for entry in entries
        for code, one in entry.codes(plan.seed, reader).items()
    }
    models = {sheet.run: sheet.model for sheet in sheets}
    key = ReadingKey(seed=plan.seed, rubric=load_rubric().version(), runs=models, codes=codes)
    write_json(key_path(out), msgspec.to_builtins(key))
    return key


def refuse_written(out: Path, readers: Sequence[str], form: str) -> None:
    """Raise UsageError if the folder already contains lists, which may be filled in, or something else."""
    lists = [out / f"{reader}{part}.{form}" for reader in readers for part in ("", "-cases")]
    if key_path(out).exists() or any(path.exists() for path in lists):
        raise UsageError(
            f"{out} already contains reading lists, which may be filled in", remedy="name another folder with --out"
        )
    claim_folder(out, HOW_TO_FILE, holds_more=True)


def write_entries(out: Path, lists: Mapping[str, Sequence[ListEntry]], seed: int, *, form: str) -> None:
    """Write every reader's list, case table and images, and the instructions."""
    for reader, entries in lists.items():
        rows: list[dict[str, Any]] = []
        cases: list[dict[str, Any]] = []
        for entry in entries:
            sheet = entry.sheet_code(seed, reader)
            cases.append({"sheet": sheet, "images": _write_images(out, sheet, entry), **_context(entry)})
            rows += list_rows(entry, seed, reader)
        write_table(out / f"{reader}.{form}", COLUMNS, rows, LAYOUT)
        write_table(out / f"{reader}-cases.{form}", CASE_COLUMNS, cases, LAYOUT)
    write_atomic(out / HOW_TO_FILE, [reading_instructions().encode()])


def key_path(out: Path) -> Path:
    """The path of the key of a folder's lists: next to the folder, which is given to the readers."""
    folder = out.resolve()
    return folder.parent / f"{folder.name}-key.json"


def read_key(path: Path) -> ReadingKey:
    """The key of a set of reading lists."""
    remedy = "give the key that medthink reading lists wrote"
    return read_stored(path, ReadingKey, name="a key of reading lists", remedy=remedy)


def list_rows(entry: ListEntry, seed: int, reader: str) -> list[dict[str, Any]]:
    """The rows of a sheet on a reader's list, not filled in."""
    sheet = entry.sheet_code(seed, reader)
    return [
        {
            "reader": reader,
            "sheet": sheet,
            "unit": entry.unit_code(seed, reader, line),
            "number": number,
            "kind": line.kind,
            "part": shown_part(line.part),
            "text": line.text,
        }
        for number, line in enumerate(entry.lines, start=1)
    ]


def shown_part(part: str) -> str:
    """The name of a part of a text, as readers see it."""
    return part.removesuffix(NOT_SHOWN).replace("_", " ")


def _context(entry: ListEntry) -> dict[str, str]:
    whole = _lines(entry.source.marked(entry.units.units))
    data = entry.evidence.data() | {"answer": entry.source.answer, "whole_text": whole}
    return {name: _lines(data.get(name, "")) for name in CASE_COLUMNS if name not in ("sheet", "images")}


def _lines(part: str | Mapping[str, str]) -> str:
    return part if isinstance(part, str) else "\n".join(f"{name}: {text}" for name, text in part.items())


def _write_images(out: Path, sheet: str, entry: ListEntry) -> str:
    """Copy the images under the sheet's code: their own names would reveal the case."""
    names = []
    for number, image in enumerate(entry.evidence.images, start=1):
        data = image.as_shown().data
        name = f"images/{sheet}-{number}.{'png' if data.startswith(bytes([0x89]) + b'PNG') else 'jpg'}"
        write_atomic(out / name, [data])
        names.append(name)
    return "\n".join(names)
