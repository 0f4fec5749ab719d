"""How far readers and judges agree, and what a judge's errors do to the rate it reports.

Two raters are compared on the units that both have labelled, aspect by aspect. Cases are the clusters of every
interval. Error types are compared over all steps that both have judged, those found right included.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np

from medthink.core.digest import seed_from
from medthink.judge.agreements import Agreements, Bias, CheckScore, Pair, PairKind, Panel
from medthink.judge.judgement import Judgement, digest_judgements
from medthink.judge.panel import majority
from medthink.judge.raters import CATEGORIES, READERS, Label, Rater, rate_judges, rate_readers
from medthink.judge.readings import Import, Reading, catalogue
from medthink.judge.slicing import Slices, group_by_slice
from medthink.judge.units import UnitKey, UnitSet
from medthink.stats import (
    agreement,
    corrected_clustered_rate,
    ordered_agreement,
    panel_agreement,
    rate_interval,
)

# Slices are small: only what leads is compared within them.
SLICED = ("factual", "sentence", "statement", "education")
_ORDERED = ("education",)


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
            for place, members in group_by_slice(((cases[unit], unit) for unit in shared), slices).items():
                yield _compare(a, b, aspect, members, cases=cases, kind=kind, place=place)


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
    """Each judge's share of wrong steps, corrected by what most readers of each step say, or the only one it has."""
    given: dict[str, list[Label]] = {}
    for rater in raters:
        if rater.kind == "reader":
            for unit, label in rater.labels["factual"].items():
                given.setdefault(unit, []).append(label)
    known = {unit: chosen for unit, labels in given.items() if (chosen := majority(labels)) is not None}
    for judge in raters:
        judged = judge.labels["factual"]
        if judge.kind != "judge" or not judged or not given:
            continue
        units = sorted(judged)
        wrong = [not judged[unit] for unit in units]
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
