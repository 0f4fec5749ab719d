"""Each row's gain over the strongest rival that cannot see the images, computed once per row and rivals."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from medthink.board.benchmarks import BoardBenchmark
from medthink.board.measures import keep_measure, read_measures
from medthink.board.records import SubmissionRecord
from medthink.board.results import BoardResult
from medthink.board.store import BoardStore
from medthink.core.digest import digest_value
from medthink.stats.estimate import Measured
from medthink.validity.gain import RivalAnswers, blind_name, gain_over_strongest, gain_rng, guesser_answers
from medthink.validity.guesses import Guesses

_VERSION = 2


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
    store: BoardStore,
    benchmark: BoardBenchmark,
    rows: Sequence[ScoredSubmission],
    rivals: Sequence[Guesses],
    *,
    beside: Sequence[ScoredSubmission] = (),
) -> dict[int, Gain]:
    """The gains of submissions by number; missing ones are computed and stored.

    Rows of the same model among `rows` and `beside` are rivals where they saw no images.
    """
    known = read_measures(store, "gain", Gain)
    kin: dict[tuple[str, ...], list[ScoredSubmission]] = {}
    for row in (*rows, *beside):
        kin.setdefault(_kin(row), []).append(row)
    found: dict[int, Gain] = {}
    for row in rows:
        golds = list(zip(row.result.cases, row.result.golds, strict=True))
        against = [guesser_answers(rival, golds) for rival in rivals]
        against += _own_blind(row, kin[_kin(row)])
        if not against:
            continue
        number = row.submission.id
        told = [tuple(rival) for rival in sorted(against)]
        digest = digest_value([_VERSION, benchmark.text_fingerprint, row.result.rights, told])
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


def _own_blind(row: ScoredSubmission, kin: Sequence[ScoredSubmission]) -> Iterator[RivalAnswers]:
    """The same model's rows without images; none if the condition is unknown."""
    for other in kin:
        blind = blind_name(row.result.scores.origin.condition, other.result.scores.origin.condition)
        if blind and other.result.cases == row.result.cases:
            yield RivalAnswers(blind, other.result.rights, run=str(other.submission.id))


def _measure(
    benchmark: BoardBenchmark, result: BoardResult, against: Sequence[RivalAnswers], digest: str
) -> Gain:  # fmt: skip
    over = gain_over_strongest(result.rights, against, rng=gain_rng(benchmark.text_fingerprint))
    return Gain(
        rival=over.rival.name,
        rival_accuracy=over.rival.accuracy,
        gain=over.gain,
        has_own_blind=over.has_own_blind,
        digest=digest,
    )
