"""The task recall: what is hidden is in nothing that is sent, and each reply is read by itself."""

import asyncio

import pytest

from medthink.cases.case import Question
from medthink.core.errors import UsageError
from medthink.models.request import Reply
from medthink.workflow.ask import Unanswered, Unparsed
from medthink.workflow.condition import Condition
from medthink.workflow.parsing import parse_letters, parse_number
from medthink.workflow.tasks import count_calls, default_condition, find_task, has_letters
from medthink.workflow.view import NO_CUES
from scripted_case import ScriptedAsk, make_question

CONDITION = default_condition("recall")


def question(number=0):
    return Question(f"Patient {number}.", (), {letter: f"Disease {letter}{number}" for letter in "ABCDE"})


def recall(asked, say):
    ask = ScriptedAsk(say)
    return asyncio.run(find_task("recall", CONDITION).run(asked, NO_CUES, ask, CONDITION)), ask.prompts


def remember(asked):
    def say(prompt):
        match prompt.kind:
            case "hidden_option":
                return {"option": next(iter(set(asked.options.values()) - set(prompt.question.options.values())))}
            case "option_letters":
                letters = {text: letter for letter, text in asked.options.items()}
                return {"letters": [letters[text] for text in prompt.question.options.values()]}
        return {"case_number": "Case number 4711"}

    return say


def test_a_model_with_a_memory_is_read_back_in_the_file_s_letters():
    asked = question()
    outcome, prompts = recall(asked, remember(asked))
    said = outcome.recollection
    assert outcome.state == "ok"
    assert said.option == said.option_reordered == asked.options[said.hidden]
    assert (said.letters, said.number) == ({letter: letter for letter in "ABCDE"}, 4711)
    assert count_calls("recall", CONDITION, 0) == len(prompts) == 4


def test_the_hidden_option_is_in_nothing_that_is_sent_with_it():
    hidden_letters = set()
    for number in range(40):
        asked = question(number)
        outcome, prompts = recall(asked, remember(asked))
        hidden_letters.add(outcome.recollection.hidden)
        text = asked.options[outcome.recollection.hidden]
        for prompt in prompts[:2]:
            assert text not in repr(prompt) and text not in "".join(map(str, prompt.parts))
            assert sum(option in prompt.parts[0] for option in asked.options.values()) == 4
        assert prompts[0].parts != prompts[1].parts or list(prompts[1].question.options) == list("ABCDE")
    assert hidden_letters == set("ABCDE")  # drawn without regard to the right one


def test_what_one_call_loses_leaves_the_others():
    def say(prompt):
        if prompt.kind == "case_number":
            raise Unanswered("refused", "no")
        return remember(question())(prompt)

    outcome, _ = recall(question(), say)
    assert (outcome.state, outcome.detail) == ("refused", "no")
    assert outcome.recollection.number is None and outcome.recollection.letters is not None


def test_a_reply_that_cannot_be_read_is_a_state_and_the_rest_is_kept():
    def say(prompt):
        return {"letters": ["A", "B"]} if prompt.kind == "option_letters" else remember(question())(prompt)

    outcome, _ = recall(question(), say)
    assert (outcome.state, outcome.detail) == ("unparsed", "2 letters for 5 options")
    assert outcome.recollection.letters is None and outcome.recollection.number == 4711


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ('{"case_number": "12345"}', 12345),
        ('{"case_number": "unknown"}', None),
        ("I do not remember it.", None),
        ('{"case_number": "Case number 12345"}', 12345),
    ],
)
def test_numbers_are_read_or_said_not_to_be_known(text, number):
    assert parse_number(Reply(text=text)) == number


def test_several_numbers_commit_to_none():
    assert parse_number(Reply(text='{"case_number": "12 or 13"}')) == Unparsed("several numbers")


@pytest.mark.parametrize("text", ['{"letters": ["B", "A", "C", "E", "D"]}', "B, A, C, E, D", "```\nB A C E D\n```"])
def test_letters_are_read_in_their_order(text):
    assert parse_letters(Reply(text=text), "ABCDE") == list("BACED")


@pytest.mark.parametrize("text", ['{"letters": "BACED"}', '{"letters": ["B", "A", "C", "E", "X"]}', '{"order": 1}'])
def test_letters_that_cannot_be_matched_are_none(text):
    assert isinstance(parse_letters(Reply(text=text), "ABCDE"), Unparsed)


@pytest.mark.parametrize(
    "fields", [{"show_options": False}, {"option_order": "seeded"}, {"summary": "expert"}, {"samples": 2}]
)
def test_conditions_that_would_help_or_leave_nothing_are_refused(fields):
    with pytest.raises(UsageError, match="recall"):
        find_task("recall", Condition(**({"findings": "none", "summary": "none"} | fields)))


def test_recall_ends_in_no_letter_and_shows_no_image_unless_asked():
    assert not has_letters("recall", CONDITION) and has_letters("answer", Condition())
    assert CONDITION.image_share == 0
    assert make_question(2).images


def test_a_case_without_options_fails_alone_and_nothing_is_asked():
    outcome, prompts = recall(Question("Patient.", (), {}), lambda prompt: {})
    assert (outcome.state, prompts) == ("failed", []) and "no options" in outcome.detail
