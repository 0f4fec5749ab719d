"""Spools: the requests of a batch in a file, one per line, safely on disk before the ledger names them."""

import hashlib
import os
from pathlib import Path
from typing import BinaryIO

from medthink.core.errors import LedgerError
from medthink.core.files import sync_folder

FOLDER = "batches"


class SpoolWriter:
    """A spool that is being written; `path` is where a single request of it would be posted."""

    def __init__(self, folder: Path, mark: str, path: str) -> None:
        self.mark = mark
        self.path = path
        self.rows = self.size_bytes = self.tokens = 0
        self.file = spool_file(folder, mark)
        self._digest = hashlib.sha256()
        try:
            folder.mkdir(exist_ok=True)
            self._stream: BinaryIO = self.file.open("wb")
        except OSError as error:
            raise _unwritable(self.file, error) from None

    def write(self, line: list[bytes], *, tokens: int) -> None:
        """Add a request with this many tokens."""
        try:
            for piece in line:
                self._stream.write(piece)
                self._digest.update(piece)
                self.size_bytes += len(piece)
        except OSError as error:
            raise _unwritable(self.file, error) from None
        self.rows += 1
        self.tokens += tokens

    def close(self) -> str:
        """Flush it to disk; returns its digest."""
        try:
            self._stream.flush()
            os.fsync(self._stream.fileno())
            self._stream.close()
            sync_folder(self.file.parent)
        except OSError as error:
            raise _unwritable(self.file, error) from None
        return self._digest.hexdigest()

    def discard(self) -> None:
        """Discard it: nothing in it was planned."""
        self._stream.close()
        self.file.unlink(missing_ok=True)


def spool_file(folder: Path, mark: str) -> Path:
    """The path of a batch's spool."""
    return folder / f"{mark}.jsonl"


def is_whole(file: Path, sha256: str) -> bool:
    """Whether a spool exists unchanged."""
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() == sha256
    except OSError:
        return False


def _unwritable(file: Path, error: OSError) -> LedgerError:
    return LedgerError(f"{file}: cannot be written: {error.strerror}", remedy="check the disk, then run again")
