"""Adjudication: items on which two readings differ, shown to a third reader without saying whose is whose."""

from pathlib import Path

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from medthink.core.digest import digest_value
from medthink.core.errors import UsageError
from medthink.core.tables import write_table
from medthink.readers.assignment import PLANTED, CodeEntry
from medthink.readers.studies.results import DoneReading, leading_label, read_done
from medthink.readers.studies.setup import Frozen, Study, add_reader, add_sittings, list_readers
from medthink.readers.studies.sittings import ReadItem, ReadText, Sitting
from medthink.store import tables

ADJUDICATED = "adjudicated"


class Dispute(msgspec.Struct, frozen=True, kw_only=True):
    """Two readings of one text, and the positions of the items on which they differ."""

    first: DoneReading
    second: DoneReading
    places: frozenset[int]


class SettledItem(msgspec.Struct, frozen=True, kw_only=True):
    """One item with both readings and, if they differ, the adjudicator's decision."""

    unit: str
    case: int
    text: str
    first: dict[str, str]
    second: dict[str, str]
    adjudicated: dict[str, str] | None


def find_disputes(study: Study, readings: list[DoneReading]) -> list[Dispute]:
    """The texts that two readers have submitted and differ on."""
    found = []
    for _, first, second in _read_twice(study, readings):
        pairs = zip(_marked(first), _marked(second), strict=True)
        places = frozenset(place for place, (one, two) in enumerate(pairs) if one.label() != two.label())
        found += [Dispute(first=first, second=second, places=places)] if places else []
    return found


def open_adjudication(connection: Connection, study: Study, name: str) -> int:
    """Have a third reader decide the items on which the first two differ; returns the number of cases."""
    readers = list_readers(connection, study.id)
    if any(one.is_adjudicator for one in readers):
        raise UsageError("this study already has an adjudicator", remedy="the adjudicator can continue")
    if name in {one.name for one in readers}:
        raise UsageError(f"{name} is a reader in this study", remedy="choose someone who has not read these cases")
    disputes = find_disputes(study, read_done(connection, study))
    if not disputes:
        raise UsageError("there is nothing to adjudicate", remedy="wait until two readers have submitted the same case")
    reader_id = add_reader(connection, study.id, name, place=len(readers), is_adjudicator=True)
    codes: dict[str, CodeEntry] = {}
    sittings = []
    for dispute in disputes:
        sitting, frozen, own = _make_sitting(study, dispute, name)
        sittings.append((sitting, frozen))
        codes |= own
    add_sittings(connection, study.id, reader_id, sittings)
    _add_codes(connection, study, codes)
    return len(disputes)


def read_frozen(connection: Connection, sitting_id: int) -> Frozen:
    """Both readings of every item of an adjudication, in an order that does not reveal whose they are."""
    table = tables.sittings
    return connection.execute(sa.select(table.c.frozen).where(table.c.id == sitting_id)).scalar() or {}


def settle_study(study: Study, readings: list[DoneReading]) -> list[SettledItem]:
    """Every item that two readers have judged, with the adjudicator's decision if they differ."""
    final = {
        study.key.codes[code].unit: mark.cells
        for one in readings
        if one.reader.is_adjudicator
        for code, mark in one.marks.items()
        if code in study.key.codes
    }
    return [
        SettledItem(
            unit=unit,
            case=first.opened.sitting.case,
            text=one.item.text,
            first=one.cells,
            second=two.cells,
            adjudicated=final.get(unit),
        )
        for units, first, second in _read_twice(study, readings)
        for unit, one, two in zip(units, _marked(first), _marked(second), strict=True)
    ]


def write_settled(items: list[SettledItem], path: Path) -> None:
    """Write both readings and the adjudicator's decision side by side, one row per item."""
    names = dict.fromkeys(name for one in items for cells in (one.first, one.second) for name in cells)
    columns = ["case", "unit", "text", *(f"{name}_{whose}" for name in names for whose in ("1", "2", ADJUDICATED))]
    rows = [
        {"case": one.case, "unit": one.unit, "text": one.text}
        | {f"{name}_1": cell for name, cell in one.first.items()}
        | {f"{name}_2": cell for name, cell in one.second.items()}
        | {f"{name}_{ADJUDICATED}": cell for name, cell in (one.adjudicated or {}).items()}
        for one in items
    ]
    write_table(path, columns, rows)


class _MarkedItem(msgspec.Struct, frozen=True):
    """An item of a text, and a reader's marks on it."""

    text: ReadText
    item: ReadItem
    cells: dict[str, str]

    def label(self) -> object:
        """The label by which readings are compared."""
        return leading_label(self.text.what, self.item.form, self.cells)


def _read_twice(study: Study, readings: list[DoneReading]) -> list[tuple[tuple[str, ...], DoneReading, DoneReading]]:
    """The units of every text that two readers have submitted, and both readings; planted checks are left out."""
    groups: dict[tuple[str, ...], list[DoneReading]] = {}
    for one in readings:
        units = _units(study, one)
        if units and not one.reader.is_adjudicator:
            groups.setdefault(units, []).append(one)
    return [(units, group[0], group[1]) for units, group in groups.items() if len(group) > 1]


def _units(study: Study, reading: DoneReading) -> tuple[str, ...]:
    """The units that a reading is about; none for a second reading, a planted check or a human baseline."""
    codes = [study.key.codes[one.item.code] for one in _marked(reading)]
    if any(code.is_again or code.run == PLANTED for code in codes):
        return ()
    return tuple(code.unit for code in codes)


def _marked(reading: DoneReading) -> list[_MarkedItem]:
    return [
        _MarkedItem(text, item, reading.marks[item.code].cells if item.code in reading.marks else {})
        for text in reading.opened.sitting.revealed.texts
        for item in text.items
    ]


def _make_sitting(study: Study, dispute: Dispute, name: str) -> tuple[Sitting, Frozen, dict[str, CodeEntry]]:
    """The case with only the disputed items, both readings of each, and the meaning of the items' new codes."""
    codes: dict[str, CodeEntry] = {}
    frozen: Frozen = {}
    items: dict[str, list[ReadItem]] = {}
    for place, (one, two) in enumerate(zip(_marked(dispute.first), _marked(dispute.second), strict=True)):
        if place not in dispute.places:
            continue
        behind = study.key.codes[one.item.code]
        code = "u" + digest_value([ADJUDICATED, study.token, behind.unit])[:12]
        # The digest of the code decides whose reading comes first: it reveals nothing, and stays the same.
        both = [one.cells, two.cells]
        frozen[code] = both if int(digest_value(code)[:2], 16) % 2 else both[::-1]
        codes[code] = msgspec.structs.replace(behind, reader=name)
        items.setdefault(one.text.what, []).append(msgspec.structs.replace(one.item, code=code))
    base = dispute.first.opened.sitting
    texts = tuple(
        msgspec.structs.replace(text, items=tuple(items[text.what]))
        for text in base.revealed.texts
        if text.what in items
    )
    sitting = msgspec.structs.replace(
        base,
        code="s" + digest_value([ADJUDICATED, study.token, base.code])[:8],
        revealed=msgspec.structs.replace(base.revealed, texts=texts),
    )
    return sitting, frozen, codes


def _add_codes(connection: Connection, study: Study, codes: dict[str, CodeEntry]) -> None:
    key = msgspec.structs.replace(study.key, codes=study.key.codes | codes)
    table = tables.studies
    connection.execute(sa.update(table).where(table.c.id == study.id).values(key=msgspec.to_builtins(key)))
