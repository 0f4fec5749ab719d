"""The benchmarks that a board takes submissions for: known by fingerprint, read from where they lie."""

from pathlib import Path

import msgspec
import sqlalchemy as sa

from medthink.board import tables
from medthink.board.store import BoardStore
from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case
from medthink.core.clock import now_utc
from medthink.core.errors import UsageError


class BoardBenchmark(msgspec.Struct, frozen=True, kw_only=True):
    """A benchmark on the board."""

    id: int
    name: str
    split: str
    fingerprint: str
    text_fingerprint: str
    n_cases: int
    added_at: str


class HeldBenchmark(msgspec.Struct, frozen=True):
    """A benchmark on the board whose files are at hand, so that submissions can be checked and scored."""

    record: BoardBenchmark
    split: Benchmark
    cases: dict[int, Case]


def hold_benchmark(store: BoardStore, data: Path, split: str = "test", name: str = "") -> HeldBenchmark:
    """Open a benchmark and enter it into the store, if it is not there yet."""
    part = Benchmark.open(data)[split]
    prints = part.fingerprints()
    cases = {case.id: case for case in part}
    values = {
        "name": name or data.resolve().name,
        "split": split,
        "fingerprint": prints.whole,
        "text_fingerprint": prints.texts,
        "n_cases": len(cases),
        "added_at": now_utc(),
    }
    with store.write() as connection:
        where = tables.benchmarks.c.text_fingerprint == prints.texts
        if connection.execute(sa.select(tables.benchmarks.c.id).where(where)).first() is None:
            connection.execute(tables.benchmarks.insert().values(values))
        row = connection.execute(sa.select(tables.benchmarks).where(where)).mappings().one()
    return HeldBenchmark(_record(row), part, cases)


def list_benchmarks(store: BoardStore) -> list[BoardBenchmark]:
    """Every benchmark of the store, oldest first."""
    with store.read() as connection:
        rows = connection.execute(sa.select(tables.benchmarks).order_by(tables.benchmarks.c.id)).mappings()
        return [_record(row) for row in rows]


def find_benchmark(store: BoardStore, name: str | None) -> BoardBenchmark:
    """The benchmark of this name, or the only one there is."""
    known = list_benchmarks(store)
    found = [one for one in known if name in (None, one.name)]
    if len(found) != 1:
        names = ", ".join(one.name for one in known) or "none yet"
        raise UsageError(f"which benchmark? The board has: {names}", remedy="name one with --benchmark")
    return found[0]


def _record(row: sa.RowMapping) -> BoardBenchmark:
    return msgspec.convert({name: row[name] for name in BoardBenchmark.__struct_fields__}, BoardBenchmark)
