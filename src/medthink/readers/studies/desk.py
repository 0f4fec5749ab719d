"""Where a reader works: open a case, commit to a diagnosis, save marks, submit.

An acknowledged save is never lost: a mark and its line of history are one transaction. A save names the version it is
based on; a stale one changes nothing and returns the current mark for the reader to choose. One device at a time holds
a sitting, for ten minutes after its last request.
"""

from collections.abc import Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from medthink.core.clock import now_utc, utc_in
from medthink.core.errors import UsageError
from medthink.judge.kinds import KINDS
from medthink.readers.studies import tables
from medthink.readers.studies.sittings import ReadItem, Sitting

LEASE_S = 600.0
CONFIDENCES = (1, 2, 3, 4)
# What a mark may hold besides the columns of its kind: the images relied on, and whether the item is badly cut.
EXTRA_CELLS = ("images", "badly_cut", "note")
# A decisive finding missing from the list, in the reader's words: a separate item in every sitting.
ADDED = "added"
_MOST_CELL = 2_000
_MOST_SECONDS = 3_600.0
# A save that finds the lease this fresh does not write it anew.
_FRESH_S = LEASE_S - 60.0
# What a save asks and writes is put together once: with many readers, that costs more than to carry it out.
_SITTING = sa.bindparam("at", type_=sa.Integer)
_CHANGING = (
    "reader_id", "place", "opened_at", "letter", "confidence", "case_seconds", "committed_at", "submitted_at",
    "holder", "held_until",
)  # fmt: skip
_LOCK = (
    sa.select(*(tables.sittings.c[name] for name in _CHANGING))
    .where(tables.sittings.c.id == _SITTING)
    .with_for_update()
)
_FIND_OWN = (
    sa.select(tables.sittings, tables.studies.c.closed_at)
    .join(tables.study_readers, tables.study_readers.c.id == tables.sittings.c.reader_id)
    .join(tables.studies, tables.studies.c.id == tables.study_readers.c.study_id)
    .where(tables.studies.c.token == sa.bindparam("token"), tables.sittings.c.code == sa.bindparam("code"))
    .where(tables.study_readers.c.name == sa.bindparam("name"), tables.study_readers.c.revoked_at.is_(None))
)
_LOCK_OWN = _FIND_OWN.with_for_update(of=tables.sittings)
_IS_MARK = (tables.marks.c.sitting_id == _SITTING) & (tables.marks.c.item == sa.bindparam("marked"))
_IS_EVENT = (tables.mark_events.c.sitting_id == _SITTING) & (tables.mark_events.c.key == sa.bindparam("by"))
# What is marked of an item, and the version that a change with this key has made, if it was kept already.
_FIND_MARK = (
    sa.select(tables.marks, tables.mark_events.c.version.label("known"))
    .select_from(tables.sittings)
    .join(tables.marks, _IS_MARK, isouter=True)
    .join(tables.mark_events, _IS_EVENT, isouter=True)
    .where(tables.sittings.c.id == _SITTING)
)
_ADD_MARK = sa.insert(tables.marks)
_CHANGE_MARK = sa.update(tables.marks).where(_IS_MARK)
_ADD_EVENT = sa.insert(tables.mark_events)


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A reader's marks on one item, by the columns of the readers' table."""

    item: str
    version: int
    cells: dict[str, str]
    seconds: float = 0.0
    saved_at: str = ""


class MarkChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change as a page sends it: the version it is based on, and a key that identifies it if it is sent again."""

    item: str
    version: int
    cells: dict[str, str]
    seconds: float
    key: str


class Saved(msgspec.Struct, frozen=True):
    """The change was saved as this version."""

    version: int


class Stale(msgspec.Struct, frozen=True):
    """The item was marked elsewhere in the meantime; nothing was changed."""

    version: int
    cells: dict[str, str]
    saved_at: str


class OpenSitting(msgspec.Struct, frozen=True, kw_only=True):
    """A sitting in its current state; `letter` is the one in the benchmark's file. What is read never changes."""

    id: int
    reader_id: int
    place: int
    sitting: Sitting
    opened_at: str | None
    letter: str | None
    confidence: int | None
    case_seconds: float | None
    committed_at: str | None
    submitted_at: str | None
    holder: str | None = None
    held_until: str | None = None

    @property
    def is_revealed(self) -> bool:
        """Whether the reader has committed, so that the expert's material may be shown."""
        return self.committed_at is not None

    def is_held_by_other(self, device: str) -> bool:
        """Whether another of the reader's devices holds it now."""
        return self.holder not in (None, device) and (self.held_until or "") > now_utc()


