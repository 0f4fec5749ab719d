"""Rate limits: concurrent calls, requests per minute, tokens per minute. Every wait can be cancelled."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable

import msgspec

WINDOW_S = 60.0


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """The limits a person sets; None means no limit."""

    concurrency: int = 16
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


class Gate:
    """At most `limit` calls at once: the limit halves when the provider asks to slow down, and recovers gradually."""

    def __init__(self, most: int) -> None:
        self.limit = float(most)
        self.in_flight = 0
        self._most = most
        self._era = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self) -> int:
        """Wait for a place; the ticket says under which limit the call began."""
        if self._waiting or self.in_flight >= int(self.limit):
            await self._queue()
        else:
            self.in_flight += 1
        return self._era

    def leave(self) -> None:
        """Release the place to the next in line."""
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


class Charge:
    """Something spent in a window, at a time; the amount may be corrected later."""

    __slots__ = ("amount", "at")

    def __init__(self, at: float, amount: float) -> None:
        self.at = at
        self.amount = amount


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
        self._entries: deque[Charge] = deque()
        self._turn = asyncio.Lock()

    async def spend(self, amount: float) -> Charge:
        """Wait until the amount fits; one larger than the limit is sent when the window is empty."""
        async with self._turn:
            while (wait_s := self._wait_s(min(amount, self._per_minute))) > 0:
                await self._sleep(wait_s)
            entry = Charge(self._clock(), amount)
            self._entries.append(entry)
            return entry

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

    def __init__(self, pace: Pace) -> None:
        self.gate = Gate(pace.concurrency)
        self.requests = RateWindow(pace.requests_per_minute) if pace.requests_per_minute else None
        self.tokens = RateWindow(pace.tokens_per_minute) if pace.tokens_per_minute else None
