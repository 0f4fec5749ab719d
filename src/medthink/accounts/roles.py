"""The roles a person can have, what each may do, and the scopes of a program."""

from collections.abc import Iterable
from typing import Literal, get_args

Role = Literal["visitor", "member", "submitter", "reader", "coordinator", "maintainer"]
GivenRole = Literal["submitter", "reader", "coordinator", "maintainer"]
ROLES: tuple[GivenRole, ...] = get_args(GivenRole)
MEANINGS: dict[GivenRole, str] = {
    "submitter": "hands in predictions for a team",
    "reader": "reads and judges the cases given to them",
    "coordinator": "sets up readings and sees their results",
    "maintainer": "keeps the board: people, submissions, settings",
}
# Who may do everything that another role may.
_INCLUDES: dict[GivenRole, frozenset[Role]] = {
    "coordinator": frozenset({"reader"}),
    "maintainer": frozenset({"submitter", "reader", "coordinator"}),
}

TokenScope = Literal["read", "submit", "maintain"]
SCOPES: tuple[TokenScope, ...] = get_args(TokenScope)
SCOPE_MEANINGS: dict[TokenScope, str] = {
    "read": "see the team's own submissions",
    "submit": "hand in, publish and withdraw the team's submissions",
    "maintain": "what a maintainer may do",
}


def includes(held: Iterable[GivenRole], wanted: Role) -> bool:
    """Whether somebody with an account and these roles may do what the wanted role may; a member is any of them."""
    return wanted in ("visitor", "member") or any(wanted == role or wanted in _INCLUDES.get(role, ()) for role in held)
