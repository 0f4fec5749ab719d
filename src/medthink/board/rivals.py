"""The guessers without images that every row of a benchmark is compared with."""

from typing import Any

import msgspec
import sqlalchemy as sa

from medthink.board import tables
from medthink.board.benchmarks import BoardBenchmark
from medthink.board.checking import HeldBenchmark
from medthink.board.store import BoardStore
from medthink.cases.benchmark import Benchmark
from medthink.validity.rivals import rival_guesses


class BoardRival(msgspec.Struct, frozen=True, kw_only=True):
    """A guesser that sees no image: its letter for every case, and what it was trained on."""

    name: str
    source: str
    letters: dict[int, str]


def ensure_rivals(store: BoardStore, benchmark: BoardBenchmark, held: HeldBenchmark) -> list[BoardRival]:
    """The rivals of a benchmark, trained and stored if missing, which takes a while the first time."""
    known = read_rivals(store, benchmark.id)
    if known:
        return known
    found = rival_guesses(Benchmark.open(held.split.path), benchmark.split)
    rows: list[dict[str, Any]] = [
        {"benchmark_id": benchmark.id, "name": one.name, "source": one.source, "letters": _by_text(one.letters)}
        for one in found
    ]
    with store.write() as connection:
        where = tables.rivals.c.benchmark_id == benchmark.id
        if connection.execute(sa.select(tables.rivals.c.name).where(where)).first() is None:
            connection.execute(tables.rivals.insert(), rows)
    return read_rivals(store, benchmark.id)


def read_rivals(store: BoardStore, benchmark_id: int) -> list[BoardRival]:
    """The stored rivals of a benchmark, by name."""
    table = tables.rivals
    query = sa.select(table.c.name, table.c.source, table.c.letters).where(table.c.benchmark_id == benchmark_id)
    with store.read() as connection:
        rows = connection.execute(query.order_by(table.c.name)).all()
    return [
        BoardRival(name=name, source=source, letters={int(case): letter for case, letter in letters.items()})
        for name, source, letters in rows
    ]


def _by_text(letters: dict[int, str]) -> dict[str, str]:
    return {str(case): letter for case, letter in letters.items()}
