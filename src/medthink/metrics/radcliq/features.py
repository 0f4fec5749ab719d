"""A model's features of texts, stored on disk by the text's digest: a reference is encoded once for all runs."""

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path

from medthink.core.digest import digest_bytes, digest_value

_KEYS_AT_ONCE = 500
_MOST_BYTES = 4 * 1024**3


class FeatureStore:
    """The features of one component with one set of weights; without a folder nothing is stored.

    A file that has reached `most_bytes` is not extended.
    """

    def __init__(
        self, folder: Path | None, name: str, fingerprint: Mapping[str, str], *, most_bytes: int = _MOST_BYTES
    ) -> None:
        self._most_bytes = most_bytes
        # Other weights or packages make other features.
        self._path = folder and folder / f"{name}-{digest_value(dict(fingerprint))[:16]}.sqlite"

    def read(self, texts: Iterable[str]) -> dict[str, bytes]:
        """The stored features of these texts."""
        if self._path is None or not self._path.is_file():
            return {}
        by_key = {_key(text): text for text in texts}
        keys = list(by_key)
        found: dict[str, bytes] = {}
        with closing(sqlite3.connect(self._path)) as store:
            for start in range(0, len(keys), _KEYS_AT_ONCE):
                some = keys[start : start + _KEYS_AT_ONCE]
                marks = ",".join("?" * len(some))
                rows = store.execute(f"SELECT text, feature FROM features WHERE text IN ({marks})", some)
                found |= {by_key[key]: feature for key, feature in rows}
        return found

    def keep(self, features: Mapping[str, bytes]) -> None:
        """Keep the features of these texts."""
        if self._path is None or not features or self._is_full(self._path):
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self._path)) as store, store:
            store.execute("CREATE TABLE IF NOT EXISTS features (text TEXT PRIMARY KEY, feature BLOB NOT NULL)")
            rows = [(_key(text), feature) for text, feature in features.items()]
            store.executemany("INSERT OR REPLACE INTO features VALUES (?, ?)", rows)

    def _is_full(self, path: Path) -> bool:
        return path.is_file() and path.stat().st_size >= self._most_bytes


def _key(text: str) -> str:
    return digest_bytes(text.encode("utf-8", "surrogatepass"))
