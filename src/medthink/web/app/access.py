"""Access control. **Every route of `medthink serve` declares the role it needs**, or the application does not start:

```python
@get("/readings", guards=[needs("coordinator")], sync_to_thread=True)
def show_readings(request: Asked) -> Response[str]:
    account = account_of(request)          # the caller's Account; request.user is the WebCaller
    ...
```

`needs("visitor")` allows everyone, `needs("member")` everyone with an account. `needs("submitter", scope="submit")`
also allows programs whose token has that scope; a route without a scope is for people only. A caller who is not signed
in is redirected to the sign-in page and back; one without the role gets an error. Whether a *thing* (a submission, a
reading) belongs to the caller is decided by the handler, by `account_of(request)`; others' things are answered as if
they did not exist (`NotFoundException`).
"""

from collections.abc import Iterable
from contextvars import ContextVar
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Annotated, Any

import msgspec
from anyio import to_thread
from litestar import Request
from litestar.connection import ASGIConnection
from litestar.enums import ScopeType
from litestar.exceptions import NotAuthorizedException, PermissionDeniedException
from litestar.handlers import HTTPRouteHandler
from litestar.handlers.base import BaseRouteHandler
from litestar.params import PathParameter
from litestar.types import ASGIApp, Receive, Scope, Send

from medthink.accounts.account import Account
from medthink.accounts.roles import SCOPE_ROLES, Role, TokenScope
from medthink.accounts.sessions import find_session, find_token
from medthink.store.engine import Store


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
        """Whether this caller has the rights of a role; a program has at most those of its token's scopes."""
        if self.scopes is not None and not any(role in SCOPE_ROLES[scope] for scope in self.scopes):
            return role == "visitor"
        return role == "visitor" or (self.account is not None and self.account.may(role))


NOBODY = WebCaller()
_CURRENT: ContextVar[WebCaller] = ContextVar("caller", default=NOBODY)


def current_caller() -> WebCaller:
    """The caller of the current page, shown in every page's header."""
    return _CURRENT.get()


def remember_caller(caller: WebCaller) -> None:
    """Remember the caller for the rest of this request."""
    _CURRENT.set(caller)


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
        """Allow the caller, or raise an error with the reason."""
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
    """A guard that allows only callers with this role."""
    return Needs(role, scope)


def declared_needs(handler: HTTPRouteHandler) -> Needs:
    """The declared needs of a route; a route without any is a programming error."""
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


def client_network(request: Asked) -> str:
    """Where a request comes from: an IPv4 address, or the /64 of an IPv6 address, which one household or host holds."""
    given = request.client.host if request.client else ""
    try:
        address = ip_address(given.partition("%")[0])
    except ValueError:
        return given
    if isinstance(address, IPv6Address):
        inside = address.ipv4_mapped
        return str(inside) if inside else str(ip_network((address, 64), strict=False))
    return str(address)


COOKIE, SECURE_COOKIE = "medthink_session", "__Host-medthink_session"


class Identify:
    """An application that identifies the caller by session cookie or API token; an invalid token is refused at once."""

    def __init__(self, app: ASGIApp, store: Store) -> None:
        self._app = app
        self._store = store

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Identify the caller, then handle the request."""
        if scope["type"] == ScopeType.HTTP:
            caller = await self._find(scope)
            if caller is None:
                await _refuse_token(send)
                return
            scope["user"] = caller
            remember_caller(caller)
        await self._app(scope, receive, send)

    async def _find(self, scope: Scope) -> WebCaller | None:
        connection: ASGIConnection[Any, Any, Any, Any] = ASGIConnection(scope)
        given = connection.headers.get("authorization")
        if given is not None:
            # A program is never identified by a cookie that happens to be sent.
            return await to_thread.run_sync(self._program, given)
        session = session_cookie(connection)
        return await to_thread.run_sync(self._person, session) if session else NOBODY

    def _person(self, session: str) -> WebCaller:
        account = find_session(self._store, session)
        return NOBODY if account is None else WebCaller(account=account, session=session)

    def _program(self, given: str) -> WebCaller | None:
        kind, _, secret = given.partition(" ")
        found = find_token(self._store, secret.strip()) if kind.casefold() == "bearer" else None
        return None if found is None else WebCaller(account=found[0], scopes=frozenset(found[1].scopes))


def session_cookie(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """The browser's session cookie, or ""."""
    found = connection.cookies.get(SECURE_COOKIE) or connection.cookies.get(COOKIE) or ""
    return found if len(found) < 100 else ""


async def _refuse_token(send: Send) -> None:
    headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    body = b'{"problem": "this token opens nothing", "remedy": "make another one on your account page"}'
    await send({"type": "http.response.body", "body": body, "more_body": False})
