"""Ingest: raw cases from a table, with their images, licence and source."""

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from medthink.cases.case import MODALITIES, Image, ImageReference
from medthink.cases.images.stores import FolderImages
from medthink.core.digest import digest_file, digest_value
from medthink.core.errors import DataError
from medthink.core.jsonio import read_json
from medthink.core.markup import one_line
from medthink.core.tables import ValueRow, read_raw
from medthink.curate.ask import StageModel
from medthink.curate.decision import StageResult, drop_case, hold_case, pass_case
from medthink.curate.draft import Draft, Notes, blank_draft, read_drafts
from medthink.curate.plan import WorkFolder
from medthink.curate.rulings import CaseRulings
from medthink.curate.settings import IngestSettings
from medthink.curate.sources.images import ImageImporter, ImportedImage, ListedImage
from medthink.curate.sources.mapping import (
    MappedRow,
    Mapping,
    RawRow,
    as_text,
    fields_that_differ,
    join_rows,
    map_row,
    read_mapping,
    resolve_columns,
)
from medthink.curate.stage import Stage

_SUFFIXES = (".csv", ".tsv", ".jsonl", ".json", ".xlsx")
_WRAPPERS = ("data", "cases", "items", "rows")
_ODD_SHOWN = 8
_WHOLE = re.compile(r"(\d{1,9})(?:\.0+)?")
_CITATION = re.compile(r"\s*\[\d+(?:\s*[,–-]\s*\d+)*\]")
_SEVERAL = re.compile(r"\b(?:case|patient) (?:1|one|a)\b.{0,2000}?\b(?:case|patient) (?:2|two|b)\b", re.I | re.S)


