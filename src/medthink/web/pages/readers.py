"""The human baseline: how often people are right, beside the models on the same cases."""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from medthink.scoring.scores import percent
from medthink.stats.intervals import rate_interval
from medthink.web.human_answers import HumanAnswer
from medthink.web.library import OpenBenchmark
from medthink.web.pages.marks import Interval, place_rate, tell_time
from medthink.web.pages.model_answers import ModelAnswers
from medthink.web.pages.reading import CONFIDENCES


class ReadersPage(msgspec.Struct, frozen=True, kw_only=True):
    """The human baseline: people's answers, next to the models on the same cases."""

    name: str
    answers: int
    readers: int
    cases: int
    accuracy: Interval | None
    median_seconds: str
    by_confidence: tuple[tuple[str, int, str], ...]
    models: tuple[tuple[str, Interval], ...]


def make_readers_page(
    bench: OpenBenchmark, name: str, answers: list[HumanAnswer], models: Sequence[ModelAnswers]
) -> ReadersPage:
    """People's accuracy with its interval, and the models' on the cases that people answered."""
    known = [one for one in answers if one.case in bench.cases]
    right = [one.letter == bench.answers[one.case] for one in known]
    cases = sorted({one.case for one in known})
    groups = {words: [one for one in known if one.confidence == key] for key, words in CONFIDENCES.items()}
    seconds = float(np.median([one.seconds for one in known])) if known else 0.0
    return ReadersPage(
        name=name,
        answers=len(known),
        readers=len({one.reader for one in known}),
        cases=len(cases),
        accuracy=place_rate(rate_interval(right, clusters=[one.case for one in known])) if known else None,
        median_seconds=tell_time(seconds),
        by_confidence=tuple(
            (words, len(group), percent(rate_interval([one.letter == bench.answers[one.case] for one in group])))
            for words, group in groups.items()
            if group
        ),
        models=tuple(_models_on(bench, cases, models)) if known else (),
    )


def _models_on(
    bench: OpenBenchmark, cases: list[int], models: Sequence[ModelAnswers]
) -> Iterator[tuple[str, Interval]]:
    for model in models:
        rights = [model.letters[case] == bench.answers[case] for case in cases if case in model.letters]
        rate = place_rate(rate_interval(rights)) if rights else None
        if rate is not None:
            yield model.name, rate
