"""Batches run by hand: a run's waiting requests as one file, and the import of their output."""

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from medthink.core.errors import DataError, UsageError
from medthink.models.batches.files import gather_requests, lay_out
from medthink.runs.batching import take_in_batches
from medthink.runs.jobs import JobBook, read_unsettled
from medthink.runs.ledger import Ledger
from medthink.runs.lock import hold
from medthink.runs.loop import run_to_end
from medthink.runs.manifest import read_manifest
from medthink.runs.progress import Tracker
from medthink.runs.records import LEDGER, Records
from medthink.runs.spec import CallTerms
from medthink.runs.spools import FOLDER


class TakenOutput(NamedTuple):
    """How many of a run's requests an output answered, and how many are still waiting."""

    answered: int
    waiting: int


def export_requests(run: Path, into: Path) -> int:
    """Write a run's waiting requests for `vllm run-batch` as one file; returns how many there are."""
    with closing(Records.open(run)) as records:
        waiting = read_unsettled(records.connection)
    if not waiting or not all((run / FOLDER / f"{batch.mark}.jsonl").is_file() for batch in waiting):
        raise UsageError(
            f"{run} has no requests waiting to be run by hand",
            remedy="medthink run DATA --model server/NAME --batch --out RUN makes them",
        )
    return gather_requests(run / FOLDER, [batch.mark for batch in waiting], into)


def take_in_output(run: Path, output: Path) -> TakenOutput:
    """Record the output of `vllm run-batch`; the run's command then continues from there."""
    model = read_manifest(run).model
    with hold(run), closing(Ledger(run / LEDGER)) as ledger:
        book = JobBook(ledger.connection)
        keys = {batch.mark: {row.key for row in book.rows(batch.mark)} for batch in read_unsettled(ledger.connection)}
        if not lay_out(output, run / FOLDER, keys):
            raise DataError(
                f"it answers no waiting request of {run}", file=output, remedy="is it the output for this run?"
            )
        done = ledger.totals().calls.get("done", 0)
        run_to_end(take_in_batches(model, ledger, CallTerms(), tracker=Tracker(), folder=run / FOLDER, needs_key=False))
        calls = ledger.totals().calls
    return TakenOutput(calls.get("done", 0) - done, calls.get("queued", 0))
