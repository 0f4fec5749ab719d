"""The store: one database, SQLite by default and PostgreSQL by URL, opened at its newest tables.

A reader sees a consistent snapshot. A writer is exclusive from its first statement on SQLite, and on PostgreSQL it
locks the rows it counts; quotas therefore hold however many write at once.
"""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import orjson
import sqlalchemy as sa
from sqlalchemy import Connection, Engine, RowMapping, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.exc import DataError as UnstorableValue

from medthink.core.clock import now_utc
from medthink.core.errors import DataError, OutsideError, UsageError
from medthink.store import tables

_WAIT_S = 30
# Connections that are kept open: opening one costs more than a save.
_KEPT, _MOST = 16, 40
_MAKE_ONE = "name it with --store; medthink board add and medthink serve make one"
_MIGRATIONS = Path(__file__).parent / "migrations"


class Store:
    """An open store; with `must_exist`, a missing one is an error instead of being made."""

    def __init__(self, url: str, *, must_exist: bool = False) -> None:
        self.url = url
        self._engine = _make_engine(url)
        # Writers of this process queue here: SQLite itself lets them sleep and try again, for longer each time.
        self._turn: AbstractContextManager[object] = threading.RLock() if self.is_sqlite else nullcontext()
        try:
            if must_exist and not self._exists():
                self.close()
                raise UsageError(f"no store at {_shown_place(self._engine.url)}", remedy=_MAKE_ONE)
            self._upgrade()
        except DBAPIError as error:
            self.close()
            if "not a database" in str(error.orig):
                raise _not_a_store(self._engine.url) from None
            raise OutsideError(f"the store cannot be opened: {error.orig}", remedy="check --store") from None

    @property
    def is_sqlite(self) -> bool:
        """Whether this is a file, written by one process at a time."""
        return self._engine.dialect.name == "sqlite"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A read-only transaction on a consistent snapshot."""
        options = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        with self._engine.connect().execution_options(**options) as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that is committed completely or not at all."""
        with (
            self._turn,
            self._engine.connect().execution_options(writes=True) as connection,
            connection.begin(),
        ):
            yield connection

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def _exists(self) -> bool:
        # SQLite would make the file that it is asked about.
        file = self._engine.url.database if self.is_sqlite else None
        return (file is None or Path(file).is_file()) and sa.inspect(self._engine).has_table("alembic_version")

    def _upgrade(self) -> None:
        """Make the tables, or migrate those of an earlier release; several processes may open a store at once."""
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(_MIGRATIONS))
        with self.write() as connection:
            if not self.is_sqlite:
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(7233)"))
            config.attributes["connection"] = connection
            if sa.inspect(connection).has_table("alembic_version"):
                command.upgrade(config, "head")
            else:
                if sa.inspect(connection).get_table_names():
                    raise _not_a_store(self._engine.url)
                tables.metadata.create_all(connection, checkfirst=False)
                command.stamp(config, "head")


def _not_a_store(url: sa.URL) -> UsageError:
    return UsageError(f"{_shown_place(url)} is not a store", remedy="name another with --store; a new one is made")


def _shown_place(url: sa.URL) -> str:
    """The store's path relative to here, or its address without the password."""
    if url.drivername != "sqlite":
        return url.render_as_string(hide_password=True)
    file, here = Path(url.database or ""), Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)


def store_url(place: str | Path) -> str:
    """The URL of a store; the path of a SQLite file becomes one."""
    text = str(place)
    return text if "://" in text else f"sqlite:///{Path(text).absolute()}"


def _make_engine(url: str) -> Engine:
    try:
        address = sa.make_url(url)
        if address.drivername == "postgresql":
            address = address.set(drivername="postgresql+psycopg")
        # Database messages must not carry values that do not belong in a log.
        engine = sa.create_engine(
            address,
            hide_parameters=True,
            json_deserializer=orjson.loads,
            pool_size=_KEPT,
            max_overflow=_MOST - _KEPT,
        )
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        raise UsageError(
            f"not the address of a store: {error}",
            remedy="name a file, or postgresql://USER@HOST/NAME with pip install 'medthink[web]'",
        ) from None
    event.listen(engine, "handle_error", _refuse_values)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _refuse_values(context: ExceptionContext) -> None:
    """Raise UsageError for a value that the database cannot store, such as text with a NUL character in PostgreSQL."""
    if isinstance(context.sqlalchemy_exception, UnstorableValue):
        raise DataError(
            "a text or number cannot be stored", remedy="remove control characters and numbers beyond 64 bits"
        ) from None


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    # The driver's own way of beginning transactions is too late for a writer: `_begin_sqlite` does it.
    connection.isolation_level = None
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", f"busy_timeout = {_WAIT_S}000"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def record_event(
    connection: Connection, submission_id: int | None, actor: str, what: str, detail: dict[str, Any]
) -> None:
    """Write one line of history."""
    connection.execute(
        tables.events.insert().values(
            submission_id=submission_id, at=now_utc(), actor=actor, what=what, detail=detail
        )
    )  # fmt: skip


def insert_if_missing(connection: Connection, table: sa.Table, values: dict[str, Any]) -> Any:
    """An insert statement that leaves an existing row unchanged."""
    from sqlalchemy.dialects import postgresql, sqlite

    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    return dialect.insert(table).values(values).on_conflict_do_nothing()


Record = TypeVar("Record", bound=msgspec.Struct)


def row_as(row: RowMapping, kind: type[Record]) -> Record:
    """A row as a struct with fields named like its columns; a field whose column was not read keeps its default."""
    return msgspec.convert({name: row[name] for name in kind.__struct_fields__ if name in row}, kind)
