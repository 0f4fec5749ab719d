"""How far readers and judges agree, and what a judge's errors do to the rate it reports.

Two raters are compared on the units that both have labelled, aspect by aspect. Cases are the clusters of every
interval. Error types are compared over all steps that both have judged, those found right included.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Literal

import msgspec
import numpy as np

from medthink.core.digest import seed_from
from medthink.judge.judgement import Judgement, digest_judgements
from medthink.judge.raters import CATEGORIES, READERS, Label, Rater, rate_judges, rate_readers
from medthink.judge.readings import Import, Reading, catalogue
from medthink.judge.scores import Slices
from medthink.judge.units import UnitKey, UnitSet
from medthink.stats import (
    Agreement,
    Measured,
    OrderedAgreement,
    PanelAgreement,
    agreement,
    corrected_clustered_rate,
    ordered_agreement,
    panel_agreement,
    rate_interval,
)

PairKind = Literal["reader–reader", "reader–itself", "reader–judge", "judge–judge", "judge–itself"]

AGREEMENT_FILE = "agreement.json"
# Slices are small: only what leads is compared within them.
SLICED = ("factual", "sentence", "statement", "education")
_ORDERED = ("education",)


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two raters on one aspect; `slicing` and `value` are empty where all cases are meant."""

    kind: PairKind
    a: str
    b: str
    aspect: str
    slicing: str = ""
    value: str = ""
    is_wiring_check: bool = False
    nominal: Agreement
    ordered: OrderedAgreement | None


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """All readers, or all judges, on one aspect."""

    raters: tuple[str, ...]
    aspect: str
    agreement: PanelAgreement


