"""What a run may still spend."""

from medthink.core.errors import Declined, UsageError


class BudgetReached(Declined):
    """The limit on calls or money is reached; what is under way is finished, nothing new is started."""


class Budget:
    """Counts calls and money; asked before each call, told after.

    Calls under way are counted at their worst-case price, or at that of the dearest call so far where the estimate was
    too low, so the limit is not overrun by what is in flight. What earlier sessions of the same run spent counts too;
    `spent_usd` is None where that is not known.
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
        self._dearest_usd = 0.0
        self.spent_usd = spent_usd
        self.calls = calls

    def reserve(self, worst_usd: float | None) -> float:
        """Set aside what a call may cost, or raise BudgetReached."""
        if self._max_calls is not None and self.calls >= self._max_calls:
            raise BudgetReached(f"{self.calls} calls were made, the limit of --max-calls", remedy=_AGAIN)
        if self._max_usd is not None:
            worst_usd = self._fit(worst_usd, self._max_usd)
        self.calls += 1
        self._reserved_usd += worst_usd or 0.0
        return worst_usd or 0.0

    def settle(self, reserved_usd: float, cost_usd: float | None) -> None:
        """Replace what was set aside by what it cost, or keep it spent where that is not known."""
        self._reserved_usd -= reserved_usd
        if self.spent_usd is not None:
            self.spent_usd += reserved_usd if cost_usd is None else cost_usd
        self._dearest_usd = max(self._dearest_usd, cost_usd or 0.0)

    def _fit(self, worst_usd: float | None, max_usd: float) -> float:
        """What to set aside so that the limit holds, or BudgetReached; UsageError where that cannot be known."""
        if worst_usd is None:
            raise UsageError("--max-usd needs a price, and this model's is not known", remedy="give one with --prices")
        if self.spent_usd is None:
            raise UsageError(
                "--max-usd cannot be kept: what earlier calls of this run cost is not known", remedy="use --max-calls"
            )
        worst_usd = max(worst_usd, self._dearest_usd)
        # Written so that a limit which is no number is reached at once.
        if not self.spent_usd + self._reserved_usd + worst_usd <= max_usd:
            raise BudgetReached(
                f"the next call could pass --max-usd {max_usd:g} ({self.spent_usd:.4f} spent)", remedy=_AGAIN
            )
        return worst_usd


_AGAIN = "run the same command with a higher limit to go on; nothing done is lost"
