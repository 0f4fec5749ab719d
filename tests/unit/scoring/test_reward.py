"""What a reply earns: the letter, the process, and nothing by evading them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import medthink
from medthink.bridges.training import expert_reply
from medthink.cases.case import Case
from medthink.scoring.reward import RewardKey, reward, reward_by_key

KEY = RewardKey(
    task="twi",
    answer="B",
    options={"A": "Pneumonia", "B": "Lymphoma", "C": "Sarcoidosis"},
    findings=("There is a large left pleural effusion.", "Image 2."),
    summary="Large left pleural effusion and no pneumothorax.",
)


def steps(answer: str = "B", findings: Any = None, summary: str = KEY.summary) -> str:
    return json.dumps(
        {
            "step1_per_image_findings": list(KEY.findings) if findings is None else findings,
            "step2_integrated_summary": summary,
            "step3_differential_reasoning": "Because.",
            "answer": answer,
        }
    )


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return next(iter(medthink.synth(tmp_path_factory.mktemp("phantom") / "bench", cases=4)))


def test_the_experts_own_reply_earns_all(case: Case) -> None:
    for task in ("answer", "twi"):
        earned = reward(case, json.dumps(expert_reply(case, task)), task=task)
        assert earned.letter == 1.0 and earned.state == "ok"
        if task == "twi":
            assert earned.process == earned.total == 1.0


def test_letter_and_process_add_up() -> None:
    right, wrong = reward_by_key(KEY, steps("B")), reward_by_key(KEY, steps("A"))
    assert (right.total, right.letter, right.process) == (1.0, 1.0, 1.0)
    assert (wrong.letter, wrong.process) == (0.0, 1.0) and wrong.total == pytest.approx(0.2)
    assert reward_by_key(KEY, steps("A"), process_weight=0.5).total == pytest.approx(0.5)
    contrary = reward_by_key(KEY, steps(summary="No pleural effusion; a large right pneumothorax."))
    assert contrary.process == pytest.approx(0.5)


@pytest.mark.parametrize(
    "reply",
    [
        steps(findings=["one"]),
        steps(findings=["Un épanchement pleural gauche.", "…"], summary="Großer Pleuraerguss links."),
        steps(findings=["Nothing to say.", "Nothing."], summary="See above."),
        '{"explanation": "Because.", "answer": "B"}',
        "The answer is B.",
    ],
)
def test_no_reply_evades_the_process(reply: str) -> None:
    earned = reward_by_key(KEY, reply)
    assert earned.process is not None and earned.process < 0.6 and earned.total < 1.0


def test_an_expert_text_that_states_nothing_does_not_count() -> None:
    silent = replace(KEY, findings=("Figure 1.", "Figure 2."), summary="See the figures.")
    assert reward_by_key(silent, steps("B")).process is None
    assert reward_by_key(silent, steps("B")).total == 1.0


def test_a_reply_that_commits_to_nothing_earns_nothing_and_says_so() -> None:
    earned = reward_by_key(KEY, "It could be A or B.")
    assert (earned.total, earned.state, earned.process) == (0.0, "unparsed", None) and earned.detail


def test_no_reply_is_no_answer(case: Case) -> None:
    assert reward(case, None) == reward(case, "")
    assert reward(case, None).state == "unparsed"


def test_the_form_of_a_reply_decides_where_no_task_is_named(case: Case) -> None:
    twi = json.dumps(expert_reply(case, "twi"))
    assert reward(case, twi) == reward(case, twi, task="twi")
    assert reward(case, "Answer: A") == reward(case, "Answer: A", task="answer")


@given(st.text(), st.sampled_from(["answer", "twi"]))
def test_any_text_has_a_reward_within_bounds(reply: str, task: Any) -> None:
    earned = reward_by_key(replace(KEY, task=task), reply)
    assert 0.0 <= earned.total <= 1.0
    assert earned == reward_by_key(replace(KEY, task=task), reply)


def test_the_door_opens_it() -> None:
    assert medthink.reward is reward
