"""The meaning of a raw table's columns: from their usual names, or from a mapping file.

```toml
picks = ["model A", "model B"]   # columns with models' answers: wrong ones are hard distractors

[columns]
diagnosis = "FinalDiagnosis"
differential = "DifferentialDiagnosisList"
image = "image{n}_file"          # {n} counts from 1; or `images`, one column with all paths
caption = "image{n}_caption"

[headings.PostDescription]       # a column with several texts under headings
history = "Clinical History:"
findings = "Imaging Findings:"
```
"""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from medthink.cases.case import MAX_IMAGES
from medthink.core.errors import DataError, suggest
from medthink.core.jsonio import read_toml

RawRow = dict[str, Any]
# The usual names, without case, spaces and underscores.
_USUAL: dict[str, tuple[str, ...]] = {
    "id": ("id", "caseid", "case", "casenumber", "sourcerowindex"),
    "title": ("title", "casetitle"),
    "history": ("clinicalhistory", "history", "clinicalinformation"),
    "findings": ("imagingfindings", "findings"),
    "discussion": ("discussion",),
    "diagnosis": ("finaldiagnosis", "diagnosis", "correctanswertext"),
    "differential": (
        "differentialdiagnosislist", "differentialdiagnosis", "difdiagnosislist", "differentials", "differential",
    ),
    "section": ("section", "area", "category"),
    "source": ("link", "sourcelink", "source", "url", "doi"),
    "licence": ("licence", "license"),
    "images": ("images", "files", "imagefiles", "image", "imagepath", "imagefile", "file", "filename"),
}  # fmt: skip
FIELDS = (*_USUAL, "image", "caption", "modality")
_NUMBERED = {
    "image": ("image{n}_path", "image_{n:02d}_path", "image{n}_file", "image{n}"),
    # The last ones are for tables with one image in each row.
    "caption": ("image{n}_caption", "image_{n:02d}_caption", "image_caption", "caption"),
    "modality": ("image{n}_modality", "image_{n:02d}_modality", "image_modality", "modality"),
}
_BETWEEN = re.compile(r"[;\n|]+")


class Mapping(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The columns by field, those with several texts under headings, and those with models' answers."""

    columns: dict[str, str] = {}
    headings: dict[str, dict[str, str]] = {}
    picks: tuple[str, ...] = ()


class MappedRow(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a row, by field, and its images' files with their captions and modalities."""

    texts: dict[str, str]
    differential: str | tuple[str, ...]
    images: tuple[str, ...]
    captions: tuple[str, ...]
    modalities: tuple[str, ...]


def read_mapping(path: Path) -> Mapping:
    """The mapping file, or DataError."""
    try:
        mapping = msgspec.convert(read_toml(path, remedy="see docs/curate.md for an example"), Mapping)
    except msgspec.ValidationError as error:
        raise DataError(str(error), file=path, remedy="see docs/curate.md for an example") from None
    named = [*mapping.columns, *(field for fields in mapping.headings.values() for field in fields)]
    if strange := [field for field in named if field not in FIELDS]:
        remedy = suggest(strange[0], FIELDS, f"fields are: {', '.join(FIELDS)}")
        raise DataError("no such field", file=path, field=strange[0], remedy=remedy)
    return mapping


def resolve_columns(mapping: Mapping, columns: list[str], file: Path) -> dict[str, str]:
    """The column of every field that has one: from the mapping, else by its usual name."""
    for field, column in mapping.columns.items():
        if "{n" not in column and column not in columns:
            raise DataError(
                f"no column {column!r}", file=file, field=field, remedy=suggest(column, columns, "correct it")
            )
    if missing := [name for name in (*mapping.headings, *mapping.picks) if name not in columns]:
        raise DataError(f"no column {missing[0]!r}", file=file, remedy=suggest(missing[0], columns, "correct it"))
    plain = {_plain(column): column for column in reversed(columns)}
    usual = {
        field: next(plain[name] for name in names if name in plain)
        for field, names in _USUAL.items()
        if any(name in plain for name in names)
    }
    numbered = {
        field: next(pattern for pattern in patterns if pattern.format(n=1) in columns)
        for field, patterns in _NUMBERED.items()
        if any(pattern.format(n=1) in columns for pattern in patterns)
    }
    return usual | numbered | mapping.columns


def map_row(row: RawRow, columns: dict[str, str], headings: dict[str, dict[str, str]]) -> MappedRow:
    """The contents of the row."""
    texts = {field: as_text(row.get(column)) for field, column in columns.items() if field in _USUAL}
    for column, parts in headings.items():
        texts |= cut_at_headings(as_text(row.get(column)), parts)
    images = _numbered(row, columns.get("image")) or _listed(row.get(columns.get("images", "")))
    stated = row.get(columns.get("differential", ""))
    return MappedRow(
        texts=texts,
        differential=tuple(map(as_text, stated)) if isinstance(stated, list) else texts.get("differential", ""),
        images=images,
        captions=_numbered(row, columns.get("caption"), len(images)),
        modalities=_numbered(row, columns.get("modality"), len(images)),
    )


def join_rows(rows: Sequence[MappedRow]) -> MappedRow:
    """One case of several rows: the first text of each field, and the images of all."""
    texts: dict[str, str] = {}
    for row in rows:
        texts |= {field: text for field, text in row.texts.items() if not texts.get(field)}
    return MappedRow(
        texts=texts,
        differential=next((row.differential for row in rows if row.differential), ""),
        images=tuple(one for row in rows for one in row.images),
        captions=tuple(one for row in rows for one in row.captions),
        modalities=tuple(one for row in rows for one in row.modalities),
    )


def fields_that_differ(rows: Sequence[MappedRow]) -> list[str]:
    """The fields for which rows of one case have different texts."""
    told = {(field, text) for row in rows for field, text in row.texts.items() if text}
    counts = Counter(field for field, _ in told)
    return [field for field in _USUAL if counts[field] > 1 and field != "images"]


def cut_at_headings(text: str, headings: dict[str, str]) -> dict[str, str]:
    """The texts under the headings; a missing heading has no text."""
    places = sorted((at, field) for field, heading in headings.items() if (at := text.find(heading)) >= 0)
    ends = [at for at, _ in places[1:]] + [len(text)]
    return {field: text[at + len(headings[field]) : end].strip() for (at, field), end in zip(places, ends, strict=True)}


def as_text(value: Any) -> str:
    """A cell as a string; a whole number written as 18821.0 is 18821."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _numbered(row: RawRow, pattern: str | None, count: int | None = None) -> tuple[str, ...]:
    """The cells of the numbered columns: as many as requested, else as many as are filled."""
    if pattern is None:
        return () if count is None else ("",) * count
    most = MAX_IMAGES if count is None else count
    names = [pattern.format(n=n) for n in range(1, most + 1)]
    # A column without a number is about the first image.
    cells = [as_text(row.get(name)) if name not in names[:place] else "" for place, name in enumerate(names)]
    if count is None:
        while cells and not cells[-1]:
            cells.pop()
    return tuple(cells)


def _listed(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(as_text(one.get("path") if isinstance(one, dict) else one) for one in value)
    return tuple(part.strip() for part in _BETWEEN.split(as_text(value)) if part.strip())


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).lower()
