"""What was computed from images, kept on disk by the digest of their bytes, for this user and this release."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from medthink import __version__
from medthink.core.files import cache_folder

_AT_ONCE = 256
_PATIENCE_S = 30


class ResultCache:
    """Results by key, in one table a kind and release; safe to use from several threads and processes.

    A table that cannot be read or written costs time and changes no result: then nothing is found, and nothing kept.
    """

    def __init__(self, kind: str) -> None:
        self._file: Path = cache_folder() / "images" / f"{kind}-{__version__}.sqlite"

    def find(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The results that are kept of these."""
        if not self._file.is_file():
            return {}
        found: dict[str, bytes] = {}
        try:
            with closing(self._open()) as table:
                for start in range(0, len(keys), _AT_ONCE):
                    part = keys[start : start + _AT_ONCE]
                    marks = ",".join("?" * len(part))
                    found |= dict(table.execute(f"SELECT key, value FROM results WHERE key IN ({marks})", part))
        except sqlite3.DatabaseError:
            return {}
        return found

    def keep(self, results: Mapping[str, bytes]) -> None:
        """Keep these for later sessions."""
        if not results:
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._open()) as table, table:
                table.executemany("INSERT OR REPLACE INTO results (key, value) VALUES (?, ?)", results.items())
        except sqlite3.OperationalError:
            return  # in use for long, or on a disk that is full or may not be written to
        except sqlite3.DatabaseError:
            self._file.unlink(missing_ok=True)
        except OSError:
            return

    def _open(self) -> sqlite3.Connection:
        table = sqlite3.connect(self._file, timeout=_PATIENCE_S)
        # What a power cut takes from a cache is made again; what is there stays whole.
        table.execute("PRAGMA journal_mode = WAL")
        table.execute("PRAGMA synchronous = NORMAL")
        table.execute("CREATE TABLE IF NOT EXISTS results (key TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT")
        return table
