"""What stands in a ledger, read as any other program would."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any


def read_rows(ledger: Path, query: str) -> list[tuple[Any, ...]]:
    """The rows that a query gives; the file is closed again, which newer Pythons insist on."""
    with closing(sqlite3.connect(ledger)) as connection:
        return connection.execute(query).fetchall()
