"""Read-only queries on a ledger: a run in progress can be inspected by another process."""

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from medthink.core.errors import LedgerError
from medthink.models.prices import estimate_text_tokens
from medthink.models.request import Reply, Usage
from medthink.runs.ledger.lock import is_locked
from medthink.workflow.prediction import Prediction

Kind = TypeVar("Kind")

# Errors caused by the system, not by the file's content.
_PASSING = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_FULL")


_OTHER_RELEASE = "read it with the release that run.json names, or start the run again in another --out"
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
        """Ask."""
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
    if str(error).startswith("no such column"):
        return LedgerError(f"{file}: the ledger was written by another release: {error}", remedy=_OTHER_RELEASE)
    return damaged(file, error)


def damaged(file: Path, why: object) -> LedgerError:
    """The error for a damaged ledger."""
    told = str(why).partition(" with text ")[0]  # after this, SQLite quotes bytes that are not text
    return LedgerError(
        f"{file}: the ledger is damaged: {told}",
        remedy="restore a copy, or start the run again in another --out",
    )


LEDGER = "ledger.sqlite"
CallState = Literal["open", "queued", "done", "failed"]


# What a call cost in all sessions; NULL as soon as one of its attempts has no known price.
CALL_COST = (
    "(SELECT CASE WHEN count(*) = count(cost_usd) THEN total(cost_usd) END FROM attempts WHERE call_key = calls.key)"
)

_UNDER_WAY = "SELECT worst_usd FROM calls WHERE state = 'open' ORDER BY started_at, id LIMIT ?"


class Spent(NamedTuple):
    """What attempts cost: None as soon as one of them has no known price.

    `uncounted` attempts were or may have been billed and nobody counted their tokens: killed, interrupted, timed out,
    cut off, or answered with something unreadable. Each stands in the sum with the most that it may cost by the price
    list, and the sum is shown as "at least".
    """

    cost_usd: float | None
    uncounted: int = 0

    def __add__(self, other: "Spent") -> "Spent":  # type: ignore[override]
        costs = (self.cost_usd, other.cost_usd)
        return Spent(None if None in costs else sum(cost or 0.0 for cost in costs), self.uncounted + other.uncounted)


class Totals(NamedTuple):
    """The totals of a ledger.

    `calls_made` counts a call that failed and was made again each time; `attempts` were sent. `spent` is what all of
    them cost, `own` leaves out what another run of the same sweep paid. Calls without an outcome count as lost, unless
    a process is still working on them.
    """

    calls: dict[CallState, int]
    calls_made: int
    attempts: int
    spent: Spent
    own: Spent


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


class CallWithImages(NamedTuple):
    """An answered call that sent images: its texts, how many images, and the input tokens its reply counts."""

    texts: list[str]
    images: int
    input_tokens: int


class _Sent(msgspec.Struct):
    """The fields of a request that are sent as they are; a part is its kind and its content."""

    system: str
    parts: list[list[str]]


class FinishedCall(msgspec.Struct, frozen=True):
    """What an answered call used: the few fields of its reply about that; the texts are not decoded."""

    usage: Usage | None
    latency_s: float | None
    attempts: int


