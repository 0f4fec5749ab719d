"""Submissions in the store: received, checked and scored, previewed, published, withdrawn.

```
received → checking → scored → published → withdrawn
              │         └→ offered → published   (where maintainers approve; declined, it is scored again)
              ├→ invalid                         (problems named; costs no quota)
              └→ failed → received               (not the team's fault: tried again; costs no quota)
scored, offered → lapsed                         (discarded, or never published within its time)
```

Every state except the final ones has a deadline. A worker leases the submission that it checks, and renews the lease,
so that another takes over from a dead worker within half a minute, with a lease of its own; after three tries the
submission has failed. The
same file of the same team is the same submission. Each change is recorded in `events` with its author.
"""

import secrets
import zlib
from collections.abc import Collection, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from medthink.accounts.account import ensure_team, lock_team
from medthink.board.submissions import (
    EVER_SCORED,
    ModelDescription,
    Preview,
    Provenance,
    QueueProgress,
    Status,
    SubmissionRecord,
    change_locked,
    deadline_of,
    lock_submission,
    read_record,
    transition,
)
from medthink.core.clock import now_utc, utc_in
from medthink.core.digest import digest_bytes
from medthink.core.errors import Declined, UsageError
from medthink.core.markup import clean
from medthink.scoring.scores import Scores, to_plain
from medthink.scoring.submission_file import SubmissionProblem
from medthink.store import tables
from medthink.store.engine import Store, insert_if_missing, record_event

LEASE_S = 30
MOST_TRIES = 3
_LONGEST, _LONGEST_NOTES = 200, 2000
_WAITING: tuple[Status, ...] = ("received", "checking")
_COUNTED: tuple[Status, ...] = ("received", "checking", *EVER_SCORED)


class UploadReceipt(msgspec.Struct, frozen=True):
    """The answer to an upload: its submission, and whether it already existed."""

    token: str
    is_new: bool


class Upload(msgspec.Struct, frozen=True, kw_only=True):
    """An upload: the file's bytes, the submitter, and the model."""

    benchmark_id: int
    team: str
    model: str
    data: bytes
    about: ModelDescription = ModelDescription()
    allows_download: bool = False
    sent_by: str = ""


def receive(store: Store, upload: Upload, *, per_day: int | None = None, actor: str = "") -> UploadReceipt:
    """Receive an upload; the same file again is the same submission, and it is refused if the quota is used up."""
    _refuse_long_texts(upload)
    sha256 = digest_bytes(upload.data)
    packed = zlib.compress(upload.data, 6)
    with store.write() as connection:
        team_id = ensure_team(connection, upload.team)
        lock_team(connection, team_id)
        if (known := _find_same(connection, upload.benchmark_id, team_id, sha256)) is not None:
            if known.status == "failed":
                _queue_again(connection, known, team_id, per_day=per_day, actor=actor or upload.team)
            return UploadReceipt(known.token, is_new=False)
        _refuse_over_quota(connection, team_id, per_day)
        file = {"sha256": sha256, "size": len(upload.data), "data": packed}
        connection.execute(insert_if_missing(connection, tables.files, file))
        # Letters and digits only: a token that began with a dash would be a flag on the command line.
        token = secrets.token_hex(12)
        values = _fresh(upload, team_id, sha256) | {"token": token}
        number = connection.execute(
            tables.submissions.insert().values(values).returning(tables.submissions.c.id)
        ).scalar_one()
        record_event(connection, number, actor or upload.team, "received", {"model": upload.model, "sha256": sha256})
    return UploadReceipt(token, is_new=True)


def recheck(store: Store, token: str, *, actor: str, per_day: int | None = None) -> SubmissionRecord:
    """Check a submission again that failed for technical reasons; it counts like a new file."""
    with store.write() as connection:
        found = lock_submission(connection, token)
        team_id = ensure_team(connection, found.team)
        lock_team(connection, team_id)
        _queue_again(connection, found, team_id, per_day=per_day, actor=actor)
        return lock_submission(connection, token)


