"""A connection to a ledger that says in one clear error when the file's bytes are not what was written."""

import sqlite3
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from medthink.core.errors import LedgerError

Kind = TypeVar("Kind")

# What the system is in the way of, not the file's content.
_PASSING = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_FULL")


_RIGHTS = "check the disk and the file's rights, or copy the run to a folder you may write"


class Reader(sqlite3.Connection):
    """A connection whose questions raise LedgerError, with the ledger's name, where SQLite cannot answer them."""

    file = Path()

    def execute(self, *words: Any) -> "_Answer":
        """Ask a question."""
        answer = self.cursor(_Answer)
        answer.file = self.file
        return answer.execute(*words)

    def decode(self, text: object, kind: type[Kind]) -> Kind:
        """A JSON text of the ledger as what it was written from."""
        if not isinstance(text, str | bytes):
            raise damaged(self.file, "a text is missing")
        try:
            return msgspec.json.decode(text, type=kind)
        except msgspec.MsgspecError as error:
            raise damaged(self.file, error) from None

    def check(self, values: object, kind: type[Kind]) -> Kind:
        """Values of the ledger, if they are of the kind that was written."""
        try:
            return msgspec.convert(values, kind)
        except msgspec.ValidationError as error:
            raise damaged(self.file, error) from None


class _Answer(sqlite3.Cursor):
    """The answer to one question, row by row."""

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
        """All rows that are left."""
        return list(self)


def open_reader(uri: str, file: Path) -> Reader:
    """A connection for questions, by an address of SQLite's; `file` is what errors call it."""
    reader = sqlite3.connect(uri, uri=True, check_same_thread=False, timeout=30, factory=Reader)
    reader.file = file
    return reader


def unreadable(file: Path, error: sqlite3.Error) -> LedgerError:
    """The error for a question to a ledger that SQLite could not answer."""
    if getattr(error, "sqlite_errorname", "").startswith(_PASSING):
        return LedgerError(f"{file}: the ledger cannot be read: {error}", remedy=_RIGHTS)
    return damaged(file, error)


def damaged(file: Path, why: object) -> LedgerError:
    """The error for a ledger whose bytes are not what was written."""
    told = str(why).partition(" with text ")[0]  # after which SQLite quotes bytes that are no text
    return LedgerError(
        f"{file}: the ledger is damaged: {told}",
        remedy="put a copy of it back, or start the run anew in another --out",
    )
