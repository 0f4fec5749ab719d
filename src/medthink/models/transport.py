"""Requests over HTTP: one session, limits, retries, several endpoints."""

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any

import aiohttp
import msgspec
from aiohttp.abc import AbstractStreamWriter

from medthink.models.endpoints import Endpoint, Endpoints
from medthink.models.errors import ModelError
from medthink.models.keys import Key
from medthink.models.limits import Charge, Pace, Throttle
from medthink.models.preflight import ImageLimits, check_fits
from medthink.models.request import Attempt, Reply, Request, Usage
from medthink.models.retries import Backoff, choose_wait_s, is_final
from medthink.models.tokens import estimate_input_tokens
from medthink.models.wires import Encoded, HttpReply, Wire

# Many servers close an idle connection after 5 s; sending into a closing one is a lost attempt.
KEEPALIVE_S = 4.0
# A long answer with its reasoning has a few hundred kilobytes.
MAX_REPLY_BYTES = 8 * 1024 * 1024
# Small chunks are joined up to this size: fewer system calls, and no second copy of the whole body.
WRITE_BYTES = 64 * 1024

AttemptHook = Callable[[Request, Attempt], None]


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to ask: everything about the model that the environment and the catalog settled."""

    provider: str
    name: str
    wire: Any
    urls: tuple[str, ...]
    key: Key | None = None
    key_variable: str = ""
    image_limits: ImageLimits = ImageLimits()


class Transport(msgspec.Struct, frozen=True, kw_only=True):
    """How to ask: what a person may set. Models given one `throttle` keep to its pace together."""

    pace: Pace = Pace()
    throttle: Throttle | None = None
    backoff: Backoff = Backoff()
    timeout_s: float = 600.0
    connect_timeout_s: float = 15.0


class HttpModel:
    """A model behind HTTP. `on_attempt` is told of every attempt when it ends, cancelled ones included."""

    def __init__(
        self, target: Target, transport: Transport | None = None, *, on_attempt: AttemptHook | None = None
    ) -> None:
        self.target = target
        self.transport = transport or Transport()
        self._on_attempt = on_attempt
        self._wire: Wire = target.wire
        self._headers = {"Content-Type": "application/json"}
        if target.key is not None:
            self._headers |= self._wire.sign(target.key.reveal())
        throttle = self.transport.throttle or Throttle(self.transport.pace)
        self.gate, self._requests, self._tokens = throttle.gate, throttle.requests, throttle.tokens
        self.endpoints = Endpoints(target.urls)
        self._chance = random.Random()
        self._session: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"HttpModel({self.target.provider}/{self.target.name} at {', '.join(self.target.urls)})"

    async def __aenter__(self) -> "HttpModel":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; the model may be used again and then opens new ones."""
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    def preflight(self, request: Request) -> Encoded:
        """Encode the request and check what can be checked before sending, or raise ModelError."""
        encoded = self._wire.encode(request, self.target.name)
        check_fits(request, encoded.size_bytes, self.target.image_limits)
        return encoded

    async def generate(self, request: Request) -> Reply:
        """Answer the request, trying again as the errors' kinds allow, or raise ModelError."""
        encoded = self.preflight(request)
        tries, sent, wasted = 0, 0, Usage()
        while True:
            tries += 1
            posting = _Posting(encoded)
            try:
                reply = await self._try_once(request, posting, tries)
            except ModelError as error:
                sent += posting.is_sent
                wasted += error.usage or Usage()
                if is_final(error, tries, self.transport.backoff):
                    raise self._finalise(error, sent, wasted) from None
                wait_s = choose_wait_s(error, tries, self.transport.backoff, self._chance)
            else:
                return msgspec.structs.replace(reply, attempts=sent + 1, wasted=wasted)
            await asyncio.sleep(wait_s)

    async def _try_once(self, request: Request, posting: "_Posting", number: int) -> Reply:
        ticket = await self.gate.enter()
        try:
            spent = await self._spend(request)
            endpoint = self.endpoints.choose()
            reply = await self._record(request, posting, number, endpoint)
            self.gate.speed_up()
            if spent is not None and reply.usage is not None:
                spent.amount = reply.usage.input + reply.usage.output
            return reply
        except ModelError as error:
            if error.kind == "rate_limit":
                self.gate.slow_down(ticket)
            raise
        finally:
            self.gate.leave()

    async def _spend(self, request: Request) -> Charge | None:
        """Wait for the minute's requests and tokens to allow one more call."""
        if self._requests is not None:
            await self._requests.spend(1)
        if self._tokens is None:
            return None
        estimate = estimate_input_tokens(request, self.target.provider, self.target.name)
        return await self._tokens.spend(estimate + (request.max_tokens or 0))

    async def _record(self, request: Request, posting: "_Posting", number: int, endpoint: Endpoint) -> Reply:
        """Send once, and tell the endpoint's health and the hook how it ended."""
        started, outcome, usage = time.monotonic(), "cancelled", None
        endpoint.in_flight += 1
        endpoint.served += 1
        try:
            http_reply = await self._post(posting, endpoint)
            reply = self._decode(http_reply, wants_json=request.schema is not None and request.is_json_checked)
            outcome, usage = "ok", reply.usage
            self.endpoints.note_success(endpoint)
            return msgspec.structs.replace(reply, latency_s=time.monotonic() - started)
        except ModelError as error:
            outcome, usage = error.kind, error.usage
            self._note_health(endpoint, error)
            raise
        finally:
            endpoint.in_flight -= 1
            if self._on_attempt is not None:
                latency_s = time.monotonic() - started
                attempt = Attempt(
                    number=number, endpoint=endpoint.url, outcome=outcome, is_sent=posting.is_sent,
                    latency_s=latency_s, usage=usage,
                )  # fmt: skip
                self._on_attempt(request, attempt)

    def _decode(self, reply: HttpReply, *, wants_json: bool) -> Reply:
        """Read the reply; one that the wire cannot cope with ends this call and no other."""
        try:
            return self._wire.decode(reply, wants_json=wants_json)
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
            problem = f"the reply cannot be read: {type(error).__name__}"
            raise ModelError("invalid_reply", problem, status=reply.status) from None

    def _note_health(self, endpoint: Endpoint, error: ModelError) -> None:
        if error.kind in ("timeout", "server", "connection"):
            self.endpoints.note_failure(endpoint)
        elif error.kind == "rate_limit" and error.retry_after_s:
            self.endpoints.note_wait(endpoint, error.retry_after_s)

    async def _post(self, posting: "_Posting", endpoint: Endpoint) -> HttpReply:
        encoded = posting.encoded
        try:
            async with self._open_session().post(
                endpoint.url + encoded.path,
                data=posting,
                headers=self._headers | encoded.headers,
                # A redirect would carry the key and the images to another place.
                allow_redirects=False,
                proxy=endpoint.proxy,
            ) as response:
                return HttpReply(response.status, response.headers, await _read_body(response))
        except TimeoutError:
            raise ModelError("timeout", f"no whole reply from {endpoint.url} in time") from None
        except (aiohttp.ClientError, OSError) as error:
            raise ModelError("connection", f"{endpoint.url}: {type(error).__name__}: {error}") from None

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            timeout = aiohttp.ClientTimeout(
                total=self.transport.timeout_s, sock_connect=self.transport.connect_timeout_s
            )
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_S)
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout)
        return self._session

    def _finalise(self, error: ModelError, sent: int, wasted: Usage) -> ModelError:
        """The error as it leaves: without the key, with what it cost and what to do."""
        key = self.target.key
        remedy = error.remedy
        if error.kind == "auth":
            remedy = f"check {self.target.key_variable}" if self.target.key_variable else "check the key"
        final = ModelError(
            error.kind,
            key.redact(error.detail) if key else error.detail,
            status=error.status,
            retry_after_s=error.retry_after_s,
            usage=wasted if wasted != Usage() else None,
            remedy=remedy,
        )
        final.attempts = sent
        return final


class _Posting(aiohttp.Payload):
    """A request body written chunk by chunk, that knows whether any of it went out."""

    def __init__(self, encoded: Encoded) -> None:
        super().__init__(encoded, content_type="application/json")
        self.encoded = encoded
        self.is_sent = False
        self._size = encoded.size_bytes

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The body as text, which aiohttp wants for its own error messages."""
        return b"".join(self.encoded.chunks).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Write the body, joining small chunks on the way."""
        self.is_sent = True
        group: list[bytes] = []
        size = 0
        for chunk in self.encoded.chunks:
            group.append(chunk)
            size += len(chunk)
            if size >= WRITE_BYTES:
                await writer.write(b"".join(group))
                group, size = [], 0
        if group:
            await writer.write(b"".join(group))


async def _read_body(response: aiohttp.ClientResponse) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_REPLY_BYTES:
            raise ModelError("invalid_reply", f"the reply is larger than {MAX_REPLY_BYTES:,} bytes")
    return b"".join(chunks)