def _queue_again(
    connection: Connection, found: SubmissionRecord, team_id: int, *, per_day: int | None, actor: str
) -> None:
    _refuse_over_quota(connection, team_id, per_day)
    values = {"tries": 0, "detail": "", "received_at": now_utc()}
    change_locked(connection, found, ("failed",), "received", actor=actor, values=values)


def claim(
    store: Store, benchmarks: Collection[int] | None = None, *, actor: str = "worker", only: int | None = None
) -> SubmissionRecord | None:
    """Take the oldest waiting submission, or one whose worker has died, under a new lease; None if there is none.

    `benchmarks` are the numbers of those that this worker can check, all if None; `only` is the number of a particular
    submission.
    """
    table = tables.submissions
    lost = sa.and_(table.c.status == "checking", sa.func.coalesce(table.c.lease_at, "") < now_utc())
    query = sa.select(table.c.id, table.c.tries, table.c.lease).where(sa.or_(table.c.status == "received", lost))
    if benchmarks is not None:
        query = query.where(table.c.benchmark_id.in_(benchmarks))
    if only is not None:
        query = query.where(table.c.id == only)
    query = query.order_by(table.c.id).limit(1).with_for_update(skip_locked=True)
    with store.write() as connection:
        while (found := connection.execute(query).first()) is not None:
            same = (table.c.lease.is_not_distinct_from(found.lease),)
            if found.tries >= MOST_TRIES:
                why = f"its check was interrupted {found.tries} times; the maintainers can see it"
                transition(connection, found.id, _WAITING, "failed", actor=actor, why=why, only_if=same)
                continue
            why = "its worker stopped" if found.tries else ""
            lease = {"lease": secrets.token_hex(12), "lease_at": utc_in(LEASE_S)}
            values = lease | {"tries": found.tries + 1, "progress": None}
            transition(connection, found.id, _WAITING, "checking", actor=actor, why=why, values=values, only_if=same)
            return read_record(connection, table.c.id == found.id)
    return None


def renew_lease(store: Store, submission: SubmissionRecord, progress: QueueProgress) -> bool:
    """Record that a worker is still active, and its progress; False if another has taken the submission over."""
    values = {"lease_at": utc_in(LEASE_S), "progress": msgspec.to_builtins(progress)}
    with store.write() as connection:
        where = (tables.submissions.c.status == "checking", *_under_lease(submission))
        return connection.execute(tables.submissions.update().where(*where).values(values)).rowcount > 0


def _under_lease(submission: SubmissionRecord) -> tuple[sa.ColumnElement[bool], ...]:
    """Whether the check of this lease still has the submission."""
    table = tables.submissions
    return (table.c.id == submission.id, table.c.lease == submission.lease)


def refuse(store: Store, submission: SubmissionRecord, problems: Sequence[SubmissionProblem]) -> bool:
    """Mark a submission as invalid, with its problems; it costs no quota."""
    plain = [msgspec.to_builtins(problem) for problem in problems]
    with store.write() as connection:
        return _settle(connection, submission, "invalid", {"problems": plain})


def fail(store: Store, submission: SubmissionRecord, why: str) -> bool:
    """Mark a submission as failed for technical reasons; it costs no quota."""
    with store.write() as connection:
        return _settle(connection, submission, "failed", {}, why=why)


def keep_scores(
    store: Store,
    submission: SubmissionRecord,
    made: Scores,
    *,
    provenance: Provenance,
    detail: str = "",
    preview: Preview | None = None,
) -> bool:
    """Store a submission's scores so that it can be previewed; scores by another scorer stay."""
    plain = msgspec.to_builtins(preview) if preview else None
    with store.write() as connection:
        values = {"provenance": provenance, "detail": detail, "preview": plain}
        is_ours = _settle(connection, submission, "scored", values)
        if is_ours:
            _put_scores(connection, submission.id, made)
        return is_ours


