import asyncio
from typing import Any

import pytest

from medthink.core.errors import UsageError
from medthink.workflow.ask import Choice, Prompt, StepText, Unanswered
from medthink.workflow.condition import Condition
from medthink.workflow.prediction import AnswerOutcome, DiscussionOutcome, TwiOutcome
from medthink.workflow.prompts import SECTIONS
from medthink.workflow.tasks import TASKS, default_condition, find_task, prompt_versions
from medthink.workflow.view import NO_CUES, Cues
from scripted_case import ScriptedAsk, answer_well, make_question

QUESTION = make_question(3)
TWI = default_condition("twi")
CHOICE = Choice("B", "Tuberculosis", "explanation text", "strict")


def run(name: str, ask: ScriptedAsk, *, condition: Condition | None = None, cues: Cues = NO_CUES, question=QUESTION):
    condition = condition or default_condition(name)
    return asyncio.run(find_task(name, condition).run(question, cues, ask, condition))


def test_answer_asks_once() -> None:
    ask = ScriptedAsk(answer_well)
    assert run("answer", ask) == AnswerOutcome(choice=CHOICE)
    assert ask.kinds == ["answer"]


def test_twi_asks_about_each_image_then_sums_up_then_decides() -> None:
    ask = ScriptedAsk(answer_well)
    note = StepText("findings text", "strict")
    assert run("twi", ask) == TwiOutcome(
        findings=(note, note, note), summary=StepText("summary text", "strict"), choice=CHOICE
    )
    assert ask.kinds == ["findings", "findings", "findings", "summary", "differential"]
    assert [prompt.image for prompt in ask.prompts[:3]] == list(QUESTION.images)
    assert ask.prompts[3].findings == ("findings text",) * 3
    assert (ask.prompts[4].findings, ask.prompts[4].summary) == (("findings text",) * 3, "summary text")


@pytest.mark.parametrize(
    ("findings", "summary", "kinds"),
    [
        ("none", "none", ["differential"]),
        ("none", "self", ["summary", "differential"]),
        ("self", "none", ["findings"] * 3 + ["differential"]),
        ("expert", "self", ["summary", "differential"]),
        ("self", "expert", ["findings"] * 3 + ["differential"]),
        ("expert", "expert", ["differential"]),
    ],
)
def test_twi_takes_each_step_from_where_the_condition_says(findings: str, summary: str, kinds: list) -> None:
    ask = ScriptedAsk(answer_well)
    cues = Cues(
        findings=("one", "two", "three") if findings == "expert" else None,
        summary="expert" if summary == "expert" else None,
    )
    thought = run("twi", ask, condition=Condition(findings=findings, summary=summary), cues=cues)
    assert ask.kinds == kinds
    last = ask.prompts[-1]
    assert last.findings == {"none": (), "self": ("findings text",) * 3, "expert": ("one", "two", "three")}[findings]
    assert last.summary == {"none": "", "self": "summary text", "expert": "expert"}[summary]
    # What an expert said is never recorded as the model's.
    assert (thought.findings is not None) == (findings == "self")
    assert (thought.summary is not None) == (summary == "self")


def test_twi_without_images_has_nothing_to_describe() -> None:
    ask = ScriptedAsk(answer_well)
    thought = run("twi", ask, question=make_question(0))
    assert ask.kinds == ["differential"]
    assert (thought.findings, thought.summary, thought.state) == ((), None, "ok")


def test_twi_in_a_single_call() -> None:
    ask = ScriptedAsk(answer_well)
    thought = run("twi", ask, condition=Condition(findings="self", summary="self", single_call=True))
    assert ask.kinds == ["twi"]
    assert [note.text for note in thought.findings] == [f"step1_per_image_findings {n}" for n in (1, 2, 3)]
    assert thought.summary.text == "step2_integrated_summary text"
    assert thought.choice.explanation == "step3_differential_reasoning text"
    assert thought.choice.letter == "B"


def test_a_single_call_with_the_wrong_number_of_findings_keeps_the_rest() -> None:
    ask = ScriptedAsk(lambda prompt: answer_well(prompt) | {"step1_per_image_findings": ["one", "two"]})
    thought = run("twi", ask, condition=Condition(findings="self", summary="self", single_call=True))
    assert (thought.state, thought.findings, thought.choice.letter) == ("ok", None, "B")
    assert thought.detail == "step 1: 2 findings for 3 images"


