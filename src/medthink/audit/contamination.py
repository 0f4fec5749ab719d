"""Tests of whether a model has seen the published cases: what it knows of them that cannot be inferred.

The letter of each option, the order of the options and the number of a case are unrelated to the case's content. A
model that never saw the file cannot know them, however good it is, so the false-alarm rate is known. Rates that skill
alone may explain (a hidden option named word for word, accuracy before and after a date) are shown next to their
controls, and raise no alarm.
"""

from calendar import monthrange
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from medthink.audit.benchmark import ALPHA
from medthink.audit.runs import is_variant
from medthink.cases.case import Case
from medthink.core.digest import seed_from
from medthink.core.errors import UsageError
from medthink.scoring.inputs import ScoringInput
from medthink.scoring.scores import Scores
from medthink.stats.comparisons.differences import holm
from medthink.stats.estimate import Measured, Undefined
from medthink.stats.intervals import newcombe, rate_of, wilson
from medthink.stats.memorisation import MemorisationTest, labels_recalled, order_favoured, order_gained, places_recalled
from medthink.workflow.prediction import RecallReply

DATE_COLUMN = "case_date"
"""The column of a benchmark's rows with the day a case was published."""

_FORMS = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y")
_MONTH_FORM, _YEAR_FORM = "%Y-%m", "%Y"


class DateSpan(NamedTuple):
    """The days on which a case may have been published: one, or those of a month or a year."""

    first: date
    last: date


class DateGap(msgspec.Struct, frozen=True, kw_only=True):
    """Accuracy before a date minus accuracy from it on.

    `undated` counts cases without a date that can be read, and those dated by the month or year in which the date lies.
    """

    run: str
    released: date
    before: Measured
    after: Measured
    difference: Measured
    undated: int


def accuracy_by_date(material: ScoringInput, scores: Scores, released: date) -> DateGap:
    """Accuracy on the cases dated before a day, and from it on."""
    rights: dict[bool, list[float]] = {True: [], False: []}
    undated = 0
    for case in scores.cases:
        span = read_date(material.cases[case.case].extra.get(DATE_COLUMN))
        if span is None or span.first < released <= span.last:
            undated += 1
        else:
            rights[span.last < released].append(case.right)
    before, after = (rate_of(sum(rights[place]), len(rights[place])) for place in (True, False))
    return DateGap(
        run=scores.origin.name,
        released=released,
        before=before,
        after=after,
        difference=_difference(before, after),
        undated=undated,
    )


def read_date(value: object) -> DateSpan | None:
    """A date as rows write it: ISO, 31.12.2020, 31/12/2020, 2020-12 or 2020; None for anything else."""
    text = str(value or "").strip()
    for day in (_parse(text[:10], form) for form in _FORMS):
        if day is not None:
            return DateSpan(day, day)
    if (month := _parse(text, _MONTH_FORM)) is not None:
        return DateSpan(month, month.replace(day=monthrange(month.year, month.month)[1]))
    if (year := _parse(text, _YEAR_FORM)) is not None:
        return DateSpan(year, year.replace(month=12, day=31))
    return None


def _parse(text: str, form: str) -> date | None:
    try:
        return datetime.strptime(text, form).date()
    except ValueError:
        return None


def _difference(before: Measured, after: Measured) -> Measured:
    if before.n and after.n:
        return newcombe(before, after)
    return Undefined(reason="no case is dated on one of the sides", n=before.n + after.n)


# Four ways in which a file's order may not be random: by alphabet or by length, ascending or descending.
_ORDER_ALPHA = 0.001 / 4

TraceKind = Literal["letters", "hidden option", "case number", "answers"]


class MemorisationResult(msgspec.Struct, frozen=True, kw_only=True):
    """The test of one fact that only memory can explain, Holm-corrected over all tests made.

    `untested` is the reason if there is no test.
    """

    kind: TraceKind
    test: MemorisationTest | None = None
    p_holm: float | None = None
    untested: str = ""

    @property
    def is_alarm(self) -> bool:
        """Whether it is more than chance allows."""
        return self.p_holm is not None and self.p_holm < ALPHA


class VerbatimRate(msgspec.Struct, frozen=True, kw_only=True):
    """How often a hidden wrong option was named word for word in a run; `gap` is the probed run's rate minus it."""

    run: str
    model: str
    what: str
    rate: Measured
    gap: Measured | None = None


