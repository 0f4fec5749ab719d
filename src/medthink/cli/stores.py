"""The flag that names a board's store, and opening it."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import click

from medthink.core.errors import UsageError

if TYPE_CHECKING:
    from medthink.board.store import BoardStore

DEFAULT_STORE = "board.sqlite"

Decorated = Callable[..., Any]


def store_flag(command: Decorated) -> Decorated:
    """`--store`: a file, or the URL of a PostgreSQL database."""
    return click.option(
        "--store",
        default=DEFAULT_STORE,
        show_default=True,
        envvar="MEDTHINK_STORE",
        metavar="FILE or URL",
        help="A SQLite file, or postgresql://… (also by MEDTHINK_STORE).",
    )(command)


@contextmanager
def open_store(place: str) -> "Iterator[BoardStore]":
    """The store, closed afterwards."""
    try:
        from medthink.board.store import BoardStore, store_url
    except ModuleNotFoundError as error:
        raise UsageError(f"a board needs the package {error.name}", remedy="pip install 'medthink[board]'") from None
    with closing(BoardStore(store_url(place))) as store:
        yield store
