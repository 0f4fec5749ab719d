"""The state of a served board: a store with its settings and board, and the benchmark and files served with it."""

from dataclasses import dataclass, field
from pathlib import Path

from litestar.di import NamedDependency
from litestar.params import SkipValidation

from medthink.board.benchmarks import BoardBenchmark
from medthink.store.engine import Store
from medthink.web.app.benchmarks import BenchmarkCache, LoadedSplit
from medthink.web.app.rendering import Site
from medthink.web.app.server import ServeSettings
from medthink.web.board.cache import BoardCache
from medthink.web.cases.answers import HumanAnswers, Reveals


@dataclass(frozen=True, kw_only=True)
class ServeApp:
    """Everything that is served: a store, and optionally a benchmark, runs to read and a sheet to review.

    `entry` is the benchmark's entry in the store; `reveals` has its cases, and the part that each reader may see.
    """

    store: Store
    site: Site
    live: BoardCache
    settings: ServeSettings = field(default_factory=ServeSettings)
    library: BenchmarkCache = field(default_factory=BenchmarkCache)
    entry: BoardBenchmark | None = None
    reveals: Reveals | None = None
    runs: tuple[Path, ...] = ()
    review: Path | None = None

    @property
    def benchmark(self) -> BoardBenchmark:
        """The entry, for features that are only served with a benchmark."""
        assert self.entry is not None
        return self.entry

    @property
    def revealed(self) -> Reveals:
        """The revealed cases of each reader, for the same features."""
        assert self.reveals is not None
        return self.reveals

    @property
    def bench(self) -> LoadedSplit:
        """The cases, for the same features."""
        return self.revealed.bench

    @property
    def answers(self) -> HumanAnswers:
        """The readers' answers in the case explorer."""
        return HumanAnswers(self.store)

    @property
    def sheet(self) -> Path:
        """The sheet to review, for the feature that is only served with one."""
        assert self.review is not None
        return self.review


GivenApp = NamedDependency[SkipValidation[ServeApp]]
