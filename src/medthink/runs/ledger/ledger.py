"""The ledger: every model call of a run, its intent committed before it is sent and its outcome after.

One SQLite file in WAL mode with `synchronous=FULL`: what was acknowledged survives `kill -9` and power loss. A single
writer thread takes whatever is waiting and commits it together, so storage does not limit throughput. Resuming,
caching, cost, audit and replay are all just reading this file (`records`).
"""

import asyncio
import contextlib
import queue
import sqlite3
import threading
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from medthink.core.clock import now_utc
from medthink.core.errors import LedgerError
from medthink.core.jsonio import encode_json
from medthink.models.prices import NOT_BILLED, Charge
from medthink.models.request import Attempt, Reply
from medthink.runs.ledger.queries import (
    LedgerQueries,
    connect_read_only,
    damaged,
    find_uri,
    refuse_other_format,
    unreadable,
)
from medthink.runs.ledger.schema import INTERRUPT, LOSE_OPEN, SCHEMA, RecordKind, add_digests, write_records


class Call(NamedTuple):
    """A call about to be made; fewer input tokens than `least_tokens` cannot hold its images."""

    key: str
    asked: str
    case_id: int
    kind: str
    request: bytes
    least_tokens: int | None = None


class RecordedCall(NamedTuple):
    """The id of a call that has ended, and what it cost in all sessions together."""

    id: int
    cost_usd: float | None


_Written = dict[str, RecordedCall]
Linked = TypeVar("Linked", bound=sqlite3.Connection)
_MOST_PLACES = 2**31 - 1


class _Order(NamedTuple):
    """A record to commit, as JSON, and the future to resolve afterwards, if any."""

    kind: RecordKind
    row: bytes
    done: "asyncio.Future[_Written] | None" = None


class Ledger(LedgerQueries):
    """The open ledger of a run; one process at a time writes it.

    `places` is how many of the intended calls may be in progress at once, in the order of intents; 0 if unlimited.
    """

    def __init__(self, path: Path, *, places: int = 0) -> None:
        self.path = path
        uri = path.absolute().as_uri()
        with contextlib.ExitStack() as if_it_fails:
            try:
                super().__init__(_prepare(connect_read_only(uri, path), if_it_fails))
                self._check()
                self._reader.executescript(SCHEMA)
                self._close_open_calls()
                # Stored for the next session in case this one dies.
                with self._reader:
                    self._reader.execute("UPDATE session SET places = ?", (min(places, _MOST_PLACES),))
                writer = sqlite3.connect(uri, uri=True, check_same_thread=False, timeout=30)
                self._connection = _prepare(writer, if_it_fails)
            except sqlite3.Error as error:
                raise unreadable(path, error) from None
            if_it_fails.pop_all()
        self._failure: sqlite3.Error | None = None
        self._gathered: list[_Order] = []
        self._orders: queue.SimpleQueue[list[_Order] | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write_orders, name="ledger", daemon=True)
        self._writer.start()

    async def intend(self, call: Call, *, worst_usd: float | None = 0.0) -> None:
        """Commit that this call is about to be made, each attempt for so much at most; a failed one is opened again."""
        await self._commit("intent", *intent_row(call, worst_usd))

    def note_attempt(self, key: str, attempt: Attempt, charge: Charge = NOT_BILLED) -> None:
        """Record one attempt and what it cost; it is committed before anything awaited after it."""
        self._gather(_Order("attempt", encode_json(attempt_row(key, attempt, charge))))

    async def wait_written(self) -> None:
        """Wait until everything recorded so far is on disk."""
        await self._commit("nothing")

    async def settle(self, key: str, reply: Reply) -> RecordedCall:
        """Commit the reply; its cost is recorded on its attempts."""
        written = await self._commit("reply", *reply_row(key, reply))
        return written[key]

    async def fail(self, key: str, *, kind: str, detail: str) -> RecordedCall:
        """Commit that the call failed for good in this session; the next one tries again."""
        written = await self._commit("failure", *failure_row(key, kind, detail))
        return written[key]

    async def save_prediction(self, case_id: int, sample: int, *, state: str, body: bytes) -> None:
        """Commit the prediction of a case."""
        await self._commit("prediction", case_id, sample, state, body.decode())

    def take_in(self, other: Path) -> None:
        """Copy another run's records into this ledger; its calls get new ids, here and in its predictions."""
        self._reader.execute("ATTACH ? AS other", (find_uri(other),))
        try:
            self._copy_other()
        except (sqlite3.Error, LedgerError) as error:
            why = error.problem if isinstance(error, LedgerError) else error
            raise LedgerError(
                f"{other}: cannot be merged: {why}", remedy="run its command again until it is finished"
            ) from None
        self._reader.execute("DETACH other")

    def _copy_other(self) -> None:
        shift = self._reader.execute("SELECT ifnull(max(id), 0) FROM calls").fetchone()[0]
        with self._reader:
            columns = ", ".join(row[1] for row in self._reader.execute("PRAGMA table_info(calls)") if row[1] != "id")
            self._reader.execute(
                f"INSERT INTO calls (id, {columns}) SELECT id + ?, {columns} FROM other.calls", (shift,)
            )
            self._reader.execute("INSERT INTO attempts SELECT * FROM other.attempts")
            self._reader.execute(
                "INSERT INTO predictions SELECT case_id, sample, state, digest_of(case_id, sample, state, shifted),"
                " shifted FROM (SELECT case_id, sample, state, json_set(body, '$.calls', json((SELECT"
                " json_group_array(value + ?) FROM json_each(body, '$.calls')))) AS shifted FROM other.predictions)",
                (shift,),
            )

    def end_writing(self) -> None:
        """Write what is waiting, and mark open calls as stopped; after that the ledger is read-only."""
        if self._writer.is_alive():
            self._hand_over()
            self._orders.put(None)
            self._writer.join()

    def close(self) -> None:
        """Write what is waiting, and close."""
        self.end_writing()
        super().close()

    async def _commit(self, kind: RecordKind, *row: Any) -> _Written:
        # A cancelled task does not lose its record: the writer commits it in any case.
        done: asyncio.Future[_Written] = asyncio.get_running_loop().create_future()
        self._gather(_Order(kind, encode_json(row), done))
        return await done

    def _gather(self, order: _Order) -> None:
        """Collect records until the loop's iteration ends, then pass them to the writer together."""
        if not self._gathered:
            asyncio.get_running_loop().call_soon(self._hand_over)
        self._gathered.append(order)

    def _hand_over(self) -> None:
        if self._gathered:
            self._orders.put(self._gathered)
            self._gathered = []

    def _write_orders(self) -> None:
        is_last = False
        while not is_last and (first := self._orders.get()) is not None:
            orders, is_last = self._take_waiting(first)
            # Nothing is written after a missing record: the counts would no longer be correct.
            written = self._failure or _write_together(self._connection, orders)
            self._failure = written if isinstance(written, sqlite3.Error) else None
            _report(orders, written)
        # A call still open was stopped, and its attempts are all on record. Where the disk took no more it stays open,
        # and the next session counts an attempt that nobody knows the end of.
        if self._failure is None:
            with contextlib.suppress(sqlite3.Error), self._connection:
                self._connection.execute(INTERRUPT)
        self._connection.close()

    def _take_waiting(self, first: list[_Order]) -> tuple[list[_Order], bool]:
        """Everything that waits right now, and whether the end of the queue was reached."""
        orders = first
        while not self._orders.empty():
            more = self._orders.get()
            if more is None:
                return orders, True
            orders += more
        return orders, False

    def _check(self) -> None:
        """Raise LedgerError for a ledger that is damaged or another release's, before anything rests on it."""
        if not self.is_made():
            return
        refuse_other_format(self._reader)
        # Not `quick_check`, which trusts the indexes: a call missing in one would be asked, and paid, again.
        (found,) = self._reader.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise damaged(self.path, found)
        self.verify()

    def _close_open_calls(self) -> None:
        """Mark calls left open by a process that died: their outcome is unknown.

        Calls still waiting for a place cannot have been sent, and have no attempt.
        """
        with self._reader:
            self._reader.execute(LOSE_OPEN, (self.places() or -1,))
            self._reader.execute(INTERRUPT)


