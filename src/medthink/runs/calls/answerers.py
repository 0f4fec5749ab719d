"""Answerers of a run's prompts: a model behind HTTP, an embedded baseline, or another run's ledger."""

import asyncio
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec.structs import replace

from medthink.baselines.baseline import Baseline, refuse_settings
from medthink.core.errors import MedThinkError, UsageError
from medthink.core.plugins import load_plugin
from medthink.models.catalog import PROVIDERS
from medthink.models.prices import PRICE_FORM, Price, PriceSource, find_price
from medthink.models.request import Attempt, AttemptLog, Effort, Model, ModelError, Reply, Request, Usage
from medthink.models.tokens import estimate_input_tokens, most_input_tokens
from medthink.models.wires import Encoded, HttpReply
from medthink.models.wires.openai_responses import sells_cache
from medthink.runs.ledger.queries import LEDGER, LedgerQueries
from medthink.runs.progress import Phase
from medthink.workflow.ask import Prompt, PromptKind

if TYPE_CHECKING:
    from medthink.cases.benchmark import Benchmark
    from medthink.models.batches import BatchService
    from medthink.models.inspect.model import InspectModel
    from medthink.models.local import LocalModel
    from medthink.models.transport import Transport

NOWHERE = "http://localhost"
# Output tokens budgeted without --max-tokens: a long reply of a reasoning model, and the longest at high effort.
_ASSUMED_OUTPUT_TOKENS = 16_384
_AT_HIGH_EFFORT: dict[Effort, int] = {"high": 32_768, "xhigh": 65_536, "max": 128_000}


def _most_output(request: Request) -> int:
    """The most output tokens that the reply may come to."""
    if request.max_tokens is not None or request.effort is None:
        return request.max_tokens or _ASSUMED_OUTPUT_TOKENS
    return _AT_HIGH_EFFORT.get(request.effort, _ASSUMED_OUTPUT_TOKENS)


class HasKind(Protocol):
    """A prompt whose kind the ledger records."""

    @property
    def kind(self) -> str:
        """The kind, as one word."""


Asked = TypeVar("Asked", bound=HasKind, contravariant=True)


class Answerer(Protocol[Asked]):
    """Answers the prompts of a run; an embedded baseline reads their structure, a model their text."""

    spec: str
    concurrency: int
    first_phase: Phase
    # Whether it can fail for reasons unrelated to the case: a server, a key, a network.
    is_remote: bool

    def refuse(self, request: Request, kinds: Collection[PromptKind], *, has_options: bool) -> None:
        """Raise ModelError if such requests, for such prompts, would certainly be rejected."""

    async def check(self) -> list[str]:
        """Check that it is available, or raise OutsideError; returns warnings that do not prevent a run."""

    async def answer(self, prompt: Asked, request: Request, log: AttemptLog) -> Reply:
        """Answer, reporting every attempt, or raise ModelError."""

    def on_wait(self, tell: Callable[[str], None]) -> None:
        """Register a callback for what is being waited for."""

    def cost_usd(self, usage: Usage | None) -> float | None:
        """The cost of these tokens; None if the price or the tokens are unknown."""

    def input_tokens(self, request: Request) -> int:
        """The approximate number of tokens of the request, images included."""

    def upload_bytes(self, request: Request) -> int:
        """The number of bytes sent, or ModelError if the request would certainly be rejected."""

    def worst_cost_usd(self, request: Request) -> float | None:
        """The maximum cost of this call; None if that is unknown."""

    async def close(self) -> None:
        """Close what is open."""


