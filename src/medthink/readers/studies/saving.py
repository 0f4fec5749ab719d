"""Saving a reader's marks.

An acknowledged save is never lost: a mark and its line of history are one transaction. A save names the version it is
based on; a stale one changes nothing and returns the current mark for the reader to choose.
"""

from collections.abc import Mapping, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from medthink.core.clock import now_utc, utc_in
from medthink.core.errors import UsageError
from medthink.judge.kinds import KINDS
from medthink.readers.studies import tables
from medthink.readers.studies.desk import LEASE_S, Mark, OpenSitting, bounded, lock, update
from medthink.readers.studies.sittings import ReadItem, Sitting

# What a mark may hold besides the columns of its kind: the images relied on, and whether the item is badly cut.
EXTRA_CELLS = ("images", "badly_cut", "note")
# A decisive finding missing from the list, in the reader's words: a separate item in every sitting.
ADDED = "added"
_MOST_CELL = 2_000
# A save that finds the lease this fresh does not write it anew.
_FRESH_S = LEASE_S - 60.0
# What a save asks and writes is put together once: with many readers, that costs more than to carry it out.
_IS_MARK = (tables.marks.c.sitting_id == sa.bindparam("at")) & (tables.marks.c.item == sa.bindparam("marked"))
_FIND_MARKS = sa.select(tables.marks).where(
    sa.tuple_(tables.marks.c.sitting_id, tables.marks.c.item).in_(sa.bindparam("wanted", expanding=True))
)
_EVENT = (tables.mark_events.c.sitting_id, tables.mark_events.c.key)
_FIND_EVENTS = sa.select(*_EVENT, tables.mark_events.c.version).where(
    sa.tuple_(*_EVENT).in_(sa.bindparam("wanted", expanding=True))
)
_ADD_MARK = sa.insert(tables.marks)
_CHANGE_MARK = sa.update(tables.marks).where(_IS_MARK)
_ADD_EVENT = sa.insert(tables.mark_events)


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


class LockedChange(msgspec.Struct, frozen=True):
    """A change to a sitting that the transaction has locked; without a device the lease is left alone."""

    locked: OpenSitting
    change: MarkChange
    device: str | None


def save_mark(connection: Connection, found: OpenSitting, change: MarkChange, device: str | None) -> Saved | Stale:
    """Save a change, or return the current mark if it is based on another version; a known key is the same change.

    Without a device, as for a table that is imported, the lease is neither checked nor taken.
    """
    return save_locked(connection, LockedChange(lock(connection, found), change, device))


def save_locked(connection: Connection, one: LockedChange) -> Saved | Stale:
    """Save a mark of a sitting that this transaction has locked."""
    [answer] = save_several(connection, [one])
    if isinstance(answer, UsageError):
        raise answer
    return answer


def save_several(connection: Connection, changes: Sequence[LockedChange]) -> list[Saved | Stale | UsageError]:
    """Save changes to different sittings, all locked by this transaction, in as many statements as for one.

    A change that cannot be saved keeps none of the others from being saved.
    """
    marks, known = _find_marks(connection, changes)
    answers: list[Saved | Stale | UsageError] = []
    kept: list[tuple[LockedChange, Mark]] = []
    for one in changes:
        version = known.get((one.locked.id, one.change.key))
        before = marks.get(one.locked.id, Mark(item=one.change.item, version=0, cells={}))
        answer = Saved(version) if version is not None else _change_mark(one, before)
        if isinstance(answer, Mark):
            kept.append((one, answer))
        answers.append(Saved(answer.version) if isinstance(answer, Mark) else answer)
    _keep(connection, kept)
    return answers


def _find_marks(
    connection: Connection, changes: Sequence[LockedChange]
) -> tuple[dict[int, Mark], dict[tuple[int, str], int]]:
    """What is marked of the items, by sitting; and the versions that changes with these keys have made already."""
    items = [(one.locked.id, one.change.item) for one in changes]
    keys = [(one.locked.id, one.change.key) for one in changes]
    marks = connection.execute(_FIND_MARKS, {"wanted": items}).mappings()
    events = connection.execute(_FIND_EVENTS, {"wanted": keys})
    found = {row["sitting_id"]: tables.read_row(row, Mark) for row in marks}
    return found, {(at, key): version for at, key, version in events}


def _change_mark(one: LockedChange, before: Mark) -> Mark | Stale | UsageError:
    """The mark after a change, or why it is not changed."""
    try:
        _refuse_change(one.locked, one.change, one.device)
        if one.change.version != before.version:
            return Stale(before.version, before.cells, before.saved_at)
        cells = _checked_cells(one.locked.sitting, one.change)
    except UsageError as error:
        return error
    seconds = before.seconds + bounded(one.change.seconds)
    return Mark(item=before.item, version=before.version + 1, cells=cells, seconds=seconds, saved_at=now_utc())


def _keep(connection: Connection, kept: Sequence[tuple[LockedChange, Mark]]) -> None:
    """Write the marks and their lines of history, and renew leases that are not fresh."""
    rows = [msgspec.structs.asdict(mark) | {"sitting_id": one.locked.id} for one, mark in kept]
    new = [row for row in rows if row["version"] == 1]
    changed = [
        {"at": row.pop("sitting_id"), "marked": row.pop("item"), **row}
        for row in (dict(row) for row in rows if row["version"] > 1)
    ]
    events = [row | {"key": one.change.key} for row, (one, _) in zip(rows, kept, strict=True)]
    for statement, values in ((_ADD_MARK, new), (_CHANGE_MARK, changed), (_ADD_EVENT, events)):
        if values:
            connection.execute(statement, values)
    for one, _ in kept:
        is_fresh = one.locked.holder == one.device and (one.locked.held_until or "") >= utc_in(_FRESH_S)
        if one.device is not None and not is_fresh:
            update(connection, one.locked, {"holder": one.device, "held_until": utc_in(LEASE_S)})


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
