"""`ask` for one case: prompt to request, request through the ledger, reply or `Unanswered` back to the task."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from msgspec.structs import replace

from medthink.cases.case import Image
from medthink.core.digest import digest_bytes, digest_value
from medthink.core.errors import DataError
from medthink.core.jsonio import canonical_json
from medthink.models.prices import NOT_BILLED, Charge, charge_attempt, saved_by_cache
from medthink.models.request import (
    EXAMPLE_SCHEMA,
    FAILURES,
    Attempt,
    ImagePart,
    MediaType,
    ModelError,
    Reply,
    Request,
    TextPart,
    Usage,
)
from medthink.models.tokens import estimate_text_tokens
from medthink.runs.calls.answerers import Answerer, HasKind
from medthink.runs.calls.budget import Budget, BudgetClaim, BudgetReached, Reservation
from medthink.runs.ledger.ledger import Call, Ledger, RecordedCall
from medthink.runs.ledger.queries import LEDGER, FinishedEarlier, LedgerQueries
from medthink.runs.progress import ProgressTracker
from medthink.runs.survey import CHANGED, PinnedImages
from medthink.workflow.ask import Prompt, PromptKind, Unanswered, Unfinished
from medthink.workflow.condition import Condition
from medthink.workflow.forms import FormPrompt
from medthink.workflow.prediction import CallCost

# The outcome recorded for a reused call; nothing was sent for it.
SHARED = "shared"


class SharedCall(NamedTuple):
    """A call that another run has answered."""

    run: str
    finished: FinishedEarlier

    def attempt(self) -> Attempt:
        """The ledger's record of where the reply came from; its charge is what the other run paid."""
        usage = self.finished.reply.usage
        return Attempt(number=0, endpoint=f"run {self.run}", outcome=SHARED, is_sent=False, latency_s=0.0, usage=usage)


class SharedCalls:
    """The ledgers of other runs, opened for reading."""

    def __init__(self, runs: Iterable[Path] = ()) -> None:
        self._records = [(run.name, LedgerQueries.open(run)) for run in runs if (run / LEDGER).is_file()]

    def find(self, key: str) -> SharedCall | None:
        """The call with this key, if one of them has answered it."""
        found = ((name, records.finished(key)) for name, records in self._records)
        return next((SharedCall(name, finished) for name, finished in found if finished is not None), None)

    def close(self) -> None:
        """Close the ledgers."""
        for _, records in self._records:
            records.close()


# Before the first answer the set-up is unproven; later a model may well reject a few cases in a row.
FIRST_CASES = 5
LATER_CASES = 20


class FailureGuard:
    """Counts consecutive cases that failed in the same way.

    `failed_before` are cases that failed in earlier sessions of a run that has answers: if they fail again, that is no
    evidence about the others.
    """

    def __init__(self, *, has_answers: bool = False, failed_before: Collection[int] = ()) -> None:
        self._has_answers = has_answers
        self._failed_before = frozenset(failed_before) if has_answers else frozenset()
        self._cases: set[int] = set()
        self._kind = ""

    def note_answer(self) -> None:
        """A case was answered: earlier failures concerned single cases."""
        self._has_answers = True
        self._cases.clear()

    def note_failure(self, case_id: int, error: ModelError) -> ModelError | None:
        """Count a failure; returns the error that ends the run if there are too many."""
        if case_id in self._failed_before:
            return None
        if error.kind != self._kind:
            self._kind = error.kind
            self._cases.clear()
        self._cases.add(case_id)
        if len(self._cases) < (LATER_CASES if self._has_answers else FIRST_CASES):
            return None
        which = f"{len(self._cases)} cases in a row" if self._has_answers else f"the first {len(self._cases)} cases"
        remedy = error.remedy or "fix the cause, then run the same command again: it continues from here"
        problem = f"{which} failed in the same way: {error.detail}"
        return ModelError(error.kind, problem, status=error.status, remedy=remedy)


_STATES: dict[str, Unfinished] = {"truncated": "truncated", "refused": "refused", "filtered": "refused"}


Asked = TypeVar("Asked", bound=HasKind)
Pass = Callable[[], Awaitable[BudgetReached | None]]


class Deferred(Exception):
    """The call is waiting in a batch: its case continues when the batch has ended."""


