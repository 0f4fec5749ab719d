"""Who asks for a page: a visitor, somebody signed in, or a program with an API token."""

from contextvars import ContextVar

import msgspec

from medthink.accounts.account import Account
from medthink.accounts.roles import Role, TokenScope


class WebCaller(msgspec.Struct, frozen=True, kw_only=True):
    """Whoever asks; `scopes` is None but for a program, which may do only what its token says."""

    account: Account | None = None
    scopes: frozenset[TokenScope] | None = None
    session: str = ""

    @property
    def is_program(self) -> bool:
        """Whether an API token opened the door."""
        return self.scopes is not None

    @property
    def name(self) -> str:
        """The name by which history tells who did something."""
        return self.account.name if self.account else "visitor"

    @property
    def team(self) -> str | None:
        """The team that this person hands in for."""
        return self.account.team if self.account else None

    def may(self, role: Role) -> bool:
        """Whether this caller may do what the role may."""
        return role == "visitor" or (self.account is not None and self.account.may(role))


NOBODY = WebCaller()
_CURRENT: ContextVar[WebCaller] = ContextVar("caller", default=NOBODY)


def current_caller() -> WebCaller:
    """Who asks for the page that is being made; every page's head shows it."""
    return _CURRENT.get()


def remember_caller(caller: WebCaller) -> None:
    """Note who asks, for the rest of this request."""
    _CURRENT.set(caller)
