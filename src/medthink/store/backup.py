"""Back up the whole store to one file, and restore it into an empty store.

A backup is a consistent snapshot even while others write. It is a zip of one JSON Lines file per table, the same for
SQLite and PostgreSQL, so a backup can also move a board from one to the other.
"""

import base64
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from medthink.core.errors import DataError, Declined, UsageError
from medthink.core.files import write_atomic
from medthink.core.jsonio import encode_json, parse_json
from medthink.store.engine import Store
from medthink.store.tables import PASSING, metadata

_HEAD = "backup.json"
_FORMAT = 1
_KEPT = [table for table in metadata.sorted_tables if table not in PASSING]


def write_backup(store: Store, path: Path) -> dict[str, int]:
    """Write every row of one snapshot; returns the row counts by table."""
    counts = {}
    stream = io.BytesIO()
    with store.read() as connection, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for table in _KEPT:
            rows = connection.execute(sa.select(table).order_by(*table.primary_key.columns)).mappings()
            # SQLAlchemy's names are a text type of their own, which JSON does not take.
            lines = [encode_json({f"{name}": _plain(value) for name, value in row.items()}) + b"\n" for row in rows]
            archive.writestr(f"{table.name}.jsonl", b"".join(lines))
            counts[f"{table.name}"] = len(lines)
        archive.writestr(_HEAD, encode_json({"format": _FORMAT, "rows": counts}))
    if not any(counts.values()):
        raise Declined("the store is empty", remedy="check that this is the right store, or name another with --store")
    write_atomic(path, [stream.getvalue()])
    return counts


def restore_backup(path: Path, store: Store) -> dict[str, int]:
    """Fill an empty store from a backup, all or nothing; returns the row counts by table."""
    try:
        with zipfile.ZipFile(path) as archive, store.write() as connection:
            head = _read_head(archive, path)
            _refuse_filled(connection, store)
            for table in _KEPT:
                # A backup may be older than a table.
                rows = [_typed(table, row) for row in _rows(archive, table.name, path)] if table.name in head else []
                if len(rows) != head.get(table.name, 0):
                    raise DataError(f"{table.name} is incomplete", file=path, remedy="use another backup")
                if rows:
                    connection.execute(table.insert(), rows)
                _continue_numbers(connection, table)
            return head
    except (zipfile.BadZipFile, OSError) as error:
        raise DataError(f"not a backup: {error}", file=path, remedy="name a file of medthink board backup") from None


def _read_head(archive: zipfile.ZipFile, path: Path) -> dict[str, int]:
    if _HEAD not in archive.namelist():
        raise DataError("not a backup of a board", file=path, remedy="name a file of medthink board backup")
    head = parse_json(archive.read(_HEAD), file=path)
    if head.get("format") != _FORMAT:
        raise DataError(
            "this backup was made by another release", file=path, remedy="restore it with the release that made it"
        )
    rows: dict[str, int] = head["rows"]
    return rows


def _rows(archive: zipfile.ZipFile, name: str, path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(archive.read(f"{name}.jsonl").splitlines(), start=1):
        yield parse_json(line, file=f"{path}:{name}.jsonl", row=number)


def _refuse_filled(connection: sa.Connection, store: Store) -> None:
    for table in _KEPT:
        if connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one():
            raise UsageError(f"the store {store.url} is not empty", remedy="restore into a new one")


def _plain(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _typed(table: sa.Table, row: dict[str, Any]) -> dict[str, Any]:
    """The row with its bytes as bytes."""
    blobs = {column.name for column in table.columns if isinstance(column.type, sa.LargeBinary)}
    return {name: base64.b64decode(value) if name in blobs else value for name, value in row.items()}


def _continue_numbers(connection: sa.Connection, table: sa.Table) -> None:
    """PostgreSQL keeps id counters separately: the next number must follow the last one restored."""
    if connection.dialect.name == "postgresql" and "id" in table.columns:
        last = f"coalesce((SELECT max(id) FROM {table.name}), 0) + 1"
        connection.execute(sa.text(f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), {last}, false)"))