class ModelAnswerer:
    """A model behind HTTP; with `is_batch`, calls are charged at batch prices."""

    first_phase: Phase = "asking"
    is_remote = True

    def __init__(
        self,
        spec: str,
        *,
        base_urls: tuple[str, ...],
        transport: "Transport | None",
        price: Price | None,
        needs_key: bool = True,
        is_batch: bool = False,
    ) -> None:
        from medthink.models.catalog import open_model

        self.spec = spec
        self._is_batch = is_batch
        # Its batches are files: no server is contacted.
        provider = PROVIDERS.get(spec.partition("/")[0])
        self._is_offline = is_batch and provider is not None and not provider.batches
        base_urls = base_urls or ((NOWHERE,) if self._is_offline else ())
        self._model = open_model(spec, base_urls=base_urls, transport=transport, needs_key=needs_key)
        self._price = price
        self.concurrency = self._model.transport.pace.concurrency

    def open_batches(self) -> "BatchService":
        """The provider's batches."""
        from medthink.models.catalog import open_batches

        return open_batches(self._model.target, self._model.transport)

    def encode(self, request: Request) -> Encoded:
        """The request as sent, or ModelError if it would certainly be rejected.

        In a batch nothing is marked for a cache: hours may pass between its requests.
        """
        return self._model.preflight(replace(request, is_repeated=request.is_repeated and not self._is_batch))

    def read(self, reply: HttpReply, *, wants_json: bool) -> Reply:
        """Read the reply to a request, or raise ModelError."""
        return self._model.read(reply, wants_json=wants_json)

    def refuse(self, request: Request, kinds: Collection[PromptKind], *, has_options: bool) -> None:  # noqa: ARG002
        """Refuse settings that the provider does not support."""
        self._model.preflight(request)

    async def check(self) -> list[str]:
        """Check the servers."""
        return [] if self._is_offline else await self._model.check()

    def on_wait(self, tell: Callable[[str], None]) -> None:
        """Register a callback for what is being waited for."""
        self._model.on_wait = tell

    async def answer(self, prompt: HasKind, request: Request, log: AttemptLog) -> Reply:  # noqa: ARG002
        """Send the request."""
        return await self._model.generate(request, log)

    def cost_usd(self, usage: Usage | None) -> float | None:
        """The price of the tokens."""
        return None if self._price is None or usage is None else self._price.cost_usd(usage, is_batch=self._is_batch)

    def input_tokens(self, request: Request) -> int:
        """By the provider's rules for images."""
        return estimate_input_tokens(request, self._model.target.provider, self._model.target.name)

    def upload_bytes(self, request: Request) -> int:
        """The body's size."""
        return self._model.preflight(request).size_bytes

    def worst_cost_usd(self, request: Request) -> float | None:
        """The price of the most that the input may come to, and of all the output allowed."""
        target, tier = self._model.target, self._model.transport.service_tier or ""
        tokens = most_input_tokens(request, target.provider, target.name)
        most = _most_output(request)
        written = tokens if self.writes_cache(request) else 0
        return self.cost_usd(Usage(input=tokens, output=most, written=written, tier=tier))

    def writes_cache(self, request: Request) -> bool:
        """Whether the request may be charged for what it puts into a cache."""
        target = self._model.target
        is_sold = target.provider == "anthropic" or (target.provider != "server" and sells_cache(target.name))
        return request.is_repeated and not self._is_batch and is_sold

    async def close(self) -> None:
        """Close the connections."""
        await self._model.close()


class NoPreflight:
    """An answerer with nothing to check before the first call."""

    def refuse(self, request: Request, kinds: Collection[PromptKind], *, has_options: bool) -> None:
        """Nothing is refused."""

    async def check(self) -> list[str]:
        """Nothing to check."""
        return []

    def on_wait(self, tell: Callable[[str], None]) -> None:
        """Nothing to wait for."""


class AddedAnswerer(NoPreflight):
    """A model added by another package: it sends and retries by itself, and each call counts as one attempt."""

    concurrency = 8
    first_phase: Phase = "asking"
    is_remote = True
    # Whether a request leaves this machine, so that a reply that never arrived may have been billed.
    sends = True

    def __init__(self, spec: str, model: Model, price: Price | None) -> None:
        self.spec = spec
        self._model = model
        self._price = price

    async def answer(self, prompt: HasKind, request: Request, log: AttemptLog) -> Reply:  # noqa: ARG002
        """Pass the request on."""
        began = time.monotonic()
        outcome, usage, is_billed = "cancelled", None, True
        try:
            reply = await self._hear(request)
            outcome, usage = "ok", reply.usage
        except ModelError as error:
            outcome, usage, is_billed = error.kind, error.usage, error.is_billed
            raise
        finally:
            latency = time.monotonic() - began
            provider = self.spec.partition("/")[0]
            attempt = Attempt(
                number=1,
                endpoint=provider,
                outcome=outcome,
                is_sent=self.sends,
                latency_s=latency,
                is_billed=is_billed and self.sends,
                usage=usage,
            )
            log.note(attempt)
        return replace(reply, latency_s=reply.latency_s or latency)

    async def _hear(self, request: Request) -> Reply:
        """The model's reply; whatever its own code raises is the failure of this call, as ModelError."""
        (outcome,) = await asyncio.gather(self._model.generate(request), return_exceptions=True)
        if isinstance(outcome, Exception) and not isinstance(outcome, MedThinkError):
            raise ModelError("invalid_reply", f"{self.spec} failed: {type(outcome).__name__}: {outcome}") from outcome
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def cost_usd(self, usage: Usage | None) -> float | None:
        """The price of the tokens."""
        return None if self._price is None or usage is None else self._price.cost_usd(usage)

    @property
    def _counted_as(self) -> tuple[str, str]:
        """Whose rules for images are taken: the provider and the model."""
        return "server", ""

    def input_tokens(self, request: Request) -> int:
        """By the rules for images of the provider that is known, or of a server."""
        return estimate_input_tokens(request, *self._counted_as)

    def upload_bytes(self, request: Request) -> int:
        """The images' bytes; anything else sent is up to the package."""
        return sum(image.size_bytes for image in request.images)

    def worst_cost_usd(self, request: Request) -> float | None:
        """The price of the most that the input may come to, and of all the output allowed."""
        if self._price is None:
            return None
        most = most_input_tokens(request, *self._counted_as)
        return self._price.cost_usd(Usage(input=most, output=_most_output(request)))

    async def close(self) -> None:
        """Nothing to close."""


