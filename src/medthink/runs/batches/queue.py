"""The batch queue of one model: calls are grouped into batches, sent as jobs, and their results recorded."""

import asyncio
import hashlib
import os
import secrets
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import BinaryIO

from medthink.core.errors import LedgerError
from medthink.core.files import sync_folder
from medthink.core.numbers import count_of
from medthink.models.batches import BatchJob, RequestFile, UnconfirmedJob
from medthink.models.batches.client import UnclearStart
from medthink.models.request import RETRYABLE, ErrorKind, ModelError, Request
from medthink.models.wires import Encoded
from medthink.runs.batches.jobs import AnsweredInBatch, Batch, BatchTable, FailedInBatch, QueuedCall, lost_in_batch
from medthink.runs.batches.results import UNREADABLE, BatchOutcome, ForeignResults, ResultCollector
from medthink.runs.calls.answerers import ModelAnswerer
from medthink.runs.calls.asking import Deferred, unanswered
from medthink.runs.calls.budget import Budget
from medthink.runs.ledger.ledger import Call, Ledger
from medthink.runs.progress import ProgressTracker

FOLDER = "batches"


class RequestFileWriter:
    """A request file that is being written; `path` is where a single request would be posted."""

    def __init__(self, folder: Path, mark: str, path: str) -> None:
        self.mark = mark
        self.path = path
        self.rows = self.size_bytes = self.tokens = 0
        self.file = request_file_path(folder, mark)
        self._digest = hashlib.sha256()
        try:
            folder.mkdir(exist_ok=True)
            self._stream: BinaryIO = self.file.open("wb")
        except OSError as error:
            raise _unwritable(self.file, error) from None

    def write(self, line: list[bytes], *, tokens: int) -> None:
        """Add a request with this many tokens."""
        try:
            for piece in line:
                self._stream.write(piece)
                self._digest.update(piece)
                self.size_bytes += len(piece)
        except OSError as error:
            raise _unwritable(self.file, error) from None
        self.rows += 1
        self.tokens += tokens

    def close(self) -> str:
        """Flush it to disk; returns its digest."""
        try:
            self._stream.flush()
            os.fsync(self._stream.fileno())
            self._stream.close()
            sync_folder(self.file.parent)
        except OSError as error:
            raise _unwritable(self.file, error) from None
        return self._digest.hexdigest()

    def discard(self) -> None:
        """Discard it: none of its requests was planned."""
        self._stream.close()
        self.file.unlink(missing_ok=True)


def request_file_path(folder: Path, mark: str) -> Path:
    """The path of a batch's request file."""
    return folder / f"{mark}.jsonl"


def is_whole(file: Path, sha256: str) -> bool:
    """Whether a request file exists unchanged."""
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() == sha256
    except OSError:
        return False


def _unwritable(file: Path, error: OSError) -> LedgerError:
    return LedgerError(f"{file}: cannot be written: {error.strerror}", remedy="check the disk, then run again")


# The HTTP status of what was deleted, archived, or belongs to another key.
_GONE = 404
# The first time, and three times again.
MOST_ASKS = 4
_ASKED_AGAIN: frozenset[ErrorKind] = RETRYABLE | {"expired"}
_MOST_STARTS = 4
_FIRST_LOOK_S, _MOST_LOOK_S, _LOOK_GROWTH = 0.5, 60.0, 1.5
# The share of the provider's limit on waiting tokens that our estimate may fill, because it may be too low.
_CAP_SHARE = 0.85


