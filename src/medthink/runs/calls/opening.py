"""The calls of a session, opened together: call makers for its models on one ledger and one budget, and batches."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple

from medthink.runs.batches.jobs import Batch, give_up_batch, read_unsettled
from medthink.runs.batches.queue import BatchQueue
from medthink.runs.batches.run import BatchCallMaker, collect_batches, run_by_batches
from medthink.runs.calls.answerers import Answerer, ModelAnswerer
from medthink.runs.calls.asking import Asked, LedgerCallMaker, Pass, SharedCalls
from medthink.runs.calls.budget import Budget, BudgetReached
from medthink.runs.ledger.ledger import Ledger
from medthink.runs.manifest import CallTerms
from medthink.runs.progress import ProgressTracker

if TYPE_CHECKING:
    from medthink.models.transport import Transport


class SweepShared(NamedTuple):
    """Shared by the runs of a sweep: one budget, and the calls answered by the others."""

    budget: Budget
    siblings: SharedCalls


class Calls(Generic[Asked]):
    """The call makers by model, and the ledger of their calls."""

    def __init__(
        self,
        desks: Mapping[str, LedgerCallMaker[Asked]],
        offices: Sequence[BatchQueue],
        ledger: Ledger,
        *,
        is_patient: bool,
    ) -> None:
        self.desks = desks
        self.ledger = ledger
        self._offices = offices
        self._is_patient = is_patient

    @property
    def made(self) -> int:
        """The number of calls made in this session."""
        return sum(desk.made for desk in self.desks.values())

    @property
    def is_waiting(self) -> bool:
        """Whether calls are waiting in a batch; tasks that depend on them are left for a later pass."""
        return any(desk.waiting for desk in self.desks.values())

    @property
    def jobs(self) -> tuple[Batch, ...]:
        """The batches that have not ended."""
        return tuple(read_unsettled(self.ledger.connection))

    async def work(self, make_pass: Pass) -> BudgetReached | None:
        """Make all calls: once, or with batches, pass after pass until none is left.

        Returns the limit that stopped the last pass early, if any did.
        """
        if self._offices:
            return await run_by_batches(self._offices, make_pass, is_patient=self._is_patient)
        return await make_pass()


@asynccontextmanager
async def open_calls(
    answerers: Sequence[Answerer[Asked]],
    ledger: Ledger,
    terms: CallTerms,
    *,
    spools: Path,
    tracker: ProgressTracker,
    transport: "Transport | None" = None,
    common: SweepShared | None = None,
    is_checked: bool = False,
) -> AsyncIterator[Calls[Asked]]:
    """Open call makers for the answerers; `spools` has the request files of batches, `ledger`'s folder is locked.

    Answerers that are not checked yet are checked before the first call that has to be sent, if the terms ask for it.
    """
    for named in terms.forget_batches:
        give_up_batch(ledger.connection, named)
    tracker.counts.take_spent(ledger, ledger.totals().own)
    set_aside_usd = 0.0
    if terms.cancel_batches or not terms.batch:
        for model in dict.fromkeys(batch.model for batch in read_unsettled(ledger.connection)):
            set_aside_usd += await collect_batches(
                model, ledger, terms, tracker=tracker, folder=spools, transport=transport
            )
    budget, siblings = common or SweepShared(_open_budget(ledger, terms, set_aside_usd), SharedCalls())
    places = asyncio.Semaphore(max(one.concurrency for one in answerers))
    desks: dict[str, LedgerCallMaker[Asked]] = {}
    offices: list[BatchQueue] = []
    try:
        for one in answerers:
            if terms.batch and isinstance(one, ModelAnswerer):
                office = BatchQueue(one, ledger, budget, tracker=tracker, folder=spools)
                offices.append(office)
                desks[one.spec] = BatchCallMaker(office, ledger, tracker=tracker, siblings=siblings)
            else:
                is_due = terms.preflight and not is_checked
                desks[one.spec] = LedgerCallMaker(one, ledger, budget, places, tracker, siblings, preflight=is_due)
        yield Calls(desks, offices, ledger, is_patient=terms.wait)
    finally:
        for office in offices:
            await office.close()


def _open_budget(ledger: Ledger, terms: CallTerms, set_aside_usd: float) -> Budget:
    spent_usd = ledger.totals().own.cost_usd
    return Budget(
        max_usd=terms.max_usd,
        max_calls=terms.max_calls,
        spent_usd=None if spent_usd is None else spent_usd + set_aside_usd,
        calls=ledger.calls_paid(),
    )