class Bias(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge reports, and what is left of it after correction for its errors where readers know the truth.

    `reported` is the judge's share of steps that are not factual, `validated` the number of them that readers have
    judged too.
    """

    judge: str
    reported: Measured
    corrected: Measured
    validated: int
    is_wiring_check: bool


class CheckScore(msgspec.Struct, frozen=True, kw_only=True):
    """How a reader did on planted checks, whose truth is known."""

    reader: str
    right: Measured


class Agreements(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be said of how the raters of one run agree; `raters` counts the units each has labelled.

    `judgements` is the digest of the judgements that it was made from.
    """

    judgements: str = ""
    raters: dict[str, int]
    pairs: tuple[Pair, ...]
    panels: tuple[Panel, ...]
    biases: tuple[Bias, ...]
    checks: tuple[CheckScore, ...]
    problems: dict[str, int]

    def is_outdated(self, judgements: Iterable[Judgement]) -> bool:
        """Whether these are other judgements than it was made from: the run was judged again since."""
        return self.judgements != digest_judgements(judgements)


def compare_raters(
    imported: Import,
    judgements: Sequence[Judgement],
    units: Mapping[UnitKey, UnitSet],
    *,
    slices: Slices,
    truths: Mapping[str, bool],
) -> Agreements:
    """Compare every two raters who share units, in all cases and slice by slice; `truths` are those of checks."""
    raters = [*rate_readers(imported.readings), *rate_judges(judgements, units)]
    cases = {unit: known.case for unit, known in catalogue(units).items()}
    kinds = [str(problem.kind) for problem in imported.problems]
    return Agreements(
        judgements=digest_judgements(judgements),
        raters={rater.name: rater.count for rater in raters},
        pairs=tuple(pair for a, b in combinations(raters, 2) for pair in compare_pair(a, b, cases, slices)),
        panels=tuple(_panels(raters, cases)),
        biases=tuple(_biases(raters, cases)),
        checks=tuple(_score_checks(imported.checks, truths)),
        problems={kind: kinds.count(kind) for kind in sorted(set(kinds))},
    )


def compare_pair(a: Rater, b: Rater, cases: Mapping[str, int], slices: Slices) -> Iterable[Pair]:
    """Two raters on every aspect they share, and within every slice."""
    kind = _pair_kind(a, b)
    if kind is None:
        return
    for aspect in CATEGORIES:
        shared = sorted(a.labels[aspect].keys() & b.labels[aspect].keys())
        if not shared:
            continue
        yield _compare(a, b, aspect, shared, cases=cases, kind=kind, place=("", ""))
        if aspect in SLICED:
            for place, members in _cut(shared, cases, slices).items():
                yield _compare(a, b, aspect, members, cases=cases, kind=kind, place=place)


def judge_validity(agreements: Agreements, judge: str) -> tuple[Pair, ...]:
    """What stands beside a judge's numbers: its agreement with the readers on each aspect, over all cases.

    With the readers' majority where there are several readers, else with the only one there is.
    """
    own = [pair for pair in agreements.pairs if pair.kind == "reader–judge" and pair.b == judge and not pair.slicing]
    together = [pair for pair in own if pair.a == READERS]
    return tuple(together or own)


def hide_readers(agreements: Agreements) -> Agreements:
    """What may stand on a page that others see: judges against readers, who have numbers in the place of names."""
    pairs = [pair for pair in agreements.pairs if pair.kind == "reader–judge"]
    names = dict.fromkeys(pair.a for pair in pairs if pair.a != READERS)
    hidden = {READERS: READERS} | {name: f"reader {number}" for number, name in enumerate(names, start=1)}
    shown = tuple(msgspec.structs.replace(pair, a=hidden[pair.a]) for pair in pairs)
    return msgspec.structs.replace(agreements, raters={}, pairs=shown, panels=(), checks=())


def _pair_kind(a: Rater, b: Rater) -> PairKind | None:
    """How two raters relate; None where comparing them says nothing."""
    match sorted([a.kind, b.kind]):
        case ["again", "reader"]:
            return "reader–itself" if a.of == b.of else None
        case ["reader", "reader"]:
            return "reader–reader"
        case ["judge", "reader"] | ["judge", "readers"]:
            return "reader–judge"
        case ["judge", "judge"]:
            return "judge–judge"
        case ["judge", "repeat"] | ["repeat", "repeat"]:
            return "judge–itself" if a.of == b.of else None
        case _:
            return None


def _compare(
    a: Rater,
    b: Rater,
    aspect: str,
    units: Sequence[str],
    *,
    cases: Mapping[str, int],
    kind: PairKind,
    place: tuple[str, str],
) -> Pair:
    first, second = [a.labels[aspect][unit] for unit in units], [b.labels[aspect][unit] for unit in units]
    clusters = [cases[unit] for unit in units]
    categories = CATEGORIES[aspect]
    chance = np.random.default_rng(seed_from("agreement", a.name, b.name, aspect, *place))
    ordered = None
    if aspect in _ORDERED:
        ordered = ordered_agreement(first, second, categories=categories, rng=chance, clusters=clusters)
    return Pair(
        kind=kind,
        a=a.name,
        b=b.name,
        aspect=aspect,
        slicing=place[0],
        value=place[1],
        is_wiring_check=a.is_wiring_check or b.is_wiring_check,
        nominal=agreement(first, second, rng=chance, clusters=clusters, categories=categories),
        ordered=ordered,
    )


def _cut(units: Sequence[str], cases: Mapping[str, int], slices: Slices) -> dict[tuple[str, str], list[str]]:
    members: dict[tuple[str, str], list[str]] = {}
    for unit in units:
        for slicing, values in slices.get(cases[unit], {}).items():
            for value in values:
                members.setdefault((slicing, value), []).append(unit)
    return dict(sorted(members.items()))


def _panels(raters: Sequence[Rater], cases: Mapping[str, int]) -> Iterable[Panel]:
    readers = [rater for rater in raters if rater.kind == "reader"]
    judges = [rater for rater in raters if rater.kind == "judge" and not rater.is_wiring_check]
    for group in (readers, judges):
        if len(group) < 2:
            continue
        for aspect, categories in CATEGORIES.items():
            units = sorted({unit for rater in group for unit in rater.labels[aspect]})
            if not units:
                continue
            rows: list[list[Label | None]] = [[rater.labels[aspect].get(unit) for rater in group] for unit in units]
            names = tuple(rater.name for rater in group)
            measured = panel_agreement(
                rows,
                rng=np.random.default_rng(seed_from("panel", aspect, *names)),
                clusters=[cases[unit] for unit in units],
                categories=categories,
                scale="ordinal" if aspect in _ORDERED else "nominal",
            )
            yield Panel(raters=names, aspect=aspect, agreement=measured)


def _biases(raters: Sequence[Rater], cases: Mapping[str, int]) -> Iterable[Bias]:
    """Each judge's share of wrong steps, corrected by the readers' majority, or by the only reader there is."""
    readers = [rater for rater in raters if rater.kind == "reader"]
    truth = next((rater for rater in raters if rater.kind == "readers"), readers[0] if readers else None)
    for judge in raters:
        judged = judge.labels["factual"]
        if judge.kind != "judge" or not judged or truth is None:
            continue
        units = sorted(judged)
        wrong = [not judged[unit] for unit in units]
        known = truth.labels["factual"]
        actual = [not known[unit] if unit in known else None for unit in units]
        clusters = [cases[unit] for unit in units]
        chance = np.random.default_rng(seed_from("bias", judge.name, READERS))
        yield Bias(
            judge=judge.name,
            reported=rate_interval(wrong, clusters=clusters),
            corrected=corrected_clustered_rate(wrong, actual, rng=chance, clusters=clusters),
            validated=sum(one is not None for one in actual),
            is_wiring_check=judge.is_wiring_check,
        )


def _score_checks(checks: Sequence[Reading], truths: Mapping[str, bool]) -> Iterable[CheckScore]:
    for reader in sorted({one.reader for one in checks}):
        own = [one for one in checks if one.reader == reader and one.factual is not None]
        right = rate_interval([one.factual == truths[one.unit] for one in own], clusters=[one.case for one in own])
        yield CheckScore(reader=reader, right=right)