class IngestStage(Stage[IngestSettings]):
    """Reads rows of the source as drafts."""

    name = "ingest"
    follows_release = True
    logs_changes = False

    @cached_property
    def _table(self) -> Path:
        return _find_table(self.context.path(self.settings.source), self.settings.table)

    @cached_property
    def _folder(self) -> Path:
        return self.context.path(self.settings.image_dir) if self.settings.image_dir else self._table.parent

    @cached_property
    def _intake(self) -> ImageImporter:
        settings = self.settings
        return ImageImporter(self._folder, self.context.folder, most=settings.max_images, most_frames=settings.frames)

    @cached_property
    def _mapping(self) -> Mapping:
        return read_mapping(self.context.path(self.settings.mapping)) if self.settings.mapping else Mapping()

    @cached_property
    def _columns(self) -> dict[str, str]:
        # Objects leave out what they lack: the first one need not have every column.
        names = list(dict.fromkeys(name for row in _read_rows(self._table) for name in row.values))
        if not names:
            raise DataError("no case in the table", file=self._table, remedy="check that this is the right file")
        return resolve_columns(self._mapping, names, self._table)

    def read(self) -> Iterator[Draft]:
        """A blank draft for every case, with its rows and its id in the source."""
        for number, (name, rows) in zip(self._numbers, self._cases(), strict=True):
            yield blank_draft(number, Notes(source_id=name, raw=tuple(row.values for row in rows)))

    def _cases(self) -> Iterator[tuple[str, list[ValueRow]]]:
        """The id and the rows of each case, in the order of the table."""
        named = ((as_text(row.values.get(self._columns.get("id", ""))), row) for row in _read_rows(self._table))
        if self.settings.one_row_per == "case":
            yield from ((name, [row]) for name, row in named)
            return
        cases: dict[str, list[ValueRow]] = {}
        for name, row in named:
            cases.setdefault(name, []).append(row)
        yield from cases.items()

    @cached_property
    def _numbers(self) -> list[int]:
        """A number for each case: its id if the ids are numbers, else the published one, or its position."""
        named = [(name, rows[0].number) for name, rows in self._cases()]
        names = [name for name, _ in named]
        if self.settings.number_by == "position" or "id" not in self._columns:
            return self.context.release.number_cases(names)
        numbers = [_number_of(name) for name in names]
        if problems := list(
            _find_odd_ids(named, [str(number or name) for number, name in zip(numbers, names, strict=True)])
        ):
            raise self._odd_ids(problems)
        return [number for number in numbers if number] or self.context.release.number_cases(names)

    def _odd_ids(self, problems: list[tuple[int, str]]) -> DataError:
        told = [f"row {row}: {problem}" for row, problem in problems[:_ODD_SHOWN]]
        more = [f"and {len(problems) - _ODD_SHOWN:,} more"] if len(problems) > _ODD_SHOWN else []
        remedy = 'correct them, or let number_by = "position" number the cases'
        if any("again" in problem for _, problem in problems):
            remedy += '; if every row is an image of a case: one_row_per = "image"'
        problem = f"ids that cannot number the cases: {'; '.join([*told, *more])}"
        return DataError(problem, file=self._table, row=problems[0][0], field=self._columns["id"], remedy=remedy)

    async def decide(self, draft: Draft, ask: StageModel | None, rulings: CaseRulings) -> StageResult:  # noqa: ARG002
        """Read the mapped fields; a case without history, diagnosis or images is left out."""
        taken = self._take(draft, rulings)
        for field in ("history", "diagnosis"):
            if not taken.texts.get(field):
                return drop_case(f"no-{field}", by="rule no empty field", detail=f"the row has no {field}")
        images = self._readable_images(draft, taken, rulings)
        burned = ", ".join(f"{image.origin} ({image.id})" for image in images if image.is_burned_in)
        if self.settings.burned_in == "drop":
            images = [image for image in images if not image.is_burned_in]
        if len(images) < self.settings.min_images:
            reason = "few-images" if images else "no-image"
            return drop_case(reason, by="rule min_images", detail=f"{len(images)} images")
        if burned and self.settings.burned_in == "review":
            detail = f"the header says that text is burned in: {burned}"
            rulings.settle(hold_case("burned-in-annotation", by="rule BurnedInAnnotation", detail=detail))
        licence = self._licence(taken)
        if self.settings.needs_licence and not licence:
            question = hold_case("no-licence", by="rule licence", detail="name it in `value`, such as CC BY 4.0")
            licence = rulings.value_of(question, _read_licence)
        if several := _SEVERAL.search(taken.texts["history"]):
            detail = one_line(several[0], 200)
            rulings.settle(hold_case("several-patients", by="rule several patients", detail=detail))
        return pass_case(self._fill(draft, taken, images, licence), reason="read")

    def _readable_images(self, draft: Draft, taken: MappedRow, rulings: CaseRulings) -> list[ImportedImage]:
        try:
            return self._take_images(draft, taken)
        except DataError as error:
            detail = f"{error.file}: {error.problem}"
        question = hold_case("image-unreadable", by="rule every image opens", detail=detail)
        return rulings.value_of(question, _refuse_unreadable)

    def _licence(self, taken: MappedRow) -> str:
        return taken.texts.get("licence") or self.settings.licence

    def _take(self, draft: Draft, rulings: CaseRulings) -> MappedRow:
        rows = [map_row(row, self._columns, self._mapping.headings) for row in draft.notes.raw]
        if differing := fields_that_differ(rows):
            detail = f"the {len(rows)} rows of {draft.notes.source_id} differ in: {', '.join(differing)}"
            rulings.settle(hold_case("rows-differ", by="rule one case", detail=detail))
        return join_rows(rows)

    def _take_images(self, draft: Draft, taken: MappedRow) -> list[ImportedImage]:
        wanted = [
            ListedImage(name, caption, modality if modality in MODALITIES else "")
            for name, caption, modality in zip(taken.images, taken.captions, taken.modalities, strict=True)
            if name
        ]
        return self._intake.take(draft.id, self._intake.find(wanted, taken.texts.get("id", "")))

    def _fill(self, draft: Draft, taken: MappedRow, images: list[ImportedImage], licence: str) -> Draft:
        texts = taken.texts
        diagnosis = _CITATION.sub("", texts["diagnosis"]).strip()
        notes = Notes(
            source=texts.get("source") or self.settings.origin,
            source_id=draft.notes.source_id,
            licence=licence,
            section=texts.get("section", ""),
            diagnosis=diagnosis,
            differential=taken.differential,
            marks=self._marks(draft, images),
        )
        store = FolderImages(self.context.folder)
        shown = tuple(Image(slot, one.id, one.path, store) for slot, one in enumerate(images, start=1))
        filled = Draft(replace(draft.case, image_count=len(images)), notes)
        return filled.with_question(history=texts["history"], images=shown).with_reference(
            images=tuple(ImageReference(one.caption, one.modality, "") for one in images),
            findings=texts.get("findings", ""),
            discussion=texts.get("discussion", ""),
            answer_text=diagnosis,
        )

    def _marks(self, draft: Draft, images: list[ImportedImage]) -> dict[str, Any]:
        """Values for later stages: the source of each image, and the models' answers."""
        picks = [as_text(row.get(column)) for row in draft.notes.raw for column in self._mapping.picks]
        found = {"images": [one.plain() for one in images], "picks": [pick for pick in picks if pick]}
        filled = {name: value for name, value in found.items() if value}
        return {self.name: filled} if filled else {}

    def is_written(self) -> bool:
        """Whether every image is still in the work folder."""
        cases = WorkFolder(self.context.work).case_file(self.name)
        paths = (one.path for draft in read_drafts(cases) for one in draft.case.question.images)
        return all((self.context.folder / path).is_file() for path in paths)

    def not_covered(self) -> tuple[str, ...]:
        """Whether licences were required."""
        return () if self.settings.needs_licence else ("licences: cases without one were accepted",)

    def report(self) -> dict[str, Any]:
        """The columns that were read."""
        return {"columns": ", ".join(f"{field} = {column}" for field, column in self._columns.items())}

    def inputs(self) -> Any:
        """The current table, mapping and image files."""
        mapping = digest_file(self.context.path(self.settings.mapping)) if self.settings.mapping else ""
        needs_files = bool({"image", "images"} & self._columns.keys()) or self.settings.min_images > 0
        return [digest_file(self._table), mapping, self._digest_listing() if needs_files else ""]

    def _digest_listing(self) -> str:
        """A digest that changes when an image file changes, without reading them all."""
        work = self.context.work.resolve()
        files = (file for file in self._folder.resolve().rglob("*") if file.is_file())
        seen = ((file, file.stat()) for file in files if not file.is_relative_to(work))
        # A file may be replaced by another of its size and date; the time of that cannot be set by hand.
        return digest_value(
            sorted([str(file), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns] for file, stat in seen)
        )


