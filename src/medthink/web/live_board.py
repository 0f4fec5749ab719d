"""The current leaderboard, recomputed only when something has changed."""

import threading
from collections import OrderedDict

import sqlalchemy as sa

from medthink.board import tables
from medthink.board.benchmarks import BoardBenchmark, find_benchmark
from medthink.board.ranking import Leaderboard, make_leaderboard
from medthink.board.results import ScoreShelf
from medthink.board.store import BoardStore

# A larger ranking takes seconds: a worker computes it, and until then its rows have no ranks.
_RANKED_HERE = 60
_DAYS_KEPT = 8
# What happens to a submission before it is scored changes nothing on the board, so pages are kept while it happens.
_UNSEEN = ("received", "checking", "invalid", "failed")
BoardVersion = tuple[int, int, int]


class LiveBoard:
    """The board of one benchmark, for every page of a process."""

    def __init__(self, store: BoardStore, benchmark: str | None = None, *, most: int | None = _RANKED_HERE) -> None:
        self.store = store
        self._name = benchmark
        self._most = most
        self._shelf = ScoreShelf(store)
        self._made: OrderedDict[tuple[BoardVersion, str], Leaderboard] = OrderedDict()
        self._lock = threading.Lock()

    def benchmark(self) -> BoardBenchmark:
        """The benchmark, or UsageError: there is none, or one must be chosen."""
        return find_benchmark(self.store, self._name)

    def version(self) -> BoardVersion:
        """A value that changes whenever a page may have changed: the history, rankings and rivals."""
        counts = (
            sa.select(sa.func.coalesce(sa.func.max(tables.events.c.id), 0))
            .where(tables.events.c.what.not_in(_UNSEEN))
            .scalar_subquery(),
            sa.select(sa.func.count()).select_from(tables.rankings).scalar_subquery(),
            sa.select(sa.func.count()).select_from(tables.rivals).scalar_subquery(),
        )
        with self.store.read() as connection:
            events, rankings, rivals = connection.execute(sa.select(*counts)).one()
        return (events, rankings, rivals)

    def made(self, as_of: str | None = None) -> Leaderboard:
        """The current board, or the one as of a time."""
        benchmark = self.benchmark()
        # One request computes the board; concurrent requests wait for it.
        with self._lock:
            key = (self.version(), as_of or "")
            if key not in self._made:
                self._made[key] = make_leaderboard(
                    self.store, benchmark, as_of, shelf=self._shelf, most=self._most
                )  # fmt: skip
                while len(self._made) > _DAYS_KEPT:
                    self._made.popitem(last=False)
            self._made.move_to_end(key)
            return self._made[key]
