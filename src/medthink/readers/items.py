"""Item analysis of readings: cases on which raters disagree most, and labels that all other raters contradict."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import msgspec
import numpy as np

from medthink.cases.case import Case
from medthink.judge.judged import cut_units, load_judged
from medthink.judge.kinds.kind import Aspect
from medthink.readers.agreement import ASPECTS, Rater, rate_judges, rate_readers
from medthink.readers.lists import read_key
from medthink.readers.readings import ReadableItem, import_tables, readable_items
from medthink.stats import Measured, lone_labels, rate_interval

_TEXT = 80


class ReadCase(msgspec.Struct, frozen=True, kw_only=True):
    """One case over all raters: how much of it is called wrong, and how often two raters differ on an item.

    Labels, or pairs of labels, of one item are correlated, so each item is a cluster.
    """

    case: int
    items: int
    wrong: Measured
    differ: Measured


class DoubtfulLabel(msgspec.Struct, frozen=True, kw_only=True):
    """A reader's label that all other raters of the item contradict; `doubt` is the chance that the reader erred."""

    reader: str
    case: int
    unit: str
    text: str
    others: int
    doubt: float


class ReadItems(msgspec.Struct, frozen=True, kw_only=True):
    """The items of one aspect: the most divisive cases first, and readers' labels that all others contradict.

    `false_share` is the share of that list where the reader is right after all, expected if raters err independently.
    """

    aspect: str
    raters: tuple[str, ...]
    cases: tuple[ReadCase, ...]
    alone: tuple[DoubtfulLabel, ...]
    false_share: float | None


def divisive_items(
    run: Path,
    tables: Sequence[Path],
    cases: Mapping[int, Case],
    *,
    key: Path | None = None,
    accept: Sequence[str] = (),
) -> list[ReadItems]:
    """The items of each aspect that can be right or wrong, over the tables' readers and the run's judges."""
    units = cut_units(run)
    imported = import_tables(tables, units, read_key(key) if key else None, accept)
    everyone = [*rate_readers(imported.readings), *rate_judges(load_judged(run, cases).judgements)]
    raters = [one for one in everyone if one.kind in ("reader", "judge") and not one.is_smoke_test]
    known = readable_items(units)
    found = [_view(raters, aspect, known) for aspect in ASPECTS.values() if aspect.wrong is not None]
    # For steps, `factual` is the two-grade form of support; where everyone gave both, it adds nothing.
    told = {one.aspect: one.raters for one in found if one.cases}
    return [one for one in found if one.cases and not (one.aspect == "factual" and told.get("support") == one.raters)]


def _view(raters: Sequence[Rater], aspect: Aspect, known: Mapping[str, ReadableItem]) -> ReadItems:
    own = [one for one in raters if one.labels[aspect.name]]
    units = sorted({unit for one in own for unit in one.labels[aspect.name]})
    table = np.array(
        [
            [_is_wrong(one, aspect, unit) for unit in units]
            for one in own
        ]
    ).reshape(len(own), len(units))  # fmt: skip
    alone = [
        DoubtfulLabel(
            reader=own[one.rater].name,
            case=known[units[one.item]].case,
            unit=units[one.item],
            text=known[units[one.item]].text[:_TEXT],
            others=one.others,
            doubt=one.doubt,
        )
        for one in lone_labels(table)
        if own[one.rater].kind == "reader"
    ]
    by_case: dict[int, list[int]] = {}
    for place, unit in enumerate(units):
        by_case.setdefault(known[unit].case, []).append(place)
    listed = [_read_case(case, table[:, places]) for case, places in by_case.items()]
    return ReadItems(
        aspect=aspect.name,
        raters=tuple(one.name for one in own),
        cases=tuple(sorted(listed, key=lambda one: (-(one.differ.value or 0.0), one.case))),
        alone=tuple(alone),
        false_share=1 - float(np.mean([one.doubt for one in alone])) if alone else None,
    )


def _is_wrong(rater: Rater, aspect: Aspect, unit: str) -> float:
    label = rater.labels[aspect.name].get(unit)
    return np.nan if label is None else float(label == aspect.wrong)


def _read_case(case: int, labels: "np.ndarray[tuple[int, int], np.dtype[np.float64]]") -> ReadCase:
    said = [(item, value) for item, column in enumerate(labels.T) for value in column[~np.isnan(column)]]
    pairs = [
        (item, a != b) for item, column in enumerate(labels.T) for a, b in combinations(column[~np.isnan(column)], 2)
    ]
    wrong, differ = (
        rate_interval([value for _, value in rows], clusters=[item for item, _ in rows]) for rows in (said, pairs)
    )
    return ReadCase(case=case, items=labels.shape[1], wrong=wrong, differ=differ)
