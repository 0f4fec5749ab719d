"""Receiving, showing and moderating submissions: the logic behind the pages and the API."""

from collections.abc import Mapping, Sequence
from typing import Any

from medthink.accounts.account import Account, find_team
from medthink.board.history import history
from medthink.board.moderation import publish, published_this_week, request_approval
from medthink.board.queue import Upload, UploadReceipt, enforce_deadlines, receive, received_today
from medthink.board.ranking import family_of
from medthink.board.submissions import (
    EVER_SCORED,
    SubmissionRecord,
    file_size,
    find_submission,
    list_submissions,
    queue_position,
    read_about,
    read_scores,
)
from medthink.core.errors import UsageError
from medthink.web.app.access import WebCaller
from medthink.web.app.rendering import render
from medthink.web.serve_app import ServeApp
from medthink.web.submissions.page import (
    SHOWN_PROBLEMS,
    STATE_MARKS,
    QueuePage,
    SubmissionLine,
    SubmissionPage,
    SubmitPage,
    SubmitQuery,
    UploadForm,
    find_declined,
    is_scored,
    make_counts,
    make_line,
    make_preview_view,
    make_steps,
    tell_history,
)

_MOST_LISTED = 500


def receive_file(app: ServeApp, account: Account, fields: Mapping[str, str], data: bytes | None) -> UploadReceipt:
    """Receive a file for the account's team; UsageError or Declined if it is not accepted."""
    if data is None:
        raise UsageError("no file was chosen", remedy="choose a file in the submission format")
    if account.team is None:
        raise UsageError("your account has no team", remedy="ask a maintainer to invite you into one")
    upload = Upload(
        benchmark_id=app.benchmark.id,
        team=account.team,
        model=fields.get("model", ""),
        data=data,
        about=read_about(fields, is_expert_cued=fields.get("condition", "") == "cued"),
        allows_download=fields.get("download", "") in ("yes", "on", "true"),
        sent_by=account.name,
    )
    return receive(app.store, upload, per_day=app.settings.uploads_per_day, actor=account.name)


def used_quotas(app: ServeApp, team: str | None) -> tuple[int, int]:
    """A team's used quotas: files today, publications this week."""
    with app.store.read() as connection:
        team_id = find_team(connection, team) if team else None
        if team_id is None:
            return 0, 0
        return received_today(connection, team_id), published_this_week(connection, team_id)


def find_visible(app: ServeApp, caller: WebCaller, token: str) -> SubmissionRecord | None:
    """The submission, if this caller may see it: their own team's, or any for maintainers."""
    found = find_submission(app.store, token)
    if found is None or found.benchmark_id != app.benchmark.id:
        return None
    is_own = caller.may("submitter") and caller.team is not None and caller.team == found.team
    return found if is_own or caller.may("maintainer") else None


def own_submissions(app: ServeApp, caller: WebCaller) -> list[SubmissionRecord]:
    """The submissions of the caller's team, newest first."""
    if caller.team is None or not caller.may("submitter"):
        return []
    return list_submissions(app.store, benchmark_id=app.benchmark.id, team=caller.team)[::-1]


def make_public(app: ServeApp, found: SubmissionRecord, actor: str) -> SubmissionRecord:
    """Publish, or offer to the maintainers if approval is required."""
    does = request_approval if app.settings.needs_approval else publish
    return does(app.store, found.token, actor=actor, per_week=app.settings.publications_per_week)


def submit_page(app: ServeApp, caller: WebCaller, *, form: UploadForm | None = None, problem: str = "") -> str:
    """The submission page."""
    own = own_submissions(app, caller)[:_MOST_LISTED]
    today, week = used_quotas(app, caller.team)
    page = SubmitPage(
        benchmark=app.benchmark.name,
        n_cases=app.benchmark.n_cases,
        team=caller.team or "",
        is_submitter=caller.may("submitter") and caller.team is not None,
        used_today=today,
        per_day=app.settings.uploads_per_day,
        published_this_week=week,
        per_week=app.settings.publications_per_week,
        largest_mb=app.settings.largest_upload_mb,
        form=form or UploadForm(),
        problem=problem,
        lines=_lines(app, own),
    )
    return render("submit.html", page, app.site, here="submit")


def submission_page(app: ServeApp, caller: WebCaller, found: SubmissionRecord, *, problem: str = "") -> str:
    """The page of one submission."""
    enforce_deadlines(app.store)
    found = find_submission(app.store, found.token) or found
    events = history(app.store, found.id)
    scores = read_scores(app.store, found.id) if is_scored(found) else None
    page = SubmissionPage(
        record=found,
        mark=STATE_MARKS[found.status],
        steps=make_steps(found.status),
        is_moving=found.status in ("received", "checking"),
        position=queue_position(app.store, found),
        size=_tell_size(file_size(app.store, found.file_sha256 or "")),
        problems=found.problems[:SHOWN_PROBLEMS],
        n_problems=len(found.problems),
        preview=make_preview_view(found, scores, _family_count(app, found)) if scores else None,
        declined=find_declined(events) if found.status == "scored" else "",
        history=tell_history(events),
        needs_approval=app.settings.needs_approval,
        is_maintainer=caller.may("maintainer"),
        is_own=caller.team == found.team,
        problem=problem,
    )
    here = "submit" if caller.team == found.team else "queue"
    return render("submission.html", page, app.site, here=here)


def queue_page(app: ServeApp, query: SubmitQuery) -> str:
    """Every submission, for maintainers."""
    records = list_submissions(app.store, benchmark_id=app.benchmark.id)[::-1]
    chosen = [
        one
        for one in records
        if (not query.status or one.status == query.status)
        and all(word in f"{one.model} {one.team} {one.sent_by}".casefold() for word in query.words)
    ][:_MOST_LISTED]
    page = QueuePage(
        query=query,
        lines=_lines(app, chosen),
        total=len(records),
        counts=make_counts(records),
    )
    return render("queue.html", page, app.site, here="queue")


def _lines(app: ServeApp, records: Sequence[SubmissionRecord]) -> tuple[SubmissionLine, ...]:
    results = app.live.shelf.read(one.id for one in records)
    return tuple(make_line(one, results[one.id].scores if one.id in results else None) for one in records)


def _family_count(app: ServeApp, found: SubmissionRecord) -> int:
    ever = list_submissions(app.store, benchmark_id=app.benchmark.id, team=found.team, statuses=EVER_SCORED)
    return sum(family_of(one) == family_of(found) for one in ever)


def fill_form(fields: Mapping[str, Any]) -> UploadForm:
    """The form as filled in."""
    texts = {name: str(text)[:2000] for name, text in fields.items()}
    known = {name: texts[name] for name in ("model", "condition", "download") if name in texts}
    return UploadForm(about=read_about(texts), **known)


def _tell_size(size: int) -> str:
    return f"{size / 1024:,.0f} KB" if size < 1024 * 1024 else f"{size / 1024 / 1024:,.1f} MB"
