"""A cache of image facts (digests, sizes) in a table on disk, of which only a part is in memory."""

import os
import sqlite3
import threading
import time
import weakref
from abc import ABC, abstractmethod
from pathlib import Path
from typing import NamedTuple

import msgspec

from medthink import __version__
from medthink.cases.images.jpeg import Size, plain_jpeg_size
from medthink.core.digest import digest_bytes
from medthink.core.files import cache_folder


class ImageFacts(NamedTuple):
    """The digest of an image's bytes, and the size of a plain JPEG, which is sent unchanged."""

    digest: str
    plain_size: Size | None


def find_facts(data: bytes) -> ImageFacts:
    """The facts of an image's bytes."""
    return ImageFacts(digest_bytes(data), plain_jpeg_size(data))


Stamp = tuple[int, ...]
"""Size, times and inode of a file; empty where it cannot be told whether the file has changed."""

# Clocks of file systems are coarse: two changes in one tick of the coarsest (FAT) look like one.
SETTLED_NS = 2_000_000_000


def stamp_of(found: os.stat_result) -> Stamp:
    """The stamp of a file; empty if it was changed just now.

    Rewriting a file also changes `st_ctime_ns`, which no program can set.
    """
    if time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) < SETTLED_NS:
        return ()
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


class StampedStore(ABC):
    """A store of images that reports whether an image may have changed; digests are computed each time."""

    @property
    @abstractmethod
    def place(self) -> str:
        """The identity of the store, different from that of every other."""

    @abstractmethod
    def stamp(self, path: str) -> Stamp:
        """The stamp of the file that holds an image; the image is not read."""

    @abstractmethod
    def read_stamped(self, path: str) -> tuple[bytes, Stamp]:
        """An image's bytes, or DataError, and the stamp that its file has once they are read."""

    @abstractmethod
    def problem(self, path: str) -> str:
        """Why the image cannot be read, or "" when it can."""

    @abstractmethod
    def listing(self) -> dict[str, list[str]]:
        """The paths of every image the store holds, by folder."""

    def has(self, path: str) -> bool:
        """Whether the image is there and may be opened."""
        return not self.problem(path)

    def read(self, path: str) -> bytes:
        """An image's bytes, or DataError."""
        return self.read_stamped(path)[0]

    def digest(self, path: str) -> str:
        """SHA-256 of an image's bytes, or DataError."""
        return digest_bytes(self.read(path))

    def read_known(self, path: str) -> tuple[bytes, ImageFacts]:
        """An image's bytes and their facts, or DataError."""
        data = self.read(path)
        return data, find_facts(data)


