"""`ask` for one case: prompt to request, request through the ledger, reply or `Unanswered` back to the task."""

import asyncio
from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

from medthink.cases.case import Image
from medthink.cases.plain import plain_jpeg_size
from medthink.core.digest import digest_bytes, digest_value
from medthink.core.jsonio import canonical_json
from medthink.models.errors import ErrorKind, ModelError
from medthink.models.request import Attempt, ImagePart, MediaType, Reply, Request, TextPart
from medthink.runs.answerers import Answerer, Kinded
from medthink.runs.budget import Budget
from medthink.runs.ledger import Call, Ledger
from medthink.runs.prediction import Spent
from medthink.runs.progress import Tracker
from medthink.runs.siblings import SharedCall, Siblings
from medthink.workflow.ask import Prompt, Unanswered, Unfinished
from medthink.workflow.condition import Condition

# What is wrong with the whole run, not with this call: going on would only repeat it.
_STOPS_THE_RUN: frozenset[ErrorKind] = frozenset({"auth", "quota"})
_STATES: dict[str, Unfinished] = {"truncated": "truncated", "refused": "refused", "filtered": "refused"}


Asked = TypeVar("Asked", bound=Kinded)


class Caller(Protocol):
    """Whoever makes the calls of a case."""

    async def call(self, prompt: Prompt, request: Request, case_id: int) -> tuple[Reply, Spent]:
        """Answer the request, or raise Unanswered."""


class Desk(Generic[Asked]):
    """Where calls are made: answered from the ledger where they were made before, else asked and recorded.

    `places` bounds the calls in flight; desks that share them are bounded together. What a run of the same sweep has
    asked already (`siblings`) is taken over from it.
    """

    def __init__(
        self,
        answerer: Answerer[Asked],
        ledger: Ledger,
        budget: Budget,
        places: asyncio.Semaphore | None = None,
        tracker: Tracker | None = None,
        siblings: Siblings | None = None,
    ) -> None:
        self.answerer = answerer
        self.tracker = tracker or Tracker()
        self.made = 0
        self._ledger = ledger
        self._budget = budget
        self._places = places or asyncio.Semaphore(answerer.concurrency)
        self._stopped_by: ModelError | None = None
        self._under_way: dict[str, asyncio.Event] = {}
        self._siblings = siblings or Siblings()

    async def call(self, prompt: Asked, request: Request, case_id: int) -> tuple[Reply, Spent]:
        """Answer the request once and for all, or raise Unanswered."""
        call = call_for(self.answerer.spec, prompt, request, case_id)
        # A case may show an image twice: the same thing asked twice at once is one call.
        while (other := self._under_way.get(call.key)) is not None:
            await other.wait()
        if (found := self._ledger.finished(call.key)) is not None:
            self.tracker.counts.kept += 1
            return found.reply, _spent(found.id, found.reply, found.cost_usd)
        self._under_way[call.key] = done = asyncio.Event()
        try:
            if (shared := self._siblings.find(call.key)) is not None:
                return await self._take_over(call, shared)
            return await self._make(call, prompt, request)
        finally:
            del self._under_way[call.key]
            done.set()

    async def _take_over(self, call: Call, shared: SharedCall) -> tuple[Reply, Spent]:
        """Record a call that another run of the sweep made; it was paid for there."""
        reply, cost = shared.finished.reply, shared.finished.cost_usd
        intent = self._ledger.intend(call)
        self._ledger.note_attempt(call.key, shared.attempt())
        # Gathered in one turn of the loop, all of it is one transaction.
        _, settled = await asyncio.gather(intent, self._ledger.settle(call.key, reply, cost_usd=cost))
        self.tracker.counts.kept += 1
        self.tracker.counts.count_tokens(reply.usage)
        return reply, _spent(settled.id, reply, settled.cost_usd)

    async def _make(self, call: Call, prompt: Asked, request: Request) -> tuple[Reply, Spent]:
        """Intend, ask, record."""
        key = call.key
        reserved = self._budget.reserve(self.answerer.worst_cost_usd(request))
        cost: float | None = 0.0
        try:
            await self._ledger.intend(call)
            # The place is kept until the outcome is on disk: a crash repeats no more calls than may be made at once.
            async with self._places:
                try:
                    reply = await self._answer(prompt, request, key)
                    cost = self._cost_usd(reply)
                    settled = await self._ledger.settle(key, reply, cost_usd=cost)
                    self.tracker.counts.count_end(reply.usage, cost, is_answered=True)
                except ModelError as error:
                    # What failed attempts used was paid for too.
                    cost = self.answerer.cost_usd(error.usage) if error.usage else 0.0
                    await self._ledger.fail(key, kind=error.kind, detail=error.advice, cost_usd=cost)
                    self.tracker.counts.count_end(error.usage, cost, is_answered=False)
                    raise self._judge(error) from None
        finally:
            self._budget.settle(reserved, cost)
        return reply, _spent(settled.id, reply, settled.cost_usd)

    async def _answer(self, prompt: Asked, request: Request, key: str) -> Reply:
        if self._stopped_by is not None:
            raise self._stopped_by
        self.made += 1
        self.tracker.counts.in_flight += 1
        try:
            reply = await self.answerer.answer(prompt, request, lambda one: self._note_attempt(key, one))
        finally:
            self.tracker.counts.in_flight -= 1
        self.tracker.enter("asking")
        return reply

    def _note_attempt(self, key: str, attempt: Attempt) -> None:
        self.tracker.counts.retried += attempt.number > 1
        self._ledger.note_attempt(key, attempt)

    def _cost_usd(self, reply: Reply) -> float | None:
        """What the reply cost, and what failed attempts before it; apart, since a long prompt has its own price."""
        costs = [self.answerer.cost_usd(usage) for usage in (reply.usage, reply.wasted)]
        return None if None in costs else sum(cost for cost in costs if cost)

    def _judge(self, error: ModelError) -> ModelError | Unanswered:
        """The end of the run, or of this call alone."""
        if error.kind not in _STOPS_THE_RUN:
            return _unanswered(error)
        self._stopped_by = error
        return error


