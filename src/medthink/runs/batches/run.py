"""A run by batches: calls are queued in request files, sent as jobs and collected; then the tasks run again.

A *pass* runs the task of every case. Calls in the ledger are answered from it; any other call is queued, and its
case is left out until the next pass. So a task of three steps is three consecutive batches, without the task knowing. A
request file is on disk before the ledger has its calls as queued, and these are recorded before the job is started:
wherever a session is interrupted, the next one finds the job at the provider or knows that it was never started.
"""

from collections.abc import Sequence
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from medthink.core.errors import DataError, UsageError
from medthink.models.batches.files import distribute_results, gather_requests
from medthink.models.request import ModelError, Reply, Request
from medthink.runs.batches.jobs import BatchTable, read_unsettled
from medthink.runs.batches.queue import FOLDER, BatchQueue, wait_for_any
from medthink.runs.calls.answerers import ModelAnswerer, open_model_answerer
from medthink.runs.calls.asking import Asked, Deferred, LedgerCallMaker, Pass, SharedCalls, unanswered
from medthink.runs.calls.budget import Budget, BudgetClaim, BudgetReached
from medthink.runs.engine import run_to_end
from medthink.runs.ledger.ledger import Call, Ledger
from medthink.runs.ledger.lock import lock_run
from medthink.runs.ledger.queries import LEDGER, LedgerQueries
from medthink.runs.manifest import CallTerms, read_manifest
from medthink.runs.progress import ProgressTracker
from medthink.workflow.prediction import CallCost

if TYPE_CHECKING:
    from medthink.models.transport import Transport


async def run_by_batches(offices: Sequence[BatchQueue], make_pass: Pass, *, is_patient: bool) -> BudgetReached | None:
    """Make passes until nothing is left to ask; without patience, leave once everything possible is sent.

    A call that expired in a batch that was waited for is left to the next session, and a caution says so.
    """
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
            # Everything else is done or sent.
            for problem in (problem for office in offices for problem in office.problems):
                raise problem
            return stop
        await wait_for_any(busy)


async def collect_batches(
    model: str,
    ledger: Ledger,
    terms: CallTerms,
    *,
    tracker: ProgressTracker,
    folder: Path,
    transport: "Transport | None" = None,
    needs_key: bool = True,
) -> float:
    """Collect the results of earlier sessions' batches; returns the maximum cost of the calls still waiting in them."""
    answerer = open_model_answerer(
        model,
        base_urls=terms.base_urls,
        transport=transport,
        prices=terms.price_source,
        needs_key=needs_key,
        is_batch=True,
    )
    assert isinstance(answerer, ModelAnswerer)
    async with AsyncExitStack() as opened:
        opened.push_async_callback(answerer.close)
        office = BatchQueue(answerer, ledger, Budget(), tracker=tracker, folder=folder)
        opened.push_async_callback(office.close)
        await (office.cancel() if terms.cancel_batches else office.look_round(sends=False))
        for problem in office.problems:
            tracker.warn(problem.advice)
        return office.set_aside_usd


class BatchCallMaker(LedgerCallMaker[Asked]):
    """A call maker that queues calls instead of sending them."""

    def __init__(self, office: BatchQueue, ledger: Ledger, *, tracker: ProgressTracker, siblings: SharedCalls) -> None:
        super().__init__(office.answerer, ledger, office.budget, tracker=tracker, siblings=siblings)
        self._office = office
        self.waiting = office.waiting

    async def _make(self, call: Call, prompt: Asked, request: Request, claim: BudgetClaim) -> tuple[Reply, CallCost]:  # noqa: ARG002
        """Queue the call; the reply comes in another pass."""
        try:
            encoded = self._office.answerer.encode(request)
        except ModelError as error:
            await self.ledger.intend(call)
            await self._fail(call, error.kind, error.advice)
            self._office.give_up(call.key, error)
            raise unanswered(error) from None
        await self._office.queue(call, request, encoded)
        self.made += 1
        raise Deferred


class ImportedOutput(NamedTuple):
    """How many of a run's requests an output answered, and how many are still waiting."""

    answered: int
    waiting: int


def export_requests(run: Path, into: Path) -> int:
    """Write a run's waiting requests for `vllm run-batch` as one file; returns how many there are."""
    with closing(LedgerQueries.open(run)) as records:
        waiting = read_unsettled(records.connection)
    if not waiting or not all((run / FOLDER / f"{batch.mark}.jsonl").is_file() for batch in waiting):
        raise UsageError(
            f"{run} has no requests waiting to be run by hand",
            remedy="medthink run DATA --model server/NAME --batch --out RUN makes them",
        )
    return gather_requests(run / FOLDER, [batch.mark for batch in waiting], into)


def import_output(run: Path, output: Path) -> ImportedOutput:
    """Record the output of `vllm run-batch`; the run's command then continues from there."""
    model = read_manifest(run).model
    with lock_run(run), closing(Ledger(run / LEDGER)) as ledger:
        book = BatchTable(ledger.connection)
        keys = {batch.mark: {row.key for row in book.rows(batch.mark)} for batch in read_unsettled(ledger.connection)}
        if not distribute_results(output, run / FOLDER, keys):
            raise DataError(
                f"it answers no waiting request of {run}",
                file=output,
                remedy="check that this is the output for this run",
            )
        done = ledger.totals().calls.get("done", 0)
        run_to_end(
            collect_batches(model, ledger, CallTerms(), tracker=ProgressTracker(), folder=run / FOLDER, needs_key=False)
        )
        calls = ledger.totals().calls
    return ImportedOutput(calls.get("done", 0) - done, calls.get("queued", 0))
