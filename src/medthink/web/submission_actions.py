"""What can be done with a submission: one list for pages and programs."""

from collections.abc import Callable
from typing import NamedTuple

from medthink.accounts.roles import Role, TokenScope
from medthink.board.moderation import annotate, approve, decline, discard, flag, try_again, withdraw
from medthink.board.records import SubmissionRecord
from medthink.web.serve_app import ServeApp
from medthink.web.submission_desk import make_public


class SubmissionAction(NamedTuple):
    """An action: its name in addresses, who may do it, and how; `says` where it takes a reason or a note."""

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
        lambda app, one, actor, _: try_again(app.store, one.token, actor=actor),
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
        lambda app, one, actor, why: decline(app.store, one.token, actor=actor, why=why), says=True,
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
