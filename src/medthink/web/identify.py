"""Identify the caller once per request: by a browser's session, or a program's token."""

from typing import Any

from anyio import to_thread
from litestar.connection import ASGIConnection
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

from medthink.accounts.sessions import find_session
from medthink.accounts.tokens import find_token
from medthink.board.store import BoardStore
from medthink.web.callers import NOBODY, WebCaller, remember_caller

COOKIE, SECURE_COOKIE = "medthink_session", "__Host-medthink_session"


class Identify:
    """An application that identifies the caller by session cookie or API token; an invalid token is refused at once."""

    def __init__(self, app: ASGIApp, store: BoardStore) -> None:
        self._app = app
        self._store = store

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Identify the caller, then answer."""
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
            # A program never acts through a cookie that happens to be sent.
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
