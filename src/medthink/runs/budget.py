"""What a run may still spend."""

import asyncio
from collections import deque
from typing import NamedTuple

from medthink.core.errors import Declined, UsageError
from medthink.core.numbers import as_usd

# From how many of the last calls the estimates learn.
_LEARNED_FROM = 200


class BudgetReached(Declined):
    """The limit on calls or money is reached; what is under way is finished, nothing new is started."""


class Reservation(NamedTuple):
    """Money set aside for one attempt: the most it should cost by the price list, and what is expected by now."""

    worst_usd: float
    expected_usd: float


class Budget:
    """Counts calls and money; asked before each attempt, told after.

    The first attempts are counted at their worst-case price. From then on the estimates learn: an attempt is expected
    to cost as large a part of its worst case as the dearest of the last 200 did, which is more than the whole where the
    server counts more tokens than we do. What does not fit waits for attempts in flight to end; only when none is in
    flight is the limit reached. So the limit is passed, if at all, by what the attempts in flight cost more than
    expected. What earlier sessions of the same run spent counts too; `spent_usd` is None where that is not known.
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
        self.spent_usd = spent_usd
        self.calls = calls

    async def reserve(self, worst_usd: float | None, *, is_retry: bool = False) -> Reservation:
        """Set money aside for an attempt, waiting for others to end if need be, or raise BudgetReached."""
        while (reservation := self._try(worst_usd, is_retry=is_retry)) is None:
            await self._settled.wait()
        self.calls += not is_retry
        self._hold(reservation)
        return reservation

    def reserve_now(self, worst_usd: float | None) -> Reservation | None:
        """The same without waiting: None where others have to end first."""
        reservation = self._try(worst_usd, is_retry=False)
        if reservation is not None:
            self.calls += 1
            self._hold(reservation)
        return reservation

    def take_over(self, worst_usd: float | None) -> Reservation:
        """Set money aside for what an earlier session sent, and counted."""
        reservation = Reservation(worst_usd or 0.0, worst_usd or 0.0)
        self._hold(reservation)
        return reservation

    def give_back(self, reservation: Reservation) -> None:
        """What it was set aside for was never sent: it counts as no call either."""
        self.settle(reservation, 0.0)
        self.calls -= 1

    def settle(self, reservation: Reservation, cost_usd: float | None) -> None:
        """Replace what was set aside by what it cost, or keep it spent where that is not known."""
        self._in_flight -= 1
        self._reserved_usd = self._reserved_usd - reservation.expected_usd if self._in_flight else 0.0
        if self.spent_usd is not None:
            self.spent_usd += reservation.expected_usd if cost_usd is None else cost_usd
        if cost_usd and reservation.worst_usd:
            self._shares.append(cost_usd / reservation.worst_usd)
        self._settled.set()
        self._settled = asyncio.Event()

    def _hold(self, reservation: Reservation) -> None:
        self._in_flight += 1
        self._reserved_usd += reservation.expected_usd

    def _try(self, worst_usd: float | None, *, is_retry: bool) -> Reservation | None:
        """The reservation; None where attempts in flight have to end first."""
        if self._max_calls is not None and self.calls >= self._max_calls and not is_retry:
            raise BudgetReached(f"{self.calls} calls were made, the limit of --max-calls", remedy=_AGAIN)
        if self._max_usd is None:
            return Reservation(worst_usd or 0.0, worst_usd or 0.0)
        reservation = self._expect(worst_usd)
        assert self.spent_usd is not None
        # Written so that a limit which is no number is reached at once.
        if self.spent_usd + self._reserved_usd + reservation.expected_usd <= self._max_usd:
            return reservation
        if self._in_flight:
            return None
        raise BudgetReached(
            f"--max-usd {self._max_usd:g} does not allow another call: {as_usd(self.spent_usd)} are spent,"
            f" and the next may cost {as_usd(reservation.expected_usd)}",
            remedy=_AGAIN,
        )

    def _expect(self, worst_usd: float | None) -> Reservation:
        if worst_usd is None:
            raise UsageError("--max-usd needs a price, and this model's is not known", remedy="give one with --prices")
        if self.spent_usd is None:
            raise UsageError(
                "--max-usd cannot be kept: what earlier calls of this run cost is not known", remedy="use --max-calls"
            )
        return Reservation(worst_usd, worst_usd * max(self._shares, default=1.0))


_AGAIN = "run the same command with a higher limit to go on; nothing done is lost"
