"""Asking a judge through the ledger: unusable replies are asked for again, and in the end count as `Unjudged`."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec
from msgspec.structs import replace

from medthink.cases.case import Image
from medthink.core.errors import DataError, Declined
from medthink.judge.judgement import Setting
from medthink.judge.kinds import KINDS
from medthink.judge.prompts import JudgePrompt
from medthink.judge.verdicts import UnitVerdict, Unjudged, UnjudgedKind
from medthink.judge.voices import voice_of
from medthink.models.request import EXAMPLE_SCHEMA, ImagePart, Reply, Request, TextPart
from medthink.runs.asking import Desk, describe_bad_image, encode_image
from medthink.runs.prediction import Spent
from medthink.workflow.ask import Unanswered
from medthink.workflow.condition import Condition
from medthink.workflow.reply_forms import Fault

MAX_TRIES = 3
MAX_REPEATS = 1000

Read = TypeVar("Read")


class Heard(msgspec.Struct, Generic[Read], frozen=True, kw_only=True):
    """The outcome of a judge's replies, and what they cost."""

    result: Read | Unjudged
    model: str
    spent: tuple[Spent, ...]


class Hearing:
    """One judge: how it is asked, and which models it must not turn out to be."""

    def __init__(self, desk: Desk[JudgePrompt], setting: Setting, condition: Condition, barred: frozenset[str]) -> None:
        self.desk = desk
        self._setting = setting
        self._condition = condition
        self._barred = barred

    async def hear(
        self, prompt: JudgePrompt, read: Callable[[str], Read | Fault], *, case_id: int, repeat: int, rounds: int = 0
    ) -> Heard[Read]:
        """Ask until a reply can be used; after the last try, its fault is recorded as the reason for no verdict.

        `rounds` counts how often the whole series of tries was made before.
        """
        try:
            images = await asyncio.to_thread(self._encode, prompt)
        except DataError as error:
            return Heard(result=Unjudged("failed", describe_bad_image(error)), model="", spent=())
        spent: list[Spent] = []
        asked, model = prompt, ""
        outcome = Unjudged("failed", "never asked")
        for attempt in range(MAX_TRIES):
            try:
                # Every try is a call of its own, even where two are worded alike.
                request = self._request(asked, images, sample=(rounds * MAX_REPEATS + repeat) * MAX_TRIES + attempt)
                reply, cost = await self.desk.call(asked, request, case_id)
            except Unanswered as stop:
                kind: UnjudgedKind = "refused" if stop.state == "refused" else "failed"
                return Heard(result=Unjudged(kind, stop.detail), model=model, spent=tuple(spent))
            spent.append(cost)
            model = reply.model
            self._refuse_self(model)
            result = _read_reply(reply, read)
            if not isinstance(result, Fault):
                return Heard(result=result, model=model, spent=tuple(spent))
            outcome = Unjudged(result.kind, result.complaint)
            asked = prompt.again(result.complaint)
        return Heard(result=outcome, model=model, spent=tuple(spent))

    def _encode(self, prompt: JudgePrompt) -> dict[str, ImagePart]:
        images = [part for part in prompt.parts if isinstance(part, Image)]
        return {image.path: encode_image(image, self._condition) for image in images}

    def _request(self, prompt: JudgePrompt, images: dict[str, ImagePart], *, sample: int) -> Request:
        parts = tuple(images[part.path] if isinstance(part, Image) else TextPart(part) for part in prompt.parts)
        schema = prompt.schema if self._setting.use_schema else None
        return replace(example_request(self._setting), system=prompt.system, parts=parts, schema=schema, sample=sample)

    def _refuse_self(self, model: str) -> None:
        if voice_of(model) in self._barred:
            raise Declined(
                f"{self.desk.answerer.spec} reports that it is {model}, the model being judged",
                remedy="choose another judge, or add --allow-self",
            )


def example_request(setting: Setting) -> Request:
    """An almost empty request with the judges' settings, to see whether the provider accepts them."""
    return Request(
        parts=(TextPart("?"),),
        schema=EXAMPLE_SCHEMA if setting.use_schema else None,
        is_json_checked=False,
        max_tokens=setting.max_tokens,
        temperature=setting.temperature,
        effort=setting.effort,
    )


def _read_reply(reply: Reply, read: Callable[[str], Read | Fault]) -> Read | Fault | Unjudged:
    match reply.stop:
        case "truncated":
            return Unjudged("truncated", "the judge's reply was cut off")
        case "refused" | "filtered":
            return Unjudged("refused", f"the judge's reply was {reply.stop}")
        case "end":
            return read(reply.text)


def read_verdicts(text: str, prompt: JudgePrompt) -> tuple[UnitVerdict, ...] | Fault:
    """The verdicts of a reply to a prompt about units."""
    assert prompt.units is not None
    return KINDS[prompt.units.what].read_reply(text, prompt.call, prompt.units, prompt.evidence.names())
