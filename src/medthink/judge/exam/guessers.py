"""Guessers that sit a judge's exam without reading: where they do well, the exam measures something else.

The *source-free* guesser sees a sentence and never the case. It learns from other sentences of the exam which words
true and false ones have, and must be right about as often as wrong. The *verbatim* guesser looks for a finding
word for word, and must fail the exam in omissions.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import log
from random import Random
from typing import NamedTuple

from medthink.core.digest import digest_value, seed_from
from medthink.judge.edits import falsify, is_counted
from medthink.judge.exam.results import UNTOUCHED, ExamEdit, ExamText
from medthink.judge.kinds import KINDS
from medthink.judge.scores import clustered_rate
from medthink.metrics.findings.lexicon import content_words
from medthink.stats.estimate import Measured, Undefined

_FOLDS = 5
# A sentence whose negation was dropped looks like one that a negation could be added to, and the other way round.
_INVERSE = {"negation dropped": "negation added", "negation added": "negation dropped"}
# What could have been done to a sentence that looks like this, and whether it was put in other words.
_Form = tuple[str, bool]


class _Sentence(NamedTuple):
    """A sentence of an exam, its case, whether it is true, and the fold of the sentence that it was made from."""

    case: int
    text: str
    is_true: bool
    fold: int


def guess_exam(sheets: Sequence[ExamText], what: str) -> Measured:
    """How often the guesser of this kind is right: the verbatim one of omissions, else the source-free one."""
    return guess_omissions(sheets, what) if KINDS[what].uses_decisive else guess_sentences(sheets)


def guess_sentences(sheets: Sequence[ExamText]) -> Measured:
    """How often the source-free guesser is right about as many true as false sentences."""
    sentences = _draw(sheets)
    found = [(one.case, guess) for one, guess in _guess_all(sentences)]
    return clustered_rate(found) if found else Undefined(reason="no such units", n=0)


def guess_omissions(sheets: Iterable[ExamText], what: str) -> Measured:
    """How often the verbatim guesser is right: it calls missed what a text does not say word for word."""
    kind = KINDS[what]
    found = []
    for sheet in sheets:
        if sheet.form == "omission":
            (change,) = sheet.changes
            label = kind.true_label if sheet.finding in sheet.texts[0] else kind.wrong_label
            wanted = kind.true_label if change.is_true else kind.label_for(change.edit)
            found.append((sheet.case, label == wanted))
    return clustered_rate(found) if found else Undefined(reason="no such units", n=0)


def _draw(sheets: Sequence[ExamText]) -> list[_Sentence]:
    """As many true as false sentences of each form: those that look alike, rephrased or not."""
    false: dict[_Form, list[_Sentence]] = {}
    true: dict[_Form, list[_Sentence]] = {}
    for case, text, change in _units(sheets):
        original = change.before or text
        one = _Sentence(case, text, change.is_true, int(digest_value(original)[:6], 16) % _FOLDS)
        if not change.is_true:
            false.setdefault((change.edit, change.is_rephrased), []).append(one)
            continue
        for edit in falsify(original):
            true.setdefault((_INVERSE.get(edit, edit), change.edit != UNTOUCHED), []).append(one)
    chance = Random(seed_from("guesser", sum(map(len, false.values()))))
    drawn: list[_Sentence] = []
    for form in sorted(false):
        fitting = [one for one in dict.fromkeys(true.get(form, ())) if one not in drawn]
        each = min(len(false[form]), len(fitting))
        drawn += [*chance.sample(false[form], each), *chance.sample(fitting, each)]
    return drawn


def _units(sheets: Sequence[ExamText]) -> Iterator[tuple[int, str, ExamEdit]]:
    """The sentences of the exam that count, each with its case and its edit."""
    for sheet in sheets:
        if sheet.form == "statements" and sheet.reverses is None:
            for place, (start, end) in enumerate(sheet.spans):
                change = sheet.change_of(place)
                if change.is_true or is_counted(change.edit):
                    yield sheet.case, sheet.texts[0][start:end], change


def _guess_all(sentences: Sequence[_Sentence]) -> Iterator[tuple[_Sentence, bool]]:
    """Whether each guess is right; a sentence is guessed from what others were made into."""
    for fold in range(_FOLDS):
        known = [one for one in sentences if one.fold != fold]
        counts = {
            truth: Counter(_features(one.text for one in known if one.is_true is truth)) for truth in (True, False)
        }
        if all(counts.values()):
            for one in sentences:
                if one.fold == fold:
                    yield one, (_weigh(one.text, counts) > 0) is one.is_true


def _weigh(text: str, counts: Mapping[bool, Counter[str]]) -> float:
    """How much more its words are those of true sentences than those of false ones."""
    size = len(counts[True] | counts[False])
    totals = {truth: found.total() + size for truth, found in counts.items()}
    return sum(
        log((counts[True][one] + 1) / totals[True]) - log((counts[False][one] + 1) / totals[False])
        for one in set(_features([text]))
    )


def _features(texts: Iterable[str]) -> Iterator[str]:
    """The words of each text, and the pairs of them."""
    for text in texts:
        words = [token.word for token in content_words(text)]
        yield from words
        yield from (f"{one} {other}" for one, other in pairwise(words))