class LocalAnswerer(AddedAnswerer):
    """A model in this process, asked one prompt at a time."""

    concurrency = 1
    first_phase: Phase = "preparing"
    is_remote = False
    sends = False

    def __init__(self, spec: str, model: "LocalModel", price: Price | None) -> None:
        super().__init__(spec, model, price)
        self._local = model

    def refuse(self, request: Request, kinds: Collection[PromptKind], *, has_options: bool) -> None:  # noqa: ARG002
        """Refuse settings that are not supported here."""
        self._local.refuse(request)


class InspectAnswerer(AddedAnswerer):
    """A model of a provider that Inspect AI supports, within our rate limits."""

    def __init__(self, spec: str, model: "InspectModel", price: Price | None) -> None:
        super().__init__(spec, model, price)
        self._inspect = model
        self.concurrency = model.transport.pace.concurrency

    def refuse(self, request: Request, kinds: Collection[PromptKind], *, has_options: bool) -> None:  # noqa: ARG002
        """Refuse images that the provider is known not to accept."""
        self._inspect.refuse(request)

    async def check(self) -> list[str]:
        """Check that Inspect, the provider's package and its key are present; no server is contacted."""
        self._inspect.open()
        return []

    async def answer(self, prompt: HasKind, request: Request, log: AttemptLog) -> Reply:  # noqa: ARG002
        """Ask, retrying as the errors' kinds allow."""
        return await self._inspect.generate(request, log)

    @property
    def _counted_as(self) -> tuple[str, str]:
        return self._inspect.provider, self._inspect.name

    async def close(self) -> None:
        """Close the connections."""
        await self._inspect.close()


class CostsNothing(NoPreflight):
    """Costs nothing and counts no tokens: nothing leaves this machine."""

    concurrency = 8
    first_phase: Phase = "asking"
    is_remote = False

    def cost_usd(self, usage: Usage | None) -> float | None:  # noqa: ARG002
        """Nothing."""
        return 0.0

    def input_tokens(self, request: Request) -> int:  # noqa: ARG002
        """None are counted."""
        return 0

    def upload_bytes(self, request: Request) -> int:  # noqa: ARG002
        """None: nothing leaves this machine."""
        return 0

    def worst_cost_usd(self, request: Request) -> float | None:  # noqa: ARG002
        """Nothing."""
        return 0.0


class BaselineAnswerer(CostsNothing):
    """An embedded baseline: it answers a prompt's structure instead of its text."""

    first_phase: Phase = "learning"

    def __init__(self, spec: str, baseline: Baseline) -> None:
        self.spec = spec
        self._baseline = baseline

    async def answer(self, prompt: Prompt, request: Request, log: AttemptLog) -> Reply:  # noqa: ARG002
        """Let the baseline answer; a seed selects one of its draws."""
        refuse_settings(self._baseline.name, request)
        return self._baseline.answer(prompt, sample=request.sample if request.seed is None else request.seed)

    def refuse(self, request: Request, kinds: Collection[PromptKind], *, has_options: bool) -> None:
        """Refuse settings it does not have, and prompts it cannot answer."""
        refuse_settings(self._baseline.name, request)
        self._baseline.refuse(kinds, has_options=has_options)

    def upload_bytes(self, request: Request) -> int:
        """None: nothing leaves this machine."""
        refuse_settings(self._baseline.name, request)
        return 0

    async def close(self) -> None:
        """Nothing to close."""


