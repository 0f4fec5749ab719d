"""Ingest: raw cases from a table, with their images, licence and source."""

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from medthink.core.digest import digest_file
from medthink.core.errors import DataError
from medthink.curate.asking import StageAsk
from medthink.curate.decision import StageResult, drop, keep
from medthink.curate.draft import Draft, Notes, blank_draft
from medthink.curate.mapping import Mapping, Taken, as_text, read_mapping, settle_columns, take
from medthink.curate.stage import Stage, StageSettings
from medthink.curate.tables import find_table, read_table

_WHOLE = re.compile(r"(\d{1,9})(?:\.0+)?")
_CITATION = re.compile(r"\s*\[\d+(?:\s*[,–-]\s*\d+)*\]")


class IngestSettings(StageSettings, frozen=True, kw_only=True):
    """Where the raw cases are, and what is known of all of them."""

    source: Annotated[str, Meta(description="The table of raw cases, or a folder with one.")]
    table: Annotated[str, Meta(description="The table's name, where the folder has several.")] = ""
    mapping: Annotated[str, Meta(description="A file that says which column holds what (TOML).")] = ""
    licence: Annotated[str, Meta(description="The licence of every case whose row names none.")] = ""
    origin: Annotated[str, Meta(description="The source of every case whose row names none.")] = ""


class IngestStage(Stage[IngestSettings]):
    """Rows in, drafts out."""

    name = "ingest"
    settings_type = IngestSettings
    takes_cases = False
    example = "--source cases.csv "
    logs_changes = False

    @cached_property
    def _table(self) -> Path:
        return find_table(self.context.path(self.settings.source), self.settings.table)

    @cached_property
    def _mapping(self) -> Mapping:
        return read_mapping(self.context.path(self.settings.mapping)) if self.settings.mapping else Mapping()

    @cached_property
    def _columns(self) -> dict[str, str]:
        first = next((row for _, row in read_table(self._table)), None)
        if first is None:
            raise DataError("no case in the table", file=self._table, remedy="is this the right file?")
        return settle_columns(self._mapping, list(first), self._table)

    @cached_property
    def _numbers(self) -> list[int]:
        """A number for each case: its own where all have one and no two the same, else its place in the table."""
        rows = [as_text(row.get(self._columns.get("id", ""))) for _, row in read_table(self._table)]
        own = [int(match[1]) for text in rows if (match := _WHOLE.fullmatch(text))]
        is_usable = len(own) == len(rows) and len(set(own)) == len(own) and 0 not in own
        return own if is_usable else list(range(1, len(rows) + 1))

    def read(self) -> Iterator[Draft]:
        """A blank draft for every row, which it notes as it stands."""
        for number, (_, row) in zip(self._numbers, read_table(self._table), strict=True):
            yield blank_draft(number, Notes(raw=row))

    async def decide(self, draft: Draft, ask: StageAsk | None) -> StageResult:  # noqa: ARG002
        """Take what the mapping says, or leave the case out when it has no history or no diagnosis."""
        taken = take(draft.notes.raw, self._columns, self._mapping.headings)
        texts = taken.texts
        for field in ("history", "diagnosis"):
            if not texts.get(field):
                return drop(f"no-{field}", by="rule no empty field", detail=f"the row has no {field}")
        return keep(self._fill(draft, taken), reason="read")

    def _fill(self, draft: Draft, taken: Taken) -> Draft:
        texts = taken.texts
        diagnosis = _without_citation(texts["diagnosis"])
        notes = Notes(
            source=texts.get("source") or self.settings.origin,
            source_id=texts.get("id") or texts.get("title", ""),
            licence=texts.get("licence") or self.settings.licence,
            section=texts.get("section", ""),
            diagnosis=diagnosis,
            differential=taken.differential,
        )
        filled = Draft(draft.case, notes).with_question(history=texts["history"])
        return filled.with_reference(
            findings=texts.get("findings", ""), discussion=texts.get("discussion", ""), answer_text=diagnosis
        )

    def report(self) -> dict[str, Any]:
        """Which columns were read."""
        return {"columns": ", ".join(f"{field} = {column}" for field, column in self._columns.items())}

    def inputs(self) -> Any:
        """The table and the mapping, as they are now."""
        mapping = self.context.path(self.settings.mapping)
        return [digest_file(self._table), digest_file(mapping) if self.settings.mapping else ""]


def _without_citation(name: str) -> str:
    """A diagnosis without reference marks such as [4,6]."""
    return _CITATION.sub("", name).strip()


STAGE = IngestStage
