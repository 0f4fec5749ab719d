"""The guessers without images that every row of a benchmark is compared with."""

from typing import Any

import msgspec
import sqlalchemy as sa

from medthink.board import tables
from medthink.board.benchmarks import BoardBenchmark
from medthink.board.checking import HeldBenchmark
from medthink.board.store import BoardStore
from medthink.cases.benchmark import Benchmark
from medthink.validity.guesses import Guesses
from medthink.validity.rivals import rival_guesses


def ensure_rivals(store: BoardStore, benchmark: BoardBenchmark, held: HeldBenchmark) -> list[Guesses]:
    """The rivals of a benchmark, trained and stored if missing, which takes a while the first time."""
    known = read_rivals(store, benchmark.id)
    if known:
        return known
    rows: list[dict[str, Any]] = [
        {"benchmark_id": benchmark.id} | msgspec.to_builtins(one._asdict(), str_keys=True)
        for one in rival_guesses(Benchmark.open(held.split.path), benchmark.split)
    ]
    with store.write() as connection:
        where = tables.rivals.c.benchmark_id == benchmark.id
        if connection.execute(sa.select(tables.rivals.c.name).where(where)).first() is None:
            connection.execute(tables.rivals.insert(), rows)
    return read_rivals(store, benchmark.id)


def read_rivals(store: BoardStore, benchmark_id: int) -> list[Guesses]:
    """The stored rivals of a benchmark, by name."""
    table = tables.rivals
    query = sa.select(table.c.name, table.c.source, table.c.letters).where(table.c.benchmark_id == benchmark_id)
    with store.read() as connection:
        rows = connection.execute(query.order_by(table.c.name)).all()
    return [
        Guesses(name, source, {int(case): letter for case, letter in letters.items()}) for name, source, letters in rows
    ]
