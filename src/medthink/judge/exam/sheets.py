"""Sheets of an exam: a text made from an expert's, with a record of what was changed. `sheets.jsonl`, one row each."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from medthink.core.jsonio import write_jsonl
from medthink.core.stored import read_stored_rows
from medthink.judge.kinds import KINDS
from medthink.judge.kinds.preference import QUESTION
from medthink.judge.units import SENTENCES, Source, Unit, UnitSet, split_source, unit_set
from medthink.workflow.sentences import Span

SheetForm = Literal["statements", "omission", "pair"]
SHEETS_FILE = "sheets.jsonl"
UNTOUCHED = "untouched"
REWORDED = "reworded"
LONGER = "longer"


class SheetChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was done to one unit: the edit, whether the unit is still true, and how it read before."""

    place: int
    edit: str
    is_true: bool
    before: str


class ExamSheet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One text to judge.

    `statements`: sentences of a text, at `spans`, changed as `changes` says; with `reverses`, the sheet of that number
    with its units in reverse order. `omission`: a text to be searched for `finding`. `pair`: two texts, of which the
    one called `contender` (longer, or the author of a rewording) is first or second.
    """

    number: int
    case: int
    form: SheetForm
    texts: tuple[str, ...]
    spans: tuple[tuple[int, int], ...] = ()
    changes: tuple[SheetChange, ...] = ()
    reverses: int | None = None
    finding: str = ""
    contender: str = ""
    is_first: bool = False
    answer: str = ""

    def source(self, what: str) -> Source:
        """The sheet as a text to judge by this kind."""
        kind = KINDS[what]
        names = ("first", "second") if self.form == "pair" else (kind.exam_part,)
        return Source(
            run="exam",
            case=self.case,
            sample=self.number,
            what=what,
            parts=dict(zip(names, self.texts, strict=True)),
            answer=self.answer if kind.shows_answer else "",
            findings=((self.finding, True),) if self.finding else (),
            question=QUESTION if self.form == "pair" else "",
        )

    def units(self, source: Source) -> UnitSet:
        """The units of that text, in the order in which a judge is given them."""
        if self.form != "statements":
            return split_source(source)
        ((part, _),) = source.parts.items()
        units: list[Unit] = [source.unit(part, Span(*span)) for span in self.spans]
        return unit_set(source, units[::-1] if self.reverses is not None else units, splitter=SENTENCES)

    def change_of(self, place: int) -> SheetChange:
        """What was done to the unit at a position."""
        untouched = SheetChange(place=place, edit=UNTOUCHED, is_true=True, before="")
        return next((one for one in self.changes if one.place == place), untouched)

    @property
    def base(self) -> int:
        """The number of the sheet it takes its units from."""
        return self.number if self.reverses is None else self.reverses

    def suits(self, what: str) -> bool:
        """Whether this kind of judging can be examined by the sheet."""
        return self.form == form_of(what)


def form_of(what: str) -> SheetForm | None:
    """The form of sheets that examine a kind of judging; None where nothing does."""
    kind = KINDS[what]
    if kind.is_pairwise:
        return "pair"
    if not kind.exam_part:
        return None
    return "omission" if kind.uses_decisive else "statements"


def lay_out(sentences: Sequence[str]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The sentences as one text, and the position of each in it."""
    spans, start = [], 0
    for sentence in sentences:
        spans.append((start, start + len(sentence)))
        start += len(sentence) + 1
    return " ".join(sentences), tuple(spans)


def read_sheets(exam: Path) -> tuple[ExamSheet, ...]:
    """The sheets of an exam."""
    remedy = "was it edited, or written by another release? Make a new exam in another folder"
    return tuple(read_stored_rows(exam / SHEETS_FILE, ExamSheet, name="a sheet", remedy=remedy, may_lack=False))


def write_sheets(exam: Path, sheets: Iterable[ExamSheet]) -> None:
    """Keep the sheets in the exam's folder."""
    write_jsonl(exam / SHEETS_FILE, (msgspec.to_builtins(sheet) for sheet in sheets))
