"""Answer accuracy: nothing leaves the denominator unseen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medthink.metrics.answers import (
    STATES,
    GradedAnswer,
    answer_agreement,
    case_accuracies,
    count_answers,
    majority_answer,
    summarise_repeats,
)


def ok(letter: str, gold: str = "A") -> GradedAnswer:
    return GradedAnswer("ok", letter, gold)


def no(state: str, gold: str = "A") -> GradedAnswer:
    return GradedAnswer(state, None, gold)  # type: ignore[arg-type]


def test_headline_counts_what_is_not_ok_as_wrong() -> None:
    counted = count_answers([ok("A"), ok("B"), no("refused"), no("failed")])
    assert (counted.n, counted.right, counted.accuracy, counted.accuracy_answered) == (4, 1, 0.25, 0.5)
    assert counted.states == {"ok": 2, "unparsed": 0, "refused": 1, "truncated": 0, "failed": 1}


def test_a_letter_on_a_failed_outcome_is_not_an_answer() -> None:
    assert count_answers([GradedAnswer("truncated", "A", "A")]).right == 0
    assert majority_answer([GradedAnswer("truncated", "A", "A"), ok("B")]) == "B"


def test_nothing_is_unknown_not_zero() -> None:
    assert count_answers([]).accuracy is None
    assert count_answers([no("failed")]).accuracy_answered is None
    assert count_answers([no("failed")]).accuracy == 0
    empty = summarise_repeats({})
    assert (empty.mean, empty.consistency, empty.majority_accuracy) == (None, None, None)


def test_repeats() -> None:
    cases = {
        "one": [ok("A"), ok("A"), ok("B")],
        "two": [ok("B"), ok("B"), no("refused")],
        "tie": [ok("A"), ok("B")],
        "none": [no("failed"), no("failed")],
    }
    assert case_accuracies(cases) == {"one": pytest.approx(2 / 3), "two": 0, "tie": 0.5, "none": 0}
    result = summarise_repeats(cases)
    assert (result.n_cases, result.n_outcomes) == (4, 10)
    assert result.mean == pytest.approx((2 / 3 + 0.5) / 4)
    assert result.consistency == pytest.approx((1 / 3 + 1 / 3 + 0 + 0) / 4)
    assert (result.majority_right, result.majority_tied, result.majority_accuracy) == (1, 2, 0.25)


def test_one_outcome_says_nothing_of_consistency() -> None:
    assert answer_agreement([ok("A")]) is None
    assert answer_agreement([ok("B"), ok("B")]) == 1
    assert answer_agreement([no("failed"), no("failed")]) == 0


outcomes = st.lists(
    st.builds(GradedAnswer, st.sampled_from(STATES), st.sampled_from("ABCDE"), st.sampled_from("ABCDE"))
)


@given(outcomes)
def test_states_sum_to_n_and_headline_is_never_above_the_second_figure(listed: list[GradedAnswer]) -> None:
    counted = count_answers(listed)
    assert sum(counted.states.values()) == counted.n == len(listed)
    if counted.accuracy_answered is not None:
        assert counted.accuracy is not None and counted.accuracy <= counted.accuracy_answered
