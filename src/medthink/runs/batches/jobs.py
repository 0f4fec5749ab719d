"""Batch jobs in the ledger: what is waiting at a provider, and how each call of a job ended.

A batch is *planned* together with its calls, in one transaction, after its file is on disk and before anything is sent;
*sent* when the provider's id for it is known; *ended* when the outcome of every call is on record.
"""

import sqlite3
from collections.abc import Iterable
from typing import Literal, NamedTuple

import msgspec

from medthink.core.clock import now_utc
from medthink.core.errors import UsageError
from medthink.core.jsonio import encode_json
from medthink.models.prices import NOT_BILLED, Charge
from medthink.models.request import Attempt, ErrorKind, Reply, Usage
from medthink.runs.ledger.ledger import Call, attempt_row, failure_row, intent_row, reply_row
from medthink.runs.ledger.schema import RecordKind, write_records

BatchState = Literal["planned", "sent", "ended"]
# The endpoint name of an attempt sent in a batch.
ENDPOINT = "batch "

_SCHEMA = """
CREATE TABLE IF NOT EXISTS batches (
  mark TEXT PRIMARY KEY,             -- our own name for it, under which its spool lies in the run's folder
  model TEXT NOT NULL,
  state TEXT NOT NULL,               -- planned, sent, ended
  job TEXT NOT NULL,                 -- the provider's id, when sent
  after TEXT NOT NULL,               -- the newest job of the provider before it, where jobs have no mark
  strangers TEXT NOT NULL,           -- jobs that were taken for it and turned out not to be, as a JSON array
  path TEXT NOT NULL,                -- where a single request of it would be posted
  calls INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  sha256 TEXT NOT NULL,              -- of the spool
  tokens INTEGER NOT NULL,           -- of all its prompts, estimated
  token_cap INTEGER,                 -- the most that may wait at the provider, where it said so
  planned_at TEXT NOT NULL,
  sent_at TEXT,
  ended_at TEXT,
  detail TEXT NOT NULL,
  is_own INTEGER NOT NULL            -- the provider gave the job's id to us; 0: it was found in its list
) STRICT;
CREATE TABLE IF NOT EXISTS queued (
  call_key TEXT PRIMARY KEY,
  batch TEXT NOT NULL,
  wants_json INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS queued_batch ON queued (batch);
"""
_COLUMNS = (
    "mark, model, state, job, after, strangers, path, calls, bytes, sha256, tokens, token_cap, planned_at, detail,"
    " is_own"
)


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded batch, without its contents."""

    mark: str
    model: str
    state: BatchState = "planned"
    job: str = ""
    after: str = ""
    strangers: tuple[str, ...] = ()
    path: str
    calls: int
    size_bytes: int
    sha256: str
    tokens: int
    token_cap: int | None = None
    planned_at: str = ""
    detail: str = ""
    is_own: bool = False


class QueuedCall(NamedTuple):
    """A call that goes into a batch."""

    call: Call
    wants_json: bool
    worst_usd: float | None


class QueuedRow(NamedTuple):
    """A call waiting in a batch, by its key; `worst_usd` is reserved for it."""

    key: str
    case_id: int
    wants_json: bool
    worst_usd: float | None


class AnsweredInBatch(NamedTuple):
    """A call answered by a batch."""

    key: str
    reply: Reply
    charge: Charge

    @property
    def outcome(self) -> str:
        """How the attempt ended."""
        return "ok"

    @property
    def usage(self) -> Usage | None:
        """The tokens of the attempt."""
        return self.reply.usage


class FailedInBatch(NamedTuple):
    """A call that a batch did not answer; without an outcome it was never sent."""

    key: str
    kind: ErrorKind
    detail: str
    outcome: str | None
    charge: Charge = NOT_BILLED
    usage: Usage | None = None


class BatchTable:
    """The batches of a ledger, written in transactions of their own."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.executescript(_SCHEMA)

    def plan(self, batch: Batch, calls: Iterable[QueuedCall]) -> None:
        """Commit that these calls are about to be sent as this batch."""
        now = now_utc()
        with self._connection:
            self._connection.execute(
                f"INSERT INTO batches ({_COLUMNS})"
                " VALUES (?, ?, 'planned', '', ?, '[]', ?, ?, ?, ?, ?, NULL, ?, '', 0)",
                (batch.mark, batch.model, batch.after, batch.path, batch.calls, batch.size_bytes, batch.sha256,
                 batch.tokens, now),
            )  # fmt: skip
            waiting = list(calls)
            rows = [encode_json(intent_row(one.call, one.worst_usd)) for one in waiting]
            write_records(self._connection, {"queued": rows})
            self._connection.executemany(
                "INSERT OR REPLACE INTO queued VALUES (?, ?, ?)",
                [(one.call.key, batch.mark, one.wants_json) for one in waiting],
            )

    def note_sent(self, mark: str, job: str, *, is_own: bool) -> None:
        """Commit the provider's id of the job, and whether it was the answer to our own request."""
        self._update(mark, "state = 'sent', job = ?, sent_at = ?, is_own = ?", job, now_utc(), is_own)

    def note_stranger(self, batch: Batch) -> None:
        """Record that the job found for this batch is another's: the batch is planned again."""
        strangers = msgspec.json.encode((*batch.strangers, batch.job)).decode()
        self._update(batch.mark, "state = 'planned', job = '', sent_at = NULL, strangers = ?", strangers)

    def note_detail(self, mark: str, detail: str) -> None:
        """Store the provider's description of the job."""
        self._update(mark, "detail = ?", detail)

    def settle(self, job: str, outcomes: Iterable[AnsweredInBatch | FailedInBatch]) -> None:
        """Commit how calls of a job ended; they are no longer waiting."""
        with self._connection:
            self._write_outcomes(job, outcomes)

    def end_whole(
        self,
        batch: Batch,
        outcomes: Iterable[AnsweredInBatch | FailedInBatch],
        detail: str,
        token_cap: int | None = None,
    ) -> None:
        """Commit how the last calls of a batch ended, and with them its own end.

        Between the two, a batch that was never sent would have no calls left and still be sent by the next session.
        """
        with self._connection:
            self._write_outcomes(batch.job, outcomes)
            self._write_end(batch.mark, detail, token_cap)

    def end(self, mark: str, detail: str) -> None:
        """Commit that this batch, whose calls are settled, has ended."""
        with self._connection:
            self._write_end(mark, detail, None)

    def _write_outcomes(self, job: str, outcomes: Iterable[AnsweredInBatch | FailedInBatch]) -> None:
        rows: dict[RecordKind, list[bytes]] = {"attempt": [], "reply": [], "failure": []}
        keys = []
        for one in outcomes:
            keys.append((one.key,))
            if isinstance(one, AnsweredInBatch):
                rows["reply"].append(encode_json(reply_row(one.key, one.reply)))
            else:
                rows["failure"].append(encode_json(failure_row(one.key, one.kind, one.detail)))
            if one.outcome is not None:
                attempt = Attempt(
                    number=1, endpoint=f"{ENDPOINT}{job}", outcome=one.outcome, is_sent=True, latency_s=0.0,
                    is_billed=one.charge != NOT_BILLED, usage=one.usage,
                )  # fmt: skip
                rows["attempt"].append(encode_json(attempt_row(one.key, attempt, one.charge)))
        write_records(self._connection, rows)
        self._connection.executemany("DELETE FROM queued WHERE call_key = ?", keys)

    def _write_end(self, mark: str, detail: str, token_cap: int | None) -> None:
        change = "UPDATE batches SET state = 'ended', ended_at = ?, detail = ?, token_cap = ? WHERE mark = ?"
        self._connection.execute(change, (now_utc(), detail, token_cap, mark))

    def all_unsettled(self) -> list[Batch]:
        """The batches planned or sent, oldest first."""
        return read_unsettled(self._connection)

    def unsettled(self, model: str) -> list[Batch]:
        """Those of one model."""
        return [one for one in self.all_unsettled() if one.model == model]

    def known_jobs(self) -> set[str]:
        """The providers' ids of all batches, ended ones too."""
        return {job for (job,) in self._connection.execute("SELECT job FROM batches WHERE job <> ''")}

    def has_outcomes(self, job: str) -> bool:
        """Whether any call was settled by this job."""
        found = "SELECT 1 FROM attempts WHERE endpoint = ? LIMIT 1"
        return self._connection.execute(found, (f"{ENDPOINT}{job}",)).fetchone() is not None

    def rows(self, mark: str) -> list[QueuedRow]:
        """The calls that wait in a batch."""
        found = self._connection.execute(
            "SELECT call_key, case_id, wants_json, worst_usd FROM queued JOIN calls ON key = call_key WHERE batch = ?",
            (mark,),
        )
        return [QueuedRow(key, case, bool(wants), worst) for key, case, wants, worst in found]

    def times_asked(self, key: str) -> int:
        """The number of times a call was sent in a batch."""
        found = "SELECT count(*) FROM attempts WHERE call_key = ? AND endpoint LIKE ?"
        count: int = self._connection.execute(found, (key, f"{ENDPOINT}%")).fetchone()[0]
        return count

    def token_cap(self, model: str) -> int | None:
        """The lowest limit on waiting tokens that the provider named."""
        found = "SELECT min(token_cap) FROM batches WHERE model = ?"
        cap: int | None = self._connection.execute(found, (model,)).fetchone()[0]
        return cap

    def _update(self, mark: str, change: str, *values: object) -> None:
        with self._connection:
            self._connection.execute(f"UPDATE batches SET {change} WHERE mark = ?", (*values, mark))


