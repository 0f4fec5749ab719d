"""The exact words that are sent, pinned: a change here is a new prompt version, and is made on purpose.

`UPDATE_SNAPSHOTS=1 pytest tests/snapshot` writes them anew.
"""

import json
import os
from pathlib import Path

import pytest

from medthink.cases.case import Question
from medthink.workflow.ask import Prompt
from medthink.workflow.prompts import load_prompts
from medthink.workflow.view import NO_CUES, Cues
from scripted_case import make_question

FOLDER = Path(__file__).parent / "prompts"
QUESTION = make_question(2)
OPEN = Question(QUESTION.history, QUESTION.images, {})
BARE = Question("", (), QUESTION.options)
UNSEEN = Question(QUESTION.history, (), QUESTION.options)
FINDINGS = ("A node.", "A second node.")
CUES = Cues(FINDINGS, "Two nodes.")


def render(prompt: Prompt) -> str:
    parts = [part if isinstance(part, str) else f"<image in slot {part.slot}>" for part in prompt.parts]
    schema = json.dumps(prompt.schema and [prompt.schema.name, prompt.schema.definition], indent=1)
    return "\n=====\n".join([prompt.system, *parts, schema]) + "\n"


def snapshots(name: str) -> dict[str, Prompt]:
    prompts = load_prompts(name)
    return {
        "answer": prompts.answer(QUESTION, NO_CUES),
        "answer_with_cues": prompts.answer(QUESTION, CUES),
        "answer_without_images_or_history": prompts.answer(BARE, NO_CUES),
        "answer_open": prompts.answer(OPEN, NO_CUES),
        "findings": prompts.findings(QUESTION, QUESTION.images[1]),
        "summary": prompts.summary(QUESTION, FINDINGS),
        "summary_without_findings": prompts.summary(QUESTION, None),
        "differential": prompts.differential(QUESTION, FINDINGS, "Two nodes."),
        "differential_open": prompts.differential(OPEN, FINDINGS, None),
        "twi": prompts.think_with_images(QUESTION),
        "twi_open": prompts.think_with_images(OPEN),
        "discussion": prompts.discussion(QUESTION, NO_CUES),
        "discussion_with_cues": prompts.discussion(QUESTION, CUES),
        "hidden_option": prompts.hidden_option(UNSEEN, "C"),
        "option_letters": prompts.option_letters(UNSEEN),
        "case_number": prompts.case_number(UNSEEN),
    }


@pytest.mark.parametrize("name", ["default", "brief"])
def test_the_words_are_as_pinned(name: str) -> None:
    for case, prompt in snapshots(name).items():
        path = FOLDER / name / f"{case}.txt"
        if os.environ.get("UPDATE_SNAPSHOTS"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(render(prompt), encoding="utf-8")
        assert render(prompt) == path.read_text(encoding="utf-8"), f"{name}/{case}"


def test_every_snapshot_is_used() -> None:
    for name in ("default", "brief"):
        assert {path.stem for path in (FOLDER / name).iterdir()} == set(snapshots(name))
