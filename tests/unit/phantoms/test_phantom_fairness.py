"""Without the images a phantom case is a guess, one image is not enough, all images decide."""

from itertools import pairwise
from statistics import mean

import numpy as np
import pytest

from medthink.phantoms.plan import plan_case
from medthink.phantoms.writer import make_phantom_row

SEED = 20
LETTERS = "ABCDE"


@pytest.fixture(scope="module")
def plans():
    return [plan_case(SEED, number) for number in range(1, 2001)]


@pytest.fixture(scope="module")
def rows():
    return [make_phantom_row(SEED, number, shortcut=False) for number in range(1, 2001)]


def oracle(plan, shots):
    """The chance of being right for a reader who knows the atlas and sees these images."""
    left = [d for d in plan.options if all(shot.axis is None or d.profile[shot.axis] == shot.sign for shot in shots)]
    assert plan.disease in left
    return 1 / len(left)


def test_an_oracle_needs_several_images(plans):
    assert mean(oracle(plan, ()) for plan in plans) == pytest.approx(0.2)
    assert mean(oracle(plan, plan.shots[:1]) for plan in plans) < 0.45
    assert max(oracle(plan, plan.shots[:1]) for plan in plans) == 0.5
    assert all(oracle(plan, plan.shots) == 1 for plan in plans)


def test_more_images_tell_more(plans):
    shares = [
        mean(oracle(plan, plan.shots[: round(len(plan.shots) * share)]) for plan in plans)
        for share in (0, 0.2, 0.4, 0.6, 0.8, 1)
    ]
    assert all(later > earlier + 0.02 for earlier, later in pairwise(shares))


def test_letters_and_length_ranks_are_even(rows):
    letters = [row["correct_answer"] for row in rows]
    assert all(letters.count(letter) == 400 for letter in LETTERS)
    ranks = [
        sorted(row["options"].values(), key=lambda text: (len(text), text)).index(row["correct_answer_text"])
        for row in rows
    ]
    assert all(ranks.count(rank) == 400 for rank in range(5))


def test_a_disease_is_right_in_a_fifth_of_the_cases_that_offer_it(plans):
    offered, right = {}, {}
    for plan in plans:
        right[plan.disease.name] = right.get(plan.disease.name, 0) + 1
        for disease in plan.options:
            offered[disease.name] = offered.get(disease.name, 0) + 1
    deviations = [(right.get(name, 0) - n / 5) / (0.16 * n) ** 0.5 for name, n in offered.items()]
    assert np.std(deviations) == pytest.approx(1, abs=0.25)
    assert max(map(abs, deviations)) < 4.5


def guess(rows, with_history):
    """Accuracy on the second half of a naive Bayes guesser trained on the first."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import BernoulliNB

    texts, right = [], []
    for row in rows:
        lengths = sorted(len(text) for text in row["options"].values())
        words = set(row["CLINICAL_HISTORY"].lower().split()) if with_history else ()
        for letter, text in row["options"].items():
            option = text.lower().replace(" ", "_")
            crossed = " ".join(f"{option}+{word}" for word in words)
            rank = f"rank{lengths.index(len(text))} characters{len(text) // 4} letter{letter}"
            texts.append(f"{text.lower()} {option} {rank} {crossed}")
            right.append(letter == row["correct_answer"])
    half = len(texts) // 2
    features = CountVectorizer(token_pattern=r"\S+", min_df=2, binary=True).fit_transform(texts)
    model = BernoulliNB().fit(features[:half], right[:half])
    scores = np.diff(model.predict_joint_log_proba(features[half:]), axis=1).reshape(-1, 5)
    return float(np.mean(scores.argmax(axis=1) == np.array(right[half:]).reshape(-1, 5).argmax(axis=1)))


@pytest.mark.parametrize("with_history", [False, True])
def test_a_trained_guesser_stays_at_chance(rows, with_history):
    # 1,000 cases: 99.9 % of guessers at chance lie within 4.2 points.
    assert guess(rows, with_history) == pytest.approx(0.2, abs=0.042)


def test_a_trained_guesser_finds_the_planted_shortcuts():
    planted = [make_phantom_row(SEED, number, shortcut=True) for number in range(1, 601)]
    assert guess(planted, with_history=False) > 0.6
    named = [
        row
        for row in planted
        if row["correct_answer_text"].split(" with")[0].lower() in row["CLINICAL_HISTORY"].lower()
    ]
    assert len(named) > 60