class Contamination(msgspec.Struct, frozen=True, kw_only=True):
    """A model's contamination with a benchmark; `is_control` marks a control, where nothing can be remembered."""

    model: str
    run: str
    n_cases: int
    is_control: bool
    traces: tuple[MemorisationResult, ...]
    verbatim: tuple[VerbatimRate, ...]
    dates: tuple[DateGap, ...]

    @property
    def alarms(self) -> tuple[MemorisationResult, ...]:
        """The tests that raised the alarm."""
        return tuple(trace for trace in self.traces if trace.is_alarm)


class _Recalled(NamedTuple):
    """A case and what a model recalled about it."""

    case: Case
    said: RecallReply


def audit_contamination(
    recalls: Sequence[ScoringInput],
    controls: Sequence[ScoringInput],
    answered: Sequence[tuple[ScoringInput, Scores]],
    *,
    released: date | None = None,
) -> list[Contamination]:
    """Test every recall run, and every control in the same way; `answered` are runs whose answers are scored."""
    if not recalls:
        raise UsageError("none of the runs is a recall run", remedy="make one: medthink run DATA --task recall …")
    rates = [_verbatim(one, _words_for(one, recalls)) for one in (*recalls, *controls)]
    return [
        _probe(one, rates, answered, released, is_control=place >= len(recalls))
        for place, one in enumerate((*recalls, *controls))
    ]


def _probe(
    recall: ScoringInput,
    rates: Sequence[VerbatimRate],
    answered: Sequence[tuple[ScoringInput, Scores]],
    released: date | None,
    *,
    is_control: bool,
) -> Contamination:
    manifest = recall.manifest
    assert manifest is not None
    own = [
        (material, scores)
        for material, scores in answered
        if (scores.origin.model, material.text_fingerprint) == (manifest.model, recall.text_fingerprint)
    ]
    return Contamination(
        model=manifest.model,
        run=recall.name,
        n_cases=len(recall.cases),
        is_control=is_control,
        traces=_test(list(_recollections(recall)), recall, own),
        verbatim=_beside(rates, recall.name),
        dates=tuple(accuracy_by_date(material, scores, released) for material, scores in own) if released else (),
    )


def _test(
    said: Sequence[_Recalled], recall: ScoringInput, own: Sequence[tuple[ScoringInput, Scores]]
) -> tuple[MemorisationResult, ...]:
    """All possible tests; the level of each is 1 % shared among them."""
    disorder = _why_not_by_lot(recall.cases.values())
    pair = _order_pair(own)
    made: dict[TraceKind, Callable[[float], MemorisationTest | None]] = {
        "letters": lambda alpha: _test_letters(said, alpha),
        "hidden option": lambda alpha: _test_hidden(said, alpha),
        "case number": lambda alpha: _test_numbers(said, recall, alpha),
        "answers": lambda alpha: _test_order(*pair, alpha) if pair else None,
    }
    why: dict[TraceKind, str] = {kind: disorder for kind in made if disorder and kind != "case number"}
    if pair is None:
        why["answers"] = "no two answer runs of this model that differ only in --option-order were given"
    testable = [kind for kind in made if kind not in why]
    tests = {kind: made[kind](ALPHA / len(testable)) for kind in testable}
    done = {kind: test for kind, test in tests.items() if test is not None and test.n}
    corrected = dict(zip(done, map(float, holm([test.p_value for test in done.values()])), strict=True))
    return tuple(
        MemorisationResult(
            kind=kind,
            test=done.get(kind),
            p_holm=corrected.get(kind),
            untested="" if kind in done else why.get(kind, "no reply could be read"),
        )
        for kind in made
    )


def _recollections(material: ScoringInput) -> Iterable[_Recalled]:
    for one in material.predictions:
        if isinstance(one.recall, RecallReply):
            yield _Recalled(material.cases[one.case], one.recall)


def _test_letters(said: Sequence[_Recalled], alpha: float) -> MemorisationTest:
    """Only the wrong options: the position of the right one may follow the benchmark's own pattern."""
    named, actual = [], []
    for case, one in said:
        if one.letters is not None:
            wrong = [letter for letter in one.letters if letter != case.reference.answer]
            named.append([ord(one.letters[letter]) for letter in wrong])
            actual.append([ord(letter) for letter in wrong])
    return places_recalled(named, actual, alpha=alpha)


def _test_hidden(said: Sequence[_Recalled], alpha: float) -> MemorisationTest:
    both = [
        (_is_verbatim(one.option, case, one.hidden), _is_verbatim(one.option_reordered, case, one.hidden))
        for case, one in _with_hidden_distractor(said)
        if one.option is not None and one.option_reordered is not None
    ]
    return order_favoured([a for a, _ in both], [b for _, b in both], alpha=alpha)


