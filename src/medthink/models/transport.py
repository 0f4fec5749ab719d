"""Requests over HTTP: one session, limits, retries, several endpoints."""

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any

import aiohttp
import msgspec
from aiohttp.abc import AbstractStreamWriter

from medthink.models.catalog import ApiKey
from medthink.models.image_limits import ImageLimits, check_fits
from medthink.models.limits import (
    Backoff,
    Endpoint,
    Endpoints,
    RateLimits,
    Throttle,
    WindowCharge,
    next_wait_s,
)
from medthink.models.request import FAILURES, Attempt, AttemptLog, ModelError, Reply, Request
from medthink.models.server_check import ServerAddress, check_server, is_alive
from medthink.models.tokens import estimate_input_tokens
from medthink.models.wires import Encoded, HttpReply, Wire

# Many servers close an idle connection after 5 s; sending into a closing one is a lost attempt.
KEEPALIVE_S = 4.0
# A long answer with its reasoning takes a few hundred kilobytes.
MAX_REPLY_BYTES = 8 * 1024 * 1024
# Small chunks are joined up to this size: fewer system calls, and no second copy of the whole body.
WRITE_BYTES = 64 * 1024

_MOST_PROBE_WAIT_S = 30.0


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The target of requests: everything about the model resolved from the environment and the catalog."""

    provider: str
    name: str
    wire: Any
    urls: tuple[str, ...]
    key: ApiKey | None = None
    key_variable: str = ""
    image_limits: ImageLimits = ImageLimits()
    free_path: str | None = None


class Transport(msgspec.Struct, frozen=True, kw_only=True):
    """User settings for requests. Models with the same `throttle` share its limits."""

    pace: RateLimits = RateLimits()
    throttle: Throttle | None = None
    backoff: Backoff = Backoff()
    timeout_s: float = 600.0
    connect_timeout_s: float = 15.0
    service_tier: str | None = None


class HttpModel:
    """A model behind HTTP."""

    def __init__(self, target: Target, transport: Transport | None = None) -> None:
        self.target = target
        self.transport = transport or Transport()
        self._wire: Wire = target.wire
        self._key_headers = {} if target.key is None else self._wire.sign(target.key.reveal())
        self._headers = {"Content-Type": "application/json"} | self._key_headers
        throttle = self.transport.throttle or Throttle(self.transport.pace)
        self.gate, self._requests, self._tokens = throttle.gate, throttle.requests, throttle.tokens
        self.endpoints = Endpoints(target.urls)
        self._chance = random.Random()
        self._recovering = asyncio.Lock()
        # Called with what is being waited for while no server answers.
        self.on_wait: Callable[[str], None] | None = None
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
        """Encode the request and check it before sending, or raise ModelError."""
        if self.transport.service_tier is not None:
            request = msgspec.structs.replace(request, service_tier=self.transport.service_tier)
        encoded = self._wire.encode(request, self.target.name)
        check_fits(request, encoded.size_bytes, self.target.image_limits)
        return encoded

    async def check(self) -> list[str]:
        """Check the servers, or raise OutsideError if none is usable; returns the problems of the others.

        It costs nothing and takes a few seconds at most.
        """
        session, contact = self._open_session(), self._contact()
        checks = (check_server(session, one.url, one.proxy, contact) for one in self.endpoints.all)
        problems = [problem for problem in await asyncio.gather(*checks) if problem is not None]
        if len(problems) == len(self.endpoints.all):
            raise problems[0]
        return [problem.problem for problem in problems]

    async def generate(self, request: Request, log: AttemptLog | None = None) -> Reply:
        """Answer the request, retrying as the errors' kinds allow, or raise ModelError.

        `log` is notified of every attempt when it ends, including cancelled ones.
        """
        encoded = self.preflight(request)
        sent = 0
        history: list[ModelError] = []
        failed: dict[Endpoint, ModelError] = {}
        while True:
            posting = _Posting(encoded, len(history) + 1, log)
            try:
                reply = await self._try_once(request, posting, failed)
            except ModelError as error:
                sent += posting.is_sent
                history.append(error)
                untried = self._count_untried(failed, error)
                wait_s = next_wait_s(history, self.transport.backoff, self._chance, untried=untried)
                if wait_s is None:
                    raise self._finalise(error, sent) from None
                if not untried:
                    failed.clear()
                await asyncio.sleep(wait_s)
            else:
                self._blame(failed)
                return msgspec.structs.replace(reply, attempts=sent + 1)
            if log is not None:
                await log.again()

    async def _try_once(self, request: Request, posting: "_Posting", failed: dict[Endpoint, ModelError]) -> Reply:
        ticket = await self.gate.enter()
        try:
            if self.endpoints.are_all_sick:
                await self._wait_for_server()
            spent = await self._spend(request)
            endpoint = self.endpoints.choose(failed)
            try:
                reply = await self._record(request, posting, endpoint)
            except ModelError as error:
                failed[endpoint] = error
                raise
            self.gate.speed_up()
            if spent is not None and reply.usage is not None:
                spent.correct(reply.usage.input + reply.usage.output)
            return reply
        except ModelError as error:
            if error.kind == "rate_limit":
                self.gate.slow_down(ticket)
            raise
        finally:
            self.gate.leave()

    def _count_untried(self, failed: dict[Endpoint, ModelError], error: ModelError) -> int:
        """How many other servers may answer what this one did not; a crowded server is not left for a resting one."""
        others = [endpoint for endpoint in self.endpoints.all if endpoint not in failed]
        return len(others) if error.kind != "rate_limit" else self.endpoints.count_ready(others)

    def _blame(self, failed: dict[Endpoint, ModelError]) -> None:
        """Record the failures of other servers on a request that one has answered."""
        for endpoint, error in failed.items():
            rule = FAILURES[error.kind]
            if rule.elsewhere and error.kind != "rate_limit" and not _is_sickening(error):
                self.endpoints.note_failure(endpoint)

    async def _wait_for_server(self) -> None:
        """Wait until a server answers again; one call polls for all. Raises ModelError when `patience_s` is over."""
        async with self._recovering:
            wait_s = self.transport.backoff.first_s
            while self.endpoints.are_all_sick and not await self._find_recovered():
                down_s, patience_s = self.endpoints.down_for_s(), self.transport.backoff.patience_s
                if down_s >= patience_s:
                    raise self._unreachable(down_s)
                if self.on_wait is not None:
                    self.on_wait(f"for {', '.join(self.target.urls)}: no reply; waiting up to {patience_s:.0f} s")
                await asyncio.sleep(min(wait_s, patience_s))
                wait_s = min(2 * wait_s, _MOST_PROBE_WAIT_S)

    async def _find_recovered(self) -> bool:
        """Check every server; one that responds may be used again."""
        session, contact, all_of_them = self._open_session(), self._contact(), self.endpoints.all
        alive = await asyncio.gather(*(is_alive(session, one.url, one.proxy, contact) for one in all_of_them))
        for endpoint, is_there in zip(all_of_them, alive, strict=True):
            if is_there:
                self.endpoints.note_recovery(endpoint)
        return any(alive)

    def _unreachable(self, down_s: float) -> ModelError:
        where = " and ".join(self.target.urls)
        return ModelError(
            "unreachable",
            f"{where}: no reply for {down_s:.0f} s",
            remedy="start the server, then run the same command again; --max-wait sets how long to wait",
        )

    def _contact(self) -> ServerAddress:
        target = self.target
        return ServerAddress(
            models_path=self._wire.MODELS_PATH,
            headers=self._key_headers | self._wire.HEADERS,
            model=target.name,
            key=target.key,
            key_variable=target.key_variable,
            chat_path=target.free_path,
        )

    async def _spend(self, request: Request) -> WindowCharge | None:
        """Wait until the per-minute limits allow one more call."""
        if self._requests is not None:
            await self._requests.spend(1)
        if self._tokens is None:
            return None
        estimate = estimate_input_tokens(request, self.target.provider, self.target.name)
        return await self._tokens.spend(estimate + (request.max_tokens or 0))

    async def _record(self, request: Request, posting: "_Posting", endpoint: Endpoint) -> Reply:
        """Send once, and record the outcome in the endpoint's health and the log."""
        started, outcome, usage, is_billed = time.monotonic(), "cancelled", None, True
        endpoint.in_flight += 1
        endpoint.served += 1
        try:
            http_reply = await self._post(posting, endpoint)
            reply = self.read(http_reply, wants_json=request.schema is not None and request.is_json_checked)
            outcome, usage = "ok", reply.usage
            self.endpoints.note_success(endpoint)
            return msgspec.structs.replace(reply, latency_s=time.monotonic() - started)
        except ModelError as error:
            outcome, usage, is_billed = error.kind, error.usage, error.is_billed
            self._note_health(endpoint, error)
            raise
        finally:
            endpoint.in_flight -= 1
            if posting.log is not None:
                latency_s = time.monotonic() - started
                attempt = Attempt(
                    number=posting.number, endpoint=endpoint.url, outcome=outcome, is_sent=posting.is_sent,
                    latency_s=latency_s, is_billed=is_billed and posting.is_sent, usage=usage,
                )  # fmt: skip
                posting.log.note(attempt)

    def read(self, reply: HttpReply, *, wants_json: bool) -> Reply:
        """Read the reply; one that the wire cannot read fails only this call."""
        key = self.target.key
        if key is not None:
            reply = reply._replace(body=key.mask(reply.body))
        try:
            return self._wire.decode(reply, wants_json=wants_json)
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
            problem = f"the reply could not be decoded: {type(error).__name__}"
            raise ModelError("invalid_reply", problem, status=reply.status) from None

    def _note_health(self, endpoint: Endpoint, error: ModelError) -> None:
        if _is_sickening(error):
            self.endpoints.note_failure(endpoint)
        elif error.kind == "rate_limit" and error.retry_after_s:
            self.endpoints.note_wait(endpoint, min(error.retry_after_s, self.transport.backoff.patience_s))

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
                return HttpReply(response.status, response.headers, await read_body(response))
        except TimeoutError:
            raise ModelError("timeout", f"no complete reply from {endpoint.url} in time") from None
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

    def _finalise(self, error: ModelError, sent: int) -> ModelError:
        """The error for the caller: without the key, and with a remedy."""
        key = self.target.key
        remedy = error.remedy
        if error.kind == "auth":
            remedy = f"check {self.target.key_variable}" if self.target.key_variable else "check the key"
        final = ModelError(
            error.kind,
            key.redact(error.detail) if key else error.detail,
            status=error.status,
            retry_after_s=error.retry_after_s,
            usage=error.usage,
            remedy=remedy,
        )
        final.attempts = sent
        return final


class _Posting(aiohttp.Payload):
    """One attempt's body, written chunk by chunk, that knows whether any of it was sent."""

    def __init__(self, encoded: Encoded, number: int, log: AttemptLog | None) -> None:
        super().__init__(encoded, content_type="application/json")
        self.encoded = encoded
        self.number = number
        self.log = log
        self.is_sent = False
        self._size = encoded.size_bytes

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The body as text, which aiohttp needs for its own error messages."""
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


def _is_sickening(error: ModelError) -> bool:
    """Whether the server failed; a reply with token counts comes from the model."""
    return FAILURES[error.kind].sickens and error.usage is None


async def read_body(response: aiohttp.ClientResponse) -> bytes:
    """The complete body, or ModelError `oversized` as soon as it is too large to be an answer."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_REPLY_BYTES:
            raise ModelError("oversized", f"the reply is larger than {MAX_REPLY_BYTES:,} bytes")
    return b"".join(chunks)
