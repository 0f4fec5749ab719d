"""A run's progress while it works: a small block in a terminal, a line every half minute elsewhere."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from medthink.cli.show import console, plain, say
from medthink.core.numbers import as_usd
from medthink.runs.prediction import Prediction
from medthink.runs.progress import LiveCounts, Phase

_BAR_WIDTH = 30
_REFRESHES_A_SECOND = 4
LINE_EVERY_S = 30.0
_MINUTE, _HOUR = 60, 3600


@contextmanager
def follow(folder: Path | None, read: Callable[[], LiveCounts] | None = None) -> "Iterator[LiveProgress]":
    """Show a session's progress; whoever interrupts it is told that the folder keeps what was done."""
    try:
        with LiveProgress(read) as progress:
            yield progress
    except KeyboardInterrupt:
        say(f"Stopped. {folder} keeps every finished call; run the same command again to continue.", stderr=True)
        raise


class LiveProgress:
    """Follows one session on standard error; enter it as a context.

    `read` returns the counts to show, if they are not those of the session followed.
    """

    def __init__(
        self,
        read: Callable[[], LiveCounts] | None = None,
        *,
        screen: Console | None = None,
        line_every_s: float = LINE_EVERY_S,
    ) -> None:
        self._counts = LiveCounts()
        self._read = read or (lambda: self._counts)
        self._screen = screen or console(stderr=True)
        self._line_every_s = line_every_s
        self._over = threading.Event()
        self._lines = threading.Thread(target=self._print_lines, daemon=True)
        self._live = Live(
            get_renderable=lambda: block(self._read()),
            console=self._screen,
            transient=True,
            refresh_per_second=_REFRESHES_A_SECOND,
        )

    def __enter__(self) -> "LiveProgress":
        if self._screen.is_terminal:
            self._live.start()
        else:
            self._lines.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._screen.is_terminal:
            self._live.stop()
        else:
            self._over.set()
            self._lines.join()

    def follow(self, counts: LiveCounts) -> None:
        """Show these counts from now on."""
        self._counts = counts

    def enter(self, phase: Phase, detail: str) -> None:
        """Say at once that the run is waiting, if the block does not show it."""
        if phase == "waiting" and not self._screen.is_terminal:
            self._say(f"waiting: {detail}")

    def see(self, prediction: Prediction, *, is_kept: bool = False) -> None:
        """Nothing to do: the counts show it."""

    def _print_lines(self) -> None:
        while not self._over.wait(self._line_every_s):
            self._say(line(self._read()))

    def _say(self, text: str) -> None:
        self._screen.print(Text(plain(f"{time.strftime('%H:%M:%S')} {text}")), soft_wrap=True)


def block(counts: LiveCounts) -> Group:
    """The counts as a bar and a few rows."""
    bar = ProgressBar(total=max(1, counts.calls), completed=counts.finished, width=_BAR_WIDTH)
    head = Table.grid(padding=(0, 2, 0, 0))
    head.add_row(Text(_phase(counts), style="bold"), bar, Text(describe_finished(counts)))
    rows = Table.grid(padding=(0, 2, 0, 0))
    for name, text in describe(counts):
        rows.add_row(Text(name, style="dim"), Text(text))
    return Group(head, rows)


def line(counts: LiveCounts) -> str:
    """The counts in one line."""
    told = dict(describe(counts))
    return f"{describe_phase(counts)} · {told['calls']}; {counts.unit}: {told[counts.unit]}; {told['spent']}"


def describe_phase(counts: LiveCounts) -> str:
    """What is going on, and how many calls are done."""
    return f"{_phase(counts)}: {describe_finished(counts)}"


def describe(counts: LiveCounts) -> list[tuple[str, str]]:
    """The counts in words, by topic."""
    states = describe_states(counts.states)
    return [
        (counts.unit, f"{counts.predicted:,} of {counts.predictions:,} done: {states}"),
        ("calls", " · ".join(_flow(counts))),
        ("spent", f"{counts.input_tokens:,} tokens in, {counts.output_tokens:,} out · {describe_cost(counts)}"),
    ]


def describe_states(states: Mapping[str, int]) -> str:
    """How many are in which state, the commonest first."""
    return ", ".join(f"{count:,} {state}" for state, count in sorted(states.items(), key=lambda one: -one[1])) or "none"


def describe_cost(counts: LiveCounts) -> str:
    """The cost so far; "at least" if replies that never arrived may have been billed."""
    return "cost unknown" if counts.cost_usd is None else as_usd(counts.cost_usd, is_least=counts.is_least_cost)


def describe_time(seconds: float) -> str:
    """A waiting time in words, no more precise than needed."""
    if seconds < 2 * _MINUTE:
        return f"{max(1, round(seconds))} s"
    if seconds < 2 * _HOUR:
        return f"{round(seconds / _MINUTE)} min"
    return f"{int(seconds // _HOUR)} h {round(seconds % _HOUR / _MINUTE):02d} min"


def _phase(counts: LiveCounts) -> str:
    return f"{counts.phase} ({counts.detail})" if counts.detail else counts.phase


def describe_finished(counts: LiveCounts) -> str:
    """How many calls have come to an end, of how many."""
    share = f" ({100 * counts.finished // counts.calls} %)" if counts.calls else ""
    return f"{counts.finished:,} of {max(counts.calls, counts.finished):,} calls{share}"


def _flow(counts: LiveCounts) -> list[str]:
    words = [f"{counts.in_flight:,} in flight", f"{counts.retried:,} retried", f"{counts.failed:,} failed"]
    words += [f"{counts.queued:,} in batches"] if counts.queued else []
    pace, left_s = counts.per_minute(), counts.time_left_s()
    if counts.is_running and counts.done and not counts.queued:
        words.append(f"{pace:,.0f} a minute")
    if counts.is_running and left_s is not None and counts.finished < counts.calls and not counts.queued:
        words.append(f"about {describe_time(left_s)} left")
    return words
