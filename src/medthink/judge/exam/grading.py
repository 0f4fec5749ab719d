"""Grading of an exam: the verdicts on every exam text, compared with its edits."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from medthink.core.digest import digest_value, seed_from
from medthink.judge.edits import EDITS, INVENTED, is_counted
from medthink.judge.exam.guessers import guess_exam
from medthink.judge.exam.results import (
    LONGER,
    REWORDED,
    UNTOUCHED,
    ExamEdit,
    ExamResult,
    ExamText,
    KindGrades,
    PairGrades,
    sheets_due,
)
from medthink.judge.judgement import JudgeConfig, Judgement, JudgeSettings, model_identity
from medthink.judge.kinds import KINDS
from medthink.judge.kinds.kind import Label
from medthink.judge.kinds.preference import Preferred, is_flip, pair_score
from medthink.judge.scores import clustered_mean, clustered_rate
from medthink.stats import rater_agreement
from medthink.stats.estimate import Measured, Undefined

_TRUE_EDITS = (UNTOUCHED, REWORDED, LONGER)
_NO_PREFERENCE = "no preference was given"


class GradedUnit(NamedTuple):
    """A judge's label for one unit of an exam text, and the edit of that unit."""

    case: int
    change: ExamEdit
    label: Label
    is_right: bool


class _Answer(NamedTuple):
    """A judgement and its exam text."""

    sheet: ExamText
    judgement: Judgement


def grade_exam(
    sheets: Iterable[ExamText], judgements: Sequence[Judgement], *, exam: str, benchmark: str
) -> tuple[ExamResult, ...]:
    """The result of every judge and setting."""
    sheets = tuple(sheets)
    by_number = {sheet.number: sheet for sheet in sheets}
    answers = [_Answer(by_number[one.sample], one) for one in judgements if one.sample in by_number]
    seats: dict[tuple[str, bytes], list[_Answer]] = {}
    for one in answers:
        seats.setdefault((one.judgement.judge, _write(one.judgement.setting)), []).append(one)
    due = {what: len(list(sheets_due(sheets, what))) for what in KINDS}
    guessers = {what: guess_exam(sheets, what) for what in KINDS if not KINDS[what].is_pairwise}
    return tuple(
        _result(own, answers, due, guessers, exam=exam, benchmark=benchmark) for _, own in sorted(seats.items())
    )


def _write(setting: JudgeSettings) -> bytes:
    return msgspec.json.encode(setting)


def digest_sheets(sheets: Iterable[ExamText]) -> str:
    """The digest of the exam's texts, which identifies the exam."""
    return digest_value([[one.number, one.case, one.texts, one.finding] for one in sheets])


def grade_units(sheet: ExamText, judgement: Judgement) -> Iterator[GradedUnit]:
    """The label of every unit of an exam text, and whether it is right."""
    kind = KINDS[judgement.what]
    verdicts = judgement.verdicts[: len(sheet.spans) or 1]
    ordered = verdicts[::-1] if sheet.reverses is not None else verdicts
    for place, verdict in enumerate(ordered):
        label = kind.labels(verdict).get(kind.leading)
        if label is not None:
            change = sheet.change_of(place)
            yield GradedUnit(sheet.case, change, label, is_right_label(judgement.what, change, label))


def is_right_label(what: str, change: ExamEdit, label: Label) -> bool:
    """Whether a label is right for a unit with this change: true units must be called true, false ones false.

    If the expert does not mention it (an invention, another modality), it is enough not to call it true.
    """
    kind = KINDS[what]
    if change.is_true:
        return label == kind.true_label
    if change.edit == INVENTED or (change.edit in EDITS and EDITS[change.edit].may_be_unverifiable):
        return label != kind.true_label
    return label == kind.label_for(change.edit)


def _result(
    own: Sequence[_Answer],
    everybody: Sequence[_Answer],
    due: Mapping[str, int],
    guessers: Mapping[str, Measured],
    *,
    exam: str,
    benchmark: str,
) -> ExamResult:
    first = own[0].judgement
    whats = [what for what in KINDS if any(one.judgement.what == what for one in own)]
    kinds = {what: _mark_kind(what, own, due[what], guessers[what]) for what in whats if not KINDS[what].is_pairwise}
    is_paired = any(KINDS[what].is_pairwise for what in whats)
    return ExamResult(
        judge=first.judge,
        setting=first.setting,
        exam=exam,
        benchmark=benchmark,
        prompts={one.judgement.what: one.judgement.prompt for one in own},
        models=tuple(sorted({one.judgement.model for one in own if one.judgement.model})),
        is_smoke_test=JudgeConfig(judge=first.judge, setting=first.setting, prompt="").is_smoke_test,
        kinds=kinds,
        pairs=_mark_pairs(own, everybody) if is_paired else None,
    )


