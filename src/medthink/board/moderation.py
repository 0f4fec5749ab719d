"""Moderation of scored submissions: publish, offer to maintainers, discard, withdraw, annotate, flag."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from medthink.accounts.account import find_team, lock_team
from medthink.board.submissions import (
    Provenance,
    SubmissionRecord,
    change_locked,
    change_state,
    lock_submission,
)
from medthink.core.clock import now_utc, utc_in
from medthink.core.errors import Declined, UsageError
from medthink.store import tables
from medthink.store.engine import Store, record_event

_WEEK_S = 7 * 86400
_LONGEST = 2000


def publish(store: Store, token: str, *, actor: str, per_week: int | None = None) -> SubmissionRecord:
    """Make a scored submission public; refused if the quota is used up."""
    with store.write() as connection:
        found = lock_submission(connection, token)
        _refuse_over_quota(connection, found, per_week)
        values = {"published_at": now_utc()}
        return change_locked(connection, found, ("scored",), "published", actor=actor, values=values)


def request_approval(store: Store, token: str, *, actor: str, per_week: int | None = None) -> SubmissionRecord:
    """Ask the maintainers to publish a scored submission."""
    with store.write() as connection:
        found = lock_submission(connection, token)
        _refuse_over_quota(connection, found, per_week)
        return change_locked(connection, found, ("scored",), "offered", actor=actor)


def approve(store: Store, token: str, *, actor: str) -> SubmissionRecord:
    """Publish a submission that was offered."""
    return change_state(store, token, ("offered",), "published", actor=actor, values={"published_at": now_utc()})


def return_to_team(store: Store, token: str, *, actor: str, why: str) -> SubmissionRecord:
    """Return an offered submission to its team, with the reason."""
    return change_state(store, token, ("offered",), "scored", actor=actor, why=_reason(why))


def discard(store: Store, token: str, *, actor: str) -> SubmissionRecord:
    """Discard a submission that is not public; it still counts towards its team's total."""
    return change_state(store, token, ("scored", "offered"), "lapsed", actor=actor, why="discarded by its team")


def withdraw(store: Store, token: str, *, actor: str, why: str) -> SubmissionRecord:
    """Take a published submission off the ranking; its row stays and says so."""
    values = {"withdrawn_at": now_utc()}
    return change_state(store, token, ("published",), "withdrawn", actor=actor, why=_reason(why), values=values)


def annotate(store: Store, token: str, *, actor: str, words: str) -> SubmissionRecord:
    """Add a public note to a submission; it cannot be removed."""
    return _write(store, token, {"annotation": words.strip()[:_LONGEST]}, actor=actor, what="annotated")


def flag(store: Store, token: str, *, actor: str, why: str) -> SubmissionRecord:
    """Publicly mark a submission as doubtful; without a reason the mark is removed."""
    return _write(store, token, {"flag": why.strip()[:_LONGEST]}, actor=actor, what="flagged")


def raise_provenance(store: Store, token: str, level: Provenance, *, actor: str, why: str) -> SubmissionRecord:
    """Record that a submission was verified further; `why` says how."""
    with store.write() as connection:
        change_provenance(connection, lock_submission(connection, token), level, actor=actor, why=why)
        return lock_submission(connection, token)


def change_provenance(
    connection: Connection, submission: SubmissionRecord, level: Provenance, *, actor: str, why: str
) -> None:
    """Change a submission's level, and record the previous one."""
    where = tables.submissions.c.id == submission.id
    connection.execute(tables.submissions.update().where(where).values(provenance=level))
    record_event(
        connection, submission.id, actor, "provenance", {"level": level, "was": submission.provenance, "why": why}
    )


def published_this_week(connection: Connection, team_id: int) -> int:
    """How many submissions of a team were published or offered within seven days, including those withdrawn since."""
    table = tables.submissions
    recent = sa.or_(
        table.c.published_at > utc_in(-_WEEK_S),
        sa.and_(table.c.status == "offered", table.c.status_at > utc_in(-_WEEK_S)),
    )
    return connection.execute(sa.select(sa.func.count()).where(table.c.team_id == team_id, recent)).scalar_one()


def _refuse_over_quota(connection: Connection, found: SubmissionRecord, per_week: int | None) -> None:
    team_id = find_team(connection, found.team)
    if per_week is None or team_id is None:
        return
    lock_team(connection, team_id)
    used = published_this_week(connection, team_id)
    if used >= per_week:
        raise Declined(
            f"this team has published {used} submissions within a week, of {per_week} allowed",
            remedy="it stays unpublished; publish it later",
        )


def _write(store: Store, token: str, values: dict[str, Any], *, actor: str, what: str) -> SubmissionRecord:
    with store.write() as connection:
        found = lock_submission(connection, token)
        where = tables.submissions.c.id == found.id
        connection.execute(tables.submissions.update().where(where).values(values))
        record_event(connection, found.id, actor, what, values)
        return lock_submission(connection, token)


def _reason(why: str) -> str:
    words = why.strip()[:_LONGEST]
    if not words:
        raise UsageError("a reason is needed", remedy="state the reason; it is stored with the submission")
    return words