def test_discussion_has_six_sections() -> None:
    ask = ScriptedAsk(answer_well)
    discussed = run("discussion", ask)
    assert isinstance(discussed, DiscussionOutcome)
    assert list(discussed.sections.texts) == list(SECTIONS)
    assert ask.kinds == ["discussion"]


def stop_at(kind: str, state: Any, *, image: int | None = None):
    def answer(prompt: Prompt) -> Any:
        if prompt.kind == kind and (image is None or prompt.image == QUESTION.images[image]):
            raise Unanswered(state, "why")
        return answer_well(prompt)

    return ScriptedAsk(answer)


@pytest.mark.parametrize("state", ["refused", "truncated", "failed"])
def test_what_stops_a_step_ends_the_task_and_keeps_what_was_said(state: Any) -> None:
    note = StepText("findings text", "strict")
    at_summary = run("twi", stop_at("summary", state))
    assert at_summary == TwiOutcome(state=state, detail="why", findings=(note, note, note))
    at_end = run("twi", stop_at("differential", state))
    assert at_end == TwiOutcome(
        state=state, detail="why", findings=(note, note, note), summary=StepText("summary text", "strict")
    )
    at_image = run("twi", stop_at("findings", state, image=1))
    assert at_image == TwiOutcome(state=state, detail="why", findings=(note, None, note))
    assert run("answer", stop_at("answer", state)) == AnswerOutcome(state=state, detail="why")
    assert run("discussion", stop_at("discussion", state)) == DiscussionOutcome(state=state, detail="why")


def test_a_finding_that_cannot_be_read_ends_the_task() -> None:
    def answer(prompt: Prompt) -> Any:
        return "" if prompt.image == QUESTION.images[1] else answer_well(prompt)

    ask = ScriptedAsk(answer)
    thought = run("twi", ask)
    assert (thought.state, thought.detail) == ("unparsed", "image 2: an empty text")
    assert [note and note.text for note in thought.findings] == ["findings text", None, "findings text"]
    assert ask.kinds == ["findings"] * 3


def test_an_answer_that_commits_to_nothing_is_unparsed() -> None:
    assert run("answer", ScriptedAsk(lambda prompt: "Answer: A or B")) == AnswerOutcome(
        state="unparsed", detail="several answers: A, B"
    )
    thought = run("twi", ScriptedAsk(lambda p: "No idea." if p.kind == "differential" else answer_well(p)))
    assert (thought.state, thought.choice) == ("unparsed", None)
    assert thought.summary is not None


def test_without_options_the_diagnosis_is_a_text() -> None:
    question = type(QUESTION)(QUESTION.history, QUESTION.images, {})
    answered = run("answer", ScriptedAsk(answer_well), condition=Condition(show_options=False), question=question)
    assert answered.choice == Choice(None, "answer text", "explanation text", "strict")


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("answers", {}),
        ("answer", {"findings": "self"}),
        ("discussion", {"summary": "self"}),
        ("answer", {"single_call": True}),
        ("twi", {"single_call": True, "findings": "self"}),
        ("twi", {"single_call": True, "findings": "expert", "summary": "self"}),
    ],
)
def test_tasks_refuse_conditions_they_cannot_run_under(name: str, fields: dict) -> None:
    with pytest.raises(UsageError) as caught:
        find_task(name, Condition(**fields))
    assert caught.value.remedy


def test_prompt_versions_name_the_kinds_that_are_sent() -> None:
    for name, fields in [
        ("answer", {}),
        ("discussion", {}),
        ("twi", {"findings": "self", "summary": "self"}),
        ("twi", {"findings": "self"}),
        ("twi", {"findings": "self", "summary": "self", "single_call": True}),
    ]:
        ask = ScriptedAsk(answer_well)
        condition = Condition(**fields)
        run(name, ask, condition=condition)
        assert set(prompt_versions(name, condition)) == set(ask.kinds)


def test_every_task_runs_under_its_default() -> None:
    for name, task in TASKS.items():
        assert find_task(name, task.default) is task