def find_uri(run: Path, ledger: str = LEDGER) -> str:
    """The URI to read a ledger by, or LedgerError."""
    path = run / ledger
    if not path.is_file():
        raise LedgerError(f"{run}: it has no ledger", remedy="give the run's folder, the one named by --out")
    uri = f"{path.resolve().as_uri()}?mode=ro"
    still = f"{uri}&immutable=1"
    log = path.with_name(f"{ledger}-wal")
    # Where nobody writes and nothing waits in the log, the file is read as it lies: else SQLite would put two files
    # beside it, and could not read it at all in a folder that cannot be written.
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
        except LedgerError as error:
            return error
    return None


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
        calls = dict(self._reader.execute("SELECT state, count(*) FROM calls GROUP BY state"))
        made, sent = self._reader.execute(
            "SELECT ifnull(sum(number <= 1), 0), ifnull(sum(is_sent), 0) FROM attempts"
        ).fetchone()
        lost = Spent(0.0) if is_running else self._under_way()
        spent, own = self._spent("true") + lost, self._spent("outcome <> 'shared'") + lost
        return Totals(calls, max(made, sum(calls.values())), sent, spent, own)

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
        count: int = self._reader.execute("PRAGMA user_version").fetchone()[0]
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

    def usage_doubts(self) -> int:
        """How many replies have token counts that make no sense."""
        doubtful = "SELECT count(*) FROM calls WHERE state = 'done' AND json_array_length(reply, '$.doubts') > 0"
        count: int = self._reader.execute(doubtful).fetchone()[0]
        return count

    def failed_cases(self) -> frozenset[int]:
        """The cases with a failed call, not counting interruptions at the end of a session."""
        failed = "SELECT DISTINCT case_id FROM calls WHERE state = 'failed' AND error_kind <> 'interrupted'"
        return frozenset(case_id for (case_id,) in self._reader.execute(failed))

    def retries(self) -> int:
        """How many attempts were not the first of their call."""
        count: int = self._reader.execute("SELECT count(*) FROM attempts WHERE number > 1").fetchone()[0]
        return count

    def tokens(self) -> Usage:
        """The tokens of all attempts, as far as somebody counted them."""
        row = self._reader.execute(
            "SELECT ifnull(sum(usage ->> '$.input'), 0), ifnull(sum(usage ->> '$.output'), 0) FROM attempts"
        ).fetchone()
        return Usage(input=row[0], output=row[1])

    def ends_since(self, moment: float) -> list[float]:
        """The times of calls that ended after a moment, in seconds since 1970."""
        ended = "SELECT unixepoch(ended_at) FROM calls WHERE unixepoch(ended_at) > ?"
        return [float(end) for (end,) in self._reader.execute(ended, (moment,))]

    def failures(self) -> list[tuple[str, str, int]]:
        """Why calls failed, and how many by each kind, the commonest first; the detail is that of one of them."""
        return self._reader.execute(
            "SELECT error_kind, min(error_detail), count(*) FROM calls WHERE state = 'failed'"
            " GROUP BY error_kind ORDER BY 3 DESC, 1"
        ).fetchall()

    def finished_calls(self) -> Iterator[FinishedCall]:
        """What every answered call used, in the order first asked."""
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

    def calls_with_images(self) -> Iterator[CallWithImages]:
        """Every answered call that sent images to a server and whose reply counts tokens."""
        for request, reply in self._reader.execute(
            """SELECT request, reply FROM calls WHERE state = 'done' AND instr(request, '["image",')"""
            " AND key IN (SELECT call_key FROM attempts WHERE is_sent)"
        ):
            usage = self._reader.decode(reply, FinishedCall).usage
            sent = self._reader.decode(request, _Sent)
            texts = [part[1] for part in sent.parts if part[0] == "text"]
            images = len(sent.parts) - len(texts)
            if usage is not None and images:
                yield CallWithImages([sent.system, *texts], images, usage.input)

    def predictions(self) -> Iterator[bytes]:
        """The predictions' JSON texts, ordered by case and sample."""
        for (body,) in self._reader.execute("SELECT body FROM predictions ORDER BY case_id, sample"):
            yield self._reader.check(body, str).encode()

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

    def prediction_states(self) -> dict[str, int]:
        """The number of predictions by state."""
        return dict(self._reader.execute("SELECT state, count(*) FROM predictions GROUP BY state ORDER BY state"))

    def reported_models(self) -> tuple[str, ...]:
        """The model names that providers put on their replies."""
        names = self._reader.execute("SELECT DISTINCT reply ->> 'model' FROM calls WHERE state = 'done' ORDER BY 1")
        return tuple(name for (name,) in names if name)

    def ended_at(self, call_ids: Iterable[int]) -> str | None:
        """When the last of these calls was answered."""
        ends = [self._reader.execute("SELECT ended_at FROM calls WHERE id = ?", (one,)).fetchone() for one in call_ids]
        return max((end for (end,) in ends), default=None)

    def span(self) -> tuple[str | None, str | None]:
        """When the first call began and the last one ended."""
        first, last = self._reader.execute("SELECT min(started_at), max(ended_at) FROM calls").fetchone()
        return first, last


# The minimum tokens for an image of diagnostic size; most models use hundreds.
LEAST_IMAGE_TOKENS = 64


class ImageTokenWarnings(NamedTuple):
    """Among replies with token counts to calls with images, those with too few input tokens."""

    replies: int
    doubtful: int


def count_image_warnings(records: LedgerQueries) -> ImageTokenWarnings:
    """Check every answered call with images."""
    replies = doubtful = 0
    for call in records.calls_with_images():
        replies += 1
        text_tokens = sum(map(estimate_text_tokens, call.texts))
        doubtful += call.input_tokens < text_tokens + LEAST_IMAGE_TOKENS * call.images
    return ImageTokenWarnings(replies, doubtful)
