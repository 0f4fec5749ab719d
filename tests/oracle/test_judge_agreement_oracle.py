"""The agreement of readers and judges, from their labels to its figures, against scikit-learn and krippendorff."""

import krippendorff
import numpy as np
import pytest

from lazily import Lazily
from medthink.judge.judgement import Judgement, JudgeSettings
from medthink.judge.kinds.discussion import EducationVerdict, SentenceVerdict, education_id
from medthink.judge.kinds.step_scores import StepVerdict
from medthink.judge.rubric import DIMENSIONS
from medthink.judge.units import UnitSource, split_source
from medthink.readers.agreement import compare_raters
from medthink.readers.readings import ImportedReadings, Reading

theirs = Lazily("sklearn.metrics")
CHANCE = np.random.default_rng(11)
CASES = 40
SUPPORTS = np.array(["supported", "contradicted", "not described", "unverifiable"])
SENTENCES = np.array(["correct", "incorrect", "not described", "unverifiable"])


def make(what: str):
    sources = [
        UnitSource(run="r", case=case, sample=0, what=what, parts={"rationale": "One. Two. Three."})
        for case in range(CASES)
    ]
    return {one.key: one for one in map(split_source, sources)}


def noisy(labels: np.ndarray, options: np.ndarray) -> np.ndarray:
    return np.where(CHANCE.random(len(labels)) < 0.75, labels, CHANCE.choice(options, len(labels)))


def judgement(units, **verdicts) -> Judgement:
    return Judgement(
        case=units.case, sample=0, what=units.what, judge="openai/j", repeat=0, state="ok",
        setting=JudgeSettings(sees=("history",)), prompt="p", **verdicts,
    )  # fmt: skip


def result(readings, judgements, units):
    return compare_raters(
        ImportedReadings(readings=tuple(readings), problems=()), judgements, units, slices={}, truths={}
    )


def pair_of(found, aspect: str):
    return next(pair for pair in found.pairs if pair.aspect == aspect)


@pytest.fixture(scope="module")
def steps():
    units = make("steps")
    ids = [(one.case, unit.id) for one in units.values() for unit in one.units]
    truth = CHANCE.choice(SUPPORTS, len(ids), p=[0.7, 0.15, 0.05, 0.1])
    read, judged = noisy(truth, SUPPORTS), noisy(truth, SUPPORTS)
    label = dict(zip([unit for _, unit in ids], judged, strict=True))
    readings = [
        Reading(
            reader="anna", unit=unit, case=case, labels={"factual": bool(word == "supported"), "support": str(word)}
        )
        for (case, unit), word in zip(ids, read, strict=True)
    ]
    judgements = [
        judgement(one, verdicts=tuple(
            StepVerdict(id=unit.id, factual=str(label[unit.id]), critical=False, reason="so", rests_on=("history",),
                        error_types=("reasoning",) if label[unit.id] == "contradicted" else ())
            for unit in one.units
        ))
        for one in units.values()
    ]  # fmt: skip
    return read, judged, result(readings, judgements, units)


def test_three_grades_of_support(steps):
    read, judged, found = steps
    measured = pair_of(found, "support").nominal
    assert measured.percent.value == pytest.approx((read == judged).mean())
    assert measured.kappa.value == pytest.approx(theirs.cohen_kappa_score(read, judged))
    assert measured.mcc.value == pytest.approx(theirs.matthews_corrcoef(read, judged))
    assert np.array_equal(measured.confusion, theirs.confusion_matrix(read, judged, labels=list(SUPPORTS)))
    codes = [[list(SUPPORTS).index(word) for word in words] for words in (read, judged)]
    assert measured.alpha.value == pytest.approx(krippendorff.alpha(codes, level_of_measurement="nominal"))
    assert (measured.n, measured.clusters) == (3 * CASES, CASES)


def test_factual_or_not(steps):
    read, judged, found = steps
    measured = pair_of(found, "factual").nominal
    assert measured.kappa.value == pytest.approx(theirs.cohen_kappa_score(read == "supported", judged == "supported"))
    assert measured.mcc.value == pytest.approx(theirs.matthews_corrcoef(read == "supported", judged == "supported"))


