"""The budget of a run: calls and money still available."""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from medthink.core.errors import Declined, UsageError
from medthink.core.numbers import as_usd
from medthink.models.prices import NOT_BILLED, PRICE_FORM, Charge

# How many recent calls the estimates are based on.
_LEARNED_FROM = 200
# How many attempts a call is expected to be billed for until so many have ended.
_FIRST_TRIES, _KNOWN_FROM = 2.0, 5


class BudgetReached(Declined):
    """The limit on calls or money is reached; calls in progress are finished, nothing new is started."""


class Reservation(NamedTuple):
    """Money reserved for one attempt: its maximum cost by the price list, None if unknown, and its expected cost."""

    worst_usd: float | None
    expected_usd: float


class BudgetClaim:
    """The calls that a unit of work, a case or a single call, is still expected to need."""

    def __init__(self, calls: int) -> None:
        self.calls = calls
        self.is_admitted = False


class Budget:
    """Counts calls and money; it is asked before each attempt and updated after it.

    The first attempts are counted at their worst-case price. After that the estimates adapt: an attempt is expected to
    cost the same share of its worst case as the most expensive of the last 200, which may exceed 1 if the server counts
    more tokens than we do. An attempt that does not fit waits for those in flight to end; the limit is reached only
    when none is in flight. The limit can therefore only be exceeded by the amount that attempts in flight cost more
    than expected. The cost of earlier sessions of the same run counts too; `spent_usd` is None if that is unknown.

    Under a limit, work is begun only if what is left pays for it and for all that is in progress, repeated attempts
    included; otherwise it waits. So the limit ends in finished cases, and not in the first attempts of many.
    """

    def __init__(
        self,
        *,
        max_usd: float | None = None,
        max_calls: int | None = None,
        spent_usd: float | None = 0.0,
        calls: int = 0,
    ) -> None:
        self._max_usd = max_usd
        self._max_calls = max_calls
        self._reserved_usd = 0.0
        self._in_flight = 0
        self._shares: deque[float] = deque(maxlen=_LEARNED_FROM)
        self._settled = asyncio.Event()
        self._claims: set[BudgetClaim] = set()
        self._calls_before = calls
        self._billed = 0
        self.spent_usd = spent_usd
        self.calls = calls

    @contextmanager
    def claim(self, calls: int) -> Iterator[BudgetClaim]:
        """A claim for so many calls, until the work has ended; it counts once it is admitted."""
        claim = BudgetClaim(calls)
        try:
            yield claim
        finally:
            self._claims.discard(claim)
            self._wake()

    async def admit(self, claim: BudgetClaim, worst_usd: float | None) -> None:
        """Begin the work of a claim, once there is room for it or nothing else is in progress."""
        while not claim.is_admitted and self._claims and not self._has_room(claim, worst_usd):
            await self._settled.wait()
        claim.is_admitted = True
        if self._max_usd is not None or self._max_calls is not None:
            self._claims.add(claim)

    def end_call(self, claim: BudgetClaim) -> None:
        """One of the claim's calls has ended."""
        claim.calls = max(0, claim.calls - 1)
        self._wake()

    async def reserve(self, worst_usd: float | None, *, is_retry: bool = False) -> Reservation:
        """Reserve money for an attempt, waiting for others to end if necessary, or raise BudgetReached."""
        while (reservation := self._try(worst_usd, is_retry=is_retry)) is None:
            await self._settled.wait()
        self.calls += not is_retry
        self._hold(reservation)
        return reservation

    def reserve_now(self, worst_usd: float | None) -> Reservation | None:
        """The same without waiting: None if others have to end first."""
        reservation = self._try(worst_usd, is_retry=False)
        if reservation is not None:
            self.calls += 1
            self._hold(reservation)
        return reservation

    def take_over(self, worst_usd: float | None) -> Reservation:
        """Reserve money for calls that an earlier session sent and counted."""
        reservation = Reservation(worst_usd, worst_usd or 0.0)
        self._hold(reservation)
        return reservation

    def give_back(self, reservation: Reservation) -> None:
        """Release a reservation that was never sent; it does not count as a call."""
        self.settle(reservation, NOT_BILLED)
        self.calls -= 1

    def settle(self, reservation: Reservation, charge: Charge) -> None:
        """Replace a reservation by what the attempt cost."""
        self._in_flight -= 1
        self._reserved_usd = self._reserved_usd - reservation.expected_usd if self._in_flight else 0.0
        cost_usd = charge.cost_usd
        self._billed += bool(cost_usd)
        self.spent_usd = None if self.spent_usd is None or cost_usd is None else self.spent_usd + cost_usd
        if cost_usd and reservation.worst_usd and not charge.is_least:
            self._shares.append(cost_usd / reservation.worst_usd)
        self._wake()

    def _wake(self) -> None:
        self._settled.set()
        self._settled = asyncio.Event()

    def _has_room(self, claim: BudgetClaim, worst_usd: float | None) -> bool:
        """Whether what is left pays for the claim and for all that is in progress."""
        due = claim.calls + sum(one.calls for one in self._claims)
        if self._max_calls is not None and self.calls - self._in_flight + due > self._max_calls:
            return False
        if self._max_usd is None or self.spent_usd is None or worst_usd is None:
            return True
        ended = self.calls - self._in_flight - self._calls_before
        tries = max(1.0 if ended >= _KNOWN_FROM else _FIRST_TRIES, self._billed / max(1, ended))
        return self.spent_usd + due * tries * self._expect(worst_usd).expected_usd <= self._max_usd

    def _hold(self, reservation: Reservation) -> None:
        self._in_flight += 1
        self._reserved_usd += reservation.expected_usd

    def _try(self, worst_usd: float | None, *, is_retry: bool) -> Reservation | None:
        """The reservation; None if attempts in flight have to end first."""
        if self._max_calls is not None and self.calls >= self._max_calls and not is_retry:
            raise BudgetReached(f"{self.calls} calls were made, the limit of --max-calls", remedy=_AGAIN)
        if self._max_usd is None:
            return Reservation(worst_usd, worst_usd or 0.0)
        reservation = self._expect(worst_usd)
        assert self.spent_usd is not None
        # Written so that a NaN limit is reached at once.
        if self.spent_usd + self._reserved_usd + reservation.expected_usd <= self._max_usd:
            return reservation
        if self._in_flight:
            return None
        raise BudgetReached(
            f"--max-usd {self._max_usd:g} leaves no money for another call: {as_usd(self.spent_usd)} spent,"
            f" and the next may cost {as_usd(reservation.expected_usd)}",
            remedy=_AGAIN,
        )

    def _expect(self, worst_usd: float | None) -> Reservation:
        if worst_usd is None:
            raise UsageError("--max-usd needs a price, and this model's is unknown", remedy=f"give it as {PRICE_FORM}")
        if self.spent_usd is None:
            raise UsageError(
                "--max-usd cannot be enforced: the cost of earlier calls of this run is unknown",
                remedy="use --max-calls",
            )
        return Reservation(worst_usd, worst_usd * max(self._shares, default=1.0))


_AGAIN = "run the same command with a higher limit to continue; nothing is lost"
