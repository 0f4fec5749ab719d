"""The caller of a page: a visitor, a signed-in person, or a program with an API token."""

from contextvars import ContextVar

import msgspec

from medthink.accounts.account import Account
from medthink.accounts.roles import Role, TokenScope


class WebCaller(msgspec.Struct, frozen=True, kw_only=True):
    """The caller; `scopes` is None except for a program, which may do only what its token allows."""

    account: Account | None = None
    scopes: frozenset[TokenScope] | None = None
    session: str = ""

    @property
    def is_program(self) -> bool:
        """Whether the caller used an API token."""
        return self.scopes is not None

    @property
    def name(self) -> str:
        """The caller's name in the history."""
        return self.account.name if self.account else "visitor"

    @property
    def team(self) -> str | None:
        """The team this person submits for."""
        return self.account.team if self.account else None

    def may(self, role: Role) -> bool:
        """Whether this caller has the rights of a role."""
        return role == "visitor" or (self.account is not None and self.account.may(role))


NOBODY = WebCaller()
_CURRENT: ContextVar[WebCaller] = ContextVar("caller", default=NOBODY)


def current_caller() -> WebCaller:
    """The caller of the current page, shown in every page's header."""
    return _CURRENT.get()


def remember_caller(caller: WebCaller) -> None:
    """Remember the caller for the rest of this request."""
    _CURRENT.set(caller)