def test_the_judge_s_rate_is_corrected_by_what_readers_know(steps):
    read, judged, found = steps
    wrong, truth = judged == "contradicted", read == "contradicted"
    sensitivity, specificity = wrong[truth].mean(), (~wrong[~truth]).mean()
    bias = next(one for one in found.biases if one.aspect == "support")
    assert bias.reported.value == pytest.approx(wrong.mean())
    assert bias.corrected.value == pytest.approx((wrong.mean() + specificity - 1) / (sensitivity + specificity - 1))
    # Every step was read here, so the correction gives the readers' own rate.
    assert bias.corrected.value == pytest.approx(truth.mean())
    assert (bias.reported.clusters, bias.corrected.clusters) == (CASES, CASES)


def test_the_rate_is_corrected_by_readers_who_share_the_cases_out_but_not_where_they_are_divided():
    units = make("steps")
    ids = [(one.case, unit.id) for one in units.values() for unit in one.units]
    step = {"critical": False, "reason": "so", "rests_on": ("history",)}
    judgements = [
        judgement(one, verdicts=tuple(
            StepVerdict(id=unit.id, factual="supported" if k else "contradicted",
                        error_types=() if k else ("reasoning",), **step)
            for k, unit in enumerate(one.units)
        ))
        for one in units.values()
    ]  # fmt: skip
    readings = [
        Reading(reader="anna" if case < CASES // 2 else "ben", unit=unit, case=case, labels={"factual": k % 3 > 0})
        for k, (case, unit) in enumerate(ids)
    ]
    (bias,) = result(readings, judgements, units).biases
    assert (bias.validated, bias.corrected.value) == (3 * CASES, pytest.approx(1 / 3))
    case, unit = ids[0]
    divided = Reading(reader="ben", unit=unit, case=case, labels={"factual": True})
    assert result([*readings, divided], judgements, units).biases[0].validated == 3 * CASES - 1


def part_read(read_cases):
    """Steps judged on every case and read on some; the judge calls every third step wrong, one reader agrees mostly."""
    units = make("steps")
    ids = [(one.case, unit.id) for one in units.values() for unit in one.units]
    chance = np.random.default_rng(5)
    wrong = chance.random(len(ids)) < np.where([case < 10 for case, _ in ids], 0.6, 0.2)
    read = np.where(chance.random(len(ids)) < 0.9, wrong, ~wrong)
    step = {"critical": False, "reason": "so", "rests_on": ("history",)}
    is_wrong = dict(zip([unit for _, unit in ids], wrong, strict=True))
    judgements = [
        judgement(one, verdicts=tuple(
            StepVerdict(id=unit.id, factual="contradicted" if is_wrong[unit.id] else "supported",
                        error_types=("reasoning",) if is_wrong[unit.id] else (), **step)
            for unit in one.units
        ))
        for one in units.values()
    ]  # fmt: skip
    readings = [
        Reading(reader="anna", unit=unit, case=case, labels={"factual": not said})
        for (case, unit), said in zip(ids, read, strict=True)
        if case in read_cases
    ]
    (bias,) = result(readings, judgements, units).biases
    return bias, wrong, read, np.array([case for case, _ in ids])


def test_few_readers_and_the_judge_on_all_cases_are_combined_beside_the_corrected_rate():
    bias, wrong, read, cases = part_read(set(range(0, CASES, 2)))
    known = cases % 2 == 0
    powered = bias.powered
    assert (powered.read, powered.unread, bias.validated) == (20, 20, 60)
    assert powered.readers.value == pytest.approx(read[known].mean())
    shift = powered.weight * (wrong[~known].mean() - wrong[known].mean())
    assert powered.together.value == pytest.approx(read[known].mean() + shift)
    width, alone = (one.high - one.low for one in (powered.together, powered.readers))
    assert powered.weight > 0 and width < alone
    assert powered.together.method == "prediction-powered (PPI++), clustered by case"


def test_cases_that_were_picked_are_not_combined():
    bias = part_read(set(range(10)))[0]  # the hard ones
    assert bias.powered.p_random < 0.01
    assert bias.powered.together.reason.startswith("the cases read do not look randomly drawn")
    assert bias.powered.readers.value is not None


def test_sentences_and_scores():
    units = make("discussion")
    sentence_ids = [(one.case, unit.id) for one in units.values() for unit in one.units]
    score_ids = [(one.case, education_id(one.ids, name)) for one in units.values() for name in DIMENSIONS]
    truth = CHANCE.choice(SENTENCES, len(sentence_ids))
    read, judged = noisy(truth, SENTENCES), noisy(truth, SENTENCES)
    level = CHANCE.choice([0, 1, 2], len(score_ids))
    scores_read, scores_judged = noisy(level, np.arange(3)), noisy(level, np.arange(3))
    readings = [
        Reading(reader="anna", unit=unit, case=case, labels={"sentence": str(word)})
        for (case, unit), word in zip(sentence_ids, read, strict=True)
    ] + [
        Reading(reader="anna", unit=unit, case=case, labels={"education": int(score)})
        for (case, unit), score in zip(score_ids, scores_read, strict=True)
    ]
    words, scores = iter(judged), iter(scores_judged)
    judgements = [
        judgement(
            one,
            verdicts=(
                *(SentenceVerdict(id=unit.id, label=str(next(words)), reason="so") for unit in one.units),
                *(
                    EducationVerdict(
                        id=education_id(one.ids, name), dimension=name, score=int(next(scores)), reason="so"
                    )
                    for name in DIMENSIONS
                ),
            ),
        )
        for one in units.values()
    ]
    found = result(readings, judgements, units)
    assert pair_of(found, "sentence").nominal.kappa.value == pytest.approx(theirs.cohen_kappa_score(read, judged))
    education = pair_of(found, "education")
    assert education.nominal.kappa.value == pytest.approx(theirs.cohen_kappa_score(scores_read, scores_judged))
    assert education.ordered.kappa_quadratic.value == pytest.approx(
        theirs.cohen_kappa_score(scores_read, scores_judged, weights="quadratic")
    )
    assert education.ordered.kappa_linear.value == pytest.approx(
        theirs.cohen_kappa_score(scores_read, scores_judged, weights="linear")
    )
    assert education.ordered.alpha_ordinal.value == pytest.approx(
        krippendorff.alpha([scores_read, scores_judged], level_of_measurement="ordinal")
    )


def test_several_readers_with_gaps():
    units = make("steps")
    ids = [(one.case, unit.id) for one in units.values() for unit in one.units]
    truth = CHANCE.random(len(ids)) < 0.8
    table = np.array([noisy(truth, np.array([True, False])) for _ in range(3)], dtype=float)
    table[CHANCE.random(table.shape) < 0.3] = np.nan
    readings = [
        Reading(reader=f"r{k}", unit=unit, case=case, labels={"factual": bool(value)})
        for k, row in enumerate(table)
        for (case, unit), value in zip(ids, row, strict=True)
        if not np.isnan(value)
    ]
    found = result(readings, [], units)
    (panel,) = [one for one in found.panels if one.aspect == "factual"]
    assert panel.agreement.alpha.value == pytest.approx(krippendorff.alpha(table, level_of_measurement="nominal"))
    grades = CHANCE.integers(0, 3, (2, len(ids)))
    scored = [
        Reading(reader=f"r{k}", unit=unit, case=case, labels={"education": int(value)})
        for k, row in enumerate(grades)
        for (case, unit), value in zip(ids, row, strict=True)
    ]
    (panel,) = result(scored, [], units).panels
    assert panel.agreement.alpha.value == pytest.approx(krippendorff.alpha(grades, level_of_measurement="ordinal"))
    assert len([pair for pair in found.pairs if pair.kind == "reader–reader" and pair.aspect == "factual"]) == 3
