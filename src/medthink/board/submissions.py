"""Submissions in the store: their states, their data, and how one changes state."""

import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from medthink.core.clock import now_utc, utc_in
from medthink.core.errors import UsageError
from medthink.scoring.scores import Scores, from_plain
from medthink.scoring.submission_file import SubmissionProblem
from medthink.stats.estimate import Measured
from medthink.store import tables
from medthink.store.engine import Store, record_event, row_as

Provenance = Literal["reported", "scored", "traced", "rerun", "ledger"]
PROVENANCE: dict[Provenance, str] = {
    "reported": "a total as reported, without predictions",
    "scored": "predictions scored here",
    "traced": "predictions with the replies they came from, which lead to the same letters",
    "rerun": "traced, and a random sample of cases run again by the maintainer, agreeing within the stated bound",
    "ledger": "run by this toolkit, with its ledger",
}
LEVELS: tuple[Provenance, ...] = tuple(PROVENANCE)
SHOWN_FROM: Provenance = "traced"
"""The minimum level for a row to be shown by default; every row is ranked, shown or not."""


Status = Literal["received", "checking", "invalid", "failed", "scored", "offered", "lapsed", "published", "withdrawn"]
_SECONDS: dict[Status, int] = {"received": 3600, "checking": 600, "scored": 30 * 86400, "offered": 30 * 86400}
EVER_SCORED: tuple[Status, ...] = ("scored", "offered", "lapsed", "published", "withdrawn")


