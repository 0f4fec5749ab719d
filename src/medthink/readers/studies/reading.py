"""Reading: open a case, commit to a diagnosis, submit; `marks` saves the marks in between.

One device at a time holds a sitting, for ten minutes after its last request.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from medthink.core.clock import now_utc, utc_in
from medthink.core.errors import UsageError
from medthink.judge.kinds import KINDS
from medthink.readers.studies.sittings import Sitting
from medthink.store import tables
from medthink.store.engine import row_as

LEASE_S = 600.0
CONFIDENCES = (1, 2, 3, 4)
_MOST_SECONDS = 3_600.0
_CHANGING = (
    "reader_id", "place", "opened_at", "letter", "confidence", "case_seconds", "committed_at", "submitted_at",
    "holder", "held_until",
)  # fmt: skip


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A reader's marks on one item, by the columns of the readers' table."""

    item: str
    version: int
    cells: dict[str, str]
    seconds: float = 0.0
    saved_at: str = ""


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


class ReaderSitting(NamedTuple):
    """One of a reader's sittings: the study's token, the sitting's code, the account's name."""

    token: str
    code: str
    name: str


class UnmarkedItem(msgspec.Struct, frozen=True):
    """An item that is not fully marked, and the missing columns."""

    item: str
    columns: tuple[str, ...]


def find_own_sitting(
    connection: Connection, seat: ReaderSitting, *, is_locked: bool = False
) -> tuple[OpenSitting, bool] | None:
    """The sitting of this code in this study, if this account reads it; and whether the study is closed.

    With `is_locked`, no other writer is on it until the transaction ends.
    """
    sittings, readers, studies = tables.sittings, tables.study_readers, tables.studies
    wanted = (
        sa.select(sittings, studies.c.closed_at)
        .join(readers, readers.c.id == sittings.c.reader_id)
        .join(studies, studies.c.id == readers.c.study_id)
        .where(studies.c.token == seat.token, sittings.c.code == seat.code, readers.c.name == seat.name)
        .where(readers.c.revoked_at.is_(None))
    )
    row = connection.execute(wanted.with_for_update(of=sittings) if is_locked else wanted).mappings().first()
    return None if row is None else (_read_row(row), row["closed_at"] is not None)


def list_sittings(connection: Connection, reader_id: int) -> list[OpenSitting]:
    """All sittings of a reader, in the order of reading."""
    table = tables.sittings
    rows = connection.execute(sa.select(table).where(table.c.reader_id == reader_id).order_by(table.c.place))
    return [_read_row(row) for row in rows.mappings()]


def hold_on_device(connection: Connection, found: OpenSitting, device: str) -> OpenSitting:
    """Hold the sitting for this device, or raise UsageError while another one holds it.

    A case the reader has already committed to in another sitting is revealed at once.
    """
    locked = lock_sitting(connection, found)
    if locked.is_held_by_other(device):
        raise UsageError(
            f"this case is open on another device until {locked.held_until}", remedy="continue on that device, or wait"
        )
    values: dict[str, object] = {"holder": device, "held_until": utc_in(LEASE_S)}
    if locked.opened_at is None:
        values["opened_at"] = now_utc()
    if not locked.is_revealed:
        values |= _earlier_commitment(connection, locked)
    return update_sitting(connection, locked, values)


def commit_diagnosis(
    connection: Connection, found: OpenSitting, letter: str, confidence: int, *, seconds: float
) -> OpenSitting:
    """Store the reader's own diagnosis, by the letter shown, and reveal the case; the first one counts."""
    locked = lock_sitting(connection, found)
    if locked.is_revealed:
        return locked
    if letter not in locked.sitting.letters or confidence not in CONFIDENCES:
        raise UsageError(
            "the diagnosis or your confidence is missing", remedy="choose one of the options, and how sure you are"
        )
    values: dict[str, object] = {
        "letter": locked.sitting.letters[letter],
        "confidence": confidence,
        "case_seconds": bounded(seconds),
        "committed_at": now_utc(),
    }
    return update_sitting(connection, locked, values)


def read_marks(connection: Connection, sitting_id: int) -> dict[str, Mark]:
    """The marks so far, by item."""
    table = tables.marks
    rows = connection.execute(sa.select(table).where(table.c.sitting_id == sitting_id)).mappings()
    return {row["item"]: row_as(row, Mark) for row in rows}


def find_gaps(found: OpenSitting, marks: Mapping[str, Mark]) -> list[UnmarkedItem]:
    """The items that are not fully marked, in reading order."""
    gaps = []
    for text in found.sitting.revealed.texts:
        for item in text.items:
            mark = marks.get(item.code)
            missing = KINDS[text.what].gaps(item.form, mark.cells if mark else {})
            gaps += [UnmarkedItem(item.code, missing)] if missing else []
    return gaps


def submit_sitting(connection: Connection, found: OpenSitting, device: str) -> list[UnmarkedItem]:
    """Lock the reading; if something is missing, nothing is locked and the gaps are returned."""
    locked = lock_sitting(connection, found)
    if locked.submitted_at is not None:
        return []
    if not locked.is_revealed:
        raise UsageError("this case has not been read yet", remedy="commit to a diagnosis first")
    if locked.is_held_by_other(device):
        raise UsageError("this case is open on another device", remedy="continue on that device, or wait")
    gaps = find_gaps(locked, read_marks(connection, locked.id))
    if not gaps:
        update_sitting(connection, locked, {"submitted_at": now_utc(), "holder": None, "held_until": None})
    return gaps


def reassign(connection: Connection, found: OpenSitting, reader_id: int) -> None:
    """Give a sitting that was never opened to another reader, at the end of that reader's list."""
    locked = lock_sitting(connection, found)
    if locked.opened_at is not None:
        raise UsageError("this case has already been opened", remedy="reassign cases that nobody has opened")
    table = tables.sittings
    same = sa.select(table.c.id).where(table.c.reader_id == reader_id, table.c.case_id == locked.sitting.case)
    if connection.execute(same).first() is not None:
        raise UsageError("this reader already has that case", remedy="choose another reader")
    last = sa.select(sa.func.max(table.c.place)).where(table.c.reader_id == reader_id)
    place = connection.execute(last).scalar()
    update_sitting(connection, locked, {"reader_id": reader_id, "place": (place or 0) + 1})


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


def lock_sitting(connection: Connection, found: OpenSitting) -> OpenSitting:
    """The sitting in its current state, locked for other writers until the transaction ends."""
    table = tables.sittings
    wanted = sa.select(*(table.c[name] for name in _CHANGING)).where(table.c.id == found.id).with_for_update()
    row = connection.execute(wanted).mappings().one()
    return msgspec.structs.replace(found, **row)


def update_sitting(connection: Connection, locked: OpenSitting, values: Mapping[str, object]) -> OpenSitting:
    """Change a locked sitting; returns the changed one."""
    table = tables.sittings
    connection.execute(sa.update(table).where(table.c.id == locked.id).values(dict(values)))
    return msgspec.structs.replace(locked, **values)


def _read_row(row: sa.RowMapping) -> OpenSitting:
    return OpenSitting(
        id=row["id"],
        sitting=msgspec.convert(row["content"], Sitting),
        **{name: row[name] for name in _CHANGING},
    )


def bounded(seconds: float) -> float:
    """A time as a page measured it, within reason."""
    return min(max(seconds, 0.0), _MOST_SECONDS) if seconds == seconds else 0.0
