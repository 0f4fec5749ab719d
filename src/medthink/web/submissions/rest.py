"""Submissions for programs: submit, follow, publish, withdraw; and maintainers' decisions."""

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
from anyio import to_thread
from litestar import get, post
from litestar.exceptions import ClientException
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.spec import OpenAPIMediaType, Operation, RequestBody, Schema
from litestar.openapi.spec.enums import OpenAPIType
from litestar.params import FromPath, JSONBody, QueryParameter

from medthink.board.submissions import Preview, QueueProgress, Status, SubmissionRecord, queue_position, read_scores
from medthink.scoring.submission_file import SubmissionProblem, problem_lines
from medthink.stats.estimate import Measured
from medthink.web.app.access import Asked, account_of, caller_of, needs
from medthink.web.app.application import Feature
from medthink.web.app.rest import ERRORS
from medthink.web.serve_app import GivenApp, ServeApp
from medthink.web.submissions.page import SHOWN_PROBLEMS, is_scored
from medthink.web.submissions.routes import ACTIONS, UPLOAD_S, SubmissionAction, find_seen
from medthink.web.submissions.service import own_submissions, receive_file

_DECLARED: dict[str, Any] = {"responses": ERRORS, "security": [{"token": []}]}
_READ: dict[str, Any] = {"guards": [needs("submitter", scope="read")], **_DECLARED, "sync_to_thread": True}
Short = Annotated[str, QueryParameter(max_length=200)]


class SubmissionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A submission as its team sees it; `problems` are the first hundred."""

    token: str
    number: int
    status: Status
    status_at: str
    deadline_at: str | None
    position: int | None
    progress: QueueProgress | None
    model: str
    team: str
    received_at: str
    published_at: str | None
    withdrawn_at: str | None
    provenance: str
    detail: str
    reason: str
    annotation: str
    flag: str
    n_problems: int
    problems: tuple[SubmissionProblem, ...]
    accuracy: Measured | None
    preview: Preview | None
    sha256: str | None


class Reason(msgspec.Struct, frozen=True):
    """A reason or a note."""

    words: str = ""


@dataclass
class UploadOperation(Operation):
    """Documents that the body is the file itself."""

    request_body: RequestBody | None = field(
        default_factory=lambda: RequestBody(
            description="The submission file: JSON Lines, one line per case.",
            required=True,
            content={"application/x-ndjson": OpenAPIMediaType(schema=Schema(type=OpenAPIType.STRING))},
        )
    )


@get("/submissions", **_READ)
def list_own(request: Asked, app: GivenApp) -> list[SubmissionInfo]:
    """The submissions of the caller's team, newest first."""
    return [_info(app, one) for one in own_submissions(app, caller_of(request))]


@get("/submissions/{token:str}", **_READ)
def give_submission(token: FromPath[str], request: Asked, app: GivenApp) -> SubmissionInfo:
    """One submission: its state, its problems or its preview."""
    return _info(app, find_seen(app, request, token))


@get("/submissions/{token:str}/problems", **_READ, media_type="text/plain")
def give_problems(token: FromPath[str], request: Asked, app: GivenApp) -> str:
    """Every problem, one per line, as in `medthink submission check`."""
    return "".join(f"{line}\n" for line in problem_lines(find_seen(app, request, token).problems))


def _make_upload_api(largest: int) -> HTTPRouteHandler:
    """The route that accepts files up to this many bytes."""

    @post(
        "/submissions",
        guards=[needs("submitter", scope="submit")],
        **_DECLARED,
        status_code=202,
        request_max_body_size=largest,
        operation_class=UploadOperation,
    )
    async def send_submission(
        request: Asked,
        app: GivenApp,
        model: Annotated[str, QueryParameter(min_length=1, max_length=200)],
        organisation: Short = "",
        family: Short = "",
        effort: Short = "",
        link: Short = "",
        condition: Annotated[str, QueryParameter(pattern="^(cued)?$")] = "",
    ) -> SubmissionInfo:
        """Submit a file; the same file again is the same submission. `condition=cued` for runs with expert cues."""
        account = account_of(request)
        try:
            async with asyncio.timeout(UPLOAD_S):
                data = b"".join([chunk async for chunk in request.stream()])
        except TimeoutError:
            raise ClientException(detail="the upload was too slow", status_code=408) from None
        said = {"organisation": organisation, "family": family, "effort": effort, "link": link}
        fields = said | {"model": model, "condition": condition}
        received = await to_thread.run_sync(receive_file, app, account, fields, data or None)
        return await to_thread.run_sync(lambda: _info(app, find_seen(app, request, received.token)))

    return send_submission


def _make_action(action: SubmissionAction) -> HTTPRouteHandler:
    """The route that performs one action on a submission and returns its new state."""
    route = post(
        f"/submissions/{{token:str}}/{action.name}",
        guards=[needs(action.role, scope=action.scope)],
        **_DECLARED,
        status_code=200,
        sync_to_thread=True,
        summary=action.words,
        operation_id=f"{action.name}Submission",
    )

    def act(token: FromPath[str], request: Asked, app: GivenApp) -> SubmissionInfo:
        return act_saying(token, request, app, Reason())

    def act_saying(token: FromPath[str], request: Asked, app: GivenApp, data: JSONBody[Reason]) -> SubmissionInfo:
        found = find_seen(app, request, token)
        return _info(app, action.does(app, found, account_of(request).name, data.words))

    return route(act_saying if action.says else act)


def _info(app: ServeApp, one: SubmissionRecord) -> SubmissionInfo:
    scores = read_scores(app.store, one.id) if is_scored(one) else None
    return SubmissionInfo(
        token=one.token,
        number=one.id,
        status=one.status,
        status_at=one.status_at,
        deadline_at=one.deadline_at,
        position=queue_position(app.store, one),
        progress=one.progress,
        model=one.model,
        team=one.team,
        received_at=one.received_at,
        published_at=one.published_at,
        withdrawn_at=one.withdrawn_at,
        provenance=one.provenance,
        detail=one.detail,
        reason=one.reason,
        annotation=one.annotation,
        flag=one.flag,
        n_problems=len(one.problems),
        problems=one.problems[:SHOWN_PROBLEMS],
        accuracy=scores.answers.accuracy if scores and scores.answers else None,
        preview=one.preview,
        sha256=one.file_sha256,
    )


def submission_api(largest: int) -> Feature:
    """The same for programs, with files of at most so many bytes."""
    actions = map(_make_action, ACTIONS)
    return Feature(api=[list_own, give_submission, give_problems, *actions, _make_upload_api(largest)])
