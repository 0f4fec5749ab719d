"""Stamps of files: what changes when a file does, so that nothing about it has to be read again until then."""

import os
import time
from abc import ABC, abstractmethod

from medthink.cases.facts import ImageFacts, find_facts
from medthink.core.digest import digest_bytes

Stamp = tuple[int, ...]
"""Size, times and inode of a file; empty where it cannot be told whether the file has changed."""

# Clocks of file systems are coarse: two changes in one tick of the coarsest (FAT) look like one.
SETTLED_NS = 2_000_000_000


def stamp_of(found: os.stat_result) -> Stamp:
    """The stamp of a file; empty for one that was changed just now.

    Whoever rewrites a file changes `st_ctime_ns` too, which no program can set.
    """
    if time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) < SETTLED_NS:
        return ()
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


class StampedStore(ABC):
    """A store of images that can say whether an image may have changed; its digests are made anew each time."""

    @property
    @abstractmethod
    def place(self) -> str:
        """Where the store is, told apart from every other."""

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