class Gap(msgspec.Struct, frozen=True):
    """An item that is not fully marked, and the missing columns."""

    item: str
    columns: tuple[str, ...]


def find_own_sitting(
    connection: Connection, token: str, code: str, name: str, *, is_locked: bool = False
) -> tuple[OpenSitting, bool] | None:
    """The sitting of this code in this study, if this account reads it; and whether the study is closed.

    With `is_locked`, no other writer is on it until the transaction ends.
    """
    wanted = _LOCK_OWN if is_locked else _FIND_OWN
    row = connection.execute(wanted, {"token": token, "code": code, "name": name}).mappings().first()
    return None if row is None else (_read_row(row), row["closed_at"] is not None)


def list_sittings(connection: Connection, reader_id: int) -> list[OpenSitting]:
    """All sittings of a reader, in the order of reading."""
    table = tables.sittings
    rows = connection.execute(sa.select(table).where(table.c.reader_id == reader_id).order_by(table.c.place))
    return [_read_row(row) for row in rows.mappings()]


def hold(connection: Connection, found: OpenSitting, device: str) -> OpenSitting:
    """Take or keep the sitting for this device, or raise UsageError while another one holds it.

    A case the reader has already committed to in another sitting is revealed at once.
    """
    locked = _lock(connection, found)
    if locked.is_held_by_other(device):
        raise UsageError(
            f"this case is open on another device until {locked.held_until}", remedy="go on there, or wait"
        )
    values: dict[str, object] = {"holder": device, "held_until": utc_in(LEASE_S)}
    if locked.opened_at is None:
        values["opened_at"] = now_utc()
    if not locked.is_revealed:
        values |= _earlier_commitment(connection, locked)
    return _update(connection, locked, values)


def commit_diagnosis(
    connection: Connection, found: OpenSitting, letter: str, confidence: int, *, seconds: float
) -> OpenSitting:
    """Store the reader's own diagnosis, by the letter shown, and reveal the case; the first one counts."""
    locked = _lock(connection, found)
    if locked.is_revealed:
        return locked
    if letter not in locked.sitting.letters or confidence not in CONFIDENCES:
        raise UsageError(
            "the diagnosis or your confidence is missing", remedy="choose one of the options, and how sure you are"
        )
    values: dict[str, object] = {
        "letter": locked.sitting.letters[letter],
        "confidence": confidence,
        "case_seconds": _bounded(seconds),
        "committed_at": now_utc(),
    }
    return _update(connection, locked, values)


def read_marks(connection: Connection, sitting_id: int) -> dict[str, Mark]:
    """The marks so far, by item."""
    table = tables.marks
    rows = connection.execute(sa.select(table).where(table.c.sitting_id == sitting_id)).mappings()
    return {row["item"]: _read_mark(row) for row in rows}


def save_mark(connection: Connection, found: OpenSitting, change: MarkChange, device: str | None) -> Saved | Stale:
    """Save a change, or return the current mark if it is based on another version; a known key is the same change.

    Without a device, as for a table that is imported, the lease is neither checked nor taken.
    """
    return save_locked(connection, _lock(connection, found), change, device)


def save_locked(connection: Connection, locked: OpenSitting, change: MarkChange, device: str | None) -> Saved | Stale:
    """Save a mark of a sitting that this transaction has locked."""
    at = {"at": locked.id, "marked": change.item}
    row = connection.execute(_FIND_MARK, at | {"by": change.key}).mappings().one()
    if row["known"] is not None:
        return Saved(row["known"])
    _refuse_change(locked, change, device)
    is_marked = row["version"] is not None
    before = _read_mark(row) if is_marked else Mark(item=change.item, version=0, cells={})
    if change.version != before.version:
        return Stale(before.version, before.cells, before.saved_at)
    kept = {
        "version": before.version + 1,
        "cells": _checked_cells(locked.sitting, change),
        "seconds": before.seconds + _bounded(change.seconds),
        "saved_at": now_utc(),
    }
    own = {"sitting_id": locked.id, "item": change.item}
    connection.execute(*((_CHANGE_MARK, kept | at) if is_marked else (_ADD_MARK, kept | own)))
    connection.execute(_ADD_EVENT, kept | own | {"key": change.key})
    is_fresh = locked.holder == device and (locked.held_until or "") >= utc_in(_FRESH_S)
    if device is not None and not is_fresh:
        _update(connection, locked, {"holder": device, "held_until": utc_in(LEASE_S)})
    return Saved(before.version + 1)


