"""Agreement of the readers and judges of a run, and the effect of a judge's errors on its rate: `agreement.json`.

Two raters are compared on the items that both have labelled, aspect by aspect. Cases are the clusters of every
interval. Error types are compared over all steps that both have judged, including those found right.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from medthink.cases.case import Case
from medthink.cases.slices import Slices, group_by_slice, sort_slices
from medthink.core.digest import seed_from
from medthink.core.errors import UsageError
from medthink.core.jsonio import read_stored, write_json
from medthink.judge.judged import cut_units, load_judged
from medthink.judge.judgement import Judgement, digest_judgements, label_judges, name_judges
from medthink.judge.kinds import KINDS
from medthink.judge.kinds.kind import Aspect, Label
from medthink.judge.scores import majority_label
from medthink.judge.units import UnitKey, UnitSet
from medthink.readers.assignment import ReadingKey
from medthink.readers.lists import read_key
from medthink.readers.readings import AGAIN, ImportedReadings, Reading, UnusedRow, import_tables, readable_items
from medthink.stats import (
    Agreement,
    Measured,
    OrderedAgreement,
    PanelAgreement,
    PoweredRate,
    corrected_clustered_rate,
    ordered_agreement,
    panel_agreement,
    powered_rate,
    rate_interval,
    rater_agreement,
)

RaterKind = Literal["reader", "again", "readers", "judge", "repeat"]
LabelTable = dict[str, dict[str, Label]]

READERS = "readers together"
ASPECTS: dict[str, Aspect] = {aspect.name: aspect for kind in KINDS.values() for aspect in kind.aspects}


class Rater(msgspec.Struct, frozen=True, kw_only=True):
    """One rater's labels: aspect → item → label; `of` is the rater that a second reading or a repeat belongs to."""

    name: str
    kind: RaterKind
    labels: LabelTable
    of: str = ""
    is_smoke_test: bool = False

    @property
    def count(self) -> int:
        """The number of items the rater has labelled."""
        return len({unit for labels in self.labels.values() for unit in labels})


def rate_readers(readings: Sequence[Reading]) -> list[Rater]:
    """Each reader, each reader's second readings, and the readers' majority if there are several."""
    groups: dict[str, list[Reading]] = {}
    for one in readings:
        groups.setdefault(one.reader, []).append(one)
    raters = [
        Rater(
            name=name,
            kind="again" if name.endswith(AGAIN) else "reader",
            of=name.removesuffix(AGAIN),
            labels=_gather((one.unit, one.labels) for one in group),
        )
        for name, group in sorted(groups.items())
    ]
    first = [rater for rater in raters if rater.kind == "reader"]
    return [*raters, _together(first)] if len(first) > 1 else raters


def rate_judges(judgements: Iterable[Judgement]) -> list[Rater]:
    """Each judge, and each of its repeats separately."""
    rows = [one for one in judgements if one.state == "ok"]
    # Prompts differ by what is judged, but a judge of both steps and discussions is one rater.
    names = {what: name_judges(label_judges(one for one in rows if one.what == what)) for what in KINDS}
    groups: dict[tuple[str, int, bool], list[Judgement]] = {}
    for one in rows:
        groups.setdefault((names[one.what][one.seat], one.repeat, one.seat.is_smoke_test), []).append(one)
    return [
        Rater(
            name=f"{label} #{repeat + 1}" if repeat else label,
            kind="repeat" if repeat else "judge",
            of=label,
            labels=_gather((verdict.id, KINDS[one.what].labels(verdict)) for one in group for verdict in one.verdicts),
            is_smoke_test=is_check,
        )
        for (label, repeat, is_check), group in sorted(groups.items())
    ]


def _gather(pairs: Iterable[tuple[str, Mapping[str, Label | None]]]) -> LabelTable:
    table: LabelTable = {aspect: {} for aspect in ASPECTS}
    for unit, labels in pairs:
        for aspect, label in labels.items():
            if label is not None:
                table[aspect][unit] = label
    return table


