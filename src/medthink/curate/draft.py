"""A draft: a case on its way into the benchmark, with notes beyond the released columns.

A file of drafts is a benchmark file: JSON Lines with the released columns, readable by `medthink data show`, and one
extra column, `curation`, with the `Notes`. Export leaves that column out.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from medthink.cases.case import Case, Image, ImageReference, ImageStore, Question, Reference
from medthink.cases.files.layout import find_images
from medthink.cases.files.rows import RowLocation, case_from_row, row_from_case
from medthink.core.errors import DataError
from medthink.core.jsonio import read_jsonl

CURATION = "curation"
HISTORY, FINDINGS, DISCUSSION = "CLINICAL_HISTORY", "IMAGING_FINDINGS", "discussion"


class Notes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The notes of curation about a case, beyond the released columns.

    `diagnosis` and `differential` are as the source states them; `candidates` are the diagnoses of the differential
    once it is split; `aliases` holds the other names of a diagnosis; `group` names cases that must share a split.
    `marks` has values that a later stage or the data card needs, by the name of the stage that stored them. `raw` has
    the source's rows until `ingest` has read them.
    """

    source: str = ""
    source_id: str = ""
    licence: str = ""
    section: str = ""
    diagnosis: str = ""
    differential: str | tuple[str, ...] = ""
    candidates: tuple[str, ...] = ()
    aliases: dict[str, tuple[str, ...]] = {}
    group: str = ""
    split: str = ""
    marks: dict[str, Any] = {}
    raw: tuple[dict[str, Any], ...] = ()


class Draft(msgspec.Struct, frozen=True):
    """A case as the last stage left it; immutable: a change makes a new one."""

    case: Case
    notes: Notes

    @property
    def id(self) -> int:
        """The case's number."""
        return self.case.id

    @property
    def gold(self) -> str:
        """The right diagnosis, in its current wording."""
        return self.case.reference.answer_text or self.notes.diagnosis

    def with_question(self, **fields: Any) -> "Draft":
        """The draft with these fields of its question changed."""
        return Draft(replace(self.case, question=replace(self.case.question, **fields)), self.notes)

    def with_reference(self, **fields: Any) -> "Draft":
        """The draft with these fields of its reference changed."""
        return Draft(replace(self.case, reference=replace(self.case.reference, **fields)), self.notes)

    def with_notes(self, **fields: Any) -> "Draft":
        """The draft with these notes changed."""
        return Draft(self.case, replace(self.notes, **fields))

    def with_mark(self, stage: str, mark: Any) -> "Draft":
        """The draft with a value that a stage stores for later ones."""
        return self.with_notes(marks=self.notes.marks | {stage: mark})

    def row(self) -> dict[str, Any]:
        """The draft as a row."""
        return row_from_case(self.case) | {CURATION: msgspec.to_builtins(self.notes)}


def blank_draft(number: int, notes: Notes, *, images: tuple[Image, ...] = (), captions: tuple[str, ...] = ()) -> Draft:
    """A draft with nothing but its number, notes and images."""
    reference = Reference(
        images=tuple(ImageReference(caption, "", "") for caption in captions or ("",) * len(images)),
        findings="",
        discussion="",
        answer="",
        answer_text="",
        icd_chapter="",
        icd_block="",
        icd_category="",
        is_longitudinal=False,
        timepoint_count=1,
        interval_text="",
    )
    question = Question("", images, {})
    case = Case(number, f"Case number {number}", "", question, reference, len(images), {})
    return Draft(case, notes)


def draft_from_row(row: Mapping[str, Any], *, store: ImageStore, place: RowLocation, split: str = "") -> Draft:
    """The draft of a row; a row of a plain benchmark has no notes except its split."""
    rest = dict(row)
    noted = rest.pop(CURATION, None)
    case = case_from_row(rest, split="", store=store, place=place)
    if noted is None:
        return Draft(case, Notes(diagnosis=case.reference.answer_text, split=split))
    try:
        return Draft(case, msgspec.convert(noted, Notes))
    except msgspec.ValidationError as error:
        remedy = "create the file again with this version of medthink"
        raise DataError(str(error), file=place.file, row=place.row, field=CURATION, remedy=remedy) from None


def read_drafts(path: Path) -> Iterator[Draft]:
    """Stream the drafts of a file; any case of a benchmark's JSON Lines file is a draft."""
    store = find_images(path, ())
    for line in read_jsonl(path):
        yield draft_from_row(line.value, store=store, place=RowLocation(str(path), line.number), split=path.stem)


def text_of(draft: Draft, field: str) -> str:
    """The text of a column, for quoting: `CLINICAL_HISTORY`, `image_03_caption`, `curation.differential` …"""
    value: Any = draft.row()
    for part in field.split("."):
        value = value.get(part, "") if isinstance(value, dict) else ""
    return value if isinstance(value, str) else ""


# What a stage may look at, as plain data. Of options, the letters tell nothing about a case.
_LOOKED_AT: dict[str, Callable[[Draft], Any]] = {
    "history": lambda draft: draft.case.question.history,
    "findings": lambda draft: draft.case.reference.findings,
    "discussion": lambda draft: draft.case.reference.discussion,
    "diagnosis": lambda draft: [draft.gold, draft.notes.diagnosis, draft.notes.aliases],
    "list": lambda draft: [draft.notes.differential, draft.notes.candidates],
    "options": lambda draft: sorted(draft.case.question.options.values()),
    "images": lambda draft: [image.id for image in draft.case.question.images],
    "captions": lambda draft: [[one.caption, one.modality] for one in draft.case.reference.images],
}


def look_at(draft: Draft, parts: Iterable[str]) -> Any:
    """These parts of the draft, all of it if none is named: what is asked about a case lasts until they change."""
    return [_LOOKED_AT[part](draft) for part in parts] or draft.row()