class ReplayAnswerer(CostsNothing):
    """Another run's ledger: requests made there get the same reply; anything else fails."""

    def __init__(self, spec: str, run: Path, ledger: str = LEDGER) -> None:
        self.spec = spec
        self._records = LedgerQueries.open(run, ledger)

    async def answer(self, prompt: HasKind, request: Request, log: AttemptLog) -> Reply:  # noqa: ARG002
        """The recorded reply to exactly this request."""
        reply = self._records.replay(request.key())
        if reply is None:
            raise ModelError("unsupported", f"the replayed run did not send this {prompt.kind} prompt")
        return reply

    async def close(self) -> None:
        """Close the other ledger."""
        self._records.close()


def refuse_unfit(
    answerer: Answerer[Asked],
    example: Request,
    kinds: Collection[PromptKind] = (),
    *,
    has_options: bool = True,
    max_usd: float | None,
) -> None:
    """Raise UsageError for anything unsupported that can be detected without a server."""
    try:
        answerer.refuse(example, kinds, has_options=has_options)
    except ModelError as error:
        raise UsageError(error.detail, remedy=error.remedy) from None
    if max_usd is not None and answerer.worst_cost_usd(example) is None:
        raise UsageError("--max-usd needs a price, and this model's is unknown", remedy=f"give it as {PRICE_FORM}")


def open_answerer(
    spec: str,
    *,
    benchmark: "Benchmark",
    base_urls: tuple[str, ...] = (),
    transport: "Transport | None" = None,
    prices: PriceSource = None,
    needs_key: bool = True,
    is_batch: bool = False,
) -> Answerer[Prompt]:
    """Open what the model spec names; its dependencies are imported on demand."""
    provider, _, name = spec.partition("/")
    if provider in ("baseline", "replay"):
        _refuse_flags(spec, base_urls, transport, is_batch=is_batch)
    if provider == "baseline":
        from medthink.baselines import open_baseline

        return BaselineAnswerer(spec, open_baseline(name, benchmark))
    if provider == "replay":
        return ReplayAnswerer(spec, Path(name))
    return open_model_answerer(
        spec, base_urls=base_urls, transport=transport, prices=prices, needs_key=needs_key, is_batch=is_batch
    )


def open_model_answerer(
    spec: str,
    *,
    base_urls: tuple[str, ...] = (),
    transport: "Transport | None" = None,
    prices: PriceSource = None,
    needs_key: bool = True,
    is_batch: bool = False,
) -> ModelAnswerer | AddedAnswerer:
    """The HTTP model named by the spec, or the one another package adds under that name."""
    provider, _, name = spec.partition("/")
    price = find_price(spec, prices)
    if provider == "local" and name:
        from medthink.models.local import LocalModel

        _refuse_flags(spec, base_urls, transport, is_batch=is_batch)
        return LocalAnswerer(spec, LocalModel(name), price)
    if provider == "inspect" and name:
        from medthink.models.inspect.model import InspectModel

        _refuse_flags(spec, (), transport, is_batch=is_batch)
        return InspectAnswerer(spec, InspectModel(name, base_urls=base_urls, transport=transport), price)
    open_added = load_plugin("medthink.models", provider) if name and provider not in PROVIDERS else None
    if open_added is None:
        return ModelAnswerer(
            spec, base_urls=base_urls, transport=transport, price=price, needs_key=needs_key, is_batch=is_batch
        )
    _refuse_flags(spec, base_urls, transport, is_batch=is_batch)
    return AddedAnswerer(spec, open_added(name), price)


def _refuse_flags(spec: str, base_urls: tuple[str, ...], transport: "Transport | None", *, is_batch: bool) -> None:
    """Raise UsageError for provider flags if there is no provider."""
    if base_urls:
        raise UsageError(f"{spec} does not accept --base-url", remedy="leave it out")
    if transport is not None and transport.service_tier is not None:
        raise UsageError(f"{spec} has no service tiers", remedy="leave out --service-tier")
    if is_batch:
        raise UsageError(f"{spec} does not support batches", remedy="leave out --batch")
