"""Scores of one judge's judgements of any kind: every rate with an interval clustered by case.

Unjudged items are left out of every rate and counted separately (`coverage`).
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import TypeVar

import msgspec

from medthink.judge.judgement import JudgeConfig, Judgement
from medthink.judge.units import UnitKey, UnitSet
from medthink.metrics.findings.lexicon import is_hedged
from medthink.stats import Measured, Undefined, mean_interval, rate_interval

COMPLETE_SHARE = 0.99
# What a hedged statement counts, of 1.
HEDGED = 0.5

Units = Mapping[UnitKey, UnitSet]


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """The coverage of judging: `due` counts the judgements expected, `missing` those never asked for."""

    due: int
    judged: int
    unjudged: dict[str, int]
    missing: int
    absent: int
    fallback_splits: int
    share: Measured
    is_complete: bool


def measure_coverage(rows: Sequence[Judgement], units: Units) -> Coverage:
    """The coverage of the expected judgements."""
    what = rows[0].what
    repeats = max(row.repeat for row in rows) + 1
    sets = [one for one in units.values() if one.what == what]
    states = Counter(row.state for row in rows)
    # A prediction that could not be cut has no unit set, but still has its row.
    due = max(sum(one.state != "absent" for one in sets) * repeats, states["ok"] + states["unjudged"])
    hits = [1] * states["ok"] + [0] * (due - states["ok"])
    return Coverage(
        due=due,
        judged=states["ok"],
        unjudged=dict(sorted(Counter(str(row.why) for row in rows if row.state == "unjudged").items())),
        missing=due - states["ok"] - states["unjudged"],
        absent=states["absent"],
        fallback_splits=sum(one.is_fallback for one in sets),
        share=rate_interval(hits),
        is_complete=due > 0 and states["ok"] / due >= COMPLETE_SHARE,
    )


# Whether the answer of a case's sample is right; None where there is no answer.
Rights = Mapping[tuple[int, int], bool | None]


class JudgedSlice(msgspec.Struct, frozen=True, kw_only=True):
    """The scores of the cases in one slice: the same as those of all cases, without slices of their own."""

    slicing: str
    value: str
    cases: int
    scores: "JudgeConfigScores"


class JudgeConfigScores(msgspec.Struct, frozen=True, kw_only=True):
    """The scores that every kind of judging reports for a judge; each kind adds its own.

    `ties` counts the items without a majority in a panel.
    """

    seat: JudgeConfig
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
    """Some scores of a judge under their names; `aspects` are what readers must agree on for them to be trusted.

    With `in_report` unset, only the command line shows the table: the report shows it as a figure.
    """

    heading: str
    aspects: tuple[str, ...]
    rows: tuple[dict[str, ScoreCell], ...]
    note: str = ""
    in_report: bool = True


def by_judge_config(judgements: Iterable[Judgement], what: str) -> dict[JudgeConfig, list[Judgement]]:
    """The judgements of one kind by judge configuration, in the order of their labels."""
    groups: dict[JudgeConfig, list[Judgement]] = {}
    for one in judgements:
        if one.what == what:
            groups.setdefault(one.seat, []).append(one)
    return dict(sorted(groups.items(), key=lambda item: (item[0].label(), item[0].prompt)))


def clustered_rate(pairs: Iterable[tuple[int, bool]]) -> Measured:
    """The share of hits among (case, hit) pairs, with the pairs of a case as one cluster."""
    rows = list(pairs)
    return rate_interval([hit for _, hit in rows], clusters=[case for case, _ in rows])


def clustered_mean(pairs: Iterable[tuple[int, float]], *, within: tuple[float, float]) -> Measured:
    """The mean of (case, value) pairs, with the pairs of a case as one cluster; its interval stays on the scale."""
    rows = list(pairs)
    found = mean_interval([value for _, value in rows], clusters=[case for case, _ in rows])
    if isinstance(found, Undefined):
        return found
    return msgspec.structs.replace(found, low=max(within[0], found.low), high=min(within[1], found.high))


def hedged_units(units: Units, what: str) -> frozenset[str]:
    """The units of a kind that only call possible what they say: found by rule, alike for judges and readers."""
    return frozenset(
        unit.id for one in units.values() if one.what == what for unit in one.units if is_hedged(unit.text)
    )


Chosen = TypeVar("Chosen", bound=Hashable)


def majority_label(labels: Sequence[Chosen]) -> Chosen | None:
    """The label that more than half give, or None."""
    for label, count in Counter(labels).most_common(1):
        if 2 * count > len(labels):
            return label
    return None


def pairwise_disagreement(labels: Sequence[Hashable]) -> float:
    """The share of pairs of votes that differ."""
    pairs = list(combinations(labels, 2))
    return sum(a != b for a, b in pairs) / len(pairs) if pairs else 0.0