def _together(readers: Sequence[Rater]) -> Rater:
    """The majority label of each item that two or more have read; items without a majority are left out."""
    table: LabelTable = {aspect: {} for aspect in ASPECTS}
    for aspect, labels in table.items():
        units = dict.fromkeys(unit for reader in readers for unit in reader.labels[aspect])
        for unit in units:
            given = [reader.labels[aspect][unit] for reader in readers if unit in reader.labels[aspect]]
            chosen = majority_label(given) if len(given) > 1 else None
            if chosen is not None:
                labels[unit] = chosen
    return Rater(name=READERS, kind="readers", labels=table)


PairKind = Literal["reader–reader", "reader–itself", "reader–judge", "judge–judge", "judge–itself"]

AGREEMENT_FILE = "agreement.json"
# The aspects that say whether a unit is true: the leading ones, and `factual` for steps labelled yes or no.
_TRUTHS = (*(kind.leading for kind in KINDS.values()), "factual")
_TRUE = (*(kind.true_label for kind in KINDS.values()), True)
_FALSE = (*(kind.wrong_label for kind in KINDS.values()), False)


class RaterPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two raters on one aspect; `slicing` and `value` are empty for all cases."""

    kind: PairKind
    a: str
    b: str
    aspect: str
    slicing: str = ""
    value: str = ""
    is_smoke_test: bool = False
    nominal: Agreement
    ordered: OrderedAgreement | None


class RaterGroup(msgspec.Struct, frozen=True, kw_only=True):
    """All readers, or all judges, on one aspect."""

    raters: tuple[str, ...]
    aspect: str
    agreement: PanelAgreement


class Bias(msgspec.Struct, frozen=True, kw_only=True):
    """The rate a judge reports, and the rate corrected for its errors by items that readers judged too.

    `reported` is the share of items that the judge calls wrong on this aspect, `validated` the number of items that
    readers have judged too. `powered` has the rate from the readers alone, and from readers and judge together.
    """

    judge: str
    aspect: str
    reported: Measured
    corrected: Measured
    validated: int
    is_smoke_test: bool
    powered: PoweredRate | None = None


class CheckScore(msgspec.Struct, frozen=True, kw_only=True):
    """A reader's result on planted checks, whose truth is known."""

    reader: str
    right: Measured


class RunAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """The agreement of the raters of one run; `raters` counts the items each has labelled.

    `judgements` is the digest of the judgements it was made from.
    """

    judgements: str
    raters: dict[str, int]
    pairs: tuple[RaterPair, ...]
    panels: tuple[RaterGroup, ...]
    biases: tuple[Bias, ...]
    checks: tuple[CheckScore, ...]
    problems: dict[str, int]

    def is_outdated(self, judgements: Iterable[Judgement]) -> bool:
        """Whether the run has been judged again since."""
        return self.judgements != digest_judgements(judgements)

    def validity(self, judge: str) -> tuple[RaterPair, ...]:
        """A judge's agreement with the readers on each aspect, over all cases.

        It is compared with the readers' majority, or with the only reader.
        """
        own = [pair for pair in self.pairs if pair.kind == "reader–judge" and pair.b == judge and not pair.slicing]
        together = [pair for pair in own if pair.a == READERS]
        return tuple(together or own)

    def without_names(self) -> "RunAgreement":
        """A copy for publication: readers have numbers instead of names."""
        pairs = [pair for pair in self.pairs if pair.kind == "reader–judge"]
        names = dict.fromkeys(pair.a for pair in pairs if pair.a != READERS)
        hidden = {READERS: READERS} | {name: f"reader {number}" for number, name in enumerate(names, start=1)}
        shown = tuple(msgspec.structs.replace(pair, a=hidden[pair.a]) for pair in pairs)
        return msgspec.structs.replace(self, raters={}, pairs=shown, panels=(), checks=())


