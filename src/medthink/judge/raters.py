"""Readers and judges in one form: labels by aspect and unit."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from medthink.judge.judgement import Judgement, name_seats
from medthink.judge.panel import majority
from medthink.judge.readings import AGAIN, Reading
from medthink.judge.rubric import ERROR_TYPES, SCORES, SENTENCE_LABELS, SUPPORTS, WHATS, ErrorType
from medthink.judge.units import UnitKey, UnitSet, education_id

Label = str | int | bool
RaterKind = Literal["reader", "again", "readers", "judge", "repeat"]
LabelTable = dict[str, dict[str, Label]]

READERS = "readers together"
CATEGORIES: dict[str, tuple[Label, ...]] = {
    "factual": (True, False),
    "support": SUPPORTS,
    "critical": (True, False),
    **{f"error: {name.replace('_', ' ')}": (True, False) for name in ERROR_TYPES},
    "sentence": SENTENCE_LABELS,
    "statement": SUPPORTS,
    "education": SCORES,
}


class Rater(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody's labels, aspect → unit → label; `of` is whom a second reading or a repeat belongs to."""

    name: str
    kind: RaterKind
    labels: LabelTable
    of: str = ""
    is_wiring_check: bool = False

    @property
    def count(self) -> int:
        """How many units the rater has labelled."""
        return len({unit for labels in self.labels.values() for unit in labels})


def rate_readers(readings: Sequence[Reading]) -> list[Rater]:
    """Each reader, each reader's second readings, and where there are several readers, what most of them say."""
    groups: dict[str, list[Reading]] = {}
    for one in readings:
        groups.setdefault(one.reader, []).append(one)
    raters = [
        Rater(
            name=name,
            kind="again" if name.endswith(AGAIN) else "reader",
            of=name.removesuffix(AGAIN),
            labels=_gather((one.unit, _reader_labels(one)) for one in group),
        )
        for name, group in sorted(groups.items())
    ]
    first = [rater for rater in raters if rater.kind == "reader"]
    return [*raters, _together(first)] if len(first) > 1 else raters


def rate_judges(judgements: Iterable[Judgement], units: Mapping[UnitKey, UnitSet]) -> list[Rater]:
    """Each seat, and each repeat of it apart."""
    rows = [one for one in judgements if one.state == "ok"]
    # The words of a prompt differ with what is judged: one judge of steps and discussions is one rater.
    names = {what: name_seats(one.seat for one in rows if one.what == what) for what in WHATS}
    groups: dict[tuple[str, int, bool], list[Judgement]] = {}
    for one in rows:
        groups.setdefault((names[one.what][one.seat], one.repeat, one.seat.is_wiring_check), []).append(one)
    return [
        Rater(
            name=f"{label} #{repeat + 1}" if repeat else label,
            kind="repeat" if repeat else "judge",
            of=label,
            labels=_gather(pair for one in group for pair in _judge_labels(one, units)),
            is_wiring_check=is_check,
        )
        for (label, repeat, is_check), group in sorted(groups.items())
    ]


def _gather(pairs: Iterable[tuple[str, Mapping[str, Label | None]]]) -> LabelTable:
    table: LabelTable = {aspect: {} for aspect in CATEGORIES}
    for unit, labels in pairs:
        for aspect, label in labels.items():
            if label is not None:
                table[aspect][unit] = label
    return table


def _reader_labels(one: Reading) -> dict[str, Label | None]:
    match one.kind:
        case "sentence":
            return {"sentence": one.label}
        case "education":
            return {"education": one.score}
        case "statement":
            return {"statement": one.support}
        case "step":
            plain: dict[str, Label | None] = {"factual": one.factual, "support": one.support, "critical": one.critical}
            return plain | _types(one.error_types)


def _judge_labels(one: Judgement, units: Mapping[UnitKey, UnitSet]) -> Iterable[tuple[str, Mapping[str, Label | None]]]:
    for step in one.steps:
        plain: dict[str, Label | None] = {
            "factual": not step.is_error,
            "support": step.factual,
            "critical": step.critical,
        }
        yield step.id, plain | _types(step.error_types)
    for sentence in one.sentences:
        yield sentence.id, {"sentence": sentence.label}
    for statement in one.statements:
        yield statement.id, {"statement": statement.support}
    for score in one.education:
        yield education_id(units[one.key], score.dimension), {"education": score.score}


def _types(named: tuple[ErrorType, ...] | None) -> dict[str, Label | None]:
    """Whether each type was named; unknown where a rater named none of a wrong step."""
    return {f"error: {name.replace('_', ' ')}": None if named is None else name in named for name in ERROR_TYPES}


def _together(readers: Sequence[Rater]) -> Rater:
    """What most readers say of each unit that two or more have read; where they are divided, nothing."""
    table: LabelTable = {aspect: {} for aspect in CATEGORIES}
    for aspect, labels in table.items():
        units = dict.fromkeys(unit for reader in readers for unit in reader.labels[aspect])
        for unit in units:
            given = [reader.labels[aspect][unit] for reader in readers if unit in reader.labels[aspect]]
            chosen = majority(given) if len(given) > 1 else None
            if chosen is not None:
                labels[unit] = chosen
    return Rater(name=READERS, kind="readers", labels=table)