class BatchQueue:
    """The batches of one model in one ledger: fills and sends them, and records their results."""

    def __init__(
        self, answerer: ModelAnswerer, ledger: Ledger, budget: Budget, *, tracker: ProgressTracker, folder: Path
    ) -> None:
        self.answerer = answerer
        self._client = answerer.open_batches()
        self._book = BatchTable(ledger.connection)
        self._folder = folder
        self._client.work_in(folder)
        self._collector = ResultCollector(answerer, self._client, self._book, self._folder)
        self.budget = budget
        self._tracker = tracker
        self._failed: dict[str, ModelError] = {}
        self._turn = asyncio.Lock()
        self._spool: RequestFileWriter | None = None
        self._in_spool: list[QueuedCall] = []
        self._cap = self._book.token_cap(answerer.spec)
        self._is_crowded = False
        self._has_held_back = False
        self._has_begun = False
        self._expired: set[str] = set()
        self._cap_share = _CAP_SHARE
        self.pause_s = _FIRST_LOOK_S
        self._silent_since: float | None = None
        self._withheld_since: dict[str, float] = {}
        # Batches that cannot be collected now, by mark, and why: they stay as they are, and nothing of them is resent.
        self._stuck: dict[str, ModelError] = {}
        self._held = {
            row.key: budget.take_over(row.worst_usd) for batch in self.jobs for row in self._book.rows(batch.mark)
        }
        self.waiting = set(self._held)
        self._clear_stale()

    @property
    def is_manual(self) -> bool:
        """Whether a person has to run the batches."""
        return self._client.is_manual

    @property
    def is_busy(self) -> bool:
        """Whether any call is waiting, here or at the provider."""
        return self._has_held_back or self.is_collecting

    @property
    def is_collecting(self) -> bool:
        """Whether a batch is under way whose results can be had."""
        return any(batch.mark not in self._stuck for batch in self.jobs)

    @property
    def problems(self) -> list[ModelError]:
        """What keeps batches from being collected."""
        return list(self._stuck.values())

    @property
    def jobs(self) -> list[Batch]:
        """The batches that have not ended."""
        return self._book.unsettled(self.answerer.spec)

    @property
    def set_aside_usd(self) -> float:
        """The maximum cost of the waiting calls."""
        return sum(held.expected_usd for held in self._held.values())

    def begin_pass(self) -> None:
        """Begin a pass: deferred calls may be queued again."""
        self._has_held_back = self._is_crowded = False
        self._has_begun = True
        self._tracker.enter("queueing")

    async def look_round(self, *, sends: bool = True) -> bool:
        """Find or send planned batches and collect finished ones; returns whether any batch ended."""
        ended = False
        for batch in self.jobs:
            if batch.state == "planned":
                await self._find_or_send(batch, sends=sends)
        for batch in self.jobs:
            if batch.state == "sent" and batch.mark not in self._stuck:
                ended |= await self._look_or_hold(batch)
        return ended

    async def cancel(self) -> None:
        """Cancel all jobs, keeping what they have, and wait until they have ended."""
        await self.look_round(sends=False)
        for batch in self.jobs:
            if batch.mark not in self._stuck:
                await self._client.cancel(batch.job)
        while self.is_busy:
            await wait_for_any([self])

    async def close(self) -> None:
        """Close the connections, and discard an unplanned request file."""
        if self._spool is not None:
            self._spool.discard()
        await self._client.close()

    async def queue(self, call: Call, request: Request, encoded: Encoded) -> None:
        """Add the call to a batch, or raise Deferred if others have to end first."""
        tokens, line = self.answerer.input_tokens(request), self._client.line(call.key, encoded)
        worst_usd = self.answerer.worst_cost_usd(request)
        self._refuse_hopeless(call.key, tokens)
        async with self._turn:
            await self._make_room(sum(map(len, line)), tokens)
            held = self.budget.reserve_now(worst_usd)
            if held is None:
                raise self._hold_back()
            self._held[call.key] = held
            if self._spool is None:
                self._spool = RequestFileWriter(self._folder, f"medthink-{secrets.token_hex(8)}", encoded.path)
            self._spool.write(line, tokens=tokens)
            wants_json = request.schema is not None and request.is_json_checked
            self._in_spool.append(QueuedCall(call, wants_json, worst_usd))
            self._note_waiting({call.key})

    def give_up(self, key: str, error: ModelError) -> None:
        """Give up on a call in this session."""
        self._failed[key] = error

    def _refuse_hopeless(self, key: str, tokens: int) -> None:
        error = self._failed.get(key)
        if self._cap is not None and tokens > self._cap:
            error = ModelError("unsupported", f"about {tokens:,} tokens, but a batch may hold at most {self._cap:,}")
        if error is None and self._book.times_asked(key) >= MOST_ASKS:
            detail = f"sent in {MOST_ASKS} batches without getting an answer"
            error = ModelError("expired", detail, remedy="run it without --batch")
        if error is not None:
            raise unanswered(error)

    def _hold_back(self) -> Deferred:
        self._has_held_back = True
        return Deferred()

    async def _make_room(self, size_bytes: int, tokens: int) -> None:
        """Make sure that the next request fits into the file, the job and the provider's queue."""
        spool, limits = self._spool, self._client.limits
        if spool and (spool.rows >= limits.rows or spool.size_bytes + size_bytes > limits.size_bytes):
            await self.flush()
        if self._is_crowded:
            raise self._hold_back()
        if self._cap is not None:
            queued = sum(batch.tokens for batch in self.jobs) + (self._spool.tokens if self._spool else 0)
            if queued and queued + tokens > self._cap * self._cap_share:
                raise self._hold_back()

    async def flush(self) -> None:
        """Plan the batch that is in the request file, and send it."""
        spool, calls = self._spool, self._in_spool
        if spool is None:
            return
        sha256 = spool.close()
        batch = Batch(
            mark=spool.mark,
            model=self.answerer.spec,
            after=await self._client.latest(),
            path=spool.path,
            calls=spool.rows,
            size_bytes=spool.size_bytes,
            sha256=sha256,
            tokens=spool.tokens,
        )
        self._book.plan(batch, calls)
        self._spool, self._in_spool = None, []
        await self._send(batch)

    async def _find_or_send(self, batch: Batch, *, sends: bool) -> None:
        """Find or send a batch of an earlier session, whose job may have been started."""
        if await self._adopt(batch):
            return
        if sends and is_whole(request_file_path(self._folder, batch.mark), batch.sha256):
            await self._send(batch)
        else:
            self._release(batch, "connection", "the batch was never sent")

    async def _adopt(self, batch: Batch) -> bool:
        """Search for the job at the provider; if jobs have no tag, its results will confirm it."""
        found = await self._client.find(UnconfirmedJob(batch.mark, batch.calls, batch.after))
        strange = {*batch.strangers, *self._book.known_jobs()}
        job = next((job for job in found if job.id not in strange), None)
        if job is not None:
            self._book.note_sent(batch.mark, job.id, is_own=False)
        return job is not None

    async def _send(self, batch: Batch) -> None:
        """Start the job."""
        try:
            job = await self._start(batch)
        except UnclearStart as unclear:
            # It stays planned: the next round finds or sends it.
            raise unclear.error from None
        except ModelError as error:
            if error.kind != "rate_limit":
                self._release(batch, error.kind, error.advice)
                raise
            job = BatchJob(id="", state="rejected", problem=error.detail, is_crowded=True)
        if job is None:
            return
        if job.state == "rejected":
            self._refuse(batch, job)
            return
        self._book.note_sent(batch.mark, job.id, is_own=True)
        if not self._client.is_manual:
            request_file_path(self._folder, batch.mark).unlink(missing_ok=True)

    async def _start(self, batch: Batch) -> BatchJob | None:
        """Start the job; if it is unclear whether it was started, look for it first, and return None if found."""
        file, spool = (
            request_file_path(self._folder, batch.mark),
            RequestFile(batch.calls, batch.size_bytes - 1, batch.path),
        )
        for number in range(1, _MOST_STARTS):
            try:
                return await self._client.submit(spool, file, batch.mark)
            except UnclearStart as unclear:
                await asyncio.sleep(self._client.first_wait_s * number)
                if await self._adopt(batch):
                    return None
                self._tracker.enter("waiting", f"for the provider: {unclear.error.detail}")
        return await self._client.submit(spool, file, batch.mark)

    def _refuse(self, batch: Batch, job: BatchJob) -> None:
        """The provider rejected the whole batch: its calls can be queued again."""
        if not job.is_crowded:
            if job.is_withheld:
                self._lose(batch, f"the job ended ({job.word}) after some of it was done: {job.problem}", "bad_request")
            else:
                self._release(batch, "bad_request", job.problem)
            raise ModelError("bad_request", f"the provider rejected the batch: {job.problem}")
        is_alone = all(other.mark == batch.mark for other in self.jobs)
        if is_alone and self._cap is not None:
            # The provider counts more tokens than we do, or someone else fills its queue.
            self._cap_share /= 2
        cap = job.token_cap or (batch.tokens // 2 if is_alone else None)
        self._cap = min((one for one in (self._cap, cap) if one is not None), default=None)
        self._is_crowded = self._has_held_back = True
        self._release(batch, "rate_limit", job.problem, cap)

    def _release(self, batch: Batch, kind: ErrorKind, problem: str, cap: int | None = None) -> None:
        rows = self._book.rows(batch.mark)
        self._book.end_whole(batch, [FailedInBatch(row.key, kind, problem, None) for row in rows], problem, cap)
        self._note_gone({row.key for row in rows})
        for row in rows:
            self.budget.give_back(self._held.pop(row.key))
        request_file_path(self._folder, batch.mark).unlink(missing_ok=True)

    async def _look_or_hold(self, batch: Batch) -> bool:
        """Check a batch; one whose job or results are gone is left unchanged."""
        try:
            return await self._look_at(batch)
        except ModelError as error:
            if error.status != _GONE:
                raise
            why = f"the provider does not know {batch.job} or its results any more: {error.detail}"
            self._stuck[batch.mark] = _stuck(batch, why, "use the key that it was sent with, or give it up with")
            return False

    async def _look_at(self, batch: Batch) -> bool:
        """Collect the batch if its job has ended; returns whether it has."""
        job = await self._client.look(batch.job)
        if job.state == "working":
            counted = f"{job.word}, {job.done:,} of {batch.calls:,}"
            if counted != batch.detail:
                self._book.note_detail(batch.mark, counted)
            return False
        if job.state == "rejected":
            self._refuse(batch, job)
            return False
        if job.is_withheld:
            self._wait_for_results(batch, job)
            return False
        return await self._take_in(batch, job)

    def _wait_for_results(self, batch: Batch, job: BatchJob) -> None:
        """The job has ended and its results are not there: they are looked for as long as a server is waited for."""
        self._book.note_detail(batch.mark, f"{job.word}, its results are not there yet")
        since = self._withheld_since.setdefault(batch.mark, time.monotonic())
        if time.monotonic() - since > self._client.patience_s:
            why = f"{batch.job} has ended ({job.word}), and the provider does not give its results"
            self._stuck[batch.mark] = _stuck(batch, why, "run the same command later to look again, or give it up with")

    async def _take_in(self, batch: Batch, job: BatchJob) -> bool:
        rows = {row.key: row for row in self._book.rows(batch.mark)}
        try:
            portions = await self._collector.collect(job, rows)
        except ForeignResults:
            if not batch.is_own and not self._client.has_marks:
                self._book.note_stranger(batch)
                return False
            problem = f"the results of {job.id} answer none of its requests"
            self._lose(batch, problem, UNREADABLE)
            self._stuck[batch.mark] = ModelError(UNREADABLE, problem, remedy="ask the provider; nothing was sent again")
        else:
            for portion in portions:
                self._record(job.id, portion)
            self._book.end(batch.mark, job.word)
            self._tell_expired(job.id, len(rows.keys() & self._expired))
        self._collector.clear()
        for file in self._folder.glob(f"{batch.mark}.*"):
            file.unlink()
        return True

    def _tell_expired(self, job: str, calls: int) -> None:
        if calls:
            self._tracker.warn(
                f"{job}: {count_of(calls, 'call')} expired at the provider and will not be asked again in this session;"
                " the same command asks again"
            )

    def _lose(self, batch: Batch, problem: str, kind: ErrorKind) -> None:
        """Nothing of the batch can be had, and all of it may have been billed."""
        lost = [lost_in_batch(row, problem, kind) for row in self._book.rows(batch.mark)]
        self._book.end_whole(batch, lost, problem)
        for outcome in lost:
            self._note_end(outcome)

    def _record(self, job: str, portion: Sequence[BatchOutcome]) -> None:
        self._book.settle(job, portion)
        for outcome in portion:
            self._note_end(outcome)

    def _note_end(self, outcome: BatchOutcome) -> None:
        self._note_gone({outcome.key})
        self.budget.settle(self._held.pop(outcome.key), outcome.charge)
        counts = self._tracker.counts
        counts.count_paid(outcome.usage, outcome.charge)
        counts.count_end(is_answered=isinstance(outcome, AnsweredInBatch))
        if isinstance(outcome, AnsweredInBatch):
            self._tracker.note_reply(outcome.reply)
            return
        is_final = outcome.kind not in _ASKED_AGAIN or (outcome.kind, outcome.outcome) == (UNREADABLE, "unknown")
        if is_final or self._book.times_asked(outcome.key) >= MOST_ASKS:
            self._failed[outcome.key] = ModelError(outcome.kind, outcome.detail)
        elif outcome.kind == "expired" and self._has_begun:
            # Another job at once would wait as long again: the call waits for the next session.
            self._expired.add(outcome.key)
            self.waiting.add(outcome.key)

    @property
    def _queued(self) -> int:
        """How many calls wait here or at the provider; those that expired wait for the next session."""
        return len(self.waiting) - len(self._expired)

    def _note_waiting(self, keys: Collection[str]) -> None:
        self.waiting |= set(keys)
        self._tracker.counts.queued = self._queued

    def _note_gone(self, keys: Collection[str]) -> None:
        self.waiting -= set(keys)
        self._tracker.counts.queued = self._queued

    async def look_patiently(self) -> bool:
        """Check the jobs; wait for a provider that does not answer."""
        self._tracker.enter("waiting", self._describe())
        try:
            ended = await self.look_round()
        except ModelError as error:
            now = time.monotonic()
            self._silent_since = self._silent_since or now
            if not error.retryable or now - self._silent_since > self._client.patience_s:
                raise
            self._tracker.enter("waiting", f"for the provider: {error.detail}")
            return False
        self._silent_since = None
        if ended:
            self.pause_s = _FIRST_LOOK_S
        return ended

    def _describe(self) -> str:
        jobs = self.jobs
        if not jobs:
            return "for space in the provider's batch queue"
        told = f"{jobs[0].job}: {jobs[0].detail}" if len(jobs) == 1 and jobs[0].detail else f"{len(jobs)} batch jobs"
        return f"for {told}; {self._queued:,} calls wait"

    def _clear_stale(self) -> None:
        """Remove unplanned request files of interrupted sessions, and partly read results."""
        kept = {batch.mark for batch in self._book.all_unsettled()}
        for file in self._folder.glob("*.jsonl"):
            if file.name.partition(".")[0] not in kept:
                file.unlink()


def _stuck(batch: Batch, why: str, remedy: str) -> ModelError:
    flag = f"--forget-batch {batch.job}: its calls are then asked again, and count at the most that they may have cost"
    return ModelError("expired", why, remedy=f"{remedy} {flag}")


async def wait_for_any(offices: Sequence[BatchQueue]) -> None:
    """Wait until a batch ends; if the providers' queues are full and no batch is ours, wait a while."""
    while True:
        if any([await office.look_patiently() for office in offices]):
            return
        await asyncio.sleep(min(office.pause_s for office in offices))
        for office in offices:
            office.pause_s = min(office.pause_s * _LOOK_GROWTH, _MOST_LOOK_S)
        if not any(office.is_collecting for office in offices):
            return