def give_up_batch(connection: sqlite3.Connection, named: str) -> None:
    """Settle the calls of a batch that cannot be collected any more, each at the most that it may cost.

    UsageError if no batch of this job or mark is waiting.
    """
    book = BatchTable(connection)
    waiting = book.all_unsettled()
    batch = next((one for one in waiting if named in (one.job, one.mark)), None)
    if batch is None:
        listed = ", ".join(one.job or one.mark for one in waiting) or "none"
        raise UsageError(f"no batch {named} is waiting", remedy=f"those that wait: {listed}")
    problem = "its batch was given up"
    book.end_whole(batch, [lost_in_batch(row, problem) for row in book.rows(batch.mark)], "given up")


def lost_in_batch(row: QueuedRow, problem: str, kind: ErrorKind = "expired") -> FailedInBatch:
    """A call that may have been answered and billed, of which nothing came."""
    return FailedInBatch(row.key, kind, problem, "unknown", Charge(row.worst_usd, is_least=True))


def read_batches(connection: sqlite3.Connection) -> list[Batch]:
    """Every batch of a ledger in the order planned; empty if it was written before batches existed."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'batches'").fetchone():
        return []
    rows = connection.execute(f"SELECT {_COLUMNS} FROM batches ORDER BY rowid").fetchall()
    names = [name if name != "bytes" else "size_bytes" for name in _COLUMNS.split(", ")]
    fields = (dict(zip(names, row, strict=True)) for row in rows)
    return [
        msgspec.convert(one | {"strangers": msgspec.json.decode(one["strangers"])}, Batch, strict=False)
        for one in fields
    ]


def read_unsettled(connection: sqlite3.Connection) -> list[Batch]:
    """The batches of a ledger that are planned or sent, oldest first."""
    return [one for one in read_batches(connection) if one.state != "ended"]
