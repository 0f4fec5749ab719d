"""A benchmark in a store, and submissions about it."""

import json

import pytest

from medthink.board.benchmarks import add_benchmark
from medthink.board.checking import LoadedBenchmark
from small_benchmark import write_benchmark


@pytest.fixture(scope="session")
def bench(tmp_path_factory):
    return write_benchmark(tmp_path_factory.mktemp("board") / "bench", 12)


@pytest.fixture(scope="session")
def held(bench):
    return LoadedBenchmark.open(bench)


@pytest.fixture
def entered(store, held):
    """The benchmark as the store has it."""
    return add_benchmark(store, held, name="demo")


@pytest.fixture
def lines(held):
    """Makes the bytes of a submission that always answers with this letter."""

    def make(letter: str = "A", **fields: object) -> bytes:
        rows = [{"title": case.title, "prediction": letter, **fields} for case in held.cases.values()]
        return "".join(json.dumps(row) + "\n" for row in rows).encode()

    return make
