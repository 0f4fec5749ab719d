"""Output of the command line: tables that fit, progress on stderr, JSON for machines."""

import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from medthink.core import markup
from medthink.core.jsonio import encode_json
from medthink.core.numbers import as_usd, count_of

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.progress import Progress, TaskID
    from rich.table import Table

    from medthink.runs.calls.rehearsal import CallEstimate
    from medthink.runs.progress import LiveCounts, Phase
    from medthink.workflow.prediction import Prediction

# Control characters except tab and newline, DEL, the C1 controls, and those that change the writing direction.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

_GAP = 2


def console(*, stderr: bool = False) -> "Console":
    """Standard output (or error), as wide as the terminal; brackets and colons are printed as they are."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, soft_wrap=False, stderr=stderr)


def print_line(line: str, *, stderr: bool = False) -> None:
    """One line, never wrapped, so that a path in it can be copied."""
    click.echo(plain(line), err=stderr)


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Iterable[int] = ()
) -> "Table":
    """A plain table; columns whose index is in `right` are aligned right.

    No word or number is broken to fit the terminal: if there are too many columns, each row is printed vertically.
    """
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    cells = [[plain(str(cell)) for cell in row] for row in rows]
    widths = _fit([columns, *cells], console().width)
    if widths is None and len(columns) > 2:
        upright = [pair for row in cells for pair in _stand_up(columns, row)]
        return print_table(title, ("", ""), upright)
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


# Beyond so many rows a table is printed line by line, with the widths that these rows need.
LONG_TABLE = 1_000


def print_lines(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Iterable[int] = ()
) -> None:
    """A long table: one line for each row, whatever the width of the terminal."""
    from rich.cells import cell_len

    numeric = set(right)
    coming = (tuple(plain(str(cell)) for cell in row) for row in rows)
    portion = [tuple(columns), *islice(coming, LONG_TABLE)]
    widths = [max(map(cell_len, cells)) for cells in zip(*portion, strict=True)]

    def pad(place: int, cell: str) -> str:
        blank = " " * (widths[place] - cell_len(cell))
        return blank + cell if place in numeric else cell + blank

    sys.stdout.write(f"{plain(title)}\n")
    while portion:
        # A terminal's output is flushed line by line, which takes longer than to make the lines.
        lines = ((" " * _GAP).join(pad(place, cell) for place, cell in enumerate(row)).rstrip() for row in portion)
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        portion = list(islice(coming, LONG_TABLE))


def draw(made: markup.Table, *, of: str = "") -> None:
    """Print a table under its title, which begins with its subject; without rows, the title alone."""
    title = f"{of}: {made.title}" if of else made.title
    console().print(print_table(title, made.columns, made.rows, right=made.numeric) if made.rows else title)


def _fit(rows: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """Widths at which no word is broken and all columns fit, or None; short columns come first."""
    from rich.cells import cell_len

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


def is_quiet() -> bool:
    """Whether --quiet was given."""
    return _was_given("quiet")


def is_verbose() -> bool:
    """Whether --verbose was given."""
    return _was_given("verbose")


def _was_given(flag: str) -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and f"medthink.{flag}" in context.meta


def progress() -> "Progress":
    """A progress bar on standard error, so that output can be piped; none if it is quiet or not a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    watched = console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=watched,
        transient=True,
        disable=is_quiet() or not watched.is_terminal,
    )


@contextmanager
def staged_progress(verb: str) -> Iterator[Callable[[str, int], None]]:
    """Progress over several phases; it yields a function to call with each name and total."""
    with progress() as bar:
        tasks: dict[str, TaskID] = {}

        def advance(things: str, total: int) -> None:
            if things not in tasks:
                tasks[things] = bar.add_task(f"{verb} {things}", total=total)
            bar.advance(tasks[things])

        yield advance


def print_json(value: Any) -> None:
    """One JSON value on standard output, in UTF-8 whatever the terminal's encoding is."""
    sys.stdout.buffer.write(encode_json(value) + b"\n")


