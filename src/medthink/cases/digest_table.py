"""Digests of files kept in a table on disk, of which only a stretch is in memory at any time."""

import sqlite3
import threading
import weakref
from pathlib import Path

import msgspec

from medthink.cases.stamps import Stamp

_SCHEMA = """
CREATE TABLE IF NOT EXISTS digests (
  number INTEGER PRIMARY KEY,        -- in the order in which files were first met, which is how they are asked for
  path TEXT NOT NULL UNIQUE,
  digest TEXT NOT NULL,
  stamp BLOB NOT NULL                -- of the file when it was read, as a JSON array
) STRICT;
"""
_KEEP = (
    "INSERT INTO digests (path, digest, stamp) VALUES (?, ?, ?)"
    " ON CONFLICT (path) DO UPDATE SET digest = excluded.digest, stamp = excluded.stamp"
)
_LOOK = (
    "SELECT path, digest, stamp FROM digests"
    " WHERE number >= (SELECT number FROM digests WHERE path = ?) ORDER BY number LIMIT 256"
)
_MOST_AT_HAND = 2048
_MOST_UNWRITTEN = 1024
# SQLite's name for a table on disk that belongs to one connection and goes with it.
_OF_THIS_SESSION = ""


class DigestTable:
    """Digests by path and stamp, safe to use from several threads and processes; `is_new` forgets those from before.

    A table that cannot be read or written is replaced by one that lasts as long as the session.
    """

    def __init__(self, file: Path, *, is_new: bool) -> None:
        self._file = file
        self._is_new = is_new
        self._turn = threading.Lock()
        self._opened: sqlite3.Connection | None = None
        self._at_hand: dict[str, tuple[str, bytes]] = {}
        self._unwritten: dict[str, tuple[str, bytes]] = {}

    def find(self, path: str, stamp: Stamp) -> str | None:
        """The digest of the file at this path, if its stamp is the one it had then."""
        with self._turn:
            digest, kept = self._unwritten.get(path) or self._at_hand.get(path) or self._look(path)
        return digest if kept == msgspec.json.encode(stamp) else None

    def keep(self, path: str, stamp: Stamp, digest: str) -> None:
        """Remember the digest of a file."""
        with self._turn:
            self._at_hand.pop(path, None)
            self._unwritten[path] = (digest, msgspec.json.encode(stamp))
            if len(self._unwritten) >= _MOST_UNWRITTEN:
                self._write()

    def save(self) -> None:
        """Write what was learned."""
        with self._turn:
            self._write()

    def _look(self, path: str) -> tuple[str, bytes]:
        """What is kept of a file; what was met after it comes along, because it is asked for next."""
        if len(self._at_hand) >= _MOST_AT_HAND:
            self._at_hand.clear()
        try:
            found = self._table().execute(_LOOK, (path,)).fetchall()
        except sqlite3.Error as error:
            self._give_up(error)
            found = []
        self._at_hand |= {name: (digest, stamp) for name, digest, stamp in found}
        return self._at_hand.get(path, ("", b""))

    def _write(self) -> None:
        rows = [(path, *kept) for path, kept in self._unwritten.items()]
        try:
            if rows:
                with self._table() as table:
                    table.executemany(_KEEP, rows)
        except sqlite3.Error as error:
            self._give_up(error)
        self._unwritten.clear()

    def _table(self) -> sqlite3.Connection:
        if self._opened is None:
            self._opened = self._open_in_cache()
        return self._opened

    def _open_in_cache(self) -> sqlite3.Connection:
        try:
            try:
                return self._open_file()
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:
                self._remove()
                return self._open_file()
        except (sqlite3.Error, OSError):
            return self._open(_OF_THIS_SESSION)

    def _open_file(self) -> sqlite3.Connection:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        table = self._open(str(self._file))
        if self._is_new:
            with table:
                table.execute("DELETE FROM digests")
        return table

    def _open(self, name: str) -> sqlite3.Connection:
        table = sqlite3.connect(name, check_same_thread=False)
        weakref.finalize(self, table.close)
        table.execute("PRAGMA journal_mode = WAL")
        # What a power cut takes from a cache is made again; what is there stays whole.
        table.execute("PRAGMA synchronous = NORMAL")
        table.executescript(_SCHEMA)
        return table

    def _give_up(self, error: sqlite3.Error) -> None:
        """Go on with a table of this session; one that is damaged is removed, one that is only in use is left."""
        if not isinstance(error, sqlite3.OperationalError):
            self._remove()
        self._opened = self._open(_OF_THIS_SESSION)

    def _remove(self) -> None:
        for ending in ("", "-wal", "-shm"):
            self._file.with_name(self._file.name + ending).unlink(missing_ok=True)
