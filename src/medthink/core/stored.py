"""Files of structs, read back: what does not fit names the file, the row and the remedy."""

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from medthink.core.errors import DataError
from medthink.core.jsonio import read_json, read_jsonl

Kept = TypeVar("Kept")


def read_stored(path: Path, kind: type[Kept], *, name: str, remedy: str) -> Kept:
    """What a file of one JSON text holds; `name` says in the error what it should have been."""
    try:
        return msgspec.convert(read_json(path), kind)
    except msgspec.ValidationError as error:
        raise DataError(f"not {name}: {error}", file=path, remedy=remedy) from None


def read_stored_rows(path: Path, kind: type[Kept], *, name: str, remedy: str, may_lack: bool = True) -> Iterator[Kept]:
    """The rows of a JSON Lines file; where it `may_lack`, a missing file has none."""
    for line in () if may_lack and not path.exists() else read_jsonl(path):
        try:
            yield msgspec.convert(line.value, kind)
        except msgspec.ValidationError as error:
            raise DataError(f"not {name}: {error}", file=path, row=line.number, remedy=remedy) from None
