"""What people answer in the case explorer: one answer for each reader and case, kept before anything is revealed.

A reader is a random code in a cookie. When a case was first opened is noted here, so that the time an answer took is
the server's own measure.
"""

import sqlite3
import threading
import time
from pathlib import Path

import msgspec

from medthink.core.errors import DataError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS opened (reader TEXT, benchmark TEXT, case_id INTEGER, at REAL,
  PRIMARY KEY (reader, benchmark, case_id)) STRICT;
CREATE TABLE IF NOT EXISTS answers (reader TEXT, benchmark TEXT, case_id INTEGER, letter TEXT, confidence INTEGER,
  seconds REAL NOT NULL, at REAL NOT NULL, PRIMARY KEY (reader, benchmark, case_id)) STRICT;
"""


class HumanAnswer(msgspec.Struct, frozen=True):
    """One reader's answer; `letter` is None where the case was revealed without one."""

    reader: str
    case: int
    letter: str | None
    confidence: int | None
    seconds: float


class HumanAnswers:
    """The answers in one SQLite file; an answer that is given cannot be changed."""

    def __init__(self, path: Path) -> None:
        try:
            self._connection = sqlite3.connect(path, check_same_thread=False, timeout=30, isolation_level=None)
            self._connection.executescript(f"PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; {_SCHEMA}")
        except sqlite3.Error as error:
            raise DataError(f"cannot hold answers: {error}", file=path, remedy="name another file") from None
        self._lock = threading.Lock()

    def open_case(self, reader: str, benchmark: str, case_id: int) -> None:
        """Note when the reader first saw the case."""
        with self._lock:
            self._connection.execute(
                "INSERT OR IGNORE INTO opened VALUES (?, ?, ?, ?)", (reader, benchmark, case_id, time.time())
            )

    def commit(self, reader: str, benchmark: str, case_id: int, letter: str | None, confidence: int | None) -> None:
        """Keep the reader's answer, or that there is none; the first one counts."""
        now, key = time.time(), (reader, benchmark, case_id)
        with self._lock:
            found = self._connection.execute(
                "SELECT at FROM opened WHERE reader = ? AND benchmark = ? AND case_id = ?", key
            ).fetchone()
            seconds = now - found[0] if found else 0.0
            self._connection.execute(
                "INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)", (*key, letter, confidence, seconds, now)
            )

    def find(self, reader: str, benchmark: str, case_id: int) -> HumanAnswer | None:
        """What this reader answered, if anything was committed."""
        found = self._read("WHERE reader = ? AND benchmark = ? AND case_id = ?", reader, benchmark, case_id)
        return found[0] if found else None

    def of_reader(self, reader: str, benchmark: str) -> dict[int, HumanAnswer]:
        """Everything that this reader committed, by case."""
        return {one.case: one for one in self._read("WHERE reader = ? AND benchmark = ?", reader, benchmark)}

    def of_all(self, benchmark: str) -> list[HumanAnswer]:
        """Every answer about a benchmark, those without a letter left out."""
        return self._read("WHERE benchmark = ? AND letter IS NOT NULL", benchmark)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _read(self, where: str, *values: object) -> list[HumanAnswer]:
        with self._lock:
            rows = self._connection.execute(
                f"SELECT reader, case_id, letter, confidence, seconds FROM answers {where} ORDER BY at", values
            ).fetchall()
        return [HumanAnswer(*row) for row in rows]