def find_gaps(found: OpenSitting, marks: Mapping[str, Mark]) -> list[Gap]:
    """The items that are not fully marked, in reading order."""
    gaps = []
    for text in found.sitting.revealed.texts:
        for item in text.items:
            mark = marks.get(item.code)
            missing = KINDS[text.what].gaps(item.form, mark.cells if mark else {})
            gaps += [Gap(item.code, missing)] if missing else []
    return gaps


def submit_sitting(connection: Connection, found: OpenSitting, device: str) -> list[Gap]:
    """Lock the reading; if something is missing, nothing is locked and the gaps are returned."""
    locked = _lock(connection, found)
    if locked.submitted_at is not None:
        return []
    if not locked.is_revealed:
        raise UsageError("the case was not read yet", remedy="commit to a diagnosis first")
    if locked.is_held_by_other(device):
        raise UsageError("this case is open on another device", remedy="go on there, or wait")
    gaps = find_gaps(locked, read_marks(connection, locked.id))
    if not gaps:
        _update(connection, locked, {"submitted_at": now_utc(), "holder": None, "held_until": None})
    return gaps


def reassign(connection: Connection, found: OpenSitting, reader_id: int) -> None:
    """Give a sitting that was never opened to another reader, at the end of that reader's list."""
    locked = _lock(connection, found)
    if locked.opened_at is not None:
        raise UsageError("this case has already been opened", remedy="reassign cases that nobody has opened")
    table = tables.sittings
    same = sa.select(table.c.id).where(table.c.reader_id == reader_id, table.c.case_id == locked.sitting.case)
    if connection.execute(same).first() is not None:
        raise UsageError("this reader already has that case", remedy="choose another reader")
    last = sa.select(sa.func.max(table.c.place)).where(table.c.reader_id == reader_id)
    place = connection.execute(last).scalar()
    _update(connection, locked, {"reader_id": reader_id, "place": (place or 0) + 1})


def _refuse_change(locked: OpenSitting, change: MarkChange, device: str | None) -> None:
    if locked.submitted_at is not None:
        raise UsageError("this reading is locked", remedy="ask the coordinator")
    if not locked.is_revealed:
        raise UsageError("the case was not read yet", remedy="commit to a diagnosis first")
    if device is not None and locked.is_held_by_other(device):
        raise UsageError("this case is open on another device", remedy="go on there, or wait")
    if not change.key or len(change.key) > 64 or change.version < 0:
        raise UsageError("not a change to a mark", remedy="load the page again")


def _checked_cells(sitting: Sitting, change: MarkChange) -> dict[str, str]:
    """The non-empty cells, or UsageError if a cell does not belong to the item or has an invalid value."""
    cells = {name: text.strip() for name, text in change.cells.items() if text.strip()}
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


def _earlier_commitment(connection: Connection, found: OpenSitting) -> dict[str, object]:
    """What the reader committed to about the same case in another sitting, if anything."""
    table = tables.sittings
    wanted = (
        sa.select(table.c.letter, table.c.confidence, table.c.committed_at)
        .where(table.c.reader_id == found.reader_id, table.c.case_id == found.sitting.case)
        .where(table.c.committed_at.is_not(None))
        .order_by(table.c.committed_at)
    )
    row = connection.execute(wanted).mappings().first()
    return {} if row is None else dict(row)


def _lock(connection: Connection, found: OpenSitting) -> OpenSitting:
    """The sitting as it stands now, with no other writer on it until the transaction ends."""
    row = connection.execute(_LOCK, {"at": found.id}).mappings().one()
    return msgspec.structs.replace(found, **row)


def _update(connection: Connection, locked: OpenSitting, values: Mapping[str, object]) -> OpenSitting:
    table = tables.sittings
    connection.execute(sa.update(table).where(table.c.id == locked.id).values(dict(values)))
    return msgspec.structs.replace(locked, **values)


def _read_row(row: sa.RowMapping) -> OpenSitting:
    return OpenSitting(
        id=row["id"],
        sitting=msgspec.convert(row["content"], Sitting),
        **{name: row[name] for name in _CHANGING},
    )


def _read_mark(row: sa.RowMapping) -> Mark:
    return Mark(
        item=row["item"],
        version=row["version"],
        cells=row["cells"],
        seconds=row["seconds"],
        saved_at=row["saved_at"],
    )


def _bounded(seconds: float) -> float:
    """A time as a page measured it, within reason."""
    return min(max(seconds, 0.0), _MOST_SECONDS) if seconds == seconds else 0.0
