"""What is known of images, remembered in the user's cache while size, times and inode of their file stay the same."""

import os

from medthink.cases.fact_table import FactTable
from medthink.cases.facts import ImageFacts, find_facts
from medthink.cases.stamps import Stamp, StampedStore
from medthink.core.digest import digest_bytes
from medthink.core.files import cache_folder


class RememberedImages(StampedStore):
    """A store whose facts are remembered from one session to the next; with `rehash` nothing from before counts."""

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
        """Keep what was learned; a cache that cannot be written costs time and nothing else."""
        self._table.save()

    def _find(self, path: str, stamp: Stamp) -> ImageFacts | None:
        return self._table.find(path, stamp) if stamp else None

    def __str__(self) -> str:
        return str(self._store)