class CallFailed(Unanswered):
    """A call that was made and failed; its attempts were paid for all the same."""

    def __init__(self, error: ModelError, spent: CallCost) -> None:
        why = unanswered(error)
        super().__init__(why.state, why.detail)
        self.spent = spent


class CallMaker(Protocol):
    """Makes the calls of a case."""

    async def call(self, prompt: Prompt, request: Request, case_id: int) -> tuple[Reply, CallCost]:
        """Answer the request, or raise Unanswered: CallFailed if anything was recorded."""


class LedgerCallMaker(Generic[Asked]):
    """Makes calls: answered from the ledger if made before, else sent and recorded.

    `places` limits concurrent calls; call makers that share it are limited together. Calls already answered in another
    run of the same sweep (`siblings`) are reused. With `preflight` the answerer is checked before the first call that
    has to be sent.
    """

    def __init__(
        self,
        answerer: Answerer[Asked],
        ledger: Ledger,
        budget: Budget,
        places: asyncio.Semaphore | None = None,
        tracker: ProgressTracker | None = None,
        siblings: SharedCalls | None = None,
        *,
        preflight: bool = False,
    ) -> None:
        self.answerer = answerer
        self.tracker = tracker or ProgressTracker()
        self.made = 0
        self.ledger = ledger
        self.budget = budget
        self._places = places or asyncio.Semaphore(answerer.concurrency)
        self._stopped_by: ModelError | None = None
        self._under_way: dict[str, asyncio.Event] = {}
        self._siblings = siblings or SharedCalls()
        self.waiting = ledger.queued_keys()
        self.tracker.models.update(ledger.reported_models())
        self._streak = FailureGuard(has_answers=ledger.has_answers(), failed_before=ledger.failed_cases())
        self._needs_check = preflight
        self._checking = asyncio.Lock()

    @contextmanager
    def begin(self, calls: int) -> Iterator["CaseCallMaker[Asked]"]:
        """Make the calls of a case, about so many, as one unit of the budget."""
        with self.budget.claim(calls) as claim:
            yield CaseCallMaker(self, claim)

    async def call(
        self, prompt: Asked, request: Request, case_id: int, claim: BudgetClaim | None = None
    ) -> tuple[Reply, CallCost]:
        """Answer the request, or raise Unanswered; `claim` is that of its case."""
        if claim is None:
            with self.budget.claim(1) as claim:
                return await self.call(prompt, request, case_id, claim)
        try:
            return await self._call(prompt, request, case_id, claim)
        finally:
            self.budget.end_call(claim)

    async def _call(self, prompt: Asked, request: Request, case_id: int, claim: BudgetClaim) -> tuple[Reply, CallCost]:
        call = call_for(self.answerer.spec, prompt, request, case_id)
        # A case may show an image twice: identical simultaneous requests are one call.
        while (other := self._under_way.get(call.key)) is not None:
            await other.wait()
        if (found := self.ledger.finished(call.key)) is not None:
            self.tracker.counts.kept += 1
            return found.reply, _spent(found.id, found.reply, found.cost_usd)
        if call.key in self.waiting:
            raise Deferred
        self._under_way[call.key] = done = asyncio.Event()
        try:
            if (shared := self._siblings.find(call.key)) is not None:
                return await self._take_over(call, shared)
            return await self._make(call, prompt, request, claim)
        finally:
            del self._under_way[call.key]
            done.set()

    async def _take_over(self, call: Call, shared: SharedCall) -> tuple[Reply, CallCost]:
        """Record a call that another run of the sweep made; it was paid for there."""
        reply, cost = shared.finished.reply, shared.finished.cost_usd
        saved = saved_by_cache(reply.usage, self.answerer.cost_usd) if reply.usage else 0.0
        intent = self.ledger.intend(call)
        self.ledger.note_attempt(call.key, shared.attempt(), Charge(cost, saved_usd=saved))
        # Gathered in one iteration of the loop, all of it is one transaction.
        _, settled = await asyncio.gather(intent, self.ledger.settle(call.key, reply))
        self.tracker.counts.kept += 1
        self.tracker.counts.count_tokens(reply.usage)
        return reply, _spent(settled.id, reply, settled.cost_usd)

    async def _make(self, call: Call, prompt: Asked, request: Request, claim: BudgetClaim) -> tuple[Reply, CallCost]:
        """Reserve money, record the intent, ask, record the outcome."""
        # Before it has a place: whoever waits here must not keep those from going on whom it waits for.
        await self.budget.admit(claim, self.answerer.worst_cost_usd(request))
        # The place is held until the outcome is on disk: a crash repeats no more calls than the concurrency limit.
        async with self._places:
            if self._stopped_by is not None:
                raise self._stopped_by
            await self._check_once()
            account = _Account(self, call.key, request)
            await account.open()
            try:
                await self.ledger.intend(call, worst_usd=account.worst_usd)
                return await self._ask_and_record(call, prompt, request, account)
            finally:
                account.close()

    async def _check_once(self) -> None:
        async with self._checking:
            if self._needs_check:
                for problem in await self.answerer.check():
                    self.tracker.warn(problem)
                self._needs_check = False

    async def _ask_and_record(
        self, call: Call, prompt: Asked, request: Request, account: "_Account"
    ) -> tuple[Reply, CallCost]:
        try:
            reply = await self._answer(prompt, request, account)
        except BudgetReached as stop:
            # An attempt failed, was paid for, and there is no money for another.
            await self._fail(call, "budget", account.last_problem or stop.problem)
            raise
        except ModelError as error:
            failed = await self._fail(call, error.kind, error.advice)
            if (stopped_by := self._judge(call.case_id, error)) is not None:
                raise stopped_by from None
            raise CallFailed(error, CallCost(failed.id, account.used, failed.cost_usd, None)) from None
        settled = await self.ledger.settle(call.key, reply)
        self.tracker.counts.count_end(is_answered=True)
        self._note_answer(reply)
        return reply, _spent(settled.id, reply, settled.cost_usd)

    async def _answer(self, prompt: Asked, request: Request, account: "_Account") -> Reply:
        self.made += 1
        self.tracker.counts.in_flight += 1
        try:
            return await self.answerer.answer(prompt, request, account)
        finally:
            self.tracker.counts.in_flight -= 1

    async def _fail(self, call: Call, kind: str, detail: str) -> RecordedCall:
        failed = await self.ledger.fail(call.key, kind=kind, detail=detail)
        self.tracker.counts.count_end(is_answered=False)
        return failed

    def _note_answer(self, reply: Reply) -> None:
        self.tracker.enter("asking")
        self._streak.note_answer()
        self.tracker.note_reply(reply)

    def _judge(self, case_id: int, error: ModelError) -> ModelError | None:
        """The error that ends the run; None if it ends only this call."""
        stop = error if FAILURES[error.kind].ends_run else None
        if stop is None and self.answerer.is_remote and error.kind != "content_filter":
            stop = self._streak.note_failure(case_id, error)
        self._stopped_by = stop or self._stopped_by
        return stop


