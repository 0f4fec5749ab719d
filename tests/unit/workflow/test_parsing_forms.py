import json

import pytest

from medthink.models.request import Reply
from medthink.workflow.ask import Choice, Sections, SingleReplySteps, StepText, Unparsed
from medthink.workflow.parsing import parse_answer, parse_sections, parse_steps, parse_text
from medthink.workflow.prompts import SECTIONS
from scripted_case import make_question

QUESTION = make_question(2)
SIX = {name: f"About {name}." for name in SECTIONS}


def test_json_the_wire_already_read_is_used() -> None:
    reply = Reply(text="", json={"explanation": "why", "answer": "C"})
    assert parse_answer(reply, QUESTION.options) == Choice("C", "Lymphoma", "why", "strict")


def test_the_explanation_is_the_forms_or_the_whole_reply() -> None:
    loose = parse_answer(Reply(text='So: {"explanation": "why", "answer": "c"}'), QUESTION.options)
    prose = parse_answer(Reply(text="Bulky nodes.\nAnswer: C"), QUESTION.options)
    assert loose == Choice("C", "Lymphoma", "why", "lenient")
    assert prose == Choice("C", "Lymphoma", "Bulky nodes.\nAnswer: C", "lenient")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"findings": "A mass."}', StepText("A mass.", "strict")),
        ('```json\n{"findings": "A mass."}\n```', StepText("A mass.", "lenient")),
        ('{"findings": "A mass.", "note": "x"}', StepText("A mass.", "lenient")),
        ("A mass in the left lobe.", StepText("A mass in the left lobe.", "lenient")),
        ("<think>hm</think>A mass.", StepText("A mass.", "lenient")),
        ("```\nA mass.\n```", StepText("A mass.", "lenient")),
        ("", Unparsed("an empty text")),
        ('{"findings": "  "}', Unparsed("an empty text")),
        ('{"summary": "A mass."}', Unparsed('a JSON object without "findings"')),
        ('{"findings": ["A mass."]}', Unparsed('a JSON object without "findings"')),
        ('{"findings": "A mass, cut of', Unparsed("a broken JSON object")),
        ("<think>still", Unparsed("the reply ends while still thinking")),
    ],
)
def test_texts(text: str, expected: object) -> None:
    assert parse_text(Reply(text=text), "findings") == expected


def test_steps_in_their_form() -> None:
    form = {
        "step1_per_image_findings": ["one", "two"],
        "step2_integrated_summary": "both",
        "step3_differential_reasoning": "why",
        "answer": "D",
    }
    strict = parse_steps(Reply(text=json.dumps(form)), QUESTION.options, len(QUESTION.images))
    loose = parse_steps(Reply(text=f"Here: {json.dumps(form)}"), QUESTION.options, len(QUESTION.images))
    for steps, mode in ((strict, "strict"), (loose, "lenient")):
        assert steps == SingleReplySteps(
            (StepText("one", mode), StepText("two", mode)),
            StepText("both", mode),
            Choice("D", "Silicosis", "why", mode),
        )


def test_steps_that_are_missing_are_named() -> None:
    steps = parse_steps(
        Reply(text='{"step1_per_image_findings": ["one", ""], "answer": "D"}'), QUESTION.options, len(QUESTION.images)
    )
    assert steps == SingleReplySteps(
        None,
        None,
        Choice("D", "Silicosis", '{"step1_per_image_findings": ["one", ""], "answer": "D"}', "lenient"),
        "step 1: an image without a finding; step 2: no text",
    )
    assert parse_steps(Reply(text="No idea."), QUESTION.options, len(QUESTION.images)) == Unparsed("no answer stated")


def test_sections_in_their_form() -> None:
    assert parse_sections(Reply(text=json.dumps(SIX))) == Sections(SIX, "strict")
    assert parse_sections(Reply(text=f"```json\n{json.dumps(SIX)}\n```")) == Sections(SIX, "lenient")
    listed = parse_sections(Reply(text=json.dumps(SIX | {"teaching_points": ["One.", "Two."]})))
    assert listed == Sections(SIX | {"teaching_points": "1. One.\n2. Two."}, "strict")


@pytest.mark.parametrize("head", ["## {}\n", "**{}**\n", "**{}:** ", "{}:\n", "1. {}\n", "{}\n"])
def test_sections_under_headings(head: str) -> None:
    titles = [name.replace("_", " ").title() for name in SECTIONS]
    titles[-1] = "Take-Home Message"
    text = "\n\n".join(head.format(title) + SIX[name] for title, name in zip(titles, SECTIONS, strict=True))
    assert parse_sections(Reply(text=text)) == Sections(SIX, "lenient")


def test_sections_must_all_be_there_once() -> None:
    missing = {name: text for name, text in SIX.items() if name != "outcome"}
    assert parse_sections(Reply(text=json.dumps(missing))) == Unparsed("sections missing: outcome")
    assert parse_sections(Reply(text=json.dumps(SIX | {"outcome": " "}))) == Unparsed("sections missing: outcome")
    twice = "\n".join(f"## {name.replace('_', ' ')}\ntext" for name in (*SECTIONS, "outcome"))
    assert parse_sections(Reply(text=twice)) == Unparsed("sections missing: outcome")
    assert isinstance(parse_sections(Reply(text="I cannot help with that.")), Unparsed)


@pytest.mark.parametrize(
    ("text", "name", "mode"),
    [
        ('{"explanation": "why", "answer": "Pulmonary sarcoidosis"}', "Pulmonary sarcoidosis", "strict"),
        ('```json\n{"explanation": "why", "answer": "Pulmonary sarcoidosis"}\n```', "Pulmonary sarcoidosis", "lenient"),
        ("Pulmonary sarcoidosis", "Pulmonary sarcoidosis", "lenient"),
        ("**Pulmonary sarcoidosis.**", "Pulmonary sarcoidosis", "lenient"),
        ("The most likely diagnosis is pulmonary sarcoidosis.", "pulmonary sarcoidosis", "lenient"),
        ("The diagnosis is E. coli pyelonephritis because of the fever.", "E. coli pyelonephritis", "lenient"),
        ("Nodes.\n\nFinal diagnosis: Sarcoidosis\n\nDiagnosis: other things", "Sarcoidosis", "lenient"),
        ("Diagnosis: Sarcoidosis. The nodes are symmetric.", "Sarcoidosis", "lenient"),
        ("<think>TB?</think>Answer: Sarcoidosis", "Sarcoidosis", "lenient"),
    ],
)
def test_without_options_a_diagnosis_is_read(text: str, name: str, mode: str) -> None:
    parsed = parse_answer(Reply(text=text), {})
    assert isinstance(parsed, Choice), parsed
    assert (parsed.letter, parsed.text, parsed.mode) == (None, name, mode)


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"explanation": "why", "answer": ""}',
        "Diagnosis: Sarcoidosis\nDiagnosis: Lymphoma",
        "There are nodes in both hila.\nThe lungs are clear.",
        "The diagnosis is not sarcoidosis" + " at all" * 100,
    ],
)
def test_without_options_nothing_is_guessed(text: str) -> None:
    assert isinstance(parse_answer(Reply(text=text), {}), Unparsed)
