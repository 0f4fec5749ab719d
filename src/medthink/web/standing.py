"""A run's standing: its accuracy, the strongest rival without images, and the gain over it."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec
import numpy as np

from medthink.core.digest import seed_from
from medthink.stats.estimate import Measured
from medthink.stats.gain import gain_over_rivals
from medthink.stats.intervals import rate_interval, share_interval
from medthink.validity.audit import blind_name
from medthink.web.shelf import ShelfRun

Shares = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
"""The share of right answers of every case."""
RunFamily = tuple[ShelfRun, ...]
"""A run, and all runs of the same model and task on the same cases, including itself."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The accuracy over `n` predictions so far, and the rival's on the same cases.

    `gain` is None while it is being computed, which takes some hundredths of a second per run, and longer if the rivals
    must be trained first; until then the rival is the best one known.
    """

    n: int
    accuracy: Measured
    rival: str
    rival_accuracy: Measured
    gain: Measured | None = None


class Standings:
    """The standings of the runs of a shelf, recomputed only for runs that were reloaded."""

    def __init__(self) -> None:
        self._kept: dict[RunFamily, Standing | None] = {}
        self._lock = threading.Lock()
        self._aside = ThreadPoolExecutor(max_workers=1, thread_name_prefix="gains")

    def of_all(self, runs: Sequence[ShelfRun]) -> dict[str, Standing | None]:
        """Each run's standing, by its name in URLs; missing gains are computed in the background."""
        families = _find_families(runs)
        with self._lock:
            kept = self._kept
            self._kept = {family: kept[family] if family in kept else find_standing(family) for family in families}
            missing = [family for family in families if family not in kept and self._kept[family]]
            found = {family[0].slug: self._kept[family] for family in families}
        for family in missing:
            self._aside.submit(self._complete, family)
        return found

    def close(self) -> None:
        """Stop computing gains."""
        self._aside.shutdown(wait=False, cancel_futures=True)

    def wait(self) -> None:
        """Wait until every requested gain is known."""
        self._aside.submit(int).result()

    def _complete(self, family: RunFamily) -> None:
        bench = family[0].bench
        assert bench is not None
        bench.learn_rivals()
        standing = find_standing(family)
        made = None if standing is None else msgspec.structs.replace(standing, gain=find_gain(family))
        with self._lock:
            if family in self._kept:
                self._kept[family] = made


def _find_families(runs: Sequence[ShelfRun]) -> list[RunFamily]:
    families: dict[tuple[str, ...], list[ShelfRun]] = {}
    for run in runs:
        families.setdefault(run.family, []).append(run)
    return [(run, *families[run.family]) for run in runs]


def find_standing(family: RunFamily) -> Standing | None:
    """The standing of a family's first run, without its gain; None if nothing can be right or wrong yet."""
    run = family[0]
    if not run.rights:
        return None
    name, strongest = max(_rivals(family), key=lambda rival: float(rival[1].mean()))
    return Standing(
        n=len(run.rows),
        accuracy=rate_interval(run.hits, clusters=[row.case for row in run.rows]),
        rival=name,
        rival_accuracy=share_interval(strongest),
    )


def find_gain(family: RunFamily) -> Measured:
    """The gain of a family's first run over its strongest rival, with the interval of `medthink probe`."""
    run = family[0]
    rng = np.random.default_rng(seed_from("audit", run.manifest.text_fingerprint))
    right = [run.rights[case] for case in sorted(run.rights)]
    return gain_over_rivals(right, [shares for _, shares in _rivals(family)], rng=rng).gain


def _rivals(family: RunFamily) -> Iterator[tuple[str, Shares]]:
    """The guessers without images, and the same model's runs without images, on the first run's cases."""
    run, *others = family
    cases, bench = sorted(run.rights), run.bench
    assert bench is not None
    for name, rights in bench.rival_rights.items():
        yield name, np.array([float(rights[case]) for case in cases])
    for other in others:
        blind = None if other is run else blind_name(run.condition, other.condition)
        if blind and other.rights.keys() >= set(cases):
            yield blind, np.array([other.rights[case] for case in cases])
