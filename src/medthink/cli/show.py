"""How the command line shows things: tables that fit, progress on stderr, JSON for machines."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from medthink.core import markup
from medthink.core.jsonio import encode_json

# Control characters except tab and newline, DEL, the C1 controls, and those that change the writing direction.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

_GAP = 2


def console(*, stderr: bool = False) -> Console:
    """Standard output (or error), as wide as the terminal; brackets and colons are printed as they are."""
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=False, stderr=stderr)


def say(line: str, *, stderr: bool = False) -> None:
    """One line, never wrapped, so that a path in it can be copied."""
    console(stderr=stderr).print(Text(plain(line)), soft_wrap=True)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Iterable[int] = ()) -> Table:
    """A plain table; columns whose index is in `right` are aligned right.

    No word or number is broken to fit the terminal: if there are too many columns, each row is printed vertically.
    """
    cells = [[plain(str(cell)) for cell in row] for row in rows]
    widths = _fit([columns, *cells], console().width)
    if widths is None and len(columns) > 2:
        upright = [pair for row in cells for pair in _stand_up(columns, row)]
        return table(title, ("", ""), upright)
    numeric = set(right)
    if widths and len(columns) - 1 not in numeric:
        # The title is wrapped to the table's width: a short last column is widened for it.
        lacking = min(cell_len(plain(title)), console().width) - sum(widths) - _GAP * (len(widths) - 1)
        widths[-1] += max(0, lacking)
    made = Table(
        title=plain(title),
        title_justify="left",
        title_style="bold",
        show_header=any(columns),
        box=None,
        pad_edge=False,
        padding=(0, _GAP, 0, 0),
    )
    for index, column in enumerate(columns):
        made.add_column(
            plain(column),
            justify="right" if index in numeric else "left",
            overflow="fold",
            width=widths[index] if widths else None,
        )
    for row in cells:
        made.add_row(*map(Text, row))
    return made


def draw(made: markup.Table, *, of: str = "") -> None:
    """Print a table under its title, which begins with the name of what it is about; without rows, the title alone."""
    title = f"{of}: {made.title}" if of else made.title
    console().print(table(title, made.columns, made.rows, right=made.numeric) if made.rows else title)


def _fit(rows: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """Widths at which no word is broken and all columns fit, or None; short columns come first."""
    columns = list(zip(*rows, strict=True))
    widths = [max((cell_len(word) for text in column for word in text.split()), default=1) for column in columns]
    wanted = [max(cell_len(line) for text in column for line in (text or " ").splitlines()) for column in columns]
    spare = room - sum(widths) - _GAP * (len(widths) - 1)
    if spare < 0:
        return None
    for lacking, place in sorted((wanted[place] - width, place) for place, width in enumerate(widths)):
        given = min(lacking, spare)
        widths[place] += given
        spare -= given
    return widths


def _stand_up(columns: Sequence[str], row: Sequence[str]) -> Iterable[tuple[str, str]]:
    """A row of a table that is too wide: its first cell, and under it each other cell with its column's name."""
    yield row[0], ""
    for name, cell in zip(columns[1:], row[1:], strict=True):
        yield f"  {name}", cell


def plain(text: str) -> str:
    """The text without control characters, with which data could manipulate a terminal."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def progress() -> Progress:
    """A progress bar on standard error, so that output can be piped; none if it is not a terminal."""
    watched = console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=watched,
        transient=True,
        disable=not watched.is_terminal,
    )


@contextmanager
def staged_progress(verb: str) -> Iterator[Callable[[str, int], None]]:
    """Progress over several kinds of things; it yields a function to call with each name and total."""
    with progress() as bar:
        tasks: dict[str, TaskID] = {}

        def advance(things: str, total: int) -> None:
            if things not in tasks:
                tasks[things] = bar.add_task(f"{verb} {things}", total=total)
            bar.advance(tasks[things])

        yield advance


def print_json(value: Any) -> None:
    """One JSON text on standard output, in UTF-8 whatever the terminal's encoding is."""
    sys.stdout.buffer.write(encode_json(value) + b"\n")
