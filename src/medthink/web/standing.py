"""How a run stands: its accuracy, the strongest rival that cannot see the images, and what the run adds to it.

The gain is the mean of the paired differences by case, with Student's interval: it is wanted for hundreds of runs on
one page. `medthink probe` trains stronger guessers and draws its interval by bootstrap.
"""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from medthink.stats.estimate import Measured
from medthink.stats.intervals import mean_interval, rate_interval
from medthink.validity.audit import blind_name
from medthink.web.shelf import ShelfRun

LONGEST = "longest option"
Shares = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
"""The share of right answers of every case."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The accuracy over `n` predictions so far, and against the rival on the same cases."""

    n: int
    accuracy: Measured
    rival: str
    rival_accuracy: Measured
    gain: Measured


class Standings:
    """The standings of the runs of a shelf, worked out again only for runs that were read again."""

    def __init__(self) -> None:
        self._kept: dict[tuple[ShelfRun, ...], Standing | None] = {}

    def of_all(self, runs: Sequence[ShelfRun]) -> dict[str, Standing | None]:
        """Where each run stands, by the run's name in addresses."""
        families: dict[tuple[str, ...], list[ShelfRun]] = {}
        for run in runs:
            families.setdefault(run.family, []).append(run)
        keys = {run.slug: (run, *families[run.family]) for run in runs}
        kept = self._kept
        self._kept = {key: kept[key] if key in kept else find_standing(*key) for key in keys.values()}
        return {slug: self._kept[key] for slug, key in keys.items()}


def find_standing(run: ShelfRun, *family: ShelfRun) -> Standing | None:
    """Where a run stands among the runs of its family; None where nothing can be right or wrong yet."""
    if not run.rights:
        return None
    cases = sorted(run.rights)
    rights = np.array([run.rights[case] for case in cases])
    name, strongest = max(_rivals(run, family, cases), key=lambda rival: float(rival[1].mean()))
    return Standing(
        n=len(run.rows),
        accuracy=_accuracy(run),
        rival=name,
        rival_accuracy=rate_interval(strongest) if _is_plain(strongest) else mean_interval(strongest),
        gain=mean_interval(rights - strongest),
    )


def _accuracy(run: ShelfRun) -> Measured:
    return rate_interval(run.hits, clusters=[row.case for row in run.rows])


def _rivals(run: ShelfRun, family: Sequence[ShelfRun], cases: list[int]) -> Iterator[tuple[str, Shares]]:
    """The rule that needs no image, and the same model's own runs without images, on these cases."""
    bench = run.bench
    assert bench is not None
    yield LONGEST, np.array([float(bench.longest_rights.get(case, False)) for case in cases])
    for other in family:
        name = None if other is run else blind_name(run.condition, other.condition)
        if name and other.rights.keys() >= set(cases):
            yield name, np.array([other.rights[case] for case in cases])


def _is_plain(shares: Shares) -> bool:
    return bool(np.isin(shares, (0.0, 1.0)).all())
