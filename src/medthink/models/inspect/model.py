"""`inspect/PROVIDER/NAME`: a model of any provider that Inspect AI speaks; one call to Inspect is one attempt.

For providers that no wire here speaks: it takes many times the processor time of a wire, and needs the extra [inspect].
Retries, limits and costs are handled here.
"""

import asyncio
import random
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from medthink.core.errors import UsageError
from medthink.models.catalog import PROVIDERS, ApiKey, check_base_url
from medthink.models.image_detail import settle_detail
from medthink.models.image_limits import ImageLimits, check_fits
from medthink.models.inspect.messages import messages_of, read_failure, read_output, refuse_left_out, settings_of
from medthink.models.limits import Throttle, next_wait_s
from medthink.models.request import Attempt, AttemptLog, ModelError, Reply, Request
from medthink.models.tokens import estimate_input_tokens
from medthink.models.transport import Transport
from medthink.models.wires.failures import one_short_line

if TYPE_CHECKING:
    from inspect_ai.event import ModelEvent
    from inspect_ai.model import Model, ModelOutput

_EXTRA = "pip install 'medthink[inspect]'"


class _Seen:
    """Inspect's record of one call, kept from its log: there the images of every call would stay in memory."""

    def __init__(self) -> None:
        self.event: ModelEvent | None = None

    def on_pending(self, event: "ModelEvent") -> None:
        """The call is about to be made."""
        self.event = event

    def on_complete(self, event: "ModelEvent") -> None:
        """The call has ended."""
        self.event = event

    @property
    def sent(self) -> dict[str, Any] | None:
        """The body that was sent, as far as the provider's module shows it."""
        call = None if self.event is None else self.event.call
        return None if call is None else call.request


class InspectModel:
    """A model behind Inspect AI; it is opened with the first request, or when it is checked."""

    def __init__(self, name: str, *, base_urls: tuple[str, ...] = (), transport: Transport | None = None) -> None:
        self.provider, _, self.name = name.partition("/")
        if not self.name:
            raise UsageError(f"inspect/{name} names no provider", remedy="write inspect/PROVIDER/NAME")
        if len(base_urls) > 1:
            raise UsageError("Inspect accepts only one address", remedy="give one --base-url")
        self.transport = transport or Transport()
        self._base_url = next(iter(base_urls), None)
        if self._base_url is not None:
            check_base_url(self._base_url)
        self._throttle = self.transport.throttle or Throttle(self.transport.pace)
        self._chance = random.Random()
        self._opened: Model | None = None
        # Until one answer came nothing else is sent: it shows which settings Inspect leaves out.
        self._first = asyncio.Lock()
        self._is_proved = False
        self._left_out: ModelError | None = None

    def refuse(self, request: Request) -> None:
        """Raise ModelError for settings known not to be accepted."""
        if self._left_out is not None:
            raise self._left_out
        self._settle_detail(request)
        known = PROVIDERS.get(self.provider)
        limits = ImageLimits() if known is None else known.image_limits
        check_fits(request, sum(len(image.base64) for image in request.images), limits)

    def _settle_detail(self, request: Request) -> Request:
        """The request at the level of image detail that is sent: Inspect hands it on to OpenAI's models alone."""
        provider = self.provider if self.provider == "openai" else "inspect"
        return replace(request, image_detail=settle_detail(request.image_detail, provider, self.name))

    def open(self) -> "Model":
        """The model as Inspect has it, or UsageError where its package, its key or its name is missing."""
        if self._opened is None:
            self._opened = _open(f"{self.provider}/{self.name}", self._base_url)
        return self._opened

    async def generate(self, request: Request, log: AttemptLog | None = None) -> Reply:
        """Answer the request, retrying as the errors' kinds allow, or raise ModelError."""
        history: list[ModelError] = []
        while True:
            try:
                reply = await self._take_turn(request, len(history) + 1, log)
                return replace(reply, attempts=len(history) + 1)
            except ModelError as error:
                history.append(error)
                wait_s = next_wait_s(history, self.transport.backoff, self._chance)
                if wait_s is None:
                    raise self._finalise(error, len(history)) from None
                await asyncio.sleep(wait_s)
            if log is not None:
                await log.again()

    async def close(self) -> None:
        """Close the connections."""
        if self._opened is not None:
            opened, self._opened = self._opened, None
            await opened.api.aclose()

    async def _take_turn(self, request: Request, number: int, log: AttemptLog | None) -> Reply:
        if not self._is_proved:
            async with self._first:
                if not self._is_proved:
                    return await self._try_once(request, number, log)
        return await self._try_once(request, number, log)

    async def _try_once(self, request: Request, number: int, log: AttemptLog | None) -> Reply:
        throttle = self._throttle
        ticket = await throttle.gate.enter()
        try:
            self.refuse(request)
            if throttle.requests is not None:
                await throttle.requests.spend(1)
            if throttle.tokens is not None:
                await throttle.tokens.spend(estimate_input_tokens(request, self.provider, self.name))
            reply = await self._record(request, number, log)
            throttle.gate.speed_up()
            return reply
        except ModelError as error:
            if error.kind == "rate_limit":
                throttle.gate.slow_down(ticket)
            raise
        finally:
            throttle.gate.leave()

    async def _record(self, request: Request, number: int, log: AttemptLog | None) -> Reply:
        model = self.open()
        began, outcome, usage, is_billed, is_sent = time.monotonic(), "cancelled", None, True, True
        try:
            reply = await self._send(model, request)
            outcome, usage = "ok", reply.usage
            return replace(reply, latency_s=time.monotonic() - began)
        except ModelError as error:
            outcome, usage, is_billed, is_sent = error.kind, error.usage, error.is_billed, error.is_sent
            raise
        finally:
            if log is not None:
                latency = time.monotonic() - began
                endpoint = f"inspect/{self.provider}"
                attempt = Attempt(
                    number=number,
                    endpoint=endpoint,
                    outcome=outcome,
                    is_sent=is_sent,
                    latency_s=latency,
                    is_billed=is_billed,
                    usage=usage,
                )
                log.note(attempt)

    async def _send(self, model: "Model", request: Request) -> Reply:
        seen = _Seen()
        try:
            async with asyncio.timeout(self.transport.timeout_s):
                detailed = self._settle_detail(request)
                outcome = await _generate(model, detailed, seen, self.transport.pace.concurrency)
        except TimeoutError:
            raise ModelError("timeout", f"no complete reply from {self.provider} in time") from None
        if isinstance(outcome, Exception):
            raise read_failure(outcome)
        wants_json = request.schema is not None and request.is_json_checked
        reply = read_output(outcome, wants_json=wants_json)
        try:
            refuse_left_out(request, seen.sent)
        except ModelError as error:
            self._left_out = error
            raise ModelError(error.kind, error.detail, usage=reply.usage, remedy=error.remedy) from None
        self._is_proved = True
        return reply

    def _finalise(self, error: ModelError, tries: int) -> ModelError:
        """The error as the caller sees it: without the key."""
        secret = None if self._opened is None else self._opened.api.api_key
        detail = ApiKey(secret, self.provider).redact(error.detail) if secret else error.detail
        final = ModelError(
            error.kind,
            detail,
            status=error.status,
            retry_after_s=error.retry_after_s,
            usage=error.usage,
            remedy=f"check the key of {self.provider}" if error.kind == "auth" else error.remedy,
        )
        final.attempts = tries
        return final