class CaseCallMaker(Generic[Asked]):
    """Makes the calls of one case under its claim on the budget."""

    def __init__(self, desk: LedgerCallMaker[Asked], claim: BudgetClaim) -> None:
        self._desk = desk
        self._claim = claim

    async def call(self, prompt: Asked, request: Request, case_id: int) -> tuple[Reply, CallCost]:
        """Answer the request, or raise Unanswered."""
        return await self._desk.call(prompt, request, case_id, self._claim)


class _Account:
    """The reserved money and the attempts of one call."""

    def __init__(self, desk: LedgerCallMaker[Any], key: str, request: Request) -> None:
        self._desk = desk
        self._key = key
        self.worst_usd = desk.answerer.worst_cost_usd(request)
        self._held: Reservation | None = None
        self.used: Usage | None = None
        self.last_problem = ""
        self._last_outcome = ""

    async def open(self) -> None:
        """Reserve money for the first attempt."""
        self._held = await self._desk.budget.reserve(self.worst_usd)

    async def again(self) -> None:
        """Set money aside for another attempt, once the last one is on record."""
        if self._last_outcome:
            self._desk.tracker.counts.reasons[self._last_outcome] += 1
        await self._desk.ledger.wait_written()
        self._held = await self._desk.budget.reserve(self.worst_usd, is_retry=True)

    def note(self, attempt: Attempt) -> None:
        """Record an attempt and what it cost: in the ledger, against the budget, and in the counts."""
        desk, is_answered = self._desk, attempt.outcome == "ok"
        charge = charge_attempt(
            attempt.usage,
            is_billed=attempt.is_billed or is_answered,
            worst_usd=self.worst_usd,
            price=desk.answerer.cost_usd,
        )
        desk.ledger.note_attempt(self._key, attempt, charge)
        desk.tracker.counts.count_paid(attempt.usage, charge)
        desk.tracker.counts.count_attempt(attempt.number, attempt.outcome, attempt.latency_s)
        if not is_answered:
            desk.tracker.say(f"attempt {attempt.number} at {attempt.endpoint or 'the model'}: {attempt.outcome}")
        self._last_outcome = attempt.outcome
        if attempt.usage is not None:
            self.used = (self.used or Usage()) + attempt.usage
        if not is_answered and charge != NOT_BILLED:
            self.last_problem = f"the last attempt ended in {attempt.outcome}, and the budget allows no other"
        self._settle(charge)

    def close(self) -> None:
        """Release the money still reserved: nothing was sent for it."""
        self._settle(NOT_BILLED)

    def _settle(self, charge: Charge) -> None:
        if self._held is not None:
            self._desk.budget.settle(self._held, charge)
            self._held = None


