"""A run by batches: calls are queued in spool files, sent as jobs and collected; then the tasks run again.

A *pass* takes every case through its task. What the ledger has is answered from it; any other call is queued, and its
case is left out until the next pass. So a task of three steps is three consecutive batches, without the task knowing. A
spool is on disk before the ledger has its calls as queued, and that before the job is started: wherever a session is
interrupted, the next one finds the job at the provider or knows that it was never started.
"""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from medthink.models.errors import ModelError
from medthink.models.request import Reply, Request
from medthink.runs.answerers import ModelAnswerer
from medthink.runs.asking import Asked, Deferred, Desk, Pass, unanswered
from medthink.runs.budget import Budget, BudgetReached
from medthink.runs.ledger import Call, Ledger
from medthink.runs.office import BatchOffice, wait_for_any
from medthink.runs.opening import open_model_answerer
from medthink.runs.prediction import Spent
from medthink.runs.progress import Tracker
from medthink.runs.siblings import Siblings
from medthink.runs.spec import CallTerms

if TYPE_CHECKING:
    from medthink.models.transport import Transport


async def work_by_batches(offices: Sequence[BatchOffice], make_pass: Pass, *, is_patient: bool) -> BudgetReached | None:
    """Make passes until nothing is left to ask; without patience, leave once everything possible is sent."""
    for office in offices:
        await office.look_round()
    while True:
        for office in offices:
            office.begin_pass()
        stop = await make_pass()
        for office in offices:
            await office.flush()
        busy = [office for office in offices if office.is_busy]
        if not is_patient or not busy or any(office.is_manual for office in busy):
            return stop
        await wait_for_any(busy)


async def take_in_batches(
    model: str,
    ledger: Ledger,
    terms: CallTerms,
    *,
    tracker: Tracker,
    folder: Path,
    transport: "Transport | None" = None,
    needs_key: bool = True,
) -> float:
    """Collect the results of earlier sessions' batches; returns what the calls still waiting in them may cost."""
    answerer = open_model_answerer(
        model,
        base_urls=terms.base_urls,
        transport=transport,
        prices=terms.prices,
        needs_key=needs_key,
        is_batch=True,
    )
    assert isinstance(answerer, ModelAnswerer)
    async with AsyncExitStack() as opened:
        opened.push_async_callback(answerer.close)
        office = BatchOffice(answerer, ledger, Budget(), tracker=tracker, folder=folder)
        opened.push_async_callback(office.close)
        await (office.cancel() if terms.cancel_batches else office.look_round(sends=False))
        return office.set_aside_usd


class BatchDesk(Desk[Asked]):
    """A desk that queues what it would ask."""

    def __init__(self, office: BatchOffice, ledger: Ledger, *, tracker: Tracker, siblings: Siblings) -> None:
        super().__init__(office.answerer, ledger, office.budget, tracker=tracker, siblings=siblings)
        self._office = office
        self.waiting = office.waiting

    async def _make(self, call: Call, prompt: Asked, request: Request) -> tuple[Reply, Spent]:  # noqa: ARG002
        """Queue the call; the reply comes in another pass."""
        try:
            encoded = self._office.answerer.encode(request)
        except ModelError as error:
            await self.ledger.intend(call)
            await self._fail(call, error.kind, error.advice, None)
            self._office.give_up(call.key, error)
            raise unanswered(error) from None
        await self._office.queue(call, request, encoded)
        self.made += 1
        raise Deferred
