"""Asking a judge through the ledger: unusable replies are asked for again, and in the end count as `Unjudged`."""

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from medthink.core.errors import Declined
from medthink.judge.judgement import Setting
from medthink.judge.verdicts import Unjudged
from medthink.judge.voices import voice_of
from medthink.models.request import EXAMPLE_SCHEMA, Reply, Request, TextPart
from medthink.runs.asking import Desk
from medthink.runs.forms import MAX_TRIES, FormAsker
from medthink.runs.prediction import Spent
from medthink.workflow.ask import Unanswered
from medthink.workflow.condition import Condition
from medthink.workflow.forms import Fault, FormPrompt

MAX_REPEATS = 1000

Read = TypeVar("Read")


class Heard(msgspec.Struct, Generic[Read], frozen=True, kw_only=True):
    """The outcome of a judge's replies, and what they cost."""

    result: Read | Unjudged
    model: str
    spent: tuple[Spent, ...]


class Hearing:
    """One judge: how it is asked, and which models it must not turn out to be."""

    def __init__(self, desk: Desk[FormPrompt], setting: Setting, condition: Condition, barred: frozenset[str]) -> None:
        self.desk = desk
        self._asker = FormAsker(desk, example_request(setting), condition)
        self._barred = barred

    async def hear(
        self, prompt: FormPrompt, read: Callable[[str], Read | Fault], *, case_id: int, repeat: int, rounds: int = 0
    ) -> Heard[Read]:
        """Ask until a reply can be used; after the last try, its fault is recorded as the reason for no verdict.

        `rounds` counts how often the whole series of tries was made before.
        """

        def read_reply(reply: Reply) -> Read | Fault:
            self._refuse_self(reply.model)
            _refuse_cut(reply)
            return read(reply.text)

        first = (rounds * MAX_REPEATS + repeat) * MAX_TRIES
        told = await self._asker.ask(prompt, read_reply, case_id=case_id, first_sample=first)
        return Heard(result=_or_unjudged(told.result), model=told.model, spent=told.spent)

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


def _refuse_cut(reply: Reply) -> None:
    if reply.stop == "truncated":
        raise Unanswered("truncated", "the judge's reply was cut off")
    if reply.stop != "end":
        raise Unanswered("refused", f"the judge's reply was {reply.stop}")


def _or_unjudged(result: Read | Fault | Unanswered) -> Read | Unjudged:
    match result:
        case Fault(kind=kind, complaint=complaint):
            return Unjudged(kind, complaint)
        case Unanswered(state=("refused" | "truncated" | "failed") as state, detail=detail):
            return Unjudged(state, detail)
        case Unanswered(detail=detail):
            return Unjudged("failed", detail)
    return result
