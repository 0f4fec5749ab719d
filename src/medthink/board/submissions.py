"""Submissions in the store: received, checked and scored, previewed, published, withdrawn.

```
received → checking → scored → published → withdrawn
              ├→ invalid           (problems named; costs no quota)
              └→ failed            (ours to mend; costs no quota)
scored → lapsed                    (never published within its time)
```

Every state but the last ones has a deadline. The same file of the same team is the same submission. Each change is
noted in `events` with who made it.
"""

import secrets
import zlib
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection, RowMapping

from medthink.board import tables
from medthink.board.provenance import Provenance
from medthink.board.store import BoardStore
from medthink.board.teams import enter_team, insert_once, lock_team
from medthink.core.clock import now_utc, utc_in
from medthink.core.digest import digest_bytes
from medthink.core.errors import Declined, UsageError
from medthink.scoring.scores import Scores, from_plain, to_plain
from medthink.scoring.submission import SubmissionProblem

Status = Literal["received", "checking", "invalid", "failed", "scored", "lapsed", "published", "withdrawn"]
_SECONDS: dict[Status, int] = {"received": 3600, "checking": 600, "scored": 30 * 86400}
_COUNTED: tuple[Status, ...] = ("received", "checking", "scored", "lapsed", "published", "withdrawn")


