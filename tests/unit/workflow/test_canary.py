"""Marks in every withheld field: none may reach anything that an unaided condition sends."""

import asyncio
import gc
import json
from itertools import product
from types import FunctionType, ModuleType
from typing import Any

import msgspec
import pytest

from medthink.cases.case import Case, Image, ImageReference, Question, Reference
from medthink.workflow.ask import Prompt
from medthink.workflow.condition import Condition
from medthink.workflow.tasks import TASKS, default_condition, find_task
from medthink.workflow.view import NO_CUES, Shown, expert_cues, show_under_condition
from scripted_case import ScriptedAsk, answer_well


class Bytes:
    """A store that knows an image by its path and holds nothing else."""

    def read(self, path: str) -> bytes:
        return b"pixels"

    def has(self, path: str) -> bool:
        return True


def marked_case(number: int) -> Case:
    """A case with a mark of its own in every field that is withheld, and in the names of its images."""
    letters = "ABCDE"
    images = tuple(
        Image(slot, f"MARK-id-{number}-{slot}", f"images/MARK-{number}-{slot}.jpg", Bytes()) for slot in range(1, 6)
    )
    options = {letter: f"Disease {letter}{number}" for letter in letters}
    reference = Reference(
        images=tuple(
            ImageReference(f"MARK-caption-{number}-{slot}", f"MARK-modality-{slot}", f"MARK-sub-{slot}")
            for slot in range(1, 6)
        ),
        findings=f"MARK-findings-{number}",
        discussion=f"MARK-discussion-{number}",
        # No real letter is so long: were the answer sent, it could not hide among the options.
        answer=f"MARK-answer-{number}",
        answer_text=f"MARK-answer-text-{number}",
        icd_chapter="MARK-chapter",
        icd_block="MARK-block",
        icd_category="MARK-category",
        is_longitudinal=True,
        timepoint_count=90210,
        interval_text="MARK-interval",
    )
    question = Question(f"Patient {number} with pain.", images, options)
    return Case(
        id=7_000_000 + number,
        title=f"MARK-title-{number}",
        split="MARK-split",
        question=question,
        reference=reference,
        image_count=5,
        extra={"MARK-extra": "MARK-extra"},
    )


CASE, DONOR = marked_case(1), marked_case(2)
MARKS = ("MARK", "90210", "7000001", "7000002")
BLIND = [
    {"image_share": share, "image_order": order, "show_history": history, "show_options": options, "swap_images": swap}
    for share, order, history, options, swap in product(
        (0, 0.4, 1), ("as_is", "reversed", "seeded"), (True, False), (True, False), (True, False)
    )
]
ORDERS = ["as_is", "seeded", 3]


def conditions(name: str) -> list[Condition]:
    default = default_condition(name)
    made = [msgspec.structs.replace(default, **fields) for fields in BLIND]
    made += [msgspec.structs.replace(default, option_order=order, image_choice="spread") for order in ORDERS]
    made += [msgspec.structs.replace(default, prompt_set="brief")]
    if name == "recall":  # it orders the options itself, and has nothing to ask without them
        return [one for one in made if one.show_options and one.option_order == "as_is"]
    if name == "twi":
        sources = product(("none", "self"), repeat=2)
        made += [msgspec.structs.replace(default, findings=findings, summary=summary) for findings, summary in sources]
        made += [msgspec.structs.replace(default, single_call=True, show_options=shown) for shown in (True, False)]
    return made


def shown_under(condition: Condition) -> Shown:
    return show_under_condition(condition, CASE.question, DONOR.question if condition.swap_images else None)


def prompts_under(name: str, condition: Condition) -> list[Prompt]:
    ask = ScriptedAsk(answer_well)
    cues = NO_CUES if condition.is_unaided else expert_cues(CASE.reference, condition, shown_under(condition))
    asyncio.run(find_task(name, condition).run(shown_under(condition).question, cues, ask, condition))
    return ask.prompts


def everything_sent(prompt: Prompt) -> str:
    schema = prompt.schema and [prompt.schema.name, prompt.schema.definition]
    texts = [part for part in prompt.parts if isinstance(part, str)]
    return "\n".join(
        [prompt.system, *texts, *map(repr, prompt.parts), *map(str, prompt.parts), json.dumps(schema), repr(prompt)]
    )


@pytest.mark.parametrize("name", TASKS)
def test_no_mark_reaches_any_prompt_of_any_blind_condition(name: str) -> None:
    for condition in conditions(name):
        assert condition.is_unaided
        prompts = prompts_under(name, condition)
        assert prompts
        for prompt in prompts:
            sent = everything_sent(prompt)
            assert not [mark for mark in MARKS if mark in sent], condition.label()
            assert ("Patient 1" in sent) == condition.show_history
            assert "Patient 2" not in sent


@pytest.mark.parametrize(
    ("name", "fields", "seen"),
    [
        ("answer", {"findings": "expert"}, "MARK-caption-1-1"),
        ("answer", {"summary": "expert"}, "MARK-findings-1"),
        ("twi", {"findings": "expert", "summary": "self"}, "MARK-caption-1-1"),
        ("twi", {"findings": "self", "summary": "expert"}, "MARK-findings-1"),
        ("discussion", {"summary": "expert"}, "MARK-findings-1"),
    ],
)
def test_the_marks_would_be_seen(name: str, fields: dict, seen: str) -> None:
    """The canary can sing: where an expert's words are asked for, they arrive, and they alone."""
    sent = "\n".join(everything_sent(prompt) for prompt in prompts_under(name, Condition(**fields)))
    assert seen in sent
    allowed = ("MARK-caption", "MARK-findings")
    for word in allowed:
        sent = sent.replace(word, "")
    assert "MARK" not in sent


def reachable(start: Any) -> list[Any]:
    """Every object that can be reached from `start` by reference; code and classes are not walked into."""
    seen: dict[int, Any] = {}
    queue = [start]
    while queue:
        thing = queue.pop()
        if id(thing) in seen or isinstance(thing, type | ModuleType | FunctionType):
            continue
        seen[id(thing)] = thing
        queue.extend(gc.get_referents(thing))
        if isinstance(thing, msgspec.Struct):
            # A case and its parts are hidden from the collector, which would find nothing in them.
            queue.extend(getattr(thing, field) for field in thing.__struct_fields__)
    return list(seen.values())


@pytest.mark.parametrize("fields", [{}, {"swap_images": True}, {"image_share": 0.4, "option_order": 2}])
def test_no_withheld_value_can_be_reached_from_a_shown_question(fields: dict) -> None:
    condition = Condition(**fields)
    found = reachable(shown_under(condition).question)
    assert any(thing is CASE.question.history for thing in found), "the walk must reach what is shown"
    # Ids and paths lead to the bytes, so they are there; what they say is checked above: nothing of it is sent.
    texts = [thing for thing in found if isinstance(thing, str) and not thing.startswith(("MARK-id", "images/"))]
    assert not [text for text in texts if any(mark in text for mark in MARKS)]
    assert not [thing for thing in found if isinstance(thing, Reference | ImageReference | Case)]


def test_prompts_know_no_more_than_the_question() -> None:
    for prompt in prompts_under("twi", default_condition("twi")):
        assert not [thing for thing in reachable(prompt) if isinstance(thing, Reference | ImageReference | Case)]
