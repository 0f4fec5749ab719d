"""What can be done with a submission: one list for pages and programs."""

from collections.abc import Callable
from typing import NamedTuple

from medthink.accounts.roles import Role, TokenScope
from medthink.board.moderation import annotate, approve, decline, discard, flag, try_again, withdraw
from medthink.board.records import SubmissionRecord
from medthink.web.submission_desk import SubmissionDesk


class SubmissionAction(NamedTuple):
    """An action: its name in addresses, who may do it, and how; `says` where it takes a reason or a note."""

    name: str
    role: Role
    scope: TokenScope
    words: str
    does: Callable[[SubmissionDesk, SubmissionRecord, str, str], SubmissionRecord]
    says: bool = False


ACTIONS = (
    SubmissionAction(
        "publish", "submitter", "submit", "Publish it, or ask the maintainers to",
        lambda desk, one, actor, _: desk.make_public(one, actor),
    ),
    SubmissionAction(
        "discard", "submitter", "submit", "Discard it",
        lambda desk, one, actor, _: discard(desk.store, one.token, actor=actor),
    ),
    SubmissionAction(
        "again", "submitter", "submit", "Check it again",
        lambda desk, one, actor, _: try_again(desk.store, one.token, actor=actor),
    ),
    SubmissionAction(
        "withdraw", "submitter", "submit", "Take it off the ranking",
        lambda desk, one, actor, why: withdraw(desk.store, one.token, actor=actor, why=why), says=True,
    ),
    SubmissionAction(
        "approve", "maintainer", "maintain", "Approve an offered submission",
        lambda desk, one, actor, _: approve(desk.store, one.token, actor=actor),
    ),
    SubmissionAction(
        "decline", "maintainer", "maintain", "Decline an offered submission",
        lambda desk, one, actor, why: decline(desk.store, one.token, actor=actor, why=why), says=True,
    ),
    SubmissionAction(
        "annotate", "maintainer", "maintain", "Add a public note",
        lambda desk, one, actor, words: annotate(desk.store, one.token, actor=actor, words=words), says=True,
    ),
    SubmissionAction(
        "flag", "maintainer", "maintain", "Flag it as doubtful; without a reason, remove the flag",
        lambda desk, one, actor, why: flag(desk.store, one.token, actor=actor, why=why), says=True,
    ),
)  # fmt: skip
