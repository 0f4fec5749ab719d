"""The roles a person can have, the rights of each, and the scopes of API tokens."""

from collections.abc import Iterable
from typing import Literal, get_args

Role = Literal["visitor", "member", "submitter", "reader", "coordinator", "maintainer"]
GivenRole = Literal["submitter", "reader", "coordinator", "maintainer"]
ROLES: tuple[GivenRole, ...] = get_args(GivenRole)
MEANINGS: dict[GivenRole, str] = {
    "submitter": "submits predictions for a team",
    "reader": "reads and judges assigned cases",
    "coordinator": "sets up reading studies and sees their results",
    "maintainer": "manages the board: people, submissions, settings",
}
# Roles that include the rights of another.
_INCLUDES: dict[GivenRole, frozenset[Role]] = {
    "coordinator": frozenset({"reader"}),
    "maintainer": frozenset({"submitter", "reader", "coordinator"}),
}

TokenScope = Literal["read", "submit", "maintain"]
SCOPES: tuple[TokenScope, ...] = get_args(TokenScope)
SCOPE_MEANINGS: dict[TokenScope, str] = {
    "read": "see the team's own submissions",
    "submit": "submit, publish and withdraw the team's submissions",
    "maintain": "all rights of a maintainer",
}

# The roles that a program may act in with a token of each scope, if the person has them.
SCOPE_ROLES: dict[TokenScope, frozenset[Role]] = {
    "read": frozenset({"visitor", "member", "submitter"}),
    "submit": frozenset({"visitor", "member", "submitter"}),
    "maintain": frozenset({"visitor", "member", "submitter", "maintainer"}),
}


def includes(held: Iterable[GivenRole], wanted: Role) -> bool:
    """Whether these roles include the required one; any account is a member."""
    return wanted in ("visitor", "member") or any(wanted == role or wanted in _INCLUDES.get(role, ()) for role in held)