class CaseAsk:
    """`ask` for one case and sample; its images are encoded once and shared by the steps."""

    def __init__(self, desk: Caller, condition: Condition, *, case_id: int, sample: int) -> None:
        self._desk = desk
        self._condition = condition
        self._case_id = case_id
        self._sample = sample
        self._parts: dict[str, ImagePart] = {}
        self.asked = 0
        self.spent: list[Spent] = []

    async def __call__(self, prompt: Prompt) -> Reply:
        """Ask one thing."""
        request = await self._request(prompt)
        self.asked += 1
        reply, spent = await self._desk.call(prompt, request, self._case_id)
        self.spent.append(spent)
        if reply.stop in _STATES:
            raise Unanswered(_STATES[reply.stop], f"the reply to the {prompt.kind} prompt was {reply.stop}")
        return reply

    async def each(self, prompts: Iterable[Prompt]) -> list[Reply]:
        """Ask several things side by side, seeing all to their end before one that failed is reported."""
        return all_replies(await asyncio.gather(*map(self, prompts), return_exceptions=True))

    async def _request(self, prompt: Prompt) -> Request:
        images = [part for part in prompt.parts if isinstance(part, Image)]
        new = [image for image in images if image.path not in self._parts]
        if self._condition.image_max_side or self._condition.image_max_bytes:
            # Making images smaller takes milliseconds each: not on the loop that feeds every other call.
            await asyncio.to_thread(self._encode, new)
        else:
            self._encode(new)
        return request_for(prompt, self._condition, self._sample, self._parts)

    def _encode(self, images: list[Image]) -> None:
        for image in images:
            self._parts[image.path] = encode_image(image, self._condition)


def call_for(spec: str, prompt: Kinded, request: Request, case_id: int) -> Call:
    """The call that asks a model this of a case, by the key it has on record."""
    content = canonical_json(request.content())
    asked = digest_bytes(content)
    return Call(digest_value([spec, case_id, asked]), asked, case_id, prompt.kind, content)


def all_replies(outcomes: list[Reply | BaseException]) -> list[Reply]:
    """The replies to what was asked side by side, or what kept one from coming."""
    replies = [outcome for outcome in outcomes if isinstance(outcome, Reply)]
    stops = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    if not stops:
        return replies
    # What ends the whole run goes before what ends a call.
    first = next((stop for stop in stops if not isinstance(stop, Unanswered)), stops[0])
    if not isinstance(first, Unanswered):
        raise first
    kept = [outcome if isinstance(outcome, Reply) else None for outcome in outcomes]
    raise Unanswered(first.state, first.detail, kept)


def encode_image(image: Image, condition: Condition) -> ImagePart:
    """The image as it is sent: its own bytes, unless the condition allows to make it smaller."""
    data = image.read()
    limits = (condition.image_max_side, condition.image_max_bytes)
    if limits == (None, None) and (size := plain_jpeg_size(data)) is not None:
        return ImagePart.from_bytes(data, "image/jpeg", width=size.width, height=size.height)
    from medthink.cases.images import prepare

    ready = prepare(data, max_side=limits[0], max_bytes=limits[1], name=image.path)
    media_type: MediaType = "image/png" if ready.media_type == "image/png" else "image/jpeg"
    return ImagePart.from_bytes(ready.data, media_type, width=ready.width, height=ready.height)


def request_for(prompt: Prompt, condition: Condition, sample: int, parts: dict[str, ImagePart]) -> Request:
    """What is sent for a prompt under a condition; `parts` holds its images by path."""
    return Request(
        system=prompt.system,
        parts=tuple(parts[part.path] if isinstance(part, Image) else TextPart(part) for part in prompt.parts),
        schema=prompt.schema if condition.use_schema else None,
        max_tokens=condition.max_tokens,
        temperature=condition.temperature,
        # A server that keeps to its seed would give the same answer to every sample.
        seed=None if condition.model_seed is None else condition.model_seed + sample,
        effort=condition.effort,
        sample=sample,
    )


def _unanswered(error: ModelError) -> Unanswered:
    # A provider that will not look at the prompt has refused, whether it says so in a reply or in an error.
    return Unanswered("refused" if error.kind == "content_filter" else "failed", f"{error.kind}: {error.advice}")


def _spent(call_id: int, reply: Reply, cost_usd: float | None) -> Spent:
    return Spent(call_id, reply.usage, cost_usd, reply.latency_s)
