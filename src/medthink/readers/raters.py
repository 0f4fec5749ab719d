"""Readers and judges in one form: labels by aspect and item."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from medthink.judge.ballots import majority
from medthink.judge.judgement import Judgement, label_seats, name_seats
from medthink.judge.kinds import KINDS
from medthink.judge.kinds.kind import Aspect, Label
from medthink.readers.readings import AGAIN, Reading

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
        """How many items the rater has labelled."""
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
    """Each seat, and each of its repeats separately."""
    rows = [one for one in judgements if one.state == "ok"]
    # Prompts differ by what is judged, but a judge of both steps and discussions is one rater.
    names = {what: name_seats(label_seats(one for one in rows if one.what == what)) for what in KINDS}
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
            chosen = majority(given) if len(given) > 1 else None
            if chosen is not None:
                labels[unit] = chosen
    return Rater(name=READERS, kind="readers", labels=table)
