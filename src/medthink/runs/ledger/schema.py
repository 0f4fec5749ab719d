"""The tables of a ledger, the statements that write them, and the digest that shows whether a row was altered."""

import sqlite3
from collections.abc import Iterator
from typing import Any, Literal

from medthink.core.digest import digest_value

# Another number means another release's tables.
FORMAT = 3
_TABLES = """
CREATE TABLE IF NOT EXISTS calls (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,          -- digest of model, case and everything asked: the same call, the same key
  asked TEXT NOT NULL,               -- digest of what was asked alone: another model's run can be replayed by it
  case_id INTEGER NOT NULL,
  kind TEXT NOT NULL,
  state TEXT NOT NULL,               -- open, queued (in a batch), done, failed
  least_tokens INTEGER,              -- fewer input tokens than this cannot hold the images; NULL without images
  worst_usd REAL,                    -- the most that one attempt may cost; NULL when the price is not known
  model TEXT,                        -- of the reply, as the provider names it
  has_doubts INTEGER,                -- whether the reply's token counts make no sense
  is_blind INTEGER,                  -- whether they are too few for the images; NULL if nothing was sent or counted
  error_kind TEXT,                   -- why it failed, when failed
  error_detail TEXT,
  started_at TEXT NOT NULL,
  ended_at TEXT,
  digest TEXT,                       -- of what was asked and what it came to, when done or failed
  request TEXT NOT NULL,             -- what was asked, images by digest
  reply TEXT                         -- the reply, when done
) STRICT;
CREATE INDEX IF NOT EXISTS calls_asked ON calls (asked);
CREATE INDEX IF NOT EXISTS calls_case ON calls (case_id);
-- Everything that a run's totals need, so that no text is read for them; the end of a call puts it last.
CREATE INDEX IF NOT EXISTS calls_totals ON calls
  (state, ended_at, started_at, model, has_doubts, is_blind);
CREATE TABLE IF NOT EXISTS attempts (
  call_key TEXT NOT NULL,
  number INTEGER NOT NULL,
  endpoint TEXT NOT NULL,
  outcome TEXT NOT NULL,             -- ok, cancelled, the kind of the error, or unknown (the process died meanwhile)
  is_sent INTEGER NOT NULL,
  latency_s REAL NOT NULL,
  usage TEXT,                        -- its tokens, where somebody counted them
  cost_usd REAL,                     -- NULL when the price is not known
  is_least INTEGER NOT NULL,         -- its tokens are not known: the most that it may cost stands for them
  saved_usd REAL,                    -- what a cache has saved; NULL when the price is not known
  digest TEXT                        -- of the other columns
) STRICT;
CREATE INDEX IF NOT EXISTS attempts_call ON attempts (call_key);
CREATE TABLE IF NOT EXISTS predictions (
  case_id INTEGER NOT NULL,
  sample INTEGER NOT NULL,
  state TEXT NOT NULL,
  digest TEXT NOT NULL,              -- of the other columns
  body TEXT NOT NULL,
  PRIMARY KEY (case_id, sample)
) STRICT;
CREATE INDEX IF NOT EXISTS predictions_state ON predictions (state, case_id, sample);
CREATE TABLE IF NOT EXISTS session (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  places INTEGER NOT NULL DEFAULT 0, -- how many calls the last session had in progress at most; 0 if unlimited
  changes INTEGER NOT NULL DEFAULT 0 -- rows written so far
) STRICT;
INSERT OR IGNORE INTO session (id) VALUES (1);
"""
# Whoever changes a row, the change is counted.
_TRIGGERS = "".join(
    f"CREATE TRIGGER IF NOT EXISTS {table}_{change} AFTER {change} ON {table}"
    " BEGIN UPDATE session SET changes = changes + 1; END;"
    for table in ("calls", "attempts", "predictions")
    for change in ("INSERT", "UPDATE", "DELETE")
)
SCHEMA = f"{_TABLES}{_TRIGGERS}PRAGMA user_version = {FORMAT};"

# What a call cost in all sessions; NULL as soon as one of its attempts has no known price. In a RETURNING clause a
# column has no type of its own: without the cast, SQLite would go through all attempts for each reply.
CALL_COST = (
    "(SELECT CASE WHEN count(*) = count(cost_usd) THEN total(cost_usd) END FROM attempts"
    " WHERE call_key = CAST(calls.key AS TEXT))"
)

