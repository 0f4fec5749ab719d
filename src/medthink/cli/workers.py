"""Worker processes of a server: started, restarted when they end, and stopped with it."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from medthink.cli.flags import data_flag, open_store, split_flag, store_flag
from medthink.cli.output import print_line

_LOOK_S = 0.5
# A worker that keeps ending is not restarted more often than this.
_PAUSE_S = 3.0
_PATIENCE_S = 5.0


class WorkerProcesses:
    """Some `medthink` commands that are kept running, each in its own process."""

    def __init__(self, commands: Sequence[Sequence[str]], inherited: Sequence[int] = ()) -> None:
        self._commands = [[sys.executable, "-m", "medthink", *words] for words in commands]
        self._inherited = tuple(inherited)
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._keep, args=(words,), daemon=True) for words in self._commands
        ]  # fmt: skip

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Keep them running until the end of the block."""
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join()

    def _keep(self, words: Sequence[str]) -> None:
        while not self._stop.is_set():
            # The pipe is never written to: it closes when this process ends, even by `kill -9`, and they end too.
            child = subprocess.Popen(words, stdin=subprocess.PIPE, pass_fds=self._inherited, start_new_session=True)
            while child.poll() is None and not self._stop.wait(_LOOK_S):
                pass
            _end(child)
            self._stop.wait(_PAUSE_S)


def _end(child: "subprocess.Popen[bytes]") -> None:
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            child.kill()
    child.wait()
    if child.stdin is not None:
        child.stdin.close()


def follow_parent() -> None:
    """End this process when its parent has ended, for whatever reason."""

    def follow() -> None:
        # Not through `sys.stdin`: Python could not close it at the end while this waits.
        os.read(0, 1)
        os._exit(0)

    threading.Thread(target=follow, daemon=True).start()


OVERDUE_EXIT = 75


@click.command()
@data_flag.but(required=True, type=click.Path(path_type=Path, exists=True))
@split_flag
@click.option("--once", is_flag=True, help="Process what is waiting, then exit.")
@click.option("--with-parent", is_flag=True, hidden=True, help="Exit when standard input is closed.")
@store_flag
def board_worker(data: Path, split: str, once: bool, with_parent: bool, store: str) -> None:
    """Check, score and rank the submissions of a served board until interrupted.

    `medthink serve` starts workers by itself; start more on any machine that can reach the store. If one is killed
    nothing is lost: another takes over its submission within half a minute.

    \b
    Example: medthink board worker --store postgresql://board@db/board --data bench/
    """
    if with_parent:
        follow_parent()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with open_store(store) as opened:
        from medthink.board.benchmarks import add_benchmark
        from medthink.board.checking import LoadedBenchmark
        from medthink.board.worker import process_next, refresh_rankings, run_worker

        held = LoadedBenchmark.open(data, split)
        known = {add_benchmark(opened, held).id: held}
        if not once:
            if not with_parent:
                print_line("Waiting for submissions  (press Ctrl+C to stop)", stderr=True)
            run_worker(opened, known, stop, overdue=_leave)
            return
        while process_next(opened, known, overdue=_leave) is not None:
            pass
        refresh_rankings(opened, known)


def _leave() -> None:
    """Exit at once, even in the middle of a check."""
    os._exit(OVERDUE_EXIT)
