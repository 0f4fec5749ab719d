"""Rate limits: concurrent calls, requests per minute, tokens per minute. Every wait can be cancelled."""

import asyncio
import contextlib
import math
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Literal
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from medthink.models.request import FAILURES, ModelError

WINDOW_S = 60.0


class RateLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits a person sets; None means no limit."""

    concurrency: int = 16
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


class ConcurrencyLimit:
    """At most `limit` calls at once: the limit halves when the provider asks to slow down, and recovers gradually."""

    def __init__(self, most: int) -> None:
        self.limit = float(most)
        self.in_flight = 0
        self._most = most
        self._era = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self) -> int:
        """Wait for a free slot; the ticket records the limit under which the call began."""
        if self._waiting or self.in_flight >= int(self.limit):
            await self._queue()
        else:
            self.in_flight += 1
        return self._era

    def leave(self) -> None:
        """Release the slot to the next in line."""
        self.in_flight -= 1
        self._admit()

    def slow_down(self, ticket: int) -> None:
        """Halve the limit, once for all calls that began under it."""
        if ticket == self._era:
            self._era += 1
            self.limit = max(1.0, self.limit / 2)

    def speed_up(self) -> None:
        """Raise the limit by one after as many successes as the current limit."""
        self.limit = min(float(self._most), self.limit + 1 / self.limit)
        self._admit()

    async def _queue(self) -> None:
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.cancelled():
                with contextlib.suppress(ValueError):  # already cancelled
                    self._waiting.remove(place)
            else:  # the place was granted at the same moment
                self.leave()
            raise

    def _admit(self) -> None:
        while self._waiting and self.in_flight < int(self.limit):
            place = self._waiting.popleft()
            if not place.done():
                self.in_flight += 1
                place.set_result(None)


class WindowCharge:
    """Something spent in a window, at a time; the amount may be corrected later."""

    __slots__ = ("_window", "amount", "at")

    def __init__(self, window: "RateWindow", at: float, amount: float) -> None:
        self._window = window
        self.at = at
        self.amount = amount

    def correct(self, amount: float) -> None:
        """What it really was; where that leaves room, whoever waits for it is woken."""
        self.amount = amount
        self._window.look_again()


class RateWindow:
    """At most this much in any 60 seconds, first come, first served."""

    def __init__(
        self,
        per_minute: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._sleep = sleep
        self._entries: deque[WindowCharge] = deque()
        self._turn = asyncio.Lock()
        self._changed = asyncio.Event()

    async def spend(self, amount: float) -> WindowCharge:
        """Wait until the amount fits; one larger than the limit is sent when the window is empty."""
        async with self._turn:
            while (wait_s := self._wait_s(min(amount, self._per_minute))) > 0:
                await self._rest(wait_s)
            entry = WindowCharge(self, self._clock(), amount)
            self._entries.append(entry)
            return entry

    def look_again(self) -> None:
        """A charge was corrected: there may be room."""
        self._changed.set()

    async def _rest(self, wait_s: float) -> None:
        """Wait so long, or until a charge is corrected."""
        self._changed.clear()
        waits = [asyncio.ensure_future(self._sleep(wait_s)), asyncio.ensure_future(self._changed.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()

    def _wait_s(self, amount: float) -> float:
        now = self._clock()
        while self._entries and self._entries[0].at <= now - WINDOW_S:
            self._entries.popleft()
        excess = sum(entry.amount for entry in self._entries) + amount - self._per_minute
        for entry in self._entries:
            if excess <= 0:
                return 0.0
            excess -= entry.amount
            if excess <= 0:
                return entry.at + WINDOW_S - now
        return 0.0


class Throttle:
    """Limits the rate of calls; models that share one are limited together."""

    def __init__(self, pace: RateLimits) -> None:
        self.gate = ConcurrencyLimit(pace.concurrency)
        self.requests = RateWindow(pace.requests_per_minute) if pace.requests_per_minute else None
        self.tokens = RateWindow(pace.tokens_per_minute) if pace.tokens_per_minute else None


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """Waits double from `first_s` up to `most_s`.

    `patience_s` is the longest time a call waits: for a provider that asks for a pause, or for a server to come back.
    """

    first_s: float = 1.0
    most_s: float = 60.0
    patience_s: float = 600.0


NextStep = Literal["elsewhere", "wait", "give up"]


def next_step(history: Sequence[ModelError], *, untried: int = 0, patience_s: float = math.inf) -> NextStep:
    """What a call does after these failures: ask another server at once, ask again after a wait, or give up.

    `untried` servers have not seen the call since the last wait. What may have been billed counts against the tries of
    its kind on whichever server it was; nobody waits longer than `patience_s`.
    """
    last = history[-1]
    rule = FAILURES[last.kind]
    if last.is_billed and sum(error.is_billed for error in history) >= rule.tries:
        return "give up"
    if untried and rule.elsewhere:
        return "elsewhere"
    is_over = len(history) >= rule.tries or (last.retry_after_s or 0.0) > patience_s
    return "give up" if is_over else "wait"


def next_wait_s(
    history: Sequence[ModelError], backoff: Backoff, chance: random.Random, *, untried: int = 0
) -> float | None:
    """How long a call waits before its next attempt, after these failures; None if there is none."""
    match next_step(history, untried=untried, patience_s=backoff.patience_s):
        case "give up":
            return None
        case "elsewhere":
            return 0.0
        case "wait":
            return _wait_s(history[-1], len(history), backoff, chance)


def _wait_s(error: ModelError, tries: int, backoff: Backoff, chance: random.Random) -> float:
    """Never shorter than the provider asks for, and randomised."""
    ceiling = min(backoff.most_s, backoff.first_s * 2.0 ** (tries - 1))
    jittered = ceiling * chance.uniform(0.5, 1.0)
    if error.retry_after_s is None:
        return jittered
    return error.retry_after_s + min(jittered, 0.1 * error.retry_after_s + backoff.first_s * chance.random())


SICK_AFTER = 2
FIRST_REST_S = 1.0
MOST_REST_S = 60.0


class Endpoint:
    """One base URL and its health."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.proxy = find_proxy(url)
        self.in_flight = 0
        self.failures = 0
        self.served = 0
        self.rests_until = 0.0

    @property
    def is_sick(self) -> bool:
        """Whether it failed several times in a row."""
        return self.failures >= SICK_AFTER

    def is_ready(self, now: float) -> bool:
        """Whether it is healthy, or its pause is over and it is not already being retried."""
        return now >= self.rests_until and (not self.is_sick or self.in_flight == 0)


