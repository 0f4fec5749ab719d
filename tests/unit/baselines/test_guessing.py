"""Guessers find planted shortcuts, find nothing in clean data, and see only what they may see."""

from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from medthink.baselines import guesser as guessers
from medthink.baselines.guesser import Guesser, cross_validated, most_probable, train_guesser
from medthink.baselines.option_features import SHAPE_SIZE, shapes_of
from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case, Question
from medthink.core.errors import UsageError
from medthink.stats import wilson


def accuracy(guesser: Guesser, cases: Sequence[Case]) -> float:
    ranked = guesser.rank_all([case.question for case in cases])
    return sum(most_probable(ranks) == case.reference.answer for ranks, case in zip(ranked, cases, strict=True)) / len(
        cases
    )


@pytest.mark.parametrize("inputs", ["options", "question"])
def test_a_length_leak_is_found_and_clean_options_are_not(
    inputs: str, clean_texts: Benchmark, leaky_texts: Benchmark
) -> None:
    assert accuracy(train_guesser(leaky_texts["train"], inputs), list(leaky_texts["test"])) > 0.7
    clean = round(300 * accuracy(train_guesser(clean_texts["train"], inputs), list(clean_texts["test"])))
    interval = wilson(clean, 300, level=0.999)
    assert interval.low < 0.2 < interval.high


def test_a_history_leak_is_found_by_the_question_alone(clean_texts: Benchmark) -> None:
    def leak(case: Case) -> Case:
        # No word of the option: the guesser has to learn which sign goes with which diagnosis.
        sign = f"sign{case.reference.answer_text.split()[0][:3]}"
        return replace(case, question=replace(case.question, history=f"{case.question.history} {sign} was noted."))

    train, test = map(leak, clean_texts["train"]), [leak(case) for case in clean_texts["test"]]
    assert accuracy(train_guesser(list(train), "question"), test) > 0.7
    assert accuracy(train_guesser(map(leak, clean_texts["train"]), "options"), test) < 0.3


def test_the_answer_spelt_out_in_the_history_is_found_for_diagnoses_never_seen(clean_texts: Benchmark) -> None:
    def tell(case: Case, salt: str) -> Case:
        options = {letter: f"{text.split()[0]}{salt}{case.id}" for letter, text in case.question.options.items()}
        history = f"Known {options[case.reference.answer]}."
        return replace(case, question=replace(case.question, history=history, options=options))

    train = [tell(case, "x") for case in clean_texts["train"]]
    test = [tell(case, "y") for case in clean_texts["test"]]
    assert accuracy(train_guesser(train, "question"), test) > 0.95


def test_images_help_only_the_guesser_that_may_look(toy: Benchmark) -> None:
    test = list(toy["test"])
    assert accuracy(train_guesser(toy["train"], "images"), test) > 0.4
    blind = [replace(case, question=replace(case.question, images=())) for case in test]
    options_only = train_guesser(toy["train"], "options")
    assert [options_only.rank(case.question) for case in test] == [options_only.rank(case.question) for case in blind]
    assert sum(train_guesser(blind, "images").rank(blind[0].question).values()) == pytest.approx(1)


def test_probabilities_follow_the_option_not_the_letter(leaky_texts: Benchmark) -> None:
    guesser = train_guesser(leaky_texts["train"], "options")
    for case in list(leaky_texts["test"])[:20]:
        ranks = guesser.rank(case.question)
        assert sum(ranks.values()) == pytest.approx(1)
        assert list(ranks) == list(case.question.options)
        texts = list(case.question.options.values())
        turned = guesser.rank(Question("", (), dict(zip("ABCDE", texts[2:] + texts[:2], strict=True))))
        assert list(turned.values()) == pytest.approx([ranks[letter] for letter in "CDEAB"], abs=1e-5)


def test_a_guesser_ranks_any_number_of_options(leaky_texts: Benchmark) -> None:
    guesser = train_guesser(leaky_texts["train"], "question")
    assert guesser.rank(Question("", (), {"A": ""})) == {"A": 1.0}
    assert len(guesser.rank(Question("x", (), {letter: "same" for letter in "ABCDEFG"}))) == 7


def test_cross_validation_guesses_each_case_from_the_others(leaky_texts: Benchmark) -> None:
    cases = list(leaky_texts["test"])
    broken = replace(cases[0], id=99999, reference=replace(cases[0].reference, answer="Z"))
    guesses = cross_validated([*cases, broken], "options", folds=3, seed=1)
    assert [guess.case_id for guess in guesses] == [case.id for case in cases]
    right = sum(guess.letter == case.reference.answer for guess, case in zip(guesses, cases, strict=True))
    assert right / len(cases) > 0.7
    assert all(most_probable(guess.probabilities) == guess.letter for guess in guesses)
    assert guesses == cross_validated([*cases, broken], "options", folds=3, seed=1)


def test_cross_validation_does_not_know_its_own_case(clean_texts: Benchmark) -> None:
    # Each right option carries a word of its own: known by heart it gives everything away, from the others nothing.
    cases = []
    for case in list(clean_texts["test"])[:100]:
        texts = {letter: f"{'xyz'[case.id % 3]}{seat}" for seat, letter in enumerate("ABCDE", start=case.id * 10)}
        cases.append(replace(case, question=replace(case.question, options=texts)))
    guesses = cross_validated(cases, "options", folds=5)
    right = sum(guess.letter == case.reference.answer for guess, case in zip(guesses, cases, strict=True))
    assert right < 40


def test_too_few_cases_are_refused() -> None:
    with pytest.raises(UsageError, match="no case to learn from"):
        train_guesser([], "options")
    with pytest.raises(UsageError, match="folds over 0"):
        cross_validated([], "options")


def test_shapes_compare_an_option_with_its_rivals() -> None:
    shapes = shapes_of(["Abc", "Abc (def), with ghi", "Abc def"])
    assert shapes.shape == (3, SHAPE_SIZE)
    assert shapes[1, 0] > shapes[2, 0] > shapes[0, 0]
    assert (shapes_of(["same", "same"])[:, :2] == 0).all()


def test_weights_are_those_of_a_logistic_regression_on_the_differences(clean_texts: Benchmark) -> None:
    rng = np.random.default_rng(0)
    cases = list(clean_texts["train"])[:60]
    rows = sparse.random(300, 40, density=0.3, random_state=0, format="csr", dtype=np.float32)
    right = rng.integers(0, 5, 60)
    better, worse = guessers._pair_off(cases, right)
    differences = np.asarray((rows[better] - rows[worse]).todense())
    signs = np.where(np.arange(len(differences)) % 2, -1.0, 1.0)
    theirs = LogisticRegression(C=0.3, fit_intercept=False, tol=1e-6).fit(differences * signs[:, None], signs).coef_[0]
    ours = guessers._fit_weights([rows[:100], rows[100:]], cases, right)
    np.testing.assert_allclose(ours, theirs, atol=0.02)
