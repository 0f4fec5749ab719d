"""A damaged ledger rebuilt from what can be read of it.

Each table is read row by row past the pages that SQLite cannot read, through no index. A row whose digest does not fit
is left out, so a call that was damaged is asked again, and nothing is answered from it.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from medthink.core.errors import LedgerError, UsageError
from medthink.core.files import new_folder
from medthink.runs.batches.jobs import BatchTable
from medthink.runs.ledger.ledger import Ledger
from medthink.runs.ledger.lock import is_locked
from medthink.runs.ledger.queries import RUN_FOLDER, damaged
from medthink.runs.ledger.schema import digest_of
from medthink.runs.manifest import read_manifest, write_manifest

_TABLES = ("calls", "attempts", "predictions", "batches", "queued")
# Where not even the highest row number can be read, this many are tried beyond the last one read.
_TRIED_BEYOND = 100_000


class SalvagedLedger(NamedTuple):
    """A ledger's name, and how many calls and predictions were kept; `lost_calls` will be asked again."""

    name: str
    calls: int
    predictions: int
    lost_calls: int


def salvage(folder: Path, out: Path) -> list[SalvagedLedger]:
    """Copy the folder of a run, or of other work with a ledger, with its ledgers rebuilt."""
    ledgers = sorted(folder.glob("*.sqlite")) if folder.is_dir() else []
    if not ledgers:
        raise UsageError(f"{folder} holds no ledger", remedy=RUN_FOLDER)
    if is_locked(folder):
        raise LedgerError(f"{folder} is in use by another process", remedy="end that first")
    with new_folder(out) as made:
        shutil.copytree(folder, made, ignore=_left_out, dirs_exist_ok=True)
        found = [_make_anew(ledger, made / ledger.name) for ledger in ledgers]
        if (made / "run.json").is_file():
            # What it counts may be lost; without it, everything is read off the ledger.
            write_manifest(made, replace(read_manifest(made).moved(folder, out), progress=None))
    return found


def _left_out(folder: str, names: list[str]) -> set[str]:  # noqa: ARG001  `copytree` passes the folder
    return {name for name in names if ".sqlite" in name or name in (".lock", ".live.json", "predictions.jsonl")}


def _make_anew(ledger: Path, target: Path) -> SalvagedLedger:
    with tempfile.TemporaryDirectory(prefix="medthink-salvage-") as folder, closing(Ledger(target)) as made:
        for file in ledger.parent.glob(f"{ledger.name}*"):
            shutil.copyfile(file, Path(folder) / file.name)  # the log belongs to it, and opening changes both
        BatchTable(made.connection)
        with closing(sqlite3.connect(Path(folder) / ledger.name)) as source:
            source.text_factory = bytes  # damaged text need not be UTF-8
            kept = {table: _copy_table(source, made.connection, table, ledger) for table in _TABLES}
            lost = max(0, _last_row(source, "calls", kept["calls"]) - kept["calls"])
    return SalvagedLedger(ledger.name, kept["calls"], kept["predictions"], lost)


def _copy_table(source: sqlite3.Connection, target: sqlite3.Connection, table: str, ledger: Path) -> int:
    """Copy the rows that can be read and are whole; returns how many."""
    names = [row[1] for row in target.execute(f"PRAGMA table_info({table})")]
    try:
        there = {row[1].decode() for row in source.execute(f"PRAGMA table_info({table})")}
    except sqlite3.Error as error:
        raise damaged(ledger, f"nothing in it can be read: {error}") from None
    if not there and table in ("batches", "queued"):
        return 0
    if not there.issuperset(names):
        raise damaged(ledger, f"nothing in it can be read: it has no whole table {table}")
    insert = f"INSERT OR IGNORE INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
    before = target.total_changes
    with target:
        for row in _readable_rows(source, table, names):
            if _is_whole(table, row):
                try:
                    target.execute(insert, tuple(row.values()))
                except sqlite3.IntegrityError:
                    continue  # a number where a text should be
    return int(target.execute(f"SELECT count(*) FROM {table}").fetchone()[0]) if target.total_changes > before else 0


def _readable_rows(source: sqlite3.Connection, table: str, names: list[str]) -> Iterator[dict[str, Any]]:
    query = f"SELECT rowid, {', '.join(names)} FROM {table} NOT INDEXED WHERE rowid > ? ORDER BY rowid"
    last, top = 0, None
    while top is None or last < top:
        try:
            for row in source.execute(query, (last,)):
                last = row[0]
                if (whole := _decode(row[1:])) is not None:
                    yield dict(zip(names, whole, strict=True))
            return
        except sqlite3.Error:
            top = top or _last_row(source, table, last + _TRIED_BEYOND)
            last += 1


def _decode(row: tuple[Any, ...]) -> list[Any] | None:
    try:
        return [value.decode() if isinstance(value, bytes) else value for value in row]
    except UnicodeDecodeError:
        return None


def _last_row(source: sqlite3.Connection, table: str, otherwise: int) -> int:
    try:
        return int(source.execute(f"SELECT max(rowid) FROM {table}").fetchone()[0] or 0)
    except sqlite3.Error:
        return otherwise


def _is_whole(table: str, row: dict[str, Any]) -> bool:
    digest = None
    match table, row.get("state"):
        case "attempts", _:
            digest = digest_of(*list(row.values())[:-1])
        case "predictions", state:
            digest = digest_of(row["case_id"], row["sample"], state, row["body"])
        case "calls", "done":
            digest = digest_of(*_asked(row), "done", row["reply"], None)
        case "calls", "failed":
            digest = digest_of(*_asked(row), "failed", None, row["error_kind"])
        case "calls", state:
            return state in ("open", "queued")
        case _:
            return True
    return bool(row["digest"] == digest)


def _asked(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["key"], row["case_id"], row["kind"], row["request"]