_BAR_WIDTH = 30
_REFRESHES_A_SECOND = 4
LINE_EVERY_S = 30.0
JSON_EVERY_S = 60.0
_MINUTE, _HOUR = 60, 3600


@contextmanager
def follow(
    folder: Path | None, read: "Callable[[], LiveCounts] | None" = None, *, as_json: bool = False
) -> "Iterator[LiveProgress]":
    """Show a session's progress; if it is interrupted, say that the folder keeps finished calls."""
    try:
        with LiveProgress(read, as_json=as_json) as progress:
            yield progress
    except KeyboardInterrupt:
        print_line(f"Stopped. {folder} keeps every finished call; run the same command again to continue.", stderr=True)
        raise


class LiveProgress:
    """Follows one session on standard error; enter it as a context.

    `read` returns the counts to show, if they are not those of the session followed. With `as_json` they are printed on
    standard output, for a program: once a minute a line of JSON.
    """

    def __init__(
        self,
        read: "Callable[[], LiveCounts] | None" = None,
        *,
        screen: "Console | None" = None,
        line_every_s: float | None = None,
        as_json: bool = False,
    ) -> None:
        from rich.live import Live

        from medthink.runs.progress import LiveCounts

        self._counts = LiveCounts()
        self._read = read or (lambda: self._counts)
        self._screen = screen or console(stderr=True)
        self._as_json = as_json
        self._line_every_s = line_every_s or (JSON_EVERY_S if as_json else LINE_EVERY_S)
        self._is_quiet, self._is_verbose = is_quiet(), is_verbose()
        self._over = threading.Event()
        self._lines = threading.Thread(target=self._print_lines, daemon=True)
        self._live = Live(
            get_renderable=lambda: progress_block(self._read()),
            console=self._screen,
            transient=True,
            refresh_per_second=_REFRESHES_A_SECOND,
        )

    def __enter__(self) -> "LiveProgress":
        if self._is_quiet:
            return self
        if self._has_block:
            self._live.start()
        else:
            self._lines.start()
        return self

    @property
    def _has_block(self) -> bool:
        return self._screen.is_terminal and not self._as_json

    def __exit__(self, *_: object) -> None:
        if self._is_quiet:
            return
        if self._has_block:
            self._live.stop()
        else:
            self._over.set()
            self._lines.join()

    def follow(self, counts: "LiveCounts") -> None:
        """Show these counts from now on."""
        self._counts = counts

    def enter(self, phase: "Phase", detail: str) -> None:
        """Say at once that the run is waiting, if the block does not show it."""
        if phase == "waiting" and not self._has_block and not self._is_quiet:
            self._say(f"waiting: {detail}")

    def see(self, prediction: "Prediction", *, is_kept: bool = False) -> None:
        """With --verbose a line for every case; else the counts show it."""
        if self._is_verbose:
            kept = ", kept from before" if is_kept else ""
            self._say(f"case {prediction.case}: {prediction.state}{kept}")

    def _print_lines(self) -> None:
        while not self._over.wait(self._line_every_s):
            if self._as_json:
                print_json({"live": self._read().snapshot()})
                sys.stdout.flush()
            else:
                self._say(progress_line(self._read()))

    def _say(self, text: str) -> None:
        from rich.text import Text

        self._screen.print(Text(plain(f"{time.strftime('%H:%M:%S')} {text}")), soft_wrap=True)