class About(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a submitter says of a model."""

    organisation: str = ""
    link: str = ""
    family: str = ""
    effort: str = ""
    mode: str = ""
    is_open_weights: bool | None = None
    is_expert_cued: bool = False
    attempts: int = 1
    notes: str = ""


class SubmissionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A submission as the store has it."""

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
    about: About
    problems: tuple[SubmissionProblem, ...]
    received_at: str
    published_at: str | None
    withdrawn_at: str | None
    allows_download: bool
    file_sha256: str | None


class Received(msgspec.Struct, frozen=True):
    """The answer to an upload: which submission it is, and whether it was there before."""

    token: str
    is_new: bool


class Upload(msgspec.Struct, frozen=True, kw_only=True):
    """What is handed in: the file's bytes, who hands it in, and about which model."""

    benchmark_id: int
    team: str
    model: str
    data: bytes
    about: About = About()
    allows_download: bool = False


def receive(store: BoardStore, upload: Upload, *, per_day: int | None = None, actor: str = "") -> Received:
    """Take an upload in; the same file again is the same submission, and a full quota is refused."""
    if not upload.model.strip():
        raise UsageError("the model has no name", remedy="name the model")
    sha256 = digest_bytes(upload.data)
    packed = zlib.compress(upload.data, 6)
    with store.write() as connection:
        team_id = enter_team(connection, upload.team)
        lock_team(connection, team_id)
        if (known := _find_same(connection, upload.benchmark_id, team_id, sha256)) is not None:
            return Received(known, is_new=False)
        _refuse_over_quota(connection, team_id, per_day)
        _keep_file(connection, sha256, len(upload.data), packed)
        token = secrets.token_urlsafe(12)
        values = _fresh(upload, team_id, sha256) | {"token": token}
        number = connection.execute(
            tables.submissions.insert().values(values).returning(tables.submissions.c.id)
        ).scalar_one()
        note(connection, number, actor or upload.team, "received", {"model": upload.model, "sha256": sha256})
    return Received(token, is_new=True)


def claim(store: BoardStore, *, actor: str = "worker") -> SubmissionRecord | None:
    """Take the oldest submission that waits, or one whose worker has died; None when there is none."""
    table = tables.submissions
    now = now_utc()
    waiting = sa.or_(table.c.status == "received", sa.and_(table.c.status == "checking", table.c.deadline_at < now))
    with store.write() as connection:
        query = sa.select(table.c.id, table.c.status).where(waiting).order_by(table.c.id).limit(1)
        found = connection.execute(query.with_for_update(skip_locked=True)).first()
        if found is None:
            return None
        _move(connection, found.id, "checking", actor=actor, detail={"again": found.status == "checking"})
        return _read(connection, table.c.id == found.id)


def refuse(store: BoardStore, submission: SubmissionRecord, problems: Sequence[SubmissionProblem]) -> None:
    """Say what is wrong with a submission; it costs no quota."""
    plain = [msgspec.to_builtins(problem) for problem in problems]
    with store.write() as connection:
        _move(connection, submission.id, "invalid", actor="worker", values={"problems": plain})


def fail(store: BoardStore, submission: SubmissionRecord, why: str) -> None:
    """Say that a submission could not be scored for a reason that is not its own; it costs no quota."""
    with store.write() as connection:
        _move(connection, submission.id, "failed", actor="worker", values={"detail": why})


def keep_scores(
    store: BoardStore, submission: SubmissionRecord, made: Scores, *, provenance: Provenance, detail: str = ""
) -> None:
    """Keep a submission's scores and let it be previewed; scores by another scorer stay."""
    with store.write() as connection:
        _put_scores(connection, submission.id, made)
        values = {"provenance": provenance, "detail": detail}
        _move(connection, submission.id, "scored", actor="worker", values=values)


def publish(store: BoardStore, token: str, *, actor: str) -> SubmissionRecord:
    """Show a scored submission to everybody."""
    return _change(store, token, ("scored",), "published", actor, {"published_at": now_utc()})


def withdraw(store: BoardStore, token: str, *, actor: str, why: str) -> SubmissionRecord:
    """Take a published submission off the ranking; its row stays and says so."""
    return _change(store, token, ("published",), "withdrawn", actor, {"withdrawn_at": now_utc(), "detail": why})


def raise_provenance(store: BoardStore, token: str, level: Provenance, *, actor: str, why: str) -> SubmissionRecord:
    """Note that a submission was verified further; `why` says how."""
    with store.write() as connection:
        found = _known(connection, token)
        where = tables.submissions.c.id == found.id
        connection.execute(tables.submissions.update().where(where).values(provenance=level))
        note(connection, found.id, actor, "provenance", {"level": level, "why": why})
        return _known(connection, token)


def enforce_deadlines(store: BoardStore) -> int:
    """End what waited too long; returns how many submissions were ended."""
    table = tables.submissions
    ends: dict[Status, tuple[Status, str]] = {
        "received": ("failed", "no worker took it up in time; hand it in again"),
        "scored": ("lapsed", "it was not published in time"),
    }
    ended = 0
    with store.write() as connection:
        for status, (end, why) in ends.items():
            late = sa.and_(table.c.status == status, table.c.deadline_at < now_utc())
            for (number,) in connection.execute(sa.select(table.c.id).where(late)).all():
                _move(connection, number, end, actor="deadline", values={"detail": why})
                ended += 1
    return ended


def find_submission(store: BoardStore, token: str) -> SubmissionRecord | None:
    """The submission with this token."""
    with store.read() as connection:
        return _read(connection, tables.submissions.c.token == token)


def list_submissions(
    store: BoardStore, *, benchmark_id: int | None = None, team: str | None = None, statuses: Sequence[Status] = ()
) -> list[SubmissionRecord]:
    """The submissions that fit, oldest first."""
    where = []
    if benchmark_id is not None:
        where.append(tables.submissions.c.benchmark_id == benchmark_id)
    if team is not None:
        where.append(tables.teams.c.name == team)
    if statuses:
        where.append(tables.submissions.c.status.in_(statuses))
    with store.read() as connection:
        return [_record(row) for row in connection.execute(_SELECT.where(*where)).mappings()]


def read_scores(store: BoardStore, submission_id: int) -> Scores | None:
    """The newest scores of a submission."""
    table = tables.scores
    query = sa.select(table.c.scores).where(table.c.submission_id == submission_id).order_by(table.c.made_at.desc())
    with store.read() as connection:
        found = connection.execute(query).scalars().first()
    return None if found is None else from_plain(found)


def read_file(store: BoardStore, sha256: str) -> bytes:
    """The bytes of an upload."""
    with store.read() as connection:
        query = sa.select(tables.files.c.data).where(tables.files.c.sha256 == sha256)
        return zlib.decompress(connection.execute(query).scalar_one())


def queue_position(store: BoardStore, submission: SubmissionRecord) -> int | None:
    """How many submissions wait before this one, itself counted; None when it does not wait."""
    if submission.status != "received":
        return None
    table = tables.submissions
    before = sa.and_(table.c.status == "received", table.c.id <= submission.id)
    with store.read() as connection:
        return connection.execute(sa.select(sa.func.count()).where(before)).scalar_one()


def history(store: BoardStore, submission_id: int | None = None) -> list[dict[str, Any]]:
    """Every change, oldest first; of one submission, or of all."""
    query = sa.select(tables.events).order_by(tables.events.c.id)
    if submission_id is not None:
        query = query.where(tables.events.c.submission_id == submission_id)
    with store.read() as connection:
        return [dict(row) for row in connection.execute(query).mappings()]


def note(connection: Connection, submission_id: int | None, actor: str, what: str, detail: dict[str, Any]) -> None:
    """Write one line of history."""
    connection.execute(
        tables.events.insert().values(
            submission_id=submission_id, at=now_utc(), actor=actor, what=what, detail=detail
        )
    )  # fmt: skip


_SELECT = (
    sa.select(tables.submissions, tables.teams.c.name.label("team"))
    .join(tables.teams, tables.teams.c.id == tables.submissions.c.team_id)
    .order_by(tables.submissions.c.id)
)


def _fresh(upload: Upload, team_id: int, sha256: str) -> dict[str, Any]:
    now = now_utc()
    return {
        "benchmark_id": upload.benchmark_id,
        "team_id": team_id,
        "file_sha256": sha256,
        "status": "received",
        "status_at": now,
        "deadline_at": _deadline("received"),
        "detail": "",
        "provenance": "scored",
        "model": upload.model.strip(),
        "about": msgspec.to_builtins(upload.about),
        "problems": [],
        "received_at": now,
        "allows_download": upload.allows_download,
    }


def _find_same(connection: Connection, benchmark_id: int, team_id: int, sha256: str) -> str | None:
    table = tables.submissions
    same = (table.c.benchmark_id == benchmark_id, table.c.team_id == team_id, table.c.file_sha256 == sha256)
    return connection.execute(sa.select(table.c.token).where(*same)).scalar()


def _refuse_over_quota(connection: Connection, team_id: int, per_day: int | None) -> None:
    if per_day is None:
        return
    table = tables.submissions
    since = utc_in(-86400)
    counted = (table.c.team_id == team_id, table.c.received_at > since, table.c.status.in_(_COUNTED))
    used = connection.execute(sa.select(sa.func.count()).where(*counted)).scalar_one()
    if used >= per_day:
        raise Declined(
            f"this team has handed in {used} files within a day, of {per_day} allowed",
            remedy="come back tomorrow; files with errors do not count",
        )


def _keep_file(connection: Connection, sha256: str, size: int, packed: bytes) -> None:
    connection.execute(insert_once(connection, tables.files, {"sha256": sha256, "size": size, "data": packed}))


def _put_scores(connection: Connection, number: int, made: Scores) -> None:
    table = tables.scores
    same = (table.c.submission_id == number, table.c.scorer == made.scorer)
    connection.execute(table.delete().where(*same))
    row = {"submission_id": number, "scorer": made.scorer, "made_at": now_utc(), "scores": to_plain(made)}
    connection.execute(table.insert().values(row))


def _change(
    store: BoardStore, token: str, states: Sequence[Status], to: Status, actor: str, values: dict[str, Any]
) -> SubmissionRecord:
    with store.write() as connection:
        found = _known(connection, token)
        if found.status not in states:
            raise UsageError(
                f"the submission {token} is {found.status}; only one that is {' or '.join(states)} can be {to}",
                remedy="look at its state first",
            )
        _move(connection, found.id, to, actor=actor, values=values)
        return _known(connection, token)


def _move(
    connection: Connection,
    number: int,
    status: Status,
    *,
    actor: str,
    values: dict[str, Any] | None = None,
    detail: dict[str, Any] | None = None,
) -> None:
    changes = {"status": status, "status_at": now_utc(), "deadline_at": _deadline(status)} | (values or {})
    connection.execute(tables.submissions.update().where(tables.submissions.c.id == number).values(changes))
    note(connection, number, actor, status, detail or {})


def _deadline(status: Status) -> str | None:
    return utc_in(_SECONDS[status]) if status in _SECONDS else None


def _known(connection: Connection, token: str) -> SubmissionRecord:
    found = _read(connection, tables.submissions.c.token == token)
    if found is None:
        raise UsageError(f"no submission {token}", remedy="check its token")
    return found


def _read(connection: Connection, where: sa.ColumnElement[bool]) -> SubmissionRecord | None:
    row = connection.execute(_SELECT.where(where)).mappings().first()
    return None if row is None else _record(row)


def _record(row: RowMapping) -> SubmissionRecord:
    fields = {name: row[name] for name in SubmissionRecord.__struct_fields__}
    return msgspec.convert(fields, SubmissionRecord)
