"""Cases over many models."""

import numpy as np
import pytest

from medthink.stats import item_table, suspect_keys


def answers(rng, models, cases):
    hard = rng.normal(0, 1.5, size=cases)
    skill = np.linspace(-1, 1, models)[:, None]
    return hard, (rng.random((models, cases)) < 1 / (1 + np.exp(hard - skill))).astype(float)


def test_shrinking_brings_the_share_right_nearer_to_the_truth():
    rng = np.random.default_rng(1)
    hard, table = answers(rng, 10, 400)
    skill = np.linspace(-1, 1, 10)[:, None]
    truth = (1 / (1 + np.exp(hard - skill))).mean(axis=0)
    found = {one.case: one for one in item_table(table, cases=range(400), leaders=[9, 8]).cases}
    raw = np.sqrt(np.mean((table.mean(axis=0) - truth) ** 2))
    shrunk = np.sqrt(np.mean([(found[k].shrunk - truth[k]) ** 2 for k in range(400)]))
    assert shrunk < raw
    assert all(one.discrimination is None for one in found.values())


def test_the_share_right_of_models_with_several_runs_stays_between_none_and_all():
    # Five models, one of them right in two of its three runs: Student's interval began at -23.7 %.
    found = item_table([[0.0], [0.0], [0.0], [0.0], [2 / 3]], cases=[1], leaders=[4]).cases[0].right
    assert 0 < found.low < found.value == pytest.approx(2 / 15)
    assert 0.3 < found.high < 1


def test_discrimination_is_told_from_twenty_models_on_and_shrunk():
    rng = np.random.default_rng(2)
    _, table = answers(rng, 40, 60)
    table[:, 0] = np.repeat([0.0, 1.0], 20)
    table[:, 1] = 1.0
    found = {one.case: one for one in item_table(table, cases=range(60), leaders=[39]).cases}
    assert found[0].discrimination.value == max(
        one.discrimination.value for one in found.values() if one.discrimination is not None
    )
    assert found[1].discrimination is None


def test_cases_that_separate_the_leaders_are_those_they_split_on():
    table = np.array([[1, 1, 0, 0.0], [1, 0, 1, 0.0], [0, 0, 0, 0.0]])
    found = {one.case: one for one in item_table(table, cases=[1, 2, 3, 4], leaders=[0, 1]).cases}
    assert [one for one in found if found[one].is_separating] == [2, 3]
    assert found[4].difficulty > found[1].difficulty


def test_a_key_is_suspect_when_all_the_best_name_the_same_other_option():
    models = [f"m{k}" for k in range(7)]
    keys = {1: "A", 2: "A", 3: "A", 4: "A"}
    said = {1: "B", 2: "A", 3: "C", 4: "B"}
    votes = {model: dict(said) for model in models}
    votes["m0"][3] = "D"
    votes["m1"][4] = None
    found = suspect_keys(votes, keys, accuracies=dict.fromkeys(models, 0.8))
    assert [(one.case, one.voted, one.votes) for one in found.listed] == [(1, "B", 7)]
    assert found.false_share["5 %"] == pytest.approx(0.09, abs=0.01)
    assert found.false_share["2 %"] == pytest.approx(0.21, abs=0.01)
    assert suspect_keys({k: votes[k] for k in models[:5]}, keys, accuracies=dict.fromkeys(models, 0.8)) is None


def test_the_interval_of_discrimination_covers_what_many_models_show():
    rng = np.random.default_rng(5)
    kept = []
    for _ in range(6):
        slopes, hard = np.exp(rng.normal(0, 0.5, 40)), rng.normal(0, 1.2, 40)

        def draw(models, slopes=slopes, hard=hard):
            skill = rng.normal(0.5, 1, size=(models, 1))
            return (rng.random((models, 40)) < 1 / (1 + np.exp(-slopes * (skill - hard)))).astype(float)

        many = draw(3000)
        rest = (many.sum(axis=1, keepdims=True) - many) / 39
        for one in item_table(draw(30), cases=range(40), leaders=[]).cases:
            if one.discrimination is not None:
                truth = np.corrcoef(many[:, one.case], rest[:, one.case])[0, 1]
                kept.append(one.discrimination.low <= truth <= one.discrimination.high)
    assert np.mean(kept) > 0.92
