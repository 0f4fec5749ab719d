"""A cache of the leaderboard and everything made from it, until something changes."""

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import sqlalchemy as sa

from medthink.board.benchmarks import BoardBenchmark, find_benchmark
from medthink.board.ranking import Leaderboard, make_leaderboard
from medthink.board.results import ScoreCache
from medthink.store import tables
from medthink.store.engine import Store

# A larger ranking takes seconds: a worker computes it, and until then its rows have no ranks.
_RANKED_HERE = 60
_DAYS_KEPT = 8
# Changes to a submission before it is scored do not affect the board, so cached pages stay valid.
_UNSEEN = ("received", "checking", "invalid", "failed")
BoardVersion = tuple[int, int, int]
Made = TypeVar("Made")


class _Entry:
    """A cached value, and the lock of the request that makes it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.made: list[Any] = []


class BoardCache:
    """The board of one benchmark and everything made from it, for all pages of a process."""

    def __init__(self, store: Store, benchmark: str | None = None, *, most: int | None = _RANKED_HERE) -> None:
        self.store = store
        self.shelf = ScoreCache(store)
        self._name = benchmark
        self._most = most
        self._at: BoardVersion | None = None
        self._kept: defaultdict[str, OrderedDict[Hashable, _Entry]] = defaultdict(OrderedDict)
        self._lock = threading.Lock()

    def benchmark(self) -> BoardBenchmark:
        """The benchmark, or UsageError: there is none, or one must be chosen."""
        return find_benchmark(self.store, self._name)

    def version(self) -> BoardVersion:
        """A value that changes whenever a page may have changed: the history, rankings and rivals.

        Counts, because rows are never deleted: the greatest number would miss a change that was begun earlier and
        committed later.
        """
        counts = (
            sa.select(sa.func.count())
            .select_from(tables.events)
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

        def make() -> Leaderboard:
            return make_leaderboard(self.store, benchmark, as_of, shelf=self.shelf, most=self._most)

        return self.once("board", as_of or "", make, most=_DAYS_KEPT)

    def once(self, kind: str, key: Hashable, make: Callable[[], Made], *, most: int) -> Made:
        """The value of `make` for this key at the board's version; of each kind, the most recent are cached.

        One request makes it while concurrent ones for the same wait; nothing is cached if the board has changed.
        """
        entry = self._entry(kind, key, most)
        with entry.lock:
            if not entry.made:
                entry.made.append(make())
            made: Made = entry.made[0]
            return made

    def _entry(self, kind: str, key: Hashable, most: int) -> _Entry:
        # Read before anything is made: what is made from a newer board is then made twice, but never too old.
        version = self.version()
        with self._lock:
            if version != self._at:
                self._at = version
                self._kept.clear()
            kept = self._kept[kind]
            entry = kept.setdefault(key, _Entry())
            kept.move_to_end(key)
            while len(kept) > most:
                kept.popitem(last=False)
            return entry
