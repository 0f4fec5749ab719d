"""A run's accuracy, the strongest rival without images, and the gain over it."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from medthink.audit.gain import (
    RivalAnswers,
    gain_over_strongest,
    gain_rng,
    guesser_answers,
    image_free_name,
    strongest_rival,
)
from medthink.stats.estimate import Measured
from medthink.stats.intervals import rate_interval
from medthink.web.runs.index import IndexedRun

RunFamily = tuple[IndexedRun, ...]
"""A run, and all runs of the same model and task on the same cases, including itself."""


class RunAccuracy(msgspec.Struct, frozen=True, kw_only=True):
    """The accuracy over `n` predictions so far, and the rival's on the same cases.

    `gain` is None while it is being computed, which takes some hundredths of a second per run, and longer if the rivals
    must be trained first; until then the rival is the best known one.
    """

    n: int
    accuracy: Measured
    rival: str
    rival_accuracy: Measured
    gain: Measured | None = None


class RunAccuracies:
    """The accuracies of the runs of an index, recomputed only for runs that were reloaded."""

    def __init__(self) -> None:
        self._kept: dict[RunFamily, RunAccuracy | None] = {}
        self._lock = threading.Lock()
        self._aside = ThreadPoolExecutor(max_workers=1, thread_name_prefix="gains")

    def of_all(self, runs: Sequence[IndexedRun]) -> dict[str, RunAccuracy | None]:
        """Each run's accuracy, by its name in URLs; missing gains are computed in the background."""
        families = _find_families(runs)
        with self._lock:
            kept = self._kept
            self._kept = {family: kept[family] if family in kept else find_accuracy(family) for family in families}
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
        standing = find_accuracy(family)
        made = None if standing is None else msgspec.structs.replace(standing, gain=find_gain(family))
        with self._lock:
            if family in self._kept:
                self._kept[family] = made


def _find_families(runs: Sequence[IndexedRun]) -> list[RunFamily]:
    families: dict[tuple[str, ...], list[IndexedRun]] = {}
    for run in runs:
        families.setdefault(run.family, []).append(run)
    return [(run, *families[run.family]) for run in runs]


def find_accuracy(family: RunFamily) -> RunAccuracy | None:
    """The accuracy of a family's first run, without its gain; None if it has no graded answer yet."""
    run = family[0]
    if not run.rights:
        return None
    strongest = strongest_rival(_rivals(family))
    return RunAccuracy(
        n=len(run.rows),
        accuracy=rate_interval(run.hits, clusters=[row.case for row in run.rows]),
        rival=strongest.name,
        rival_accuracy=strongest.accuracy,
    )


def find_gain(family: RunFamily) -> Measured:
    """The gain of a family's first run over its strongest rival, with the interval of `medthink audit`."""
    run = family[0]
    rights = [run.rights[case] for case in sorted(run.rights)]
    return gain_over_strongest(rights, list(_rivals(family)), rng=gain_rng(run.manifest.text_fingerprint)).gain


def _rivals(family: RunFamily) -> Iterator[RivalAnswers]:
    """The guessers without images, and the same model's runs without images, on the first run's cases."""
    run, *others = family
    cases, bench = sorted(run.rights), run.bench
    assert bench is not None
    for guesses in bench.rivals:
        yield guesser_answers(guesses, [(case, bench.answers[case]) for case in cases])
    for other in others:
        blind = None if other is run else image_free_name(run.condition, other.condition)
        if blind and other.rights.keys() >= set(cases):
            rights = tuple(other.rights[case] for case in cases)
            yield RivalAnswers(blind, rights, run=other.slug, samples=other.manifest.condition.samples)
