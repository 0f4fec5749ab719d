"""Read-only queries on a ledger: a run in progress can be inspected by another process."""

import contextlib
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from medthink.core.clock import utc_in
from medthink.core.errors import LedgerError
from medthink.models.request import Reply, Usage
from medthink.runs.ledger.lock import is_locked
from medthink.runs.ledger.schema import CALL_COST, FORMAT, digest_of
from medthink.workflow.prediction import Prediction

Kind = TypeVar("Kind")

# Errors caused by the system, not by the file's content.
_PASSING = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_FULL")


_OTHER_RELEASE = "read it with the release that run.json names, or start the run again in another folder"
RUN_FOLDER = "give the run's folder, the one named by --out of medthink run"
_RIGHTS = "check the disk and the file's permissions, or copy the run to a writable folder"


class LedgerConnection(sqlite3.Connection):
    """A connection whose queries raise LedgerError, with the ledger's name, if SQLite cannot answer them."""

    file = Path()

    def execute(self, *words: Any) -> "_Answer":
        """Run a query."""
        answer = self.cursor(_Answer)
        answer.file = self.file
        return answer.execute(*words)

    def decode(self, text: object, kind: type[Kind]) -> Kind:
        """Decode a JSON text of the ledger."""
        if not isinstance(text, str | bytes):
            raise damaged(self.file, "a text is missing")
        try:
            return msgspec.json.decode(text, type=kind)
        except msgspec.MsgspecError as error:
            raise damaged(self.file, error) from None

    def check(self, values: object, kind: type[Kind]) -> Kind:
        """Values of the ledger, checked for the expected types."""
        try:
            return msgspec.convert(values, kind)
        except msgspec.ValidationError as error:
            raise damaged(self.file, error) from None


class _Answer(sqlite3.Cursor):
    """The result of one query, row by row."""

    file = Path()

    def execute(self, *words: Any) -> "_Answer":
        """Run a query."""
        try:
            super().execute(*words)
        except sqlite3.IntegrityError:
            raise  # about what was to be written
        except sqlite3.Error as error:
            raise unreadable(self.file, error) from None
        return self

    def __next__(self) -> Any:
        try:
            return super().__next__()
        except sqlite3.Error as error:
            raise unreadable(self.file, error) from None

    def fetchone(self) -> Any:
        """The next row, or None."""
        try:
            return super().fetchone()
        except sqlite3.Error as error:
            raise unreadable(self.file, error) from None

    def fetchall(self) -> list[Any]:
        """All remaining rows."""
        return list(self)


def connect_read_only(uri: str, file: Path) -> LedgerConnection:
    """A read connection by SQLite URI; `file` is the name used in errors."""
    reader = sqlite3.connect(uri, uri=True, check_same_thread=False, timeout=30, factory=LedgerConnection)
    reader.file = file
    return reader


def unreadable(file: Path, error: sqlite3.Error) -> LedgerError:
    """The error for a query that SQLite could not answer."""
    if getattr(error, "sqlite_errorname", "").startswith(_PASSING):
        return LedgerError(f"{file}: the ledger cannot be read: {error}", remedy=_RIGHTS)
    return damaged(file, error)


def damaged(file: Path, why: object) -> LedgerError:
    """The error for a damaged ledger."""
    told = str(why).partition(" with text ")[0]  # after this, SQLite quotes bytes that are not text
    return LedgerError(
        f"{file}: the ledger is damaged: {told}",
        remedy=f"medthink salvage {file.parent} -o NEW keeps what can be read; or restore a copy",
    )


def name_cases(cases: Collection[int]) -> str:
    """Cases by their numbers, the first few of many."""
    named = ", ".join(map(str, sorted(cases)[:_CASES_NAMED]))
    more = f" and {len(cases) - _CASES_NAMED:,} more" if len(cases) > _CASES_NAMED else ""
    return f"{'case' if len(cases) == 1 else 'cases'} {named}{more}"


_CASES_NAMED = 10
LEDGER = "ledger.sqlite"
CallState = Literal["open", "queued", "done", "failed"]


_UNDER_WAY = "SELECT worst_usd FROM calls WHERE state = 'open' ORDER BY started_at, id LIMIT ?"