def _test_numbers(said: Sequence[_Recalled], recall: ScoringInput, alpha: float) -> MemorisationTest:
    rng = np.random.default_rng(seed_from("case numbers", recall.text_fingerprint))
    return labels_recalled([one.number for _, one in said], [case.id for case, _ in said], alpha=alpha, rng=rng)


def _test_order(
    published: tuple[ScoringInput, Scores], other: tuple[ScoringInput, Scores], alpha: float
) -> MemorisationTest | None:
    rights = [[case.right for case in scores.cases] for _, scores in (published, other)]
    letters = [[material.letter_shown(case.case) for case in scores.cases] for material, scores in (published, other)]
    return order_gained(rights[0], letters[0], rights[1], letters[1], alpha=alpha)


def _order_pair(
    own: Sequence[tuple[ScoringInput, Scores]],
) -> tuple[tuple[ScoringInput, Scores], tuple[ScoringInput, Scores]] | None:
    """Two runs of the model that differ only in the order of the options, the published order first.

    Of several such pairs, the one whose other order comes first, in whatever order the runs are named.
    """
    ordered = sorted(own, key=lambda one: (_option_order(one[1]), [case.right for case in one[1].cases]))
    for first in ordered:
        for second in ordered:
            before, after = (one.origin.condition or {} for _, one in (first, second))
            changed = {field for field in before if before[field] != after.get(field)}
            if is_variant(first[1], second[1]) and changed == {"option_order"} and before["option_order"] == "as_is":
                return first, second
    return None


def _option_order(scores: Scores) -> str:
    return str((scores.origin.condition or {}).get("option_order"))


def _with_hidden_distractor(said: Iterable[_Recalled]) -> Iterable[_Recalled]:
    """The cases whose hidden option is wrong: the right one can be found by reading the case."""
    return (one for one in said if one.said.hidden != one.case.reference.answer)


def _is_verbatim(text: str | None, case: Case, letter: str) -> bool:
    return text is not None and _bare(text) == _bare(case.question.options[letter])


def _bare(text: str) -> str:
    """A text without case, spaces, a leading letter, quotes or a final full stop."""
    words = " ".join(text.split()).strip("\"'“”‘’ ").rstrip(".").casefold()
    return words[2:].strip() if len(words) > 2 and words[0] in "abcde" and words[1] in ".):" else words


def _verbatim(recall: ScoringInput, what: str) -> VerbatimRate:
    assert recall.manifest is not None
    named = [
        _is_verbatim(one.option, case, one.hidden)
        for case, one in _with_hidden_distractor(_recollections(recall))
        if one.option is not None
    ]
    return VerbatimRate(run=recall.name, model=recall.manifest.model, what=what, rate=wilson(sum(named), len(named)))


def _beside(rates: Sequence[VerbatimRate], run: str) -> tuple[VerbatimRate, ...]:
    """The run's own rate first, then the others with their differences from the run."""
    own = next(one for one in rates if one.run == run)
    return (own, *(replace(one, gap=newcombe(own.rate, one.rate)) for one in rates if one.run != run))


def _words_for(recall: ScoringInput, recalls: Sequence[ScoringInput]) -> str:
    if recall in recalls:
        return "this benchmark"
    same = any(recall.text_fingerprint == one.text_fingerprint for one in recalls)
    return "a model that cannot have seen it" if same else "cases that cannot have been seen"


def _why_not_by_lot(cases: Iterable[Case]) -> str:
    """The reason why the file's order of wrong options is not random, or "" if there is no sign of that."""
    wrong: list[Mapping[str, str]] = [
        {letter: text for letter, text in case.question.options.items() if letter != case.reference.answer}
        for case in cases
    ]
    habits: dict[str, Callable[[str], object]] = {"alphabet": str.casefold, "length": len}
    for habit, key in habits.items():
        for is_down in (False, True):
            named = [_arranged(options, key, is_down=is_down) for options in wrong]
            actual = [[ord(letter) for letter in options] for options in wrong]
            if places_recalled(named, actual, alpha=_ORDER_ALPHA).p_value < _ORDER_ALPHA:
                return f"the options of the file follow the {habit}, so their order can be known without memory"
    return ""


def _arranged(options: Mapping[str, str], key: Callable[[str], object], *, is_down: bool) -> list[int]:
    """The position of each option if sorted by the key, ties at random."""
    ranked = sorted(options, key=lambda at: (key(options[at]), seed_from("equals", options[at])), reverse=is_down)
    places = dict(zip(ranked, sorted(options), strict=True))
    return [ord(places[letter]) for letter in options]