def progress_block(counts: "LiveCounts") -> "Group":
    """The counts as a bar and a few rows."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    bar = ProgressBar(total=max(1, counts.calls), completed=counts.finished, width=_BAR_WIDTH)
    head = Table.grid(padding=(0, 2, 0, 0))
    head.add_row(Text(_phase(counts), style="bold"), bar, Text(describe_finished(counts)))
    rows = Table.grid(padding=(0, 2, 0, 0))
    for name, text in progress_text(counts):
        rows.add_row(Text(name, style="dim"), Text(text))
    return Group(head, rows)


def progress_line(counts: "LiveCounts") -> str:
    """The counts in one line."""
    told = dict(progress_text(counts))
    return f"{describe_phase(counts)} · {told['calls']}; {counts.unit}: {told[counts.unit]}; {told['spent']}"


def describe_phase(counts: "LiveCounts") -> str:
    """The current phase, and the number of calls done."""
    return f"{_phase(counts)}: {describe_finished(counts)}"


def progress_text(counts: "LiveCounts") -> list[tuple[str, str]]:
    """The counts in words, by topic."""
    states = describe_states(counts.states)
    return [
        (counts.unit, f"{counts.predicted:,} of {counts.predictions:,} done: {states}"),
        ("calls", " · ".join(_flow(counts))),
        ("spent", f"{counts.input_tokens:,} tokens in, {counts.output_tokens:,} out · {describe_cost(counts)}"),
    ]


def describe_states(states: Mapping[str, int]) -> str:
    """The numbers by state, the most frequent first."""
    return ", ".join(f"{count:,} {state}" for state, count in sorted(states.items(), key=lambda one: -one[1])) or "none"


def describe_cost(counts: "LiveCounts") -> str:
    """The cost so far; "at least" if replies that never arrived may have been billed."""
    cost = "cost unknown" if counts.cost_usd is None else as_usd(counts.cost_usd, is_least=counts.is_least_cost)
    if not counts.is_running:
        return cost
    limit = "" if counts.max_usd is None else f" of {as_usd(counts.max_usd)}"
    left = counts.calls_affordable()
    return f"{cost}{limit}" if left is None else f"{cost}{limit}: ends in about {count_of(left, 'call')}"


def describe_time(seconds: float) -> str:
    """A waiting time in words, no more precise than needed."""
    if seconds < 2 * _MINUTE:
        return f"{max(1, round(seconds))} s"
    if seconds < 2 * _HOUR:
        return f"{round(seconds / _MINUTE)} min"
    return f"{int(seconds // _HOUR)} h {round(seconds % _HOUR / _MINUTE):02d} min"


def _phase(counts: "LiveCounts") -> str:
    return f"{counts.phase} ({counts.detail})" if counts.detail else counts.phase


def describe_finished(counts: "LiveCounts") -> str:
    """The number of calls that have ended, of the total."""
    share = f" ({100 * counts.finished // counts.calls} %)" if counts.calls else ""
    return f"{counts.finished:,} of {max(counts.calls, counts.finished):,} calls{share}"


def _flow(counts: "LiveCounts") -> list[str]:
    reasons = f": {counts.tell_reasons()}" if counts.reasons else ""
    words = [f"{counts.in_flight:,} in flight", f"{counts.retried:,} retried{reasons}", f"{counts.failed:,} failed"]
    words += [f"{counts.queued:,} in batches"] if counts.queued else []
    pace, left_s = counts.per_minute(), counts.time_left_s()
    if counts.is_running and counts.done and not counts.queued:
        words.append(f"{pace:,.0f} a minute")
    if counts.is_running and (latency_s := counts.latency_s()) is not None:
        words.append(f"median {latency_s:.1f} s")
    if counts.is_running and left_s is not None and counts.finished < counts.calls and not counts.queued:
        words.append(f"about {describe_time(left_s)} left")
    return words


def estimate_rows(made: "CallEstimate", left: str = "") -> list[tuple[str, str]]:
    """What a dry run counted, in rows of a table."""
    return [
        (f"calls{left}", f"{made.calls:,}"),
        ("images to send", f"{made.images:,}"),
        ("upload", f"{made.upload_bytes / 1e6:,.1f} MB"),
        ("input tokens, estimated", f"{made.input_tokens:,}"),
        ("output tokens, estimated", f"{made.output_tokens:,} (hidden reasoning not included)"),
        ("cost, estimated", as_usd(made.cost_usd)),
    ]


def show_estimate(title: str, made: "CallEstimate", *, as_json: bool) -> None:
    """Print what a dry run counted."""
    if as_json:
        from msgspec import to_builtins

        print_json(to_builtins(made))
        return
    console().print(print_table(title, ("", ""), estimate_rows(made, " left")))
