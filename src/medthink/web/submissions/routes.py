"""The pages for submitting, following, publishing and moderating submissions."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import msgspec
from anyio import to_thread
from litestar import get, post
from litestar.datastructures import UploadFile
from litestar.exceptions import ClientException, NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, URLEncodedBody
from litestar.response import Redirect, Response

from medthink.accounts.roles import Role, TokenScope
from medthink.board.moderation import annotate, approve, discard, flag, return_to_team, withdraw
from medthink.board.queue import recheck
from medthink.board.submissions import SubmissionRecord
from medthink.core.errors import MedThinkError
from medthink.scoring.submission_file import problem_lines
from medthink.web.accounts.sign_in import error_sentence
from medthink.web.app.access import Asked, account_of, caller_of, needs
from medthink.web.app.application import Feature, html
from medthink.web.app.query import read_query
from medthink.web.serve_app import GivenApp, ServeApp
from medthink.web.submissions.page import SubmitQuery
from medthink.web.submissions.service import (
    fill_form,
    find_visible,
    make_public,
    queue_page,
    receive_file,
    submission_page,
    submit_page,
)


class SubmissionAction(NamedTuple):
    """An action: its name in addresses, its role, and its function; `says` if it needs a reason or a note."""

    name: str
    role: Role
    scope: TokenScope
    words: str
    does: Callable[[ServeApp, SubmissionRecord, str, str], SubmissionRecord]
    says: bool = False


ACTIONS = (
    SubmissionAction(
        "publish", "submitter", "submit", "Publish it, or ask the maintainers to",
        lambda app, one, actor, _: make_public(app, one, actor),
    ),
    SubmissionAction(
        "discard", "submitter", "submit", "Discard it",
        lambda app, one, actor, _: discard(app.store, one.token, actor=actor),
    ),
    SubmissionAction(
        "again", "submitter", "submit", "Check it again",
        lambda app, one, actor, _: recheck(app.store, one.token, actor=actor, per_day=app.settings.uploads_per_day),
    ),
    SubmissionAction(
        "withdraw", "submitter", "submit", "Take it off the ranking",
        lambda app, one, actor, why: withdraw(app.store, one.token, actor=actor, why=why), says=True,
    ),
    SubmissionAction(
        "approve", "maintainer", "maintain", "Approve an offered submission",
        lambda app, one, actor, _: approve(app.store, one.token, actor=actor),
    ),
    SubmissionAction(
        "decline", "maintainer", "maintain", "Decline an offered submission",
        lambda app, one, actor, why: return_to_team(app.store, one.token, actor=actor, why=why), says=True,
    ),
    SubmissionAction(
        "annotate", "maintainer", "maintain", "Add a public note",
        lambda app, one, actor, words: annotate(app.store, one.token, actor=actor, words=words), says=True,
    ),
    SubmissionAction(
        "flag", "maintainer", "maintain", "Flag it as doubtful; without a reason, remove the flag",
        lambda app, one, actor, why: flag(app.store, one.token, actor=actor, why=why), says=True,
    ),
)  # fmt: skip


# A slower upload would block a worker for too long.
UPLOAD_S = 600
_MOST_FIELDS = 40


class WordsForm(msgspec.Struct):
    """A reason or a note; empty if an action needs none."""

    words: str = ""


@get("/submit", guards=[needs("visitor")], sync_to_thread=True)
def show_submit(request: Asked, app: GivenApp) -> Response[str]:
    """The submission page."""
    return html(submit_page(app, caller_of(request)))


@get("/submissions/{token:str}", guards=[needs("submitter")], sync_to_thread=True)
def show_submission(token: FromPath[str], request: Asked, app: GivenApp) -> Response[str]:
    """One submission."""
    return html(submission_page(app, caller_of(request), find_seen(app, request, token)))


@get("/submissions/{token:str}/problems.txt", guards=[needs("submitter")], sync_to_thread=True)
def download_problems(token: FromPath[str], request: Asked, app: GivenApp) -> Response[str]:
    """Every problem, as in `medthink submission check`."""
    found = find_seen(app, request, token)
    text = "".join(f"{line}\n" for line in problem_lines(found.problems))
    headers = {"Content-Disposition": 'attachment; filename="problems.txt"'}
    return Response(text, media_type="text/plain; charset=utf-8", headers=headers)


def _make_upload_route(largest: int) -> HTTPRouteHandler:
    """The route that accepts files up to this many bytes."""

    @post("/submit", guards=[needs("submitter")], request_max_body_size=largest, multipart_form_part_limit=_MOST_FIELDS)
    async def hand_in(request: Asked, app: GivenApp) -> Response[Any]:
        """Receive a file."""
        account = account_of(request)
        fields: dict[str, str] = {}
        try:
            fields, data = await read_upload(request)
            received = await to_thread.run_sync(receive_file, app, account, fields, data)
        except MedThinkError as error:
            shown = partial(submit_page, app, caller_of(request), form=fill_form(fields), problem=error_sentence(error))
            return html(await to_thread.run_sync(shown), status=422)
        return Redirect(f"/submissions/{received.token}", status_code=303)

    return hand_in


async def read_upload(request: Asked) -> tuple[dict[str, str], bytes | None]:
    """The texts of a form and the bytes of its file, or None."""
    try:
        async with asyncio.timeout(UPLOAD_S):
            form = await request.form()
    except TimeoutError:
        raise ClientException(detail="The upload was too slow.", status_code=408) from None
    except (LookupError, ValueError):
        raise ClientException(detail="This is not a form.") from None
    fields = {name: value for name, value in form.multi_items() if isinstance(value, str)}
    file = form.get("file")
    return fields, await file.read() if isinstance(file, UploadFile) else None


@get("/queue", guards=[needs("maintainer")], sync_to_thread=True)
def show_queue(request: Asked, app: GivenApp) -> Response[str]:
    """Every submission."""
    return html(queue_page(app, read_query(SubmitQuery, request.query_params)))


def find_seen(app: ServeApp, request: Asked, token: str) -> SubmissionRecord:
    """The submission, if the caller may see it; otherwise a 404."""
    found = find_visible(app, caller_of(request), token)
    if found is None:
        raise NotFoundException(detail="There is no such submission, or it is not your team's.")
    return found


def _make_action(action: SubmissionAction) -> HTTPRouteHandler:
    """The route that performs an action and shows the submission again."""

    @post(f"/submissions/{{token:str}}/{action.name}", guards=[needs(action.role)], sync_to_thread=True)
    def act(token: FromPath[str], request: Asked, app: GivenApp, data: URLEncodedBody[WordsForm]) -> Response[Any]:
        found = find_seen(app, request, token)
        try:
            action.does(app, found, account_of(request).name, data.words)
        except MedThinkError as error:
            return html(submission_page(app, caller_of(request), found, problem=error_sentence(error)), status=422)
        return Redirect(f"/submissions/{found.token}", status_code=303)

    return act


def submission_feature(largest: int) -> Feature:
    """Submissions of teams, with files of at most so many bytes."""
    routes = [
        show_submit,
        _make_upload_route(largest),
        show_submission,
        download_problems,
        show_queue,
        *map(_make_action, ACTIONS),
    ]
    return Feature(routes=routes)
