"""Letters against the key: accuracy with its interval, states, slices, several samples per case."""

from collections import Counter

import numpy as np
from msgspec.structs import replace

from medthink.cases.case import Case
from medthink.cases.slices import SMALL, group_by_slice, slice_cases, sort_slices
from medthink.metrics.answers import GradedAnswer, count_answers, summarise_repeats
from medthink.runs.prediction import Prediction
from medthink.scoring.material import Material
from medthink.scoring.scores import AnswerScores, CaseScore, SliceScore
from medthink.stats.clusters import Floats
from medthink.stats.estimate import Measured
from medthink.stats.intervals import rate_interval, wilson
from medthink.stats.repeats import repeated_mean


def outcomes_by_case(material: Material) -> dict[int, list[GradedAnswer]]:
    """Every case's outcomes in the order of its samples."""
    grouped: dict[int, list[GradedAnswer]] = {case_id: [] for case_id in sorted(material.cases)}
    for one in material.predictions:
        gold = material.cases[one.case].reference.answer
        grouped[one.case].append(GradedAnswer(one.state, one.prediction, gold))
    return grouped


def score_answers(material: Material) -> AnswerScores:
    """The headline accuracy and the numbers next to it."""
    grouped = outcomes_by_case(material)
    outcomes = [outcome for listed in grouped.values() for outcome in listed]
    counted = count_answers(outcomes)
    clusters = [case_id for case_id, listed in grouped.items() for _ in listed]
    hits = np.array([outcome.is_right for outcome in outcomes], dtype=float)
    answered = np.array([outcome.state == "ok" for outcome in outcomes])
    scores = AnswerScores(
        n_cases=len(grouped),
        n_predictions=counted.n,
        states={str(state): count for state, count in counted.states.items()},
        lenient=sum(one.parse_mode == "lenient" for one in material.predictions),
        accuracy=rate_interval(hits, clusters=clusters),
        accuracy_answered=rate_interval(hits[answered], clusters=np.array(clusters)[answered]),
        chosen=_count_chosen(material.predictions),
        confusion=_confusion(outcomes),
    )
    return _with_repeats(scores, grouped, hits, clusters) if counted.n > len(grouped) else scores


def score_cases(material: Material) -> tuple[CaseScore, ...]:
    """The cases one by one, for comparisons and boards."""
    return tuple(
        CaseScore(
            case=case_id,
            right=sum(outcome.is_right for outcome in listed) / len(listed),
            states=tuple(outcome.state for outcome in listed),
            letters=tuple(outcome.letter for outcome in listed),
            gold=material.cases[case_id].reference.answer,
        )
        for case_id, listed in outcomes_by_case(material).items()
    )


def score_slices(cases: dict[int, Case], scored: tuple[CaseScore, ...]) -> tuple[SliceScore, ...]:
    """Accuracy in every slice, the samples of a case being one cluster as in the headline."""
    members = group_by_slice(((one.case, one) for one in scored), slice_cases(cases.values()))
    return tuple(
        SliceScore(by=by, value=value, n=len(part), accuracy=_rate(part), is_small=len(part) < SMALL)
        for (by, value), part in sort_slices(members).items()
    )


def _rate(part: list[CaseScore]) -> Measured:
    # Only an answer that is ok has a letter.
    rows = [(one.case, letter == one.gold) for one in part for letter in one.letters]
    return rate_interval([hit for _, hit in rows], clusters=[case for case, _ in rows])


def _with_repeats(
    scores: AnswerScores, grouped: dict[int, list[GradedAnswer]], hits: Floats, clusters: list[int]
) -> AnswerScores:
    summary = summarise_repeats({str(case_id): listed for case_id, listed in grouped.items()})
    return replace(
        scores,
        # Student's interval, from `repeated_mean`, can leave 0 to 100 % if there are few cases.
        repeats=replace(repeated_mean(hits, cases=clusters), mean=scores.accuracy),
        consistency=summary.consistency,
        majority=wilson(summary.majority_right, summary.n_cases),
    )


def _count_chosen(predictions: list[Prediction]) -> dict[str, int]:
    """The letters as shown, if known: they reveal a position bias."""
    letters = Counter(one.letter_shown or one.prediction for one in predictions if one.state == "ok")
    return {letter: count for letter, count in sorted(letters.items(), key=lambda item: str(item[0])) if letter}


def _confusion(outcomes: list[GradedAnswer]) -> dict[str, dict[str, int]]:
    table: dict[str, Counter[str]] = {}
    for outcome in outcomes:
        table.setdefault(outcome.gold, Counter())[outcome.letter or outcome.state] += 1
    return {gold: dict(sorted(row.items())) for gold, row in sorted(table.items())}
