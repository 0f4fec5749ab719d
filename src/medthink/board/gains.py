"""Each row's gain over the strongest rival that cannot see the images, computed once per row and rivals."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from medthink.board.benchmarks import BoardBenchmark
from medthink.board.measures import keep_measure, read_measures
from medthink.board.records import SubmissionRecord
from medthink.board.results import BoardResult
from medthink.board.store import BoardStore
from medthink.core.digest import digest_value, seed_from
from medthink.stats.estimate import Measured
from medthink.stats.gain import gain_over_rivals
from medthink.stats.intervals import share_interval
from medthink.validity.audit import IMAGE_FREE_RUNS, blind_name
from medthink.validity.guesses import Guesses

_VERSION = 1


class ScoredSubmission(NamedTuple):
    """A submission with its result."""

    submission: SubmissionRecord
    result: BoardResult


class Gain(msgspec.Struct, frozen=True, kw_only=True):
    """A row's accuracy minus that of its strongest rival, paired by case.

    `has_own_blind` says whether a run of the same model without images was among the rivals: without one, the gain may
    come from the text alone. `digest` pins what it was computed from.
    """

    rival: str
    rival_accuracy: Measured
    gain: Measured
    has_own_blind: bool
    digest: str


def find_gains(
    store: BoardStore, benchmark: BoardBenchmark, rows: Sequence[ScoredSubmission], rivals: Sequence[Guesses]
) -> dict[int, Gain]:
    """The gains of submissions by number; missing ones are computed and stored."""
    known = read_measures(store, "gain", Gain)
    kin: dict[tuple[str, ...], list[ScoredSubmission]] = {}
    for row in rows:
        kin.setdefault(_kin(row), []).append(row)
    found: dict[int, Gain] = {}
    for row in rows:
        guessed = {rival.name: _rights_of(rival, row.result) for rival in rivals}
        against = guessed | dict(_own_blind(row, kin[_kin(row)]))
        if not against:
            continue
        number = row.submission.id
        digest = digest_value([_VERSION, benchmark.text_fingerprint, row.result.rights, sorted(against.items())])
        if number not in known or known[number].digest != digest:
            known[number] = _measure(benchmark, row.result, against, digest)
            with store.write() as connection:
                keep_measure(connection, number, "gain", known[number])
        found[number] = known[number]
    return found


def _kin(row: ScoredSubmission) -> tuple[str, ...]:
    """A key shared by rows of the same team and model; rows of other teams are not rivals."""
    origin = row.result.scores.origin
    return (row.submission.team, origin.model, origin.task)


def _rights_of(rival: Guesses, result: BoardResult) -> tuple[float, ...]:
    pairs = zip(result.cases, result.golds, strict=True)
    return tuple(float(rival.letters.get(case) == gold) for case, gold in pairs)


def _own_blind(row: ScoredSubmission, kin: Sequence[ScoredSubmission]) -> Iterator[tuple[str, tuple[float, ...]]]:
    """The same model's rows without images; none if the condition is unknown."""
    mine = row.result.scores.origin.condition
    for other in kin:
        theirs = other.result.scores.origin.condition
        if mine is None or theirs is None or other.result.cases != row.result.cases:
            continue
        blind = blind_name(mine, theirs)
        if blind:
            yield blind, other.result.rights


def _measure(
    benchmark: BoardBenchmark, result: BoardResult, against: Mapping[str, tuple[float, ...]], digest: str
) -> Gain:  # fmt: skip
    rng = np.random.default_rng(seed_from("audit", benchmark.text_fingerprint))
    over = gain_over_rivals(result.rights, list(against.values()), rng=rng)
    name, rights = list(against.items())[over.strongest]
    return Gain(
        rival=name,
        rival_accuracy=share_interval(rights),
        gain=over.gain,
        has_own_blind=not IMAGE_FREE_RUNS.isdisjoint(against),
        digest=digest,
    )
