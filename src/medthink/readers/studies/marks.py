"""Saving a reader's marks.

An acknowledged save is never lost: a mark and its line of history are one transaction. A save names the version it is
based on; a stale one changes nothing and returns the current mark for the reader to choose.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from medthink.core.clock import now_utc, utc_in
from medthink.core.digest import digest_value
from medthink.core.errors import UsageError
from medthink.core.tables import TableRow, read_table
from medthink.judge.kinds import KINDS
from medthink.readers.lists import LAYOUT
from medthink.readers.studies.reading import (
    LEASE_S,
    Mark,
    OpenSitting,
    bounded,
    list_sittings,
    lock_sitting,
    read_marks,
    update_sitting,
)
from medthink.readers.studies.setup import Study, list_readers
from medthink.readers.studies.sittings import ReadItem, Sitting
from medthink.store import tables
from medthink.store.engine import row_as

# Fields of a mark besides the columns of its kind: the images relied on, and whether the item is badly cut.
EXTRA_CELLS = ("images", "badly_cut", "note")
# A decisive finding missing from the list, in the reader's words: a separate item in every sitting.
ADDED = "added"
_MOST_CELL = 2_000
# A save that finds the lease this fresh does not write it again.
_FRESH_S = LEASE_S - 60.0


class MarkChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change as a page sends it: the version it is based on, and a key that identifies it if it is sent again."""

    item: str
    version: int
    cells: dict[str, str]
    seconds: float
    key: str


class SavedMark(msgspec.Struct, frozen=True):
    """The change was saved as this version."""

    version: int


class SaveConflict(msgspec.Struct, frozen=True):
    """The item was marked elsewhere in the meantime; nothing was changed."""

    version: int
    cells: dict[str, str]
    saved_at: str


def save_mark(
    connection: Connection, found: OpenSitting, change: MarkChange, device: str | None
) -> SavedMark | SaveConflict:
    """Save a change, or return the current mark if it is based on another version.

    A known key is the same change sent again; with other cells it is another change, which must not pass for saved.

    Without a device, as for a table that is imported, the lease is neither checked nor taken.
    """
    locked = lock_sitting(connection, found)
    known = _find_saved(connection, locked, change.key)
    if known is not None and (known.item, known.cells) == (change.item, _filled(change.cells)):
        return SavedMark(known.version)
    _refuse_change(locked, change, device)
    before = _find_mark(connection, locked, change.item)
    if known is not None or change.version != before.version:
        return SaveConflict(before.version, before.cells, before.saved_at)
    cells, seconds = _checked_cells(locked.sitting, change), before.seconds + bounded(change.seconds)
    mark = Mark(item=before.item, version=before.version + 1, cells=cells, seconds=seconds, saved_at=now_utc())
    _keep(connection, locked, mark, change.key)
    is_fresh = locked.holder == device and (locked.held_until or "") >= utc_in(_FRESH_S)
    if device is not None and not is_fresh:
        update_sitting(connection, locked, {"holder": device, "held_until": utc_in(LEASE_S)})
    return SavedMark(mark.version)


def _find_saved(connection: Connection, locked: OpenSitting, key: str) -> Mark | None:
    """The mark that a change with this key has made already."""
    table = tables.mark_events
    wanted = sa.select(table).where(table.c.sitting_id == locked.id, table.c.key == key)
    row = connection.execute(wanted).mappings().first()
    return None if row is None else row_as(row, Mark)


def _filled(cells: Mapping[str, str]) -> dict[str, str]:
    """The cells that are not empty."""
    return {name: text.strip() for name, text in cells.items() if text.strip()}


def _find_mark(connection: Connection, locked: OpenSitting, item: str) -> Mark:
    """The mark of an item; version 0 if there is none."""
    table = tables.marks
    wanted = sa.select(table).where(table.c.sitting_id == locked.id, table.c.item == item)
    row = connection.execute(wanted).mappings().first()
    return Mark(item=item, version=0, cells={}) if row is None else row_as(row, Mark)


def _keep(connection: Connection, locked: OpenSitting, mark: Mark, key: str) -> None:
    """Write a mark and its line of history."""
    table, row = tables.marks, {"sitting_id": locked.id} | msgspec.structs.asdict(mark)
    if mark.version == 1:
        connection.execute(table.insert().values(row))
    else:
        is_mark = (table.c.sitting_id == locked.id) & (table.c.item == mark.item)
        connection.execute(table.update().where(is_mark).values(row))
    connection.execute(tables.mark_events.insert().values(row | {"key": key}))


def _refuse_change(locked: OpenSitting, change: MarkChange, device: str | None) -> None:
    if locked.submitted_at is not None:
        raise UsageError("this reading is locked", remedy="ask the coordinator")
    if not locked.is_revealed:
        raise UsageError("this case has not been read yet", remedy="commit to a diagnosis first")
    if device is not None and locked.is_held_by_other(device):
        raise UsageError("this case is open on another device", remedy="continue on that device, or wait")
    if not change.key or len(change.key) > 64 or change.version < 0:
        raise UsageError("not a change to a mark", remedy="load the page again")


def _checked_cells(sitting: Sitting, change: MarkChange) -> dict[str, str]:
    """The non-empty cells, or UsageError if a cell does not belong to the item or has an invalid value."""
    cells = _filled(change.cells)
    found = sitting.revealed.item(change.item)
    if found is None and change.item != ADDED:
        raise UsageError("no such item in this reading", remedy="load the page again")
    columns = {"finding"} if found is None else {column.name for column in KINDS[found[0]].columns}
    strange = [name for name in cells if name not in columns and name not in EXTRA_CELLS]
    if strange or any(len(text) > _MOST_CELL for text in cells.values()):
        raise UsageError(f"{', '.join(strange) or 'a text'} cannot be saved", remedy="load the page again")
    if found is not None:
        _refuse_words(found[0], found[1], cells)
    return cells


def _refuse_words(what: str, item: ReadItem, cells: Mapping[str, str]) -> None:
    try:
        KINDS[what].read_cells(item.form, cells)
    except ValueError as error:
        raise UsageError(str(error), remedy="mark the item again") from None


OFFLINE = "offline"


class TableImportResult(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of an import: rows saved, rows already identical, and rows refused, with the reason."""

    kept: int = 0
    same: int = 0
    conflicts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class _Place(msgspec.Struct, frozen=True):
    """The location of an item that is marked."""

    opened: OpenSitting
    what: str
    item: ReadItem


def import_table(connection: Connection, study: Study, path: Path) -> TableImportResult:
    """Save the rows of a readers' table as marks, if the item has no mark yet.

    A row belongs to the reader whose list its code is from. A reading that is already submitted, or whose reader has
    not committed to a diagnosis yet, is left unchanged.
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
            problem = _keep_cells(connection, found, cells)
            kept += not problem
            problems += [f"row {row.number}: {problem}"] if problem else []
    return TableImportResult(kept=kept, same=same, conflicts=tuple(conflicts), problems=tuple(problems))


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


def _keep_cells(connection: Connection, place: _Place, cells: dict[str, str]) -> str:
    """Save the mark, or return why it cannot be saved."""
    key = digest_value([OFFLINE, place.item.code, cells])
    change = MarkChange(item=place.item.code, version=0, cells=cells, seconds=0.0, key=key)
    try:
        answer = save_mark(connection, place.opened, change, None)
    except UsageError as error:
        return error.problem
    return "" if isinstance(answer, SavedMark) else "it was marked in the meantime"


def _words(cells: dict[str, str]) -> str:
    return ", ".join(cells.values())
