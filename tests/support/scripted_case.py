"""A small question whose images are bytes in memory, and an `ask` that answers from a script."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from medthink.cases.case import Image, ImageReference, Question, Reference
from medthink.cases.images.fact_cache import Stamp, StampedStore
from medthink.models.request import Reply
from medthink.workflow.ask import Prompt, Unanswered


class Memory(StampedStore):
    """Images in memory."""

    place = "memory"

    def stamp(self, path: str) -> Stamp:
        return ()

    def read_stamped(self, path: str) -> tuple[bytes, Stamp]:
        return path.encode(), ()

    def problem(self, path: str) -> str:
        return ""

    def listing(self) -> dict[str, list[str]]:
        return {}


class ScriptedAsk:
    """Answers each prompt by `answer(prompt)`, which may raise Unanswered, and keeps every prompt."""

    def __init__(self, answer: Callable[[Prompt], Any]) -> None:
        self.answer = answer
        self.prompts: list[Prompt] = []

    async def __call__(self, prompt: Prompt) -> Reply:
        self.prompts.append(prompt)
        said = self.answer(prompt)
        return Reply(text=said if isinstance(said, str) else json.dumps(said))

    async def each(self, prompts: Iterable[Prompt]) -> list[Reply]:
        replies: list[Reply | None] = []
        stopped = None
        for prompt in prompts:
            try:
                replies.append(await self(prompt))
            except Unanswered as stop:
                replies.append(None)
                stopped = stopped or stop
        if stopped:
            raise Unanswered(stopped.state, stopped.detail, replies)
        return [reply for reply in replies if reply is not None]

    @property
    def kinds(self) -> list[str]:
        return [prompt.kind for prompt in self.prompts]


def make_question(count: int = 5, *, history: str = "A 40-year-old woman with cough.", prefix: str = "own") -> Question:
    images = tuple(
        Image(slot, f"{prefix}{slot}", f"images/case00001/{prefix}{slot}.jpg", Memory()) for slot in range(1, count + 1)
    )
    names = ("Sarcoidosis", "Tuberculosis", "Lymphoma", "Silicosis", "Metastases")
    return Question(history, images, dict(zip("ABCDE", names, strict=True)))


def make_reference(count: int = 5) -> Reference:
    images = tuple(ImageReference(f"caption {slot}", "CT", "axial") for slot in range(1, count + 1))
    return Reference(
        images=images,
        findings="expert summary",
        discussion="expert discussion",
        answer="C",
        answer_text="Lymphoma",
        icd_chapter="Chapter II",
        icd_block="C81-C96",
        icd_category="C81",
        is_longitudinal=False,
        timepoint_count=1,
        interval_text="",
    )


def answer_well(prompt: Prompt) -> dict[str, Any]:
    """A reply in the form that the prompt's schema asks for."""
    assert prompt.schema is not None
    reply: dict[str, Any] = {}
    for name, kind in prompt.schema.definition["properties"].items():
        if "enum" in kind:
            reply[name] = kind["enum"][1]
        elif kind["type"] == "array":
            reply[name] = [f"{name} {number}" for number, _ in enumerate(prompt.question.images, start=1)]
        else:
            reply[name] = f"{name} text"
    return reply