_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (
  number INTEGER PRIMARY KEY,        -- in the order in which images were first met, which is how they are asked for
  path TEXT NOT NULL UNIQUE,
  mark BLOB NOT NULL,                -- the stamp of the file when it was read, and the release that read it
  digest TEXT NOT NULL,
  width INTEGER,                     -- of a plain JPEG
  height INTEGER
) STRICT;
"""
_KEEP = (
    "INSERT INTO facts (path, mark, digest, width, height) VALUES (?, ?, ?, ?, ?) ON CONFLICT (path) DO UPDATE"
    " SET mark = excluded.mark, digest = excluded.digest, width = excluded.width, height = excluded.height"
)
_LOOK = (
    "SELECT path, mark, digest, width, height FROM facts"
    " WHERE number >= (SELECT number FROM facts WHERE path = ?) ORDER BY number LIMIT 256"
)
# Another release may judge an image otherwise, and what a model is sent rests on that.
_RELEASE = __version__.encode()
_Kept = tuple[bytes, ImageFacts]
_NOTHING: _Kept = (b"", ImageFacts("", None))
_MOST_AT_HAND = 2048
_MOST_UNWRITTEN = 1024
# SQLite's name for a table on disk that belongs to one connection and goes with it.
_OF_THIS_SESSION = ""


class FactTable:
    """Facts by path and stamp, safe to use from several threads and processes; `is_new` discards earlier ones.

    A table that cannot be read or written is replaced by one that exists during the session only.
    """

    def __init__(self, file: Path, *, is_new: bool) -> None:
        self._file = file
        self._is_new = is_new
        self._turn = threading.Lock()
        self._opened: sqlite3.Connection | None = None
        self._at_hand: dict[str, _Kept] = {}
        self._unwritten: dict[str, _Kept] = {}

    def find(self, path: str, stamp: Stamp) -> ImageFacts | None:
        """The cached facts of the image at this path, if its stamp is unchanged."""
        with self._turn:
            mark, facts = self._unwritten.get(path) or self._at_hand.get(path) or self._look(path)
        return facts if mark == _mark(stamp) else None

    def keep(self, path: str, stamp: Stamp, facts: ImageFacts) -> None:
        """Add the facts of an image."""
        with self._turn:
            self._at_hand.pop(path, None)
            self._unwritten[path] = (_mark(stamp), facts)
            if len(self._unwritten) >= _MOST_UNWRITTEN:
                self._write()

    def save(self) -> None:
        """Write the new facts to disk."""
        with self._turn:
            self._write()

    def _look(self, path: str) -> _Kept:
        """The cached row of an image; the rows after it are read too, because they are asked for next."""
        if len(self._at_hand) >= _MOST_AT_HAND:
            self._at_hand.clear()
        try:
            found = self._table().execute(_LOOK, (path,)).fetchall()
        except sqlite3.Error as error:
            self._give_up(error)
            found = []
        for name, mark, digest, width, height in found:
            self._at_hand[name] = (mark, ImageFacts(digest, None if width is None else Size(width, height)))
        return self._at_hand.get(path, _NOTHING)

    def _write(self) -> None:
        rows = [
            (path, mark, facts.digest, *(facts.plain_size or (None, None)))
            for path, (mark, facts) in self._unwritten.items()
        ]
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
                table.execute("DELETE FROM facts")
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
        """Continue with a table for this session; a damaged file is removed, one that is in use is left alone."""
        if not isinstance(error, sqlite3.OperationalError):
            self._remove()
        self._opened = self._open(_OF_THIS_SESSION)

    def _remove(self) -> None:
        for ending in ("", "-wal", "-shm"):
            self._file.with_name(self._file.name + ending).unlink(missing_ok=True)


def _mark(stamp: Stamp) -> bytes:
    return msgspec.json.encode(stamp) + _RELEASE


class CachingImageStore(StampedStore):
    """A store whose facts are cached between sessions; with `rehash`, earlier ones are ignored."""

    def __init__(self, store: StampedStore, *, rehash: bool = False) -> None:
        self._store = store
        file = cache_folder() / "digests" / f"{digest_bytes(os.fsencode(store.place))[:32]}.sqlite"
        self._table = FactTable(file, is_new=rehash)

    @property
    def place(self) -> str:
        """Where the images are."""
        return self._store.place

    def stamp(self, path: str) -> Stamp:
        """The stamp of the image's file."""
        return self._store.stamp(path)

    def read_stamped(self, path: str) -> tuple[bytes, Stamp]:
        """The image's bytes, or DataError, and their stamp."""
        return self._store.read_stamped(path)

    def problem(self, path: str) -> str:
        """Why the image cannot be read, or "" when it can."""
        return self._store.problem(path)

    def listing(self) -> dict[str, list[str]]:
        """Every image of the store, by folder."""
        return self._store.listing()

    def digest(self, path: str) -> str:
        """The digest of the image's bytes, which are read only where they may have changed."""
        return (self._find(path, self._store.stamp(path)) or self.read_known(path)[1]).digest

    def read_known(self, path: str) -> tuple[bytes, ImageFacts]:
        """The image's bytes and their facts."""
        data, stamp = self._store.read_stamped(path)
        if (known := self._find(path, stamp)) is not None:
            return data, known
        facts = find_facts(data)
        if stamp:
            self._table.keep(path, stamp, facts)
        return data, facts

    def save(self) -> None:
        """Save the new facts; a cache that cannot be written only costs time."""
        self._table.save()

    def _find(self, path: str, stamp: Stamp) -> ImageFacts | None:
        return self._table.find(path, stamp) if stamp else None

    def __str__(self) -> str:
        return str(self._store)