def attempt_row(key: str, attempt: Attempt, charge: Charge) -> tuple[object, ...]:
    """The row of an attempt."""
    usage = None if attempt.usage is None else msgspec.json.encode(attempt.usage).decode()
    sent = (attempt.number, attempt.endpoint, attempt.outcome, int(attempt.is_sent), attempt.latency_s)
    return (key, *sent, usage, charge.cost_usd, int(charge.is_least), charge.saved_usd)


def intent_row(call: Call, worst_usd: float | None) -> tuple[Any, ...]:
    """What is recorded of a call that is about to be made, or is put into a batch."""
    asked = (call.key, call.asked, call.case_id, call.kind, call.request.decode(), call.least_tokens)
    return *asked, now_utc(), worst_usd


def reply_row(key: str, reply: Reply) -> tuple[Any, ...]:
    """What is recorded of a reply: all of it, and what the totals need."""
    tokens = None if reply.usage is None else reply.usage.input
    return key, msgspec.json.encode(reply).decode(), now_utc(), reply.model or None, tokens, int(bool(reply.doubts))


def failure_row(key: str, kind: str, detail: str) -> tuple[Any, ...]:
    """What is recorded of a failure."""
    return key, kind, detail.replace("\0", "\N{REPLACEMENT CHARACTER}"), now_utc()


def _prepare(connection: Linked, if_it_fails: contextlib.ExitStack) -> Linked:
    if_it_fails.callback(connection.close)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    add_digests(connection)
    return connection


def _write_together(connection: sqlite3.Connection, orders: list[_Order]) -> _Written | sqlite3.Error:
    """Commit the orders in one transaction; returns the calls that were settled."""
    rows: dict[RecordKind, list[bytes]] = {}
    for order in orders:
        rows.setdefault(order.kind, []).append(order.row)
    try:
        with connection:
            ended = write_records(connection, rows)
    except sqlite3.Error as error:
        return error
    return {key: RecordedCall(call_id, cost_usd) for key, call_id, cost_usd in ended}


def _report(orders: list[_Order], written: _Written | sqlite3.Error) -> None:
    told: dict[asyncio.AbstractEventLoop, list[asyncio.Future[_Written]]] = {}
    for order in orders:
        if order.done is not None:
            told.setdefault(order.done.get_loop(), []).append(order.done)
    for loop, waiting in told.items():
        # Once for the whole group, because waking a loop costs a system call. The waiting task may be gone, and the
        # loop too; the record is on disk all the same.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_tell, waiting, written)


def _tell(waiting: "list[asyncio.Future[_Written]]", written: _Written | sqlite3.Error) -> None:
    for done in waiting:
        if done.done():
            continue
        if isinstance(written, sqlite3.Error):
            done.set_exception(
                LedgerError(f"the ledger cannot be written: {written}", remedy="check the disk, then run again")
            )
        else:
            done.set_result(written)