class CaseAsk:
    """`ask` for one case and sample; its images, which must be as `pins` has them, are encoded once for all steps."""

    def __init__(
        self, desk: CallMaker, condition: Condition, *, case_id: int, sample: int, pins: PinnedImages | None = None
    ) -> None:
        self._pins = pins
        self._desk = desk
        self._condition = condition
        self._case_id = case_id
        self._sample = sample
        self._parts: dict[str, ImagePart] = {}
        self.asked = 0
        self.spent: list[CallCost] = []

    async def __call__(self, prompt: Prompt) -> Reply:
        """Send one prompt."""
        request = await self._request(prompt)
        self.asked += 1
        try:
            reply, spent = await self._desk.call(prompt, request, self._case_id)
        except CallFailed as failed:
            self.spent.append(failed.spent)
            raise
        self.spent.append(spent)
        if reply.stop in _STATES:
            raise Unanswered(_STATES[reply.stop], f"the reply to the {prompt.kind} prompt was {reply.stop}")
        return reply

    async def each(self, prompts: Iterable[Prompt]) -> list[Reply]:
        """Send several prompts concurrently, and wait for all before a failure is reported."""
        return all_replies(await asyncio.gather(*map(self, prompts), return_exceptions=True))

    async def _request(self, prompt: Prompt) -> Request:
        try:
            await self._encode_images(prompt)
        except DataError as error:
            raise Unanswered("failed", describe_bad_image(error)) from None
        return request_for(prompt, self._condition, self._sample, self._parts)

    async def _encode_images(self, prompt: Prompt) -> None:
        """Encode all images of the case before the first is sent, so that a broken one costs no call."""
        if not any(isinstance(part, Image) for part in prompt.parts):
            return
        wanted = {image.path: image for image in (*prompt.question.images, *prompt.parts) if isinstance(image, Image)}
        new = [image for path, image in wanted.items() if path not in self._parts]
        if self._condition.image_max_side or self._condition.image_max_bytes:
            # Resizing takes milliseconds per image: not on the loop that feeds every other call.
            await asyncio.to_thread(self._encode, new)
        else:
            self._encode(new)

    def _encode(self, images: list[Image]) -> None:
        hold = None if self._pins is None else partial(self._pins.holds, self._case_id)
        self._parts |= {image.path: encode_image(image, self._condition, hold) for image in images}


def call_for(spec: str, prompt: HasKind, request: Request, case_id: int) -> Call:
    """The call for this prompt about a case, with its ledger key."""
    content = canonical_json(request.content())
    asked = digest_bytes(content)
    return Call(digest_value([spec, case_id, asked]), asked, case_id, prompt.kind, content, _least_tokens(request))


# The minimum tokens for an image of diagnostic size; most models use hundreds.
_LEAST_IMAGE_TOKENS = 64


def _least_tokens(request: Request) -> int | None:
    """Fewer input tokens than this cannot hold the images of a request; None if it has none."""
    if not request.images:
        return None
    texts = [request.system, *(part.text for part in request.parts if isinstance(part, TextPart))]
    return sum(map(estimate_text_tokens, texts)) + _LEAST_IMAGE_TOKENS * len(request.images)