def _settle(
    connection: Connection, submission: SubmissionRecord, to: Status, values: dict[str, Any], *, why: str = ""
) -> bool:
    """Leave the checking state; False if another worker has taken over while this one was presumed dead."""
    done = values | {"lease": None, "lease_at": None, "progress": None}
    same = _under_lease(submission)
    return transition(connection, submission.id, ("checking",), to, actor="worker", why=why, values=done, only_if=same)


def enforce_deadlines(store: Store) -> int:
    """End submissions that waited too long; returns their number."""
    table = tables.submissions
    ends: dict[Status, tuple[Status, str]] = {
        "received": ("failed", "no worker was available in time; submit the file again"),
        # A worker keeps its lease while it lives; a check not finished by the deadline will never finish.
        "checking": ("failed", "its check took too long and was stopped"),
        "scored": ("lapsed", "it was not published in time"),
        "offered": ("lapsed", "no maintainer approved it in time"),
    }
    ended = 0
    with store.write() as connection:
        for status, (end, why) in ends.items():
            late = (table.c.status == status, table.c.deadline_at < now_utc())
            for number in connection.execute(sa.select(table.c.id).where(*late)).scalars().all():
                ended += transition(connection, number, (status,), end, actor="deadline", why=why, only_if=late)
    return ended


def _refuse_long_texts(upload: Upload) -> None:
    if not upload.model.strip():
        raise UsageError("the model has no name", remedy="name the model")
    texts = {"model": upload.model} | {
        name: value for name, value in msgspec.structs.asdict(upload.about).items() if isinstance(value, str)
    }
    for name, text in texts.items():
        most = _LONGEST_NOTES if name == "notes" else _LONGEST
        if len(text) > most or clean(text) != text:
            raise UsageError(f"the {name} is too long, or has characters that cannot be shown", remedy=f"use {most}")
    link = upload.about.link
    if link and not link.startswith(("https://", "http://")):
        raise UsageError("the link is not a web address", remedy="begin it with https://")


def _fresh(upload: Upload, team_id: int, sha256: str) -> dict[str, Any]:
    now = now_utc()
    return {
        "benchmark_id": upload.benchmark_id,
        "team_id": team_id,
        "file_sha256": sha256,
        "status": "received",
        "status_at": now,
        "deadline_at": deadline_of("received"),
        "detail": "",
        "provenance": "scored",
        "model": upload.model.strip(),
        "about": msgspec.to_builtins(upload.about),
        "problems": [],
        "received_at": now,
        "allows_download": upload.allows_download,
        "sent_by": upload.sent_by,
    }


def _find_same(connection: Connection, benchmark_id: int, team_id: int, sha256: str) -> SubmissionRecord | None:
    table = tables.submissions
    return read_record(
        connection,
        sa.and_(table.c.benchmark_id == benchmark_id, table.c.team_id == team_id, table.c.file_sha256 == sha256),
    )


def received_today(connection: Connection, team_id: int) -> int:
    """How many files of a team were received within a day, not counting those with errors."""
    table = tables.submissions
    counted = (table.c.team_id == team_id, table.c.received_at > utc_in(-86400), table.c.status.in_(_COUNTED))
    return connection.execute(sa.select(sa.func.count()).where(*counted)).scalar_one()


def _refuse_over_quota(connection: Connection, team_id: int, per_day: int | None) -> None:
    if per_day is None:
        return
    used = received_today(connection, team_id)
    if used >= per_day:
        raise Declined(
            f"this team has submitted {used} files within a day, of {per_day} allowed",
            remedy="try again tomorrow; files with errors do not count",
        )


def _put_scores(connection: Connection, number: int, made: Scores) -> None:
    table = tables.scores
    same = (table.c.submission_id == number, table.c.scorer == made.scorer)
    connection.execute(table.delete().where(*same))
    row = {"submission_id": number, "scorer": made.scorer, "made_at": now_utc(), "scores": to_plain(made)}
    connection.execute(table.insert().values(row))
