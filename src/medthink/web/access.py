"""Who may do what. **Every route of `medthink serve` declares the role it needs**, or the application does not start:

```python
@get("/readings", guards=[needs("coordinator")], sync_to_thread=True)
def show_readings(request: Asked) -> Response[str]:
    account = account_of(request)          # the Account that was let in; request.user is the WebCaller
    ...
```

`needs("visitor")` admits everyone, `needs("member")` everyone with an account. `needs("submitter", scope="submit")`
also admits programs whose token has that scope; a route without a scope is for people only. A caller who is not signed
in is sent to the sign-in page and back; one who lacks the role is told so. Whether a *thing* (a submission, a reading)
belongs to the caller is decided by the handler, by `account_of(request)`; what is not theirs is answered as if it did
not exist (`NotFoundException`).
"""

from collections.abc import Iterable
from typing import Annotated, Any

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.exceptions import NotAuthorizedException, PermissionDeniedException
from litestar.handlers import HTTPRouteHandler
from litestar.handlers.base import BaseRouteHandler
from litestar.params import PathParameter

from medthink.accounts.account import Account
from medthink.accounts.roles import Role, TokenScope
from medthink.web.callers import NOBODY, WebCaller

Asked = Request[Any, Any, Any]
RowNumber = Annotated[int, PathParameter(ge=0, le=2**31 - 1)]
"""A row number in a path, within the database's range."""


class Needs:
    """The role that a route requires, and the scope with which a program may use it."""

    def __init__(self, role: Role, scope: TokenScope | None) -> None:
        self.role = role
        self.scope = scope

    # Async, although it waits for nothing: Litestar would send a plain function to a thread.
    async def __call__(self, connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
        """Admit the caller, or say why not."""
        caller = caller_of(connection)
        if caller.is_program and not self._is_in_scope(caller):
            wanted = f"a token with the scope {self.scope}" if self.scope else "a person who is signed in"
            raise PermissionDeniedException(detail=f"This needs {wanted}.")
        if caller.may(self.role):
            return
        if caller.account is None:
            raise NotAuthorizedException(detail="Sign in first.")
        raise PermissionDeniedException(detail=f"This is for a {self.role}.")

    def _is_in_scope(self, caller: WebCaller) -> bool:
        # What everyone may see, a program may see with any token, except pages.
        return self.scope is not None and (self.role == "visitor" or self.scope in (caller.scopes or ()))


def needs(role: Role, *, scope: TokenScope | None = None) -> Needs:
    """A guard that admits only callers with this role."""
    return Needs(role, scope)


def declared_needs(handler: HTTPRouteHandler) -> Needs:
    """What a route declares; a route that declares nothing is a programming error."""
    found = [guard for guard in handler.guards or () if isinstance(guard, Needs)]
    if len(found) != 1:
        raise TypeError(f"{sorted(handler.paths)} must declare the one role it needs: guards=[needs(…)]")
    return found[0]


def refuse_undeclared(handlers: Iterable[HTTPRouteHandler]) -> None:
    """Stop an application that has a route without a declared role."""
    for handler in handlers:
        declared_needs(handler)


def caller_of(connection: ASGIConnection[Any, Any, Any, Any]) -> WebCaller:
    """The caller of a request."""
    found = connection.scope.get("user")
    return found if isinstance(found, WebCaller) else NOBODY


def account_of(connection: ASGIConnection[Any, Any, Any, Any]) -> Account:
    """The caller's account; only for routes that need more than a visitor."""
    account = caller_of(connection).account
    if account is None:
        raise NotAuthorizedException(detail="Sign in first.")
    return account