def need_inspect() -> None:
    """Raise UsageError where the extra is not installed, or is another release than this was made for."""
    try:
        from inspect_ai.model._model import use_model_event_sink  # noqa: F401
    except ImportError as error:
        raise UsageError(f"Inspect AI is needed, and {error.name or error} is missing", remedy=_EXTRA) from None


def _open(name: str, base_url: str | None) -> "Model":
    need_inspect()
    from inspect_ai._util.error import PrerequisiteError
    from inspect_ai.model import get_model

    try:
        model = get_model(name, base_url=base_url, memoize=False)
    except (PrerequisiteError, ValueError, ImportError) as error:
        raise UsageError(
            one_short_line(f"inspect/{name}: {_plain(str(error))}"),
            remedy="Inspect's own documentation names each provider's package and key",
        ) from None
    # The providers' packages would send a request that failed again by themselves.
    client = getattr(model.api, "client", None)
    with suppress(AttributeError):
        client.max_retries = 0  # type: ignore[union-attr]
    return model


def _plain(text: str) -> str:
    """Inspect's message without colour codes."""
    from rich.text import Text

    return Text.from_markup(text).plain


async def _generate(model: "Model", request: Request, seen: _Seen, connections: int) -> "ModelOutput | Exception":
    """One call; any exception of the providers' packages is returned as a value."""
    from inspect_ai.model import GenerateConfig
    from inspect_ai.model._model import use_model_event_sink

    own = GenerateConfig(
        max_retries=0,
        max_connections=connections,
        # Else a reasoning model is first asked "hello, world", to see whether it gives summaries.
        reasoning_summary="none",
        # Else some providers are told to keep the prompt, which costs extra.
        cache_prompt=False,
    )
    settings = settings_of(request).merge(own)
    messages = messages_of(request)
    with use_model_event_sink(seen):
        call = model.generate(messages, config=settings, cache=False)
        outcome: ModelOutput | BaseException = (await asyncio.gather(call, return_exceptions=True))[0]
    if isinstance(outcome, BaseException) and not isinstance(outcome, Exception):
        raise outcome
    return outcome