class Spent(NamedTuple):
    """What attempts cost: None as soon as one of them has no known price.

    `uncounted` attempts were or may have been billed and nobody counted their tokens: killed, interrupted, timed out,
    cut off, or answered with something unreadable. Each is in the sum with the most that it may cost by the price
    list, and the sum is shown as "at least".
    """

    cost_usd: float | None
    uncounted: int = 0

    def __add__(self, other: "Spent") -> "Spent":  # type: ignore[override]
        costs = (self.cost_usd, other.cost_usd)
        return Spent(None if None in costs else sum(cost or 0.0 for cost in costs), self.uncounted + other.uncounted)


class ImageTokenWarnings(NamedTuple):
    """Among replies with token counts to calls with images, those with too few input tokens to have seen them."""

    replies: int
    doubtful: int


class Totals(NamedTuple):
    """The totals of a ledger; `usage_doubts` counts replies with impossible token counts.

    `calls_made` counts a call that failed and was made again each time; `attempts` were sent. `spent` is what all of
    them cost, `own` leaves out what another run of the same sweep paid. Calls without an outcome count as lost, unless
    a process is still working on them.
    """

    calls: dict[CallState, int]
    calls_made: int
    attempts: int
    spent: Spent
    own: Spent
    retries: int
    usage_doubts: int
    image_warnings: ImageTokenWarnings
    first_call_at: str | None
    last_call_at: str | None


class FinishedEarlier(NamedTuple):
    """A call that was made and answered earlier."""

    id: int
    reply: Reply
    cost_usd: float | None


class AnsweredCall(NamedTuple):
    """An answered call of a case, by the digest of what was asked."""

    case: int
    asked: str
    reply: Reply
    cost_usd: float | None
    ended_at: str


class FinishedCall(msgspec.Struct, frozen=True):
    """The usage of an answered call, from the few fields of its reply about it; the texts are not decoded."""

    usage: Usage | None
    latency_s: float | None
    attempts: int


def find_uri(run: Path, ledger: str = LEDGER) -> str:
    """The URI to read a ledger by, or LedgerError."""
    path = run / ledger
    if not path.is_file():
        raise LedgerError(f"{run}: it has no ledger", remedy=RUN_FOLDER)
    uri = f"{path.resolve().as_uri()}?mode=ro"
    still = f"{uri}&immutable=1"
    log = path.with_name(f"{ledger}-wal")
    # Where nobody writes and nothing waits in the log, the file is read as immutable: otherwise SQLite would put two
    # files next to it, and could not read it at all in a folder that cannot be written.
    if log.exists() and log.stat().st_size:
        uris = [uri]
    else:
        uris = [uri, still] if is_locked(run) else [still, uri]
    problems = []
    for one in uris:
        problem = _try_reading(one, path)
        if problem is None:
            return one
        problems.append(problem)
    raise problems[0]


def _try_reading(uri: str, path: Path) -> LedgerError | None:
    with contextlib.closing(connect_read_only(uri, path)) as reader:
        try:
            reader.execute("SELECT count(*) FROM (SELECT 1 FROM calls LIMIT 1)").fetchone()
            refuse_other_format(reader)
        except LedgerError as error:
            return error
    return None


def refuse_other_format(reader: LedgerConnection) -> None:
    """Raise LedgerError for the tables of another release."""
    if reader.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
        problem = f"{reader.file}: the ledger was written by another release of MedThink"
        raise LedgerError(problem, remedy=_OTHER_RELEASE)


# What a row's digest is of, as `schema` writes it.
_CALLS = (
    "SELECT case_id, digest, key, case_id, kind, request, state, iif(state = 'done', reply, NULL),"
    " iif(state = 'failed', error_kind, NULL) FROM calls WHERE state IN ('done', 'failed')"
)
_PREDICTIONS = "SELECT case_id, digest, case_id, sample, state, body FROM predictions"
_ATTEMPTS = (
    "SELECT digest, call_key, number, endpoint, outcome, is_sent, latency_s, usage, cost_usd, is_least, saved_usd"
    " FROM attempts"
)
_TOTALS = (
    "SELECT state, count(*), ifnull(sum(has_doubts), 0), count(is_blind), ifnull(sum(is_blind), 0), min(started_at),"
    " max(ended_at) FROM calls GROUP BY state"
)