def measure_agreement(
    run: Path,
    tables: Sequence[Path],
    cases: Mapping[int, Case],
    *,
    slices: Slices,
    key: Path | None = None,
    accept: Sequence[str] = (),
) -> tuple[RunAgreement, tuple[UnusedRow, ...]]:
    """Compare the readers in the tables and the judges of the run; also returns the rows that were not used."""
    units = cut_units(run)
    opened = read_key(key) if key else None
    imported = import_tables(tables, units, opened, accept)
    if tables and not imported.readings:
        raise UsageError("the tables are empty: there is nothing to compare", remedy="fill in some rows")
    truths = planted_truths(opened) if opened else {}
    return agreement_of(run, imported, cases, slices=slices, truths=truths), imported.problems


def agreement_of(
    run: Path, imported: ImportedReadings, cases: Mapping[int, Case], *, slices: Slices, truths: Mapping[str, bool]
) -> RunAgreement:
    """Compare the readers' readings and the judges of the run; `truths` are those of planted checks."""
    judged = load_judged(run, cases)
    return compare_raters(imported, judged.judgements, cut_units(run), slices=slices, truths=truths)


def write_agreement(run: Path, found: RunAgreement) -> None:
    """Store the agreement in the run's folder."""
    write_json(run / AGREEMENT_FILE, msgspec.to_builtins(found))


def read_agreement(run: Path) -> RunAgreement | None:
    """The stored agreement of the run's raters, or None if it was never measured."""
    path = run / AGREEMENT_FILE
    if not path.exists():
        return None
    return read_stored(path, RunAgreement, name="an agreement file", remedy="run medthink agreement again")


def compare_raters(
    imported: ImportedReadings,
    judgements: Sequence[Judgement],
    units: Mapping[UnitKey, UnitSet],
    *,
    slices: Slices,
    truths: Mapping[str, bool],
) -> RunAgreement:
    """Compare every two raters who share items, in all cases and by slice; `truths` are those of planted checks."""
    raters = [*rate_readers(imported.readings), *rate_judges(judgements)]
    cases = {unit: known.case for unit, known in readable_items(units).items()}
    kinds = [str(problem.kind) for problem in imported.problems]
    return RunAgreement(
        judgements=digest_judgements(judgements),
        raters={rater.name: rater.count for rater in raters},
        pairs=tuple(pair for a, b in combinations(raters, 2) for pair in _compare_pair(a, b, cases, slices)),
        panels=tuple(_groups(raters, cases)),
        biases=tuple(bias for aspect in ASPECTS.values() for bias in _biases(raters, aspect, cases)),
        checks=tuple(_score_checks(imported.checks, truths)),
        problems={kind: kinds.count(kind) for kind in sorted(set(kinds))},
    )


def planted_truths(key: ReadingKey) -> dict[str, bool]:
    """Whether each planted check is true, by its code."""
    return {name: code.planted for name, code in key.codes.items() if code.planted is not None}


def _compare_pair(a: Rater, b: Rater, cases: Mapping[str, int], slices: Slices) -> Iterable[RaterPair]:
    """Two raters on every aspect they share, and within every slice."""
    kind = _pair_kind(a, b)
    if kind is None:
        return
    for aspect in ASPECTS.values():
        shared = sorted(a.labels[aspect.name].keys() & b.labels[aspect.name].keys())
        if not shared:
            continue
        yield _compare(a, b, aspect, shared, cases=cases, kind=kind, place=("", ""))
        if aspect.is_main:
            groups = group_by_slice(((cases[unit], unit) for unit in shared), slices)
            for place, members in sort_slices(groups).items():
                yield _compare(a, b, aspect, members, cases=cases, kind=kind, place=place)