# How each kind of record is written: one statement writes all waiting rows of its kind, as one JSON array.
RecordKind = Literal["intent", "queued", "attempt", "reply", "failure", "prediction", "nothing"]
_OPEN = (
    "INSERT INTO calls (key, asked, case_id, kind, request, least_tokens, started_at, worst_usd, state)"
    " SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,"
    " {state!r} FROM json_each(?) WHERE true"
    " ON CONFLICT (key) DO UPDATE SET state = {state!r}, started_at = excluded.started_at,"
    " worst_usd = excluded.worst_usd, error_kind = NULL, error_detail = NULL, digest = NULL"
)
_STATEMENTS: dict[RecordKind, str] = {
    "intent": _OPEN.format(state="open"),
    "queued": _OPEN.format(state="queued"),
    "attempt": (
        "INSERT INTO attempts SELECT key, number, endpoint, outcome, is_sent, latency_s, usage, cost_usd, is_least,"
        " saved_usd,"
        " digest_of(key, number, endpoint, outcome, is_sent, latency_s, usage, cost_usd, is_least, saved_usd)"
        " FROM (SELECT value ->> 0 AS key, value ->> 1 AS number, value ->> 2 AS endpoint, value ->> 3 AS outcome,"
        " value ->> 4 AS is_sent, CAST(value ->> 5 AS REAL) AS latency_s, value ->> 6 AS usage,"
        " CAST(value ->> 7 AS REAL) AS cost_usd, value ->> 8 AS is_least,"
        " CAST(value ->> 9 AS REAL) AS saved_usd FROM json_each(?))"
    ),
    "reply": (
        "UPDATE calls SET state = 'done', reply = row ->> 1, ended_at = row ->> 2, model = row ->> 3,"
        " has_doubts = row ->> 5, digest = digest_of(key, case_id, kind, request, 'done', row ->> 1, NULL),"
        " is_blind = iif(EXISTS (SELECT 1 FROM attempts WHERE call_key = key AND is_sent), row ->> 4 < least_tokens,"
        f" NULL) FROM (SELECT value AS row FROM json_each(?)) WHERE key = row ->> 0 RETURNING key, id, {CALL_COST}"
    ),
    "failure": (
        "UPDATE calls SET state = 'failed', error_kind = row ->> 1, error_detail = row ->> 2, ended_at = row ->> 3,"
        " digest = digest_of(key, case_id, kind, request, 'failed', NULL, row ->> 1)"
        f" FROM (SELECT value AS row FROM json_each(?)) WHERE key = row ->> 0 RETURNING key, id, {CALL_COST}"
    ),
    "prediction": (
        "INSERT OR REPLACE INTO predictions SELECT value ->> 0, value ->> 1, value ->> 2,"
        " digest_of(value ->> 0, value ->> 1, value ->> 2, value ->> 3), value ->> 3 FROM json_each(?)"
    ),
}
# Calls that were left open by a process that died, in the order in which they had places: what each may have cost.
LOSE_OPEN = (
    "INSERT INTO attempts SELECT key, 0, '', 'unknown', 1, 0.0, NULL, worst_usd, is_least, 0.0,"
    " digest_of(key, 0, '', 'unknown', 1, 0.0, NULL, worst_usd, is_least, 0.0)"
    " FROM (SELECT key, worst_usd, ifnull(worst_usd, 1) > 0 AS is_least FROM calls WHERE state = 'open'"
    " ORDER BY started_at, id LIMIT ?)"
)
INTERRUPT = (
    "UPDATE calls SET state = 'failed', error_kind = 'interrupted',"
    " error_detail = 'the run was stopped before the reply came',"
    " digest = digest_of(key, case_id, kind, request, 'failed', NULL, 'interrupted') WHERE state = 'open'"
)
# SQLite accepts no text over a gigabyte; the largest reply allowed grows at most eightfold.
_MOST_BYTES = 64 * 1024 * 1024


def digest_of(*values: Any) -> str:
    """The digest of a row."""
    return digest_value(values)[:16]


def add_digests(connection: sqlite3.Connection) -> None:
    """Let statements on this connection compute a row's digest."""
    connection.create_function("digest_of", -1, digest_of, deterministic=True)


def write_records(connection: sqlite3.Connection, records: dict[RecordKind, list[bytes]]) -> list[tuple[Any, ...]]:
    """Write records, each a JSON array; returns key, id and cost of the calls that ended."""
    # Kind by kind, in the order of a call's life: its intent and reply may be waiting together.
    written = {kind: _write(connection, kind, records[kind]) for kind in _STATEMENTS if records.get(kind)}
    return [*written.get("reply", []), *written.get("failure", [])]


def _write(connection: sqlite3.Connection, kind: RecordKind, rows: list[bytes]) -> list[tuple[Any, ...]]:
    arrays = (f"[{b','.join(portion).decode()}]" for portion in _portions(rows))
    return [row for array in arrays for row in connection.execute(_STATEMENTS[kind], (array,))]


def _portions(rows: list[bytes]) -> Iterator[list[bytes]]:
    """The rows in as few portions as the maximum statement size allows."""
    portion: list[bytes] = []
    size = 0
    for row in rows:
        if portion and size + len(row) > _MOST_BYTES:
            yield portion
            portion, size = [], 0
        portion.append(row)
        size += len(row)
    yield portion