def _read_licence(value: str) -> str:
    if not value:
        raise DataError("no licence is named", remedy="write it in `value`, such as CC BY 4.0")
    return value


def _refuse_unreadable(value: str) -> list[ImportedImage]:  # noqa: ARG001
    raise DataError("an image that cannot be read cannot go in", remedy="replace the file, or write out")


def _find_table(path: Path, name: str) -> Path:
    """The table itself, or the only one in a folder."""
    if not path.is_dir():
        return path
    if name:
        return path / name
    tables = sorted(
        file for file in path.iterdir() if file.suffix.lower() in _SUFFIXES and not file.name.startswith(".")
    )
    if len(tables) != 1:
        found = ", ".join(file.name for file in tables) or "none"
        raise DataError(
            f"the folder must contain exactly one table, found: {found}", file=path, remedy="name it with `table`"
        )
    return tables[0]


def _number_of(name: str) -> int | None:
    """The number that an id is; "0100" is 100, and 0 is none."""
    match = _WHOLE.fullmatch(name)
    return int(match[1]) or None if match else None


def _find_odd_ids(named: list[tuple[str, int]], keys: list[str]) -> Iterator[tuple[int, str]]:
    """The row and problem of every id that is empty, stands for two cases, or is no number among numbers."""
    numbers = sum(_number_of(name) is not None for name, _ in named)
    first: dict[str, tuple[str, int]] = {}
    for (name, row), key in zip(named, keys, strict=True):
        before, its_row = first.setdefault(key, (name, row))
        if not name:
            yield row, "no id"
        elif its_row != row:
            yield row, f"{name!r} again, {'as' if name == before else f'which is {before!r}'} in row {its_row}"
        elif numbers and _number_of(name) is None:
            yield row, f"{name!r} is no case number, as other ids are"


def _read_rows(path: Path) -> Iterator[ValueRow]:
    match path.suffix.lower():
        case ".json":
            return (ValueRow(number, row) for number, row in enumerate(_read_json(path), start=1))
        case suffix if suffix in _SUFFIXES:
            return read_raw(path)
    raise DataError("not a table", file=path, remedy=f"give one of {', '.join(_SUFFIXES)}")


def _read_json(path: Path) -> Iterator[RawRow]:
    value = read_json(path)
    if isinstance(value, dict):
        inside = [value[name] for name in _WRAPPERS if isinstance(value.get(name), list)]
        if inside:
            value = inside[0]
        elif all(isinstance(each, dict) for each in value.values()):
            value = [{"id": key} | each for key, each in value.items()]
    if not isinstance(value, list):
        raise DataError("not a list of cases", file=path, remedy="write a JSON array of objects")
    for number, row in enumerate(value, start=1):
        if not isinstance(row, dict):
            raise DataError("a case must be an object", file=path, row=number, remedy="one JSON object for each case")
        yield row


STAGE = IngestStage