def _pair_kind(a: Rater, b: Rater) -> PairKind | None:
    """The relation of two raters; None if a comparison would be meaningless."""
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
    aspect: Aspect,
    units: Sequence[str],
    *,
    cases: Mapping[str, int],
    kind: PairKind,
    place: tuple[str, str],
) -> RaterPair:
    first, second = ([rater.labels[aspect.name][unit] for unit in units] for rater in (a, b))
    clusters = [cases[unit] for unit in units]
    chance = np.random.default_rng(seed_from("agreement", a.name, b.name, aspect.name, *place))
    ordered = None
    if aspect.is_ordered:
        ordered = ordered_agreement(first, second, categories=aspect.categories, rng=chance, clusters=clusters)
    return RaterPair(
        kind=kind,
        a=a.name,
        b=b.name,
        aspect=aspect.name,
        slicing=place[0],
        value=place[1],
        is_smoke_test=a.is_smoke_test or b.is_smoke_test,
        nominal=rater_agreement(first, second, rng=chance, clusters=clusters, categories=aspect.categories),
        ordered=ordered,
    )


def _groups(raters: Sequence[Rater], cases: Mapping[str, int]) -> Iterable[RaterGroup]:
    readers = [rater for rater in raters if rater.kind == "reader"]
    judges = [rater for rater in raters if rater.kind == "judge" and not rater.is_smoke_test]
    for group in (readers, judges):
        if len(group) < 2:
            continue
        for aspect in ASPECTS.values():
            units = sorted({unit for rater in group for unit in rater.labels[aspect.name]})
            if not units:
                continue
            rows = [[rater.labels[aspect.name].get(unit) for rater in group] for unit in units]
            names = tuple(rater.name for rater in group)
            measured = panel_agreement(
                rows,
                rng=np.random.default_rng(seed_from("panel", aspect.name, *names)),
                clusters=[cases[unit] for unit in units],
                categories=aspect.categories,
                scale="ordinal" if aspect.is_ordered else "nominal",
            )
            yield RaterGroup(raters=names, aspect=aspect.name, agreement=measured)


def _biases(raters: Sequence[Rater], aspect: Aspect, cases: Mapping[str, int]) -> Iterable[Bias]:
    """Each judge's share of wrong items, corrected by the majority of readers of each item, or its only reader."""
    if aspect.wrong is None:
        return
    given: dict[str, list[Label]] = {}
    for rater in raters:
        if rater.kind == "reader":
            for unit, label in rater.labels[aspect.name].items():
                given.setdefault(unit, []).append(label)
    known = {unit: chosen for unit, labels in given.items() if (chosen := majority_label(labels)) is not None}
    for judge in raters:
        judged = judge.labels[aspect.name]
        if judge.kind != "judge" or not judged or not given:
            continue
        units = sorted(judged)
        wrong = [judged[unit] == aspect.wrong for unit in units]
        actual = [known[unit] == aspect.wrong if unit in known else None for unit in units]
        clusters = [cases[unit] for unit in units]
        chance = np.random.default_rng(seed_from("bias", judge.name, READERS))
        yield Bias(
            judge=judge.name,
            aspect=aspect.name,
            reported=rate_interval(wrong, clusters=clusters),
            corrected=corrected_clustered_rate(wrong, actual, rng=chance, clusters=clusters),
            validated=sum(one is not None for one in actual),
            is_smoke_test=judge.is_smoke_test,
            powered=powered_rate(wrong, [math.nan if one is None else one for one in actual], clusters=clusters),
        )


def _score_checks(checks: Sequence[Reading], truths: Mapping[str, bool]) -> Iterable[CheckScore]:
    for reader in sorted({one.reader for one in checks}):
        own = [one for one in checks if one.reader == reader]
        right = [_is_found(one, is_true=truths[one.unit]) for one in own]
        yield CheckScore(reader=reader, right=rate_interval(right, clusters=[one.case for one in own]))


def _is_found(reading: Reading, *, is_true: bool) -> bool:
    """Whether a reader called a true check true, or a false one false; unverifiable is neither."""
    wanted = _TRUE if is_true else _FALSE
    said = [label for aspect, label in reading.labels.items() if aspect in _TRUTHS]
    return bool(said) and said[0] in wanted
