"""A connection to a ledger that reports a damaged file in one clear error."""

import sqlite3
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from medthink.core.errors import LedgerError

Kind = TypeVar("Kind")

# Errors caused by the system, not by the file's content.
_PASSING = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_FULL")


_RIGHTS = "check the disk and the file's permissions, or copy the run to a writable folder"


class Reader(sqlite3.Connection):
    """A connection whose queries raise LedgerError, with the ledger's name, if SQLite cannot answer them."""

    file = Path()

    def execute(self, *words: Any) -> "_Answer":
        """Run a query."""
        answer = self.cursor(_Answer)
        answer.file = self.file
        return answer.execute(*words)

    def decode(self, text: object, kind: type[Kind]) -> Kind:
        """Decode a JSON text of the ledger."""
        if not isinstance(text, str | bytes):
            raise damaged(self.file, "a text is missing")
        try:
            return msgspec.json.decode(text, type=kind)
        except msgspec.MsgspecError as error:
            raise damaged(self.file, error) from None

    def check(self, values: object, kind: type[Kind]) -> Kind:
        """Values of the ledger, checked for the expected types."""
        try:
            return msgspec.convert(values, kind)
        except msgspec.ValidationError as error:
            raise damaged(self.file, error) from None


class _Answer(sqlite3.Cursor):
    """The result of one query, row by row."""

    file = Path()

    def execute(self, *words: Any) -> "_Answer":
        """Ask."""
        try:
            super().execute(*words)
        except sqlite3.IntegrityError:
            raise  # about what was to be written
        except sqlite3.Error as error:
            raise unreadable(self.file, error) from None
        return self

    def __next__(self) -> Any:
        try:
            return super().__next__()
        except sqlite3.Error as error:
            raise unreadable(self.file, error) from None

    def fetchone(self) -> Any:
        """The next row, or None."""
        try:
            return super().fetchone()
        except sqlite3.Error as error:
            raise unreadable(self.file, error) from None

    def fetchall(self) -> list[Any]:
        """All remaining rows."""
        return list(self)


def open_reader(uri: str, file: Path) -> Reader:
    """A read connection by SQLite URI; `file` is the name used in errors."""
    reader = sqlite3.connect(uri, uri=True, check_same_thread=False, timeout=30, factory=Reader)
    reader.file = file
    return reader


def unreadable(file: Path, error: sqlite3.Error) -> LedgerError:
    """The error for a query that SQLite could not answer."""
    if getattr(error, "sqlite_errorname", "").startswith(_PASSING):
        return LedgerError(f"{file}: the ledger cannot be read: {error}", remedy=_RIGHTS)
    return damaged(file, error)


def damaged(file: Path, why: object) -> LedgerError:
    """The error for a damaged ledger."""
    told = str(why).partition(" with text ")[0]  # after this, SQLite quotes bytes that are not text
    return LedgerError(
        f"{file}: the ledger is damaged: {told}",
        remedy="restore a copy, or start the run again in another --out",
    )