def all_replies(outcomes: list[Reply | BaseException]) -> list[Reply]:
    """The replies to concurrent requests, or the error of one of them."""
    replies = [outcome for outcome in outcomes if isinstance(outcome, Reply)]
    stops = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    if not stops:
        return replies
    # An error that ends the run takes precedence over a deferred case, and that over a failed call.
    first = min(stops, key=lambda stop: isinstance(stop, Deferred) + 2 * isinstance(stop, Unanswered))
    if not isinstance(first, Unanswered):
        raise first
    kept = [outcome if isinstance(outcome, Reply) else None for outcome in outcomes]
    raise Unanswered(first.state, first.detail, kept)


def encode_image(image: Image, condition: Condition, is_pinned: Callable[[str, str], bool] | None = None) -> ImagePart:
    """The image as sent: its own bytes, unless the condition allows resizing.

    DataError if `is_pinned` does not know its path and digest.
    """
    data, known = image.read_known()
    if is_pinned is not None and not is_pinned(image.path, known.digest):
        raise DataError(CHANGED, file=image.path, remedy="put it back, then run again")
    limits = (condition.image_max_side, condition.image_max_bytes)
    if limits == (None, None) and (size := known.plain_size) is not None:
        return ImagePart.from_bytes(data, "image/jpeg", width=size.width, height=size.height, digest=known.digest)
    from medthink.cases.images.content import as_shown

    ready = as_shown(data, max_side=limits[0], max_bytes=limits[1], name=image.path)
    media_type: MediaType = "image/png" if ready.media_type == "image/png" else "image/jpeg"
    return ImagePart.from_bytes(ready.data, media_type, width=ready.width, height=ready.height)


def encode_images(parts: Iterable[str | Image], condition: Condition) -> dict[str, ImagePart]:
    """The images among the parts of a prompt as sent, by path."""
    return {image.path: encode_image(image, condition) for image in parts if isinstance(image, Image)}


def describe_bad_image(error: DataError) -> str:
    """The reason why a case failed because of an image, in one line."""
    return f"image: {error.place}: {error.problem}" if error.place else f"image: {error.problem}"


def request_for(prompt: Prompt, condition: Condition, sample: int, parts: dict[str, ImagePart]) -> Request:
    """The request for a prompt under a condition; `parts` holds its images by path."""
    made = fill_request(settings_test_request(condition, sample), prompt, parts, sample=sample)
    return replace(made, is_repeated=bool(made.images) and begins_again(prompt.kind, condition))


def begins_again(kind: PromptKind, condition: Condition) -> bool:
    """Whether other prompts of the case begin like one of this kind, up to their last image, form included.

    They do in further samples. The steps of a case that show all images begin alike only without schemas: a provider
    puts those before the prompt.
    """
    are_steps_alike = not condition.use_schema and condition.summary == "self"
    return condition.samples > 1 or (are_steps_alike and kind in ("summary", "differential"))


def fill_request(
    example: Request, prompt: Prompt | FormPrompt, images: dict[str, ImagePart], *, sample: int
) -> Request:
    """The request for a prompt with the settings of an example; it has a schema only if the example has one."""
    parts = tuple(images[part.path] if isinstance(part, Image) else TextPart(part) for part in prompt.parts)
    schema = None if example.schema is None else prompt.schema
    return replace(example, system=prompt.system, parts=parts, schema=schema, sample=sample)


def settings_test_request(condition: Condition, sample: int = 0) -> Request:
    """An almost empty request with the settings of a condition, to see whether they are accepted."""
    return Request(
        parts=(TextPart("?"),),
        schema=EXAMPLE_SCHEMA if condition.use_schema else None,
        max_tokens=condition.max_tokens,
        temperature=condition.temperature,
        # A server that honours its seed would give the same answer to every sample.
        seed=None if condition.model_seed is None else condition.model_seed + sample,
        effort=condition.effort,
        image_detail=condition.image_detail,
        sample=sample,
    )


def unanswered(error: ModelError) -> Unanswered:
    """The outcome that a failed call has for its task."""
    # A provider that rejects the prompt has refused, whether it says so in a reply or in an error.
    return Unanswered("refused" if error.kind == "content_filter" else "failed", f"{error.kind}: {error.advice}")


def _spent(call_id: int, reply: Reply, cost_usd: float | None) -> CallCost:
    return CallCost(call_id, reply.usage, cost_usd, reply.latency_s)