class Endpoints:
    """The servers of one model."""

    def __init__(self, urls: tuple[str, ...], *, clock: Callable[[], float] = time.monotonic) -> None:
        self.all = [Endpoint(url) for url in urls]
        self._clock = clock
        self._down_since: float | None = None

    @property
    def are_all_sick(self) -> bool:
        """Whether no server is left to ask."""
        return all(endpoint.is_sick for endpoint in self.all)

    def down_for_s(self) -> float:
        """How long all of them have been failing."""
        return 0.0 if self._down_since is None else self._clock() - self._down_since

    def choose(self, avoid: Collection[Endpoint] = ()) -> Endpoint:
        """The ready endpoint with the least in flight; when none is ready, the one that recovers first.

        Those to avoid already failed for the same call: they are chosen only if there is no other.
        """
        now = self._clock()
        others = [endpoint for endpoint in self.all if endpoint not in avoid] or self.all
        ready = [endpoint for endpoint in others if endpoint.is_ready(now)]
        if ready:
            return min(ready, key=lambda endpoint: (endpoint.in_flight, endpoint.served))
        return min(others, key=lambda endpoint: (endpoint.rests_until, endpoint.in_flight))

    def count_ready(self, endpoints: Collection[Endpoint]) -> int:
        """How many of these may be asked now."""
        now = self._clock()
        return sum(endpoint.is_ready(now) for endpoint in endpoints)

    def note_success(self, endpoint: Endpoint) -> None:
        """It answers: it is healthy, and whatever pause it asked for is over."""
        endpoint.failures = 0
        endpoint.rests_until = 0.0
        self._down_since = None

    def note_failure(self, endpoint: Endpoint) -> None:
        """Record a failure: after several in a row it is paused, each time twice as long."""
        endpoint.failures += 1
        if endpoint.is_sick:
            rest_s = min(MOST_REST_S, FIRST_REST_S * 2.0 ** min(10, endpoint.failures - SICK_AFTER))
            endpoint.rests_until = self._clock() + rest_s
        if self._down_since is None and self.are_all_sick:
            self._down_since = self._clock()

    def note_recovery(self, endpoint: Endpoint) -> None:
        """Record an answered health check; after one more failure it is paused again."""
        endpoint.failures = min(endpoint.failures, SICK_AFTER - 1)
        endpoint.rests_until = 0.0
        self._down_since = None

    def note_wait(self, endpoint: Endpoint, wait_s: float) -> None:
        """Record that it asked for a pause: the others are used meanwhile."""
        endpoint.rests_until = max(endpoint.rests_until, self._clock() + wait_s)


def find_proxy(url: str) -> str | None:
    """The proxy that the environment names for this URL, if any."""
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    return getproxies().get(parts.scheme)
