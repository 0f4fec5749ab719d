"""Importing tables that readers filled in offline into a study: conflicts are shown, nothing is overwritten."""

from pathlib import Path

import msgspec
from sqlalchemy import Connection

from medthink.core.digest import digest_value
from medthink.core.errors import UsageError
from medthink.core.tables import TableRow, read_table
from medthink.judge.kinds import KINDS
from medthink.readers.lists import LAYOUT
from medthink.readers.studies.desk import OpenSitting, list_sittings, read_marks
from medthink.readers.studies.saving import MarkChange, Saved, save_mark
from medthink.readers.studies.setup import Study, list_readers
from medthink.readers.studies.sittings import ReadItem

OFFLINE = "offline"


class TakenIn(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of an import: rows saved, rows already identical, and rows refused, with the reason."""

    kept: int = 0
    same: int = 0
    conflicts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class _Place(msgspec.Struct, frozen=True):
    """Where an item is marked."""

    opened: OpenSitting
    what: str
    item: ReadItem


def take_table(connection: Connection, study: Study, path: Path) -> TakenIn:
    """Save the rows of a readers' table as marks, where nothing is marked yet.

    A row belongs to the reader whose list its code is from. A reading that is already submitted, or whose reader has
    not committed to a diagnosis yet, stays as it is.
    """
    places = _places(connection, study)
    kept = same = 0
    conflicts: list[str] = []
    problems: list[str] = []
    for row in read_table(path, LAYOUT).rows:
        found = places.get(row.cells.get("unit", "").strip())
        if found is None:
            problems.append(f"row {row.number}: no such unit in this study")
            continue
        cells = _cells(found, row)
        before = read_marks(connection, found.opened.id).get(found.item.code)
        if not cells or (before and before.cells == cells):
            same += 1
        elif before:
            conflicts.append(
                f"row {row.number}: already marked as {_words(before.cells)}; the table says {_words(cells)}"
            )
        else:
            problem = _keep(connection, found, cells)
            kept += not problem
            problems += [f"row {row.number}: {problem}"] if problem else []
    return TakenIn(kept=kept, same=same, conflicts=tuple(conflicts), problems=tuple(problems))


def _places(connection: Connection, study: Study) -> dict[str, _Place]:
    return {
        item.code: _Place(opened, text.what, item)
        for reader in list_readers(connection, study.id)
        for opened in list_sittings(connection, reader.id)
        for text in opened.sitting.revealed.texts
        for item in text.items
    }


def _cells(place: _Place, row: TableRow) -> dict[str, str]:
    names = [column.name for column in KINDS[place.what].columns_of(place.item.form)]
    return {name: row.cells[name].strip() for name in [*names, "note"] if row.cells.get(name, "").strip()}


def _keep(connection: Connection, place: _Place, cells: dict[str, str]) -> str:
    """Save the mark, or return why it cannot be saved."""
    key = digest_value([OFFLINE, place.item.code, cells])
    change = MarkChange(item=place.item.code, version=0, cells=cells, seconds=0.0, key=key)
    try:
        answer = save_mark(connection, place.opened, change, None)
    except UsageError as error:
        return error.problem
    return "" if isinstance(answer, Saved) else "it was marked in the meantime"


def _words(cells: dict[str, str]) -> str:
    return ", ".join(cells.values())