_COUNTED = ("input", "cached", "output", "written", "written_long")
_SUM = "ifnull(sum(usage ->> '$.{}'), 0)"


class LedgerQueries:
    """Queries on a ledger."""

    def __init__(self, reader: LedgerConnection) -> None:
        self._reader = reader

    @classmethod
    def open(cls, run: Path, ledger: str = LEDGER) -> "LedgerQueries":
        """The ledger of a run's folder, read-only."""
        return cls(connect_read_only(find_uri(run, ledger), run / ledger))

    def close(self) -> None:
        """Close the file."""
        self._reader.close()

    @property
    def connection(self) -> LedgerConnection:
        """The open connection, for other tables in the file."""
        return self._reader

    def queued_keys(self) -> set[str]:
        """The calls waiting in a batch at a provider."""
        return {key for (key,) in self._reader.execute("SELECT key FROM calls WHERE state = 'queued'")}

    def finished(self, key: str) -> FinishedEarlier | None:
        """The call's outcome, if it was answered before."""
        row = self._reader.execute(
            f"SELECT id, reply, {CALL_COST} FROM calls WHERE key = ? AND state = 'done'", (key,)
        ).fetchone()
        return None if row is None else FinishedEarlier(row[0], self._reader.decode(row[1], Reply), row[2])

    def replay(self, asked: str) -> Reply | None:
        """The reply to exactly this request, for any case."""
        row = self._reader.execute(
            "SELECT reply FROM calls WHERE asked = ? AND state = 'done' ORDER BY id LIMIT 1", (asked,)
        ).fetchone()
        return None if row is None else self._reader.decode(row[0], Reply)

    def totals(self, *, is_running: bool = False) -> Totals:
        """Calls by state, attempts sent, and money; a process that `is_running` still waits for open calls."""
        found = self._reader.execute(_TOTALS).fetchall()
        calls = {row[0]: row[1] for row in found}
        made, sent, retries = self._reader.execute(
            "SELECT ifnull(sum(number <= 1), 0), ifnull(sum(is_sent), 0), ifnull(sum(number > 1), 0) FROM attempts"
        ).fetchone()
        lost = Spent(0.0) if is_running else self._under_way()
        return Totals(
            calls=calls,
            calls_made=max(made, sum(calls.values())),
            attempts=sent,
            spent=self._spent("true") + lost,
            own=self._spent("outcome <> 'shared'") + lost,
            retries=retries,
            usage_doubts=sum(row[2] for row in found),
            image_warnings=ImageTokenWarnings(sum(row[3] for row in found), sum(row[4] for row in found)),
            first_call_at=min((row[5] for row in found), default=None),
            last_call_at=max((row[6] for row in found if row[6]), default=None),
        )

    def is_made(self) -> bool:
        """Whether the file has its tables already."""
        return self._reader.execute("SELECT 1 FROM sqlite_master WHERE name = 'calls'").fetchone() is not None

    def changes(self) -> int:
        """How many rows were written so far: another number, another content."""
        count: int = self._reader.execute("SELECT changes FROM session").fetchone()[0]
        return count

    def verify(self, case_id: int | None = None) -> None:
        """Raise LedgerError, naming the cases, if a row about one case, or any, was altered."""
        for what, query in (("calls", _CALLS), ("predictions", f"{_PREDICTIONS} WHERE true")):
            query, values = (query, ()) if case_id is None else (f"{query} AND case_id = ?", (case_id,))
            found = self._reader.execute(query, values)
            self._refuse_altered(what, {case for case, digest, *row in found if digest_of(*row) != digest})
        query, values = _ATTEMPTS, ()
        if case_id is not None:
            query, values = f"{query} WHERE call_key IN (SELECT key FROM calls WHERE case_id = ?)", (case_id,)
        keys = {row[0] for digest, *row in self._reader.execute(query, values) if digest_of(*row) != digest}
        owner = "SELECT case_id FROM calls WHERE key = ?"
        self._refuse_altered("attempts", {row[0] for key in keys for row in self._reader.execute(owner, (key,))})

    def _refuse_altered(self, what: str, cases: set[int]) -> None:
        if cases:
            raise damaged(self._reader.file, f"{what} of {name_cases(cases)} are not as they were written")

    def calls_paid(self) -> int:
        """The calls made for this run, with repeats, without those reused from another."""
        shared = "SELECT call_key FROM attempts WHERE outcome = 'shared'"
        calls: int = self._reader.execute(f"SELECT count(*) FROM calls WHERE key NOT IN ({shared})").fetchone()[0]
        made: int = self._reader.execute(
            "SELECT count(*) FROM attempts WHERE number <= 1 AND outcome <> 'shared'"
        ).fetchone()[0]
        return max(calls, made)

    def _spent(self, which: str) -> Spent:
        cost, unpriced, least = self._reader.execute(
            f"SELECT total(cost_usd), count(*) - count(cost_usd), ifnull(sum(is_least), 0) FROM attempts WHERE {which}"
        ).fetchone()
        return Spent(None if unpriced else cost, least)

    def _under_way(self) -> Spent:
        """What the calls without an outcome may cost; those that waited for a place were not sent."""
        cost, unpriced, least = self._reader.execute(
            "SELECT total(worst_usd), count(*) - count(worst_usd), count(*) - ifnull(sum(worst_usd = 0), 0)"
            f" FROM ({_UNDER_WAY})",
            (self.places() or -1,),
        ).fetchone()
        return Spent(None if unpriced else cost, least)

    def uncounted_cases(self) -> frozenset[int]:
        """The cases with an attempt that may have been billed and whose tokens nobody counted."""
        least = "SELECT call_key FROM attempts WHERE is_least"
        found = self._reader.execute(f"SELECT DISTINCT case_id FROM calls WHERE key IN ({least})")
        return frozenset(case_id for (case_id,) in found)

    def places(self) -> int:
        """The concurrency limit of the session that wrote last; 0 if unlimited."""
        count: int = self._reader.execute("SELECT places FROM session").fetchone()[0]
        return count

    def shared_calls(self) -> int:
        """How many calls were reused from another run of the same sweep."""
        shared = "SELECT count(DISTINCT call_key) FROM attempts WHERE outcome = 'shared'"
        count: int = self._reader.execute(shared).fetchone()[0]
        return count

    def has_answers(self) -> bool:
        """Whether any call was answered."""
        return self._reader.execute("SELECT 1 FROM calls WHERE state = 'done' LIMIT 1").fetchone() is not None

    def answered_cases(self) -> frozenset[int]:
        """The cases with an answered call."""
        return frozenset(
            row[0] for row in self._reader.execute("SELECT DISTINCT case_id FROM calls WHERE state = 'done'")
        )

    def failed_cases(self) -> frozenset[int]:
        """The cases with a failed call, not counting interruptions at the end of a session."""
        failed = "SELECT DISTINCT case_id FROM calls WHERE state = 'failed' AND error_kind <> 'interrupted'"
        return frozenset(case_id for (case_id,) in self._reader.execute(failed))

    def tokens(self) -> Usage:
        """The tokens of all attempts, as far as somebody counted them."""
        row = self._reader.execute(f"SELECT {', '.join(map(_SUM.format, _COUNTED))} FROM attempts").fetchone()
        return Usage(**dict(zip(_COUNTED, row, strict=True)))

    def saved_usd(self) -> float | None:
        """What caches have saved, at the prices of each attempt; None if one of them is not known."""
        saved: float | None = self._reader.execute(
            "SELECT CASE WHEN count(*) = count(saved_usd) THEN total(saved_usd) END FROM attempts"
        ).fetchone()[0]
        return saved

    def ends_since(self, moment: float) -> list[float]:
        """The times of calls that ended after a moment, in seconds since 1970."""
        ended = "SELECT unixepoch(ended_at) FROM calls WHERE state IN ('done', 'failed') AND ended_at > ?"
        since = utc_in(moment - time.time())
        return [float(end) for (end,) in self._reader.execute(ended, (since,))]

    def retry_reasons(self) -> dict[str, int]:
        """What the attempts that were repeated had ended in, and how many so."""
        before = (
            "SELECT outcome FROM attempts AS earlier WHERE earlier.call_key = again.call_key"
            " AND earlier.rowid < again.rowid ORDER BY earlier.rowid DESC LIMIT 1"
        )
        found = f"SELECT ({before}) AS reason, count(*) FROM attempts AS again WHERE number > 1 GROUP BY reason"
        return {reason: count for reason, count in self._reader.execute(found) if reason is not None}

    def latencies(self, most: int) -> list[float]:
        """The latencies of the last replies, so many at most."""
        found = "SELECT latency_s FROM attempts WHERE outcome = 'ok' ORDER BY rowid DESC LIMIT ?"
        return [latency for (latency,) in self._reader.execute(found, (most,))]

    def failures(self) -> list[tuple[str, str, int]]:
        """Why calls failed, and how many by each kind, the commonest first; the detail is that of one of them."""
        return self._reader.execute(
            "SELECT error_kind, min(error_detail), count(*) FROM calls WHERE state = 'failed'"
            " GROUP BY error_kind ORDER BY 3 DESC, 1"
        ).fetchall()

    def finished_calls(self) -> Iterator[FinishedCall]:
        """The usage of every answered call, in the order first asked."""
        for (reply,) in self._reader.execute("SELECT reply FROM calls WHERE state = 'done' ORDER BY id"):
            yield self._reader.decode(reply, FinishedCall)

    def answered_calls(self) -> Iterator[AnsweredCall]:
        """Every answered call with its reply, ordered by case."""
        found = (
            f"SELECT case_id, asked, reply, {CALL_COST}, ended_at FROM calls WHERE state = 'done' ORDER BY case_id, id"
        )
        for case, asked, reply, cost_usd, ended_at in self._reader.execute(found):
            yield AnsweredCall(case, asked, self._reader.decode(reply, Reply), cost_usd, ended_at)

    def costs(self, *, is_running: bool = False) -> list[float | None]:
        """What each attempt cost; None where the price is not known. Without a process, open calls count as sent."""
        made = self._reader.execute("SELECT cost_usd FROM attempts ORDER BY rowid").fetchall()
        lost = [] if is_running else self._reader.execute(_UNDER_WAY, (self.places() or -1,)).fetchall()
        return [cost for (cost,) in (*made, *lost)]

    def predictions(self) -> Iterator[bytes]:
        """The predictions' JSON texts, ordered by case and sample; LedgerError at the first that was altered."""
        for case, digest, *row in self._reader.execute(f"{_PREDICTIONS} ORDER BY case_id, sample"):
            if digest_of(*row) != digest:
                raise damaged(self._reader.file, f"the prediction of case {case} is not as it was written")
            yield self._reader.check(row[-1], str).encode()

    def predictions_as(self, kind: type[Kind]) -> Iterator[Kind]:
        """The same, read as this type."""
        for body in self.predictions():
            yield self._reader.decode(body, kind)

    def good_predictions(self) -> frozenset[tuple[int, int]]:
        """Case and sample of every prediction whose state is ok."""
        return frozenset(self._reader.execute("SELECT case_id, sample FROM predictions WHERE state = 'ok'"))

    def prediction(self, case_id: int, sample: int) -> Prediction:
        """A stored prediction."""
        found = "SELECT body FROM predictions WHERE case_id = ? AND sample = ?"
        return self._reader.decode(self._reader.execute(found, (case_id, sample)).fetchone()[0], Prediction)

    def predictions_of(self, case_id: int) -> list[Prediction]:
        """The stored predictions of a case, by sample."""
        found = self._reader.execute("SELECT body FROM predictions WHERE case_id = ? ORDER BY sample", (case_id,))
        return [self._reader.decode(body, Prediction) for (body,) in found]

    def prediction_states(self) -> dict[str, int]:
        """The number of predictions by state."""
        return dict(self._reader.execute("SELECT state, count(*) FROM predictions GROUP BY state ORDER BY state"))

    def reported_models(self) -> tuple[str, ...]:
        """The model names that providers put on their replies."""
        named = "SELECT DISTINCT model FROM calls WHERE state = 'done' AND model IS NOT NULL ORDER BY 1"
        return tuple(name for (name,) in self._reader.execute(named))

    def ended_at(self, call_ids: Iterable[int]) -> str | None:
        """When the last of these calls was answered, as far as they are on record."""
        query = "SELECT ended_at FROM calls WHERE id = ?"
        return max((end for one in call_ids for (end,) in self._reader.execute(query, (one,))), default=None)
