"""Rationales that repeat withheld text word for word: a sign that a model has seen the reference."""

import re
from collections.abc import Iterable, Mapping

from medthink.cases.case import Case
from medthink.runs.prediction import Prediction

_WORDS = re.compile(r"\w+")
# Fifteen consecutive words do not match by chance: radiologists' stock phrases are shorter.
RUN_OF_WORDS = 15


def flag_overlap(predictions: Iterable[Prediction], cases: Mapping[int, Case]) -> list[str]:
    """A sentence naming the cases whose rationales repeat the expert's text verbatim; empty if none does."""
    found = sorted({one.case for one in predictions if _repeats(one, cases[one.case])})
    if not found:
        return []
    named = ", ".join(map(str, found[:5])) + (" …" if len(found) > 5 else "")
    return [f"{len(found)} rationales repeat {RUN_OF_WORDS} or more words of the withheld text (cases {named})"]


def _repeats(one: Prediction, case: Case) -> bool:
    written = _runs(_texts(one))
    if not written:
        return False
    reference = case.reference
    # Text that the model may see can be repeated.
    shown = _runs([case.question.history])
    withheld = [reference.findings, reference.discussion, *(image.caption for image in reference.images)]
    return not written.isdisjoint(_runs(withheld) - shown)


def _texts(one: Prediction) -> list[str]:
    steps = one.prediction_twi
    texts = [one.prediction_rationale]
    if steps is not None:
        texts += [steps.step2_integrated_summary, steps.step3_differential_reasoning]
        texts += steps.step1_per_image_findings or ()
    return [text for text in texts if text]


def _runs(texts: Iterable[str]) -> set[tuple[str, ...]]:
    """Every sequence of this many words, in lower case."""
    runs: set[tuple[str, ...]] = set()
    for text in texts:
        words = _WORDS.findall(text.lower())
        runs.update(zip(*(words[start:] for start in range(RUN_OF_WORDS)), strict=False))
    return runs