class ModelDescription(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A submitter's description of a model."""

    organisation: str = ""
    link: str = ""
    family: str = ""
    effort: str = ""
    mode: str = ""
    is_open_weights: bool | None = None
    is_expert_cued: bool = False
    attempts: int = 1
    notes: str = ""


class AskedText(msgspec.Struct, frozen=True, kw_only=True):
    """A text of `ModelDescription` that the submission form asks for.

    With `is_listed` it is a column of exports and can be searched for; `fact` is its title among the facts of the
    model's page, empty for one that is elsewhere on it.
    """

    name: str
    title: str
    hint: str = ""
    type: Literal["text", "url"] = "text"
    is_listed: bool = True
    fact: str = ""


ASKED = (
    AskedText(name="family", title="Family", hint="submissions are counted by it"),
    AskedText(name="effort", title="Reasoning effort", fact="Effort"),
    AskedText(name="organisation", title="Made by"),
    AskedText(name="link", title="Link", type="url", is_listed=False),
)
"""The short texts that a submitter may add, in the order of the form; `notes` come last, in a larger box."""

_LISTED = frozenset(one.name for one in ASKED if one.is_listed)
LISTED = tuple(name for name in ModelDescription.__struct_fields__ if name in _LISTED)
"""The texts that exports have as columns, in their order."""


def read_about(fields: Mapping[str, str], *, is_expert_cued: bool = False) -> ModelDescription:
    """A submitter's texts as given in a form or a request."""
    texts = {name: fields.get(name, "") for name in (*(one.name for one in ASKED), "notes")}
    return msgspec.convert(texts | {"is_expert_cued": is_expert_cued}, ModelDescription)


class QueueProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's progress: lines read out of all, and the problems found in them."""

    stage: Literal["check", "score", "rank"] = "check"
    done: int = 0
    of: int = 0
    problems: int = 0


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What the team sees before it publishes: its rank, its gain over a rival, the difference from its last file."""

    rank: int | None = None
    worst: int | None = None
    among: int = 1
    letters: tuple[str, ...] = ()
    last_token: str = ""
    last_model: str = ""
    difference: Measured | None = None
    is_different: bool = False
    gain: Measured | None = None
    rival: str = ""


class SubmissionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A stored submission: `detail` has the doubts of its check, `reason` why it is in its state.

    `lease` is that of the check under way.
    """

    id: int
    token: str
    benchmark_id: int
    team: str
    status: Status
    status_at: str
    deadline_at: str | None
    detail: str
    provenance: Provenance
    model: str
    about: ModelDescription
    problems: tuple[SubmissionProblem, ...]
    received_at: str
    published_at: str | None
    withdrawn_at: str | None
    allows_download: bool
    file_sha256: str | None
    sent_by: str = ""
    progress: QueueProgress | None = None
    preview: Preview | None = None
    annotation: str = ""
    flag: str = ""
    reason: str = ""
    lease: str | None = None


def find_submission(store: Store, token: str) -> SubmissionRecord | None:
    """The submission with this token."""
    with store.read() as connection:
        return read_record(connection, tables.submissions.c.token == token)


def list_submissions(
    store: Store, *, benchmark_id: int | None = None, team: str | None = None, statuses: Sequence[Status] = ()
) -> list[SubmissionRecord]:
    """The matching submissions, oldest first."""
    where = []
    if benchmark_id is not None:
        where.append(tables.submissions.c.benchmark_id == benchmark_id)
    if team is not None:
        where.append(tables.teams.c.name == team)
    if statuses:
        where.append(tables.submissions.c.status.in_(statuses))
    with store.read() as connection:
        return [row_as(row, SubmissionRecord) for row in connection.execute(_SELECT.where(*where)).mappings()]


def read_scores(store: Store, submission_id: int) -> Scores | None:
    """The newest scores of a submission."""
    table = tables.scores
    query = sa.select(table.c.scores).where(table.c.submission_id == submission_id).order_by(table.c.made_at.desc())
    with store.read() as connection:
        found = connection.execute(query).scalars().first()
    return None if found is None else from_plain(found)


def read_file(store: Store, sha256: str) -> bytes:
    """The bytes of an upload."""
    with store.read() as connection:
        query = sa.select(tables.files.c.data).where(tables.files.c.sha256 == sha256)
        return zlib.decompress(connection.execute(query).scalar_one())


@contextmanager
def open_file(store: Store, submission: SubmissionRecord) -> Iterator[Path]:
    """The upload as a temporary file."""
    assert submission.file_sha256 is not None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "submission.jsonl"
        path.write_bytes(read_file(store, submission.file_sha256))
        yield path


def file_size(store: Store, sha256: str) -> int:
    """The bytes of an upload, counted; 0 if there is none."""
    with store.read() as connection:
        query = sa.select(tables.files.c.size).where(tables.files.c.sha256 == sha256)
        return connection.execute(query).scalar() or 0


def queue_position(store: Store, submission: SubmissionRecord) -> int | None:
    """This submission's position in the queue, from 1; None if it is not waiting."""
    if submission.status != "received":
        return None
    table = tables.submissions
    before = sa.and_(table.c.status == "received", table.c.id <= submission.id)
    with store.read() as connection:
        return connection.execute(sa.select(sa.func.count()).where(before)).scalar_one()


_SELECT = (
    sa.select(tables.submissions, tables.teams.c.name.label("team"))
    .join(tables.teams, tables.teams.c.id == tables.submissions.c.team_id)
    .order_by(tables.submissions.c.id)
)


def change_state(
    store: Store,
    token: str,
    states: Sequence[Status],
    to: Status,
    *,
    actor: str,
    why: str = "",
    values: Mapping[str, Any] | None = None,
) -> SubmissionRecord:
    """Move a submission from one of these states to another, or raise UsageError."""
    with store.write() as connection:
        return change_locked(
            connection, lock_submission(connection, token), states, to, actor=actor, why=why, values=values
        )


def change_locked(
    connection: Connection,
    found: SubmissionRecord,
    states: Sequence[Status],
    to: Status,
    *,
    actor: str,
    why: str = "",
    values: Mapping[str, Any] | None = None,
) -> SubmissionRecord:
    """Move a locked submission from one of these states to another, or raise UsageError."""
    if not transition(connection, found.id, states, to, actor=actor, why=why, values=values):
        raise UsageError(
            f"the submission {found.token} is {found.status}; only one that is {' or '.join(states)} can become {to}",
            remedy="check its state first",
        )
    return lock_submission(connection, found.token)


def transition(
    connection: Connection,
    number: int,
    states: Sequence[Status],
    to: Status,
    *,
    actor: str,
    why: str = "",
    values: Mapping[str, Any] | None = None,
    only_if: Sequence[sa.ColumnElement[bool]] = (),
) -> bool:
    """Move a submission from one of these states to another, and record who did and why; the only way to do so.

    The condition is part of the change, so of two who change a submission at once the second finds it changed; False if
    it is in none of these states, or not as `only_if` says.
    """
    table = tables.submissions
    changes = {"status": to, "status_at": now_utc(), "deadline_at": deadline_of(to), "reason": why} | dict(values or {})
    still = (table.c.id == number, table.c.status.in_(states), *only_if)
    if not connection.execute(table.update().where(*still).values(changes)).rowcount:
        return False
    detail: dict[str, Any] = {"why": why} if why else {}
    if "provenance" in changes:
        detail["level"] = changes["provenance"]
    record_event(connection, number, actor, to, detail)
    return True


def lock_submission(connection: Connection, token: str) -> SubmissionRecord:
    """The submission with this token, locked, or UsageError."""
    table = tables.submissions
    # Locked until the transaction ends, so that of two simultaneous changes the second sees the first.
    connection.execute(sa.select(table.c.id).where(table.c.token == token).with_for_update())
    found = read_record(connection, table.c.token == token)
    if found is None:
        raise UsageError(f"no submission {token}", remedy="check its token")
    return found


def deadline_of(status: Status) -> str | None:
    """The deadline for leaving a state entered now; None for final states."""
    return utc_in(_SECONDS[status]) if status in _SECONDS else None


def read_record(connection: Connection, where: sa.ColumnElement[bool]) -> SubmissionRecord | None:
    """The matching submission, within a transaction."""
    row = connection.execute(_SELECT.where(where)).mappings().first()
    return None if row is None else row_as(row, SubmissionRecord)
