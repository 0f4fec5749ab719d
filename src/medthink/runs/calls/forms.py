"""Asking for forms through the ledger: if a reply cannot be used, the model is asked again and told why."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from medthink.core.errors import DataError, UsageError
from medthink.core.jsonio import encode_json
from medthink.models.request import AttemptLog, ImagePart, ModelError, Reply, Request, Usage
from medthink.runs.calls.answerers import Answerer, CostsNothing, ReplayAnswerer, open_model_answerer
from medthink.runs.calls.asking import CallFailed, LedgerCallMaker, describe_bad_image, encode_images, fill_request
from medthink.runs.manifest import CallTerms
from medthink.workflow.ask import Unanswered
from medthink.workflow.condition import Condition
from medthink.workflow.forms import RULES, FormPrompt, ReplyFault
from medthink.workflow.prediction import CallCost

if TYPE_CHECKING:
    from medthink.models.transport import Transport
    from medthink.runs.calls.rehearsal import Rehearsal

MAX_TRIES = 3

Read = TypeVar("Read")


class FormOutcome(msgspec.Struct, Generic[Read], frozen=True, kw_only=True):
    """The form that was read, or why there is none; the model of the last reply, and the cost of all replies."""

    result: Read | ReplyFault | Unanswered
    model: str
    spent: tuple[CallCost, ...]


class FormAsker:
    """Asks one model; `example` has the settings of its calls, `condition` says how images are sent."""

    def __init__(self, desk: LedgerCallMaker[FormPrompt], example: Request, condition: Condition) -> None:
        self._desk = desk
        self._example = example
        self._condition = condition

    async def ask(
        self, prompt: FormPrompt, read: Callable[[Reply], Read | ReplyFault], *, case_id: int, first_sample: int = 0
    ) -> FormOutcome[Read]:
        """Ask until a reply can be used; if none can, the result is the last fault."""
        spent: list[CallCost] = []
        asked, model = prompt, ""
        result: Read | ReplyFault | Unanswered
        try:
            images = await self._encode(prompt)
            for attempt in range(MAX_TRIES):
                # Every try is a call of its own, even where two are worded alike.
                request = fill_request(self._example, asked, images, sample=first_sample + attempt)
                reply, cost = await self._desk.call(asked, request, case_id)
                spent.append(cost)
                model = reply.model
                result = read(reply)
                if not isinstance(result, ReplyFault):
                    break
                asked = prompt.again(result.complaint)
        except CallFailed as stop:
            spent.append(stop.spent)
            result = stop
        except Unanswered as stop:
            result = stop
        return FormOutcome(result=result, model=model, spent=tuple(spent))

    async def _encode(self, prompt: FormPrompt) -> dict[str, ImagePart]:
        try:
            return await asyncio.to_thread(encode_images, prompt.parts, self._condition)
        except DataError as error:
            raise Unanswered("failed", describe_bad_image(error)) from None


class RulesAnswerer(CostsNothing):
    """`baseline/rules`: replies by rules, in the same form as a model."""

    spec = RULES

    async def answer(self, prompt: FormPrompt, request: Request, log: AttemptLog) -> Reply:  # noqa: ARG002
        """Reply by rule."""
        if prompt.by_rules is None:
            raise ModelError("unsupported", f"{RULES} has no rules for a {prompt.kind} prompt")
        form = {"call": prompt.call} | msgspec.to_builtins(prompt.by_rules())
        return Reply(text=encode_json(form).decode(), json=form, usage=Usage(), model=RULES)

    async def close(self) -> None:
        """Nothing to close."""


def open_form_answerer(
    spec: str,
    terms: CallTerms,
    *,
    ledger: str,
    refusal: UsageError,
    transport: "Transport | None",
    rehearsal: "Rehearsal | None" = None,
) -> Answerer[FormPrompt]:
    """Open an answerer of forms; a baseline that answers cases is none and raises `refusal`.

    `ledger` is the name of the file that a replay is read from. In a rehearsal, a model needs no key and is not asked.
    """
    provider, _, name = spec.partition("/")
    if spec == RULES:
        return RulesAnswerer()
    if provider == "baseline":
        raise refusal
    if provider == "replay":
        return ReplayAnswerer(spec, Path(name), ledger)
    model = open_model_answerer(
        spec,
        base_urls=terms.base_urls,
        transport=transport,
        prices=terms.price_source,
        needs_key=rehearsal is None,
        is_batch=terms.batch,
    )
    return model if rehearsal is None else rehearsal.stand_in(model)
