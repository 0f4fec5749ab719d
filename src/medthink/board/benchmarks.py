"""The benchmarks that a board accepts submissions for: identified by fingerprint, read from their own files."""

from pathlib import Path

import msgspec
import sqlalchemy as sa

from medthink.board.checking import LoadedBenchmark
from medthink.core.clock import now_utc
from medthink.core.errors import UsageError
from medthink.store import tables
from medthink.store.engine import Store, row_as


class BoardBenchmark(msgspec.Struct, frozen=True, kw_only=True):
    """A benchmark on the board."""

    id: int
    name: str
    split: str
    fingerprint: str
    text_fingerprint: str
    n_cases: int
    added_at: str


def add_benchmark(store: Store, held: LoadedBenchmark, name: str = "") -> BoardBenchmark:
    """Add a benchmark to the store, unless it already exists."""
    values = {
        "name": name or held.split.path.resolve().name,
        "split": held.split.splits[0],
        "fingerprint": held.fingerprint,
        "text_fingerprint": held.text_fingerprint,
        "n_cases": len(held.cases),
        "added_at": now_utc(),
    }
    with store.write() as connection:
        where = tables.benchmarks.c.text_fingerprint == held.text_fingerprint
        if connection.execute(sa.select(tables.benchmarks.c.id).where(where)).first() is None:
            connection.execute(tables.benchmarks.insert().values(values))
        return row_as(connection.execute(sa.select(tables.benchmarks).where(where)).mappings().one(), BoardBenchmark)


def ensure_benchmark(store: Store, data: Path, split: str, text_fingerprint: str) -> BoardBenchmark:
    """The benchmark with these texts, added from its files if missing."""
    known = next((one for one in list_benchmarks(store) if one.text_fingerprint == text_fingerprint), None)
    return known or add_benchmark(store, LoadedBenchmark.open(data, split))


def list_benchmarks(store: Store) -> list[BoardBenchmark]:
    """Every benchmark of the store, oldest first."""
    with store.read() as connection:
        rows = connection.execute(sa.select(tables.benchmarks).order_by(tables.benchmarks.c.id)).mappings()
        return [row_as(row, BoardBenchmark) for row in rows]


def find_benchmark(store: Store, name: str | None) -> BoardBenchmark:
    """The benchmark of this name, or the only one."""
    known = list_benchmarks(store)
    found = [one for one in known if name in (None, one.name)]
    if len(found) != 1:
        names = ", ".join(one.name for one in known) or "none yet"
        raise UsageError(f"the board has several benchmarks: {names}", remedy="name one with --benchmark")
    return found[0]
