"""Check and score submissions one after another; any number of workers may run.

The lease of a dead worker expires and another takes over. So nothing that was received is lost, and nothing waits for
ever.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from sqlalchemy.exc import DBAPIError

from medthink.board.benchmarks import BoardBenchmark, list_benchmarks
from medthink.board.checking import LoadedBenchmark, check_file
from medthink.board.queue import claim, enforce_deadlines, fail, keep_scores, refuse, renew_lease
from medthink.board.ranking import make_leaderboard, preview_rank
from medthink.board.results import ensure_rivals
from medthink.board.submissions import QueueProgress, SubmissionRecord, open_file
from medthink.core.errors import MedThinkError
from medthink.store.engine import Store

_IDLE_S = 0.5
_RENEW_S = 1.0
_DEADLINES_S = 15.0
# A check that exceeds its deadline is stopped together with its process.
CHECK_S = 600


def run_worker(
    store: Store,
    held: Mapping[int, LoadedBenchmark],
    stop: threading.Event,
    *,
    overdue: Callable[[], None] = lambda: None,
) -> None:
    """Work until told to stop: check, score, rank, enforce deadlines; `overdue` ends a check that hangs."""
    looked = 0.0
    while not stop.is_set():
        if time.monotonic() - looked > _DEADLINES_S:
            enforce_deadlines(store)
            refresh_rankings(store, held)
            looked = time.monotonic()
        if process_next(store, held, overdue=overdue) is None:
            stop.wait(_IDLE_S)


def process_next(
    store: Store, held: Mapping[int, LoadedBenchmark], *, overdue: Callable[[], None] = lambda: None
) -> SubmissionRecord | None:
    """Check and score the next waiting submission of a benchmark that is held; returns it, or None.

    `held` are the benchmarks whose files are available, by their number on the board.
    """
    found = claim(store, held)
    if found is not None:
        process_submission(store, found, held[found.benchmark_id], overdue=overdue)
    return found


def process_submission(
    store: Store,
    found: SubmissionRecord,
    held: LoadedBenchmark,
    *,
    overdue: Callable[[], None] = lambda: None,
) -> None:
    """Check and score a claimed submission; technical errors end as `failed`."""
    try:
        with _lease(store, found, overdue) as tell:
            _settle(store, found, held, tell)
    except MedThinkError as error:
        fail(store, found, error.problem)


def refresh_rankings(store: Store, held: Mapping[int, LoadedBenchmark]) -> None:
    """Compute the rankings and train the rivals shown on pages, so that no page waits for them."""
    for benchmark in list_benchmarks(store):
        if benchmark.id in held:
            ensure_rivals(store, benchmark, held[benchmark.id])
            make_leaderboard(store, benchmark)


def _settle(
    store: Store, found: SubmissionRecord, held: LoadedBenchmark, tell: Callable[[QueueProgress], None]
) -> None:
    with open_file(store, found) as path:
        checked = check_file(path, held, name=found.model, tell=tell)
    if checked.scores is None:
        refuse(store, found, checked.submission.problems)
        return
    lines = checked.submission.n_lines
    tell(QueueProgress(stage="rank", done=lines, of=lines))
    benchmark = _benchmark(store, found)
    ensure_rivals(store, benchmark, held)
    preview = preview_rank(store, benchmark, found, checked.scores)
    keep_scores(
        store,
        found,
        checked.scores,
        provenance=checked.provenance,
        detail="; ".join(checked.doubts),
        preview=preview,
    )


def _benchmark(store: Store, found: SubmissionRecord) -> BoardBenchmark:
    return next(one for one in list_benchmarks(store) if one.id == found.benchmark_id)


@contextmanager
def _lease(
    store: Store, found: SubmissionRecord, overdue: Callable[[], None]
) -> Iterator[Callable[[QueueProgress], None]]:
    """Hold a submission while it is checked; yields a function to report progress, which is written once a second."""
    latest = QueueProgress()
    done = threading.Event()
    ends = time.monotonic() + CHECK_S

    def renew() -> None:
        while not done.wait(_RENEW_S):
            if time.monotonic() > ends:
                overdue()
                return
            # A database that does not answer now may answer before the lease ends.
            with suppress(DBAPIError):
                if not renew_lease(store, found, latest):
                    return

    def tell(progress: QueueProgress) -> None:
        nonlocal latest
        latest = progress

    thread = threading.Thread(target=renew, name="lease", daemon=True)
    thread.start()
    try:
        yield tell
    finally:
        done.set()
        thread.join()
