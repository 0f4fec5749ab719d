"""TOML files read with a clear error."""

import tomllib
from pathlib import Path
from typing import Any

from medthink.core.errors import DataError
from medthink.core.files import open_for_reading


def read_toml(path: Path, *, remedy: str = "see docs/commands.md for an example") -> dict[str, Any]:
    """The file's fields, or DataError."""
    with open_for_reading(path) as stream:
        try:
            return tomllib.load(stream)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise DataError(f"not TOML: {error}", file=path, remedy=remedy) from None
