"""Security headers and request checks for every route.

Another site's page may make a browser send requests here (CSRF), and another host name may be pointed at this address
(DNS rebinding). Therefore a request must name an allowed host, and one from a page must come from our own. A program
with a token in a header is not a page: no other site can make a browser send one.

HEAD is answered here for every page: like GET, without the body.
"""

import re
from collections.abc import Iterable
from typing import cast

from litestar.datastructures import MutableScopeHeaders
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
HTTPS_ONLY = {"Strict-Transport-Security": "max-age=31536000"}
_READING = ("GET", "HEAD", "OPTIONS")
_REFUSED = re.compile(rb";\s*q\s*=\s*0(\.0*)?\s*$", re.IGNORECASE)
_CAME_FROM_ELSEWHERE = (b"cross-site", b"same-site")


def loopback_hosts(port: int) -> frozenset[str]:
    """The host names of this machine's loopback address at this port."""
    return frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))


class Guard:
    """Middleware that accepts requests only for its own hosts and from its own pages."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str], *, is_secure: bool = False) -> None:
        self._app = app
        self._headers = HEADERS | (HTTPS_ONLY if is_secure else {})
        self._hosts = frozenset(host.encode() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse requests from elsewhere; add our headers to everything else."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        method = str(scope["method"])
        refusal = self._refuse(dict(scope["headers"]), method)
        if refusal:
            await _answer(send, refusal)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableScopeHeaders.from_message(message)
                for name, value in self._headers.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
                if message["status"] >= 400 and method not in _READING:
                    # The rest of a refused body is not read.
                    headers["Connection"] = "close"
            if method == "HEAD" and message["type"] == "http.response.body":
                message["body"] = b""
            await send(message)

        asked = scope | {"headers": _without_refused_codings(scope["headers"])}
        if method == "HEAD":
            asked["method"] = "GET"
        await self._app(cast(Scope, asked), receive, send_guarded)

    def _refuse(self, headers: dict[bytes, bytes], method: str) -> str:
        """The reason why the request is refused, or ""."""
        host = headers.get(b"host", b"")
        if host not in self._hosts:
            return "This server does not accept requests for that host name."
        origin = headers.get(b"origin")
        if origin is not None and origin not in (b"http://" + host, b"https://" + host):
            return "Requests from other sites are not answered."
        is_visit = method == "GET" and headers.get(b"sec-fetch-mode") == b"navigate"
        if headers.get(b"sec-fetch-site") in _CAME_FROM_ELSEWHERE and not is_visit:
            return "Requests from other sites are not answered."
        # Browsers state the origin of a form or script; requests that change something must.
        if method not in _READING and origin is None and b"authorization" not in headers:
            return "Requests that change something must state their origin."
        return ""


def _without_refused_codings(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers, without codings that the client refuses by `q=0`: what compresses looks for the name alone."""
    return [(name, _accepted(value) if name == b"accept-encoding" else value) for name, value in headers]


def _accepted(value: bytes) -> bytes:
    return b",".join(coding for coding in value.split(b",") if not _REFUSED.search(coding))


async def _answer(send: Send, words: str) -> None:
    headers = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
    headers += [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": words.encode(), "more_body": False})