def _mark_kind(what: str, own: Sequence[_Answer], due: int, guesser: Measured) -> KindGrades:
    answers = [one for one in own if one.judgement.what == what]
    first = [one for one in answers if one.judgement.repeat == 0]
    plain = [one for one in first if one.sheet.reverses is None]
    marked = [mark for one in plain for mark in grade_units(*one)]
    edits = dict.fromkeys(mark.change.edit for mark in marked if not mark.change.is_true)
    found = {edit: _right(mark for mark in marked if mark.change.edit == edit) for edit in sorted(edits, key=_order)}
    counted = [mark for mark in marked if not mark.change.is_true and is_counted(mark.change.edit)]
    true = {name: [mark for mark in marked if mark.change.edit == name] for name in _TRUE_EDITS}
    again = _pair_labels(plain, [one for one in answers if one.judgement.repeat == 1])
    turned = _pair_labels(plain, [one for one in first if one.sheet.reverses is not None])
    return KindGrades(
        asked=due,
        judged=sum(one.judgement.state == "ok" for one in answers),
        sensitivity=_right(counted),
        found=found,
        accepted={name: _right(marks) for name, marks in true.items() if marks},
        same_again=_same(again),
        kappa_again=_kappa(again, what),
        same_reversed=_same(turned),
        guesser=guesser,
    )


def _order(edit: str) -> int:
    names = list(EDITS)
    return names.index(edit) if edit in names else len(names)


def _right(marks: Iterable[GradedUnit]) -> Measured:
    return _rate(((mark.case, mark.is_right) for mark in marks), "no such units")


Labelled = tuple[int, Label, Label]


def _pair_labels(plain: Sequence[_Answer], others: Sequence[_Answer]) -> list[Labelled]:
    """The labels of the units of an exam text, and those given when it was asked a second time."""
    known = {one.sheet.number: list(grade_units(*one)) for one in plain}
    return [
        (mark.case, mark.label, other.label)
        for one in others
        for mark, other in zip(known.get(one.sheet.base, ()), grade_units(*one), strict=False)
    ]


def _same(pairs: Sequence[Labelled]) -> Measured:
    return _rate(((case, first == second) for case, first, second in pairs), "not asked")


def _kappa(pairs: Sequence[Labelled], what: str) -> Measured:
    if not pairs:
        return Undefined(reason="not asked", n=0)
    kind = KINDS[what]
    cases, first, second = zip(*pairs, strict=True)
    categories = next(aspect.categories for aspect in kind.aspects if aspect.name == kind.leading)
    chance = np.random.default_rng(seed_from("exam", what))
    return rater_agreement(first, second, rng=chance, clusters=cases, categories=categories).kappa


class _Pair(NamedTuple):
    """A judge's preference for one pair with the contender first, and with it second."""

    judge: str
    case: int
    contender: str
    when_first: Preferred
    when_second: Preferred


def _mark_pairs(own: Sequence[_Answer], everybody: Sequence[_Answer]) -> PairGrades:
    pairs = list(_pairs(own))
    judge = own[0].judgement.judge
    mine = [one for one in pairs if one.contender == judge]
    others = [
        one
        for one in _pairs(everybody)
        if one.contender == judge and model_identity(one.judge) != model_identity(judge)
    ]
    places = [(one.case, said) for one in pairs for said in (one.when_first, one.when_second) if said != "tie"]
    return PairGrades(
        pairs=len(pairs),
        same_swapped=_rate(((one.case, not is_flip(one.when_first, one.when_second)) for one in pairs), _NO_PREFERENCE),
        first=_rate(((case, said == "first") for case, said in places), _NO_PREFERENCE),
        longer=_won(one for one in pairs if one.contender == LONGER),
        own=_won(mine),
        own_by_others=_won(others),
    )


def _pairs(answers: Iterable[_Answer]) -> Iterator[_Pair]:
    """The pairs that were judged in both orders."""
    said: dict[tuple[str, bytes, int, str], dict[bool, Preferred]] = {}
    for one in answers:
        judgement, sheet = one.judgement, one.sheet
        if sheet.form == "pair" and judgement.state == "ok" and judgement.repeat == 0:
            key = (judgement.judge, _write(judgement.setting), sheet.case, sheet.contender)
            label = KINDS[judgement.what].labels(judgement.verdicts[0])[KINDS[judgement.what].leading]
            said.setdefault(key, {})[sheet.is_first] = _preferred(label)
    for (judge, _, case, contender), both in said.items():
        if len(both) == 2:
            yield _Pair(judge, case, contender, both[True], both[False])


def _preferred(label: Label | None) -> Preferred:
    return "first" if label == "first" else "second" if label == "second" else "tie"


def _won(pairs: Iterable[_Pair]) -> Measured:
    rows = [(one.case, pair_score(one.when_first, one.when_second)) for one in pairs]
    return clustered_mean(rows, within=(0, 1)) if rows else Undefined(reason="not asked", n=0)


def _rate(rows: Iterable[tuple[int, bool]], if_none: str) -> Measured:
    found = list(rows)
    return clustered_rate(found) if found else Undefined(reason=if_none, n=0)
