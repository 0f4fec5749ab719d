"""`medthink board work`: check and score submissions."""

import os
import signal
import threading
from pathlib import Path

import click

from medthink.cli.show import say
from medthink.cli.stores import open_store, store_flag

OVERDUE_EXIT = 75


@click.command()
@click.option("--data", required=True, type=click.Path(path_type=Path, exists=True), help="The benchmark's files.")
@click.option("--split", default="test", show_default=True, help="The split the submissions are for.")
@click.option("--once", is_flag=True, help="Process what is waiting, then exit.")
@click.option("--with-parent", is_flag=True, hidden=True, help="Exit when standard input is closed.")
@store_flag
def command(data: Path, split: str, once: bool, with_parent: bool, store: str) -> None:
    """Check, score and rank the submissions of a served board until interrupted.

    `medthink serve` starts workers by itself; start more on any machine that can reach the store. If one is killed
    nothing is lost: another takes over its submission within half a minute.

    \b
    Example: medthink board work --store postgresql://board@db/board --data bench/
    """
    if with_parent:
        from medthink.cli.crew import follow_parent

        follow_parent()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with open_store(store) as opened:
        from medthink.board.benchmarks import enter_benchmark
        from medthink.board.checking import HeldBenchmark
        from medthink.board.worker import rank_boards, work, work_once

        held = HeldBenchmark.open(data, split)
        known = {enter_benchmark(opened, held).id: held}
        if not once:
            if not with_parent:
                say("Waiting for submissions  (Ctrl+C ends it)", stderr=True)
            work(opened, known, stop, overdue=_leave)
            return
        while work_once(opened, known, overdue=_leave) is not None:
            pass
        rank_boards(opened, known)


def _leave() -> None:
    """Exit at once, even in the middle of a check."""
    os._exit(OVERDUE_EXIT)
