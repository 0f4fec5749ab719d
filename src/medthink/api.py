"""The Python interface for notebooks and scripts, from the benchmark to the report.

Each function does what the command of the same name does, and returns a value that displays itself in a notebook.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import ParamSpec

from medthink.cases.benchmark import Benchmark
from medthink.cases.check.report import CheckReport
from medthink.runs import session
from medthink.runs.run import Run, RunOrPath, path_of
from medthink.scoring.compare import Comparison, compare_paths
from medthink.scoring.radcliq import RadCliQOptions
from medthink.scoring.scores import Scores

Arguments = ParamSpec("Arguments")


class RunWithScores(Run):
    """A run, opened for reading and scoring."""

    def score(self, *, data: str | Path | None = None, radcliq: RadCliQOptions | None = None) -> Scores:
        """Score the run against its references and store the scores in its folder.

        `data` is the benchmark, if it has moved.
        """
        from medthink.scoring.score import score_run

        return score_run(self.path, _path_or_none(data), radcliq=radcliq)


def _opened(make: Callable[Arguments, Run]) -> Callable[Arguments, RunWithScores]:
    @wraps(make)
    def make_and_open(*args: Arguments.args, **kwargs: Arguments.kwargs) -> RunWithScores:
        return RunWithScores(make(*args, **kwargs).path)

    return make_and_open


run = _opened(session.run)


def check(benchmark: Benchmark | str | Path, *, images: bool = False) -> CheckReport:
    """Find every broken invariant of a benchmark; with `images`, check the image files' contents too."""
    from medthink.cases.check import check_benchmark

    return check_benchmark(benchmark if isinstance(benchmark, Benchmark) else Benchmark.open(benchmark), images=images)


def synth(
    out: str | Path,
    *,
    cases: int = 60,
    seed: int = 0,
    shortcut: bool = False,
    defects: bool = False,
    processes: int = 1,
) -> Benchmark:
    """Make a benchmark of drawn phantoms in a new folder, and open it.

    A script that uses several processes must call it under `if __name__ == "__main__":`.
    """
    from medthink.phantoms.writer import write_benchmark

    write_benchmark(Path(out), cases=cases, seed=seed, shortcut=shortcut, defects=defects, processes=processes)
    return Benchmark.open(out)


def compare(runs: Sequence[RunOrPath], *, data: str | Path | None = None, split: str = "test") -> Comparison:
    """Compare runs or submission files on the same cases; scores that are still valid are reused.

    `data` is needed for submission files, which belong to its `split`, and for runs whose benchmark has moved.
    """
    return compare_paths([path_of(one) for one in runs], _path_or_none(data), split=split)


def _path_or_none(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)
