"""Collecting a finished job: its result files, read row by row into outcomes of calls."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeAlias, TypeVar

from msgspec.structs import replace

from medthink.models.batches import BatchJob, BatchRow, BatchService
from medthink.models.prices import Charge, charge_attempt
from medthink.models.request import ErrorKind, ModelError, Usage
from medthink.models.wires.failures import BOM
from medthink.runs.batches.jobs import AnsweredInBatch, BatchTable, FailedInBatch, QueuedRow, lost_in_batch
from medthink.runs.calls.answerers import ModelAnswerer

Thing = TypeVar("Thing")
BatchOutcome: TypeAlias = AnsweredInBatch | FailedInBatch
_MOST_FETCHES = 3
_ROWS_AT_ONCE = 200
_MISSING: ErrorKind = "expired"
# Such results would come again the same: what they leave open is not asked again by itself.
UNREADABLE: ErrorKind = "invalid_reply"


class ForeignResults(Exception):
    """The job's results belong to other calls than those sent."""


class ResultCollector:
    """Reads the results of jobs."""

    def __init__(self, answerer: ModelAnswerer, client: BatchService, book: BatchTable, folder: Path) -> None:
        self._answerer = answerer
        self._client = client
        self._book = book
        self._folder = folder

    async def collect(self, job: BatchJob, waiting: dict[str, QueuedRow]) -> Iterator[list[BatchOutcome]]:
        """The outcomes of all calls waiting for the job, in portions; ForeignResults if it answers none of them.

        A call missing from the results may have been answered and billed: its outcome is unknown.
        """
        files = [await self._fetch(path, number) for number, path in enumerate(job.results)]
        if files and waiting and not self._is_ours(job, files, waiting):
            raise ForeignResults
        return self._read_all(files, job, waiting)

    def clear(self) -> None:
        """Remove the result files: their contents are in the ledger."""
        for file in self._folder.glob("results-*.jsonl"):
            file.unlink()

    async def _fetch(self, path: str, number: int) -> Path:
        """Download a result file, again if it was incomplete."""
        file = self._folder / f"results-{number}.jsonl"
        for _ in range(_MOST_FETCHES):
            await self._client.fetch(path, file)
            if all(row is not None for row in self._rows(file)):
                break
        return file

    def _is_ours(self, job: BatchJob, files: list[Path], waiting: dict[str, QueuedRow]) -> bool:
        """Whether it answers any call waiting for it, or did so before a session was interrupted."""
        is_answer = (row is not None and row.key in waiting for file in files for row in self._rows(file))
        return self._book.has_outcomes(job.id) or any(is_answer)

    def _rows(self, file: Path) -> Iterator[BatchRow | None]:
        """The rows of a file; None for an invalid line."""
        with file.open("rb") as stream:
            for line in stream:
                line = line.removeprefix(BOM)
                if not line.strip():
                    continue
                try:
                    yield self._client.read_row(line)
                except ValueError:
                    yield None

    def _read_all(
        self, files: list[Path], job: BatchJob, waiting: dict[str, QueuedRow]
    ) -> Iterator[list[BatchOutcome]]:
        left = dict(waiting)
        yield from _in_portions(self._read_rows(files, left))
        problem, kind = f"the job ended ({job.word}) without an outcome for this request", _MISSING
        if any(row is None for file in files for row in self._rows(file)):
            problem, kind = f"the results of {job.id} cannot be read whole", UNREADABLE
        lost: Iterator[BatchOutcome] = (lost_in_batch(row, problem, kind) for row in left.values())
        yield from _in_portions(lost)

    def _read_rows(self, files: list[Path], left: dict[str, QueuedRow]) -> Iterator[BatchOutcome]:
        """The outcome of each call; where its id comes twice, the answer counts and not the error."""
        failed: dict[str, BatchOutcome] = {}
        for row in (row for file in files for row in self._rows(file) if row is not None and row.key in left):
            outcome = self._settle(left[row.key], row)
            if isinstance(outcome, AnsweredInBatch):
                del left[row.key]
                failed.pop(row.key, None)
                yield outcome
            else:
                failed.setdefault(row.key, outcome)
        for key, outcome in failed.items():
            del left[key]
            yield outcome

    def _settle(self, queued: QueuedRow, row: BatchRow) -> BatchOutcome:
        if row.reply is None:
            return FailedInBatch(row.key, "expired", row.problem, "expired")
        try:
            reply = self._answerer.read(row.reply, wants_json=queued.wants_json)
        except ModelError as error:
            # A request that ended in an error of the provider is not billed; an unreadable answer is.
            charge = self._charge(error.usage, queued, is_billed=row.reply.status < 300)
            return FailedInBatch(row.key, error.kind, error.advice, error.kind, charge, error.usage)
        asked = self._book.times_asked(row.key) + 1
        charge = self._charge(reply.usage, queued, is_billed=True)
        return AnsweredInBatch(row.key, replace(reply, attempts=asked, latency_s=None), charge)

    def _charge(self, usage: Usage | None, queued: QueuedRow, *, is_billed: bool) -> Charge:
        return charge_attempt(usage, is_billed=is_billed, worst_usd=queued.worst_usd, price=self._answerer.cost_usd)


def _in_portions(things: Iterable[Thing]) -> Iterator[list[Thing]]:
    source = iter(things)
    while portion := list(islice(source, _ROWS_AT_ONCE)):
        yield portion
