"""Scores of one seat's judgements, whatever was judged: every rate with an interval clustered by case.

What is unjudged is left out of every rate and counted beside it (`coverage`).
"""

from collections.abc import Iterable, Mapping

import msgspec

from medthink.judge.coverage import Coverage
from medthink.judge.judgement import Judgement, Seat
from medthink.stats import Measured, Undefined, mean_interval, rate_interval

# Whether the answer of a case's sample is right; None where there is no answer.
Rights = Mapping[tuple[int, int], bool | None]


class JudgedSlice(msgspec.Struct, frozen=True, kw_only=True):
    """The scores of the cases in one slice: the same as those of all cases, without slices of their own."""

    slicing: str
    value: str
    cases: int
    scores: "SeatScores"


class SeatScores(msgspec.Struct, frozen=True, kw_only=True):
    """What every kind of judging reports for a seat; each kind adds its own figures.

    `ties` counts the items on which a panel is divided.
    """

    seat: Seat
    label: str
    is_smoke_test: bool
    coverage: Coverage
    ties: int = 0
    slices: tuple[JudgedSlice, ...] = ()


class ScoreCell(msgspec.Struct, frozen=True):
    """A cell of a table: a count, words, a share in per cent, or with `digits`, a mean with that many decimals."""

    value: Measured | int | str
    digits: int | None = None


class ScoreTable(msgspec.Struct, frozen=True, kw_only=True):
    """Some scores of a seat under their names; `aspects` are what readers must agree on for them to be trusted.

    With `in_report` unset, only the command line shows the table: the report shows it as a figure.
    """

    heading: str
    aspects: tuple[str, ...]
    rows: tuple[dict[str, ScoreCell], ...]
    note: str = ""
    in_report: bool = True


def by_seat(judgements: Iterable[Judgement], what: str) -> dict[Seat, list[Judgement]]:
    """The judgements of one kind, by who made them and how, in the order of their labels."""
    groups: dict[Seat, list[Judgement]] = {}
    for one in judgements:
        if one.what == what:
            groups.setdefault(one.seat, []).append(one)
    return dict(sorted(groups.items(), key=lambda item: (item[0].label(), item[0].prompt)))


def rate_of(pairs: Iterable[tuple[int, bool]]) -> Measured:
    """The share of hits among (case, hit) pairs, with the pairs of a case as one cluster."""
    rows = list(pairs)
    return rate_interval([hit for _, hit in rows], clusters=[case for case, _ in rows])


def mean_of(pairs: Iterable[tuple[int, float]], *, within: tuple[float, float]) -> Measured:
    """The mean of (case, value) pairs, with the pairs of a case as one cluster; its interval stays on the scale."""
    rows = list(pairs)
    found = mean_interval([value for _, value in rows], clusters=[case for case, _ in rows])
    if isinstance(found, Undefined):
        return found
    return msgspec.structs.replace(found, low=max(within[0], found.low), high=min(within[1], found.high))
