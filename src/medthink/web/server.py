"""One process that serves an application until interrupted, on the loopback address by default."""

import socket
from collections.abc import Sequence

import uvicorn
from litestar.types import ASGIApp

from medthink.core.errors import UsageError

LOOPBACK = "127.0.0.1"
FIRST_PORT = 7350
_PORTS_TRIED = 20


def open_port(port: int | None, address: str = LOOPBACK) -> socket.socket:
    """A socket at this port, or at the first free one."""
    ports = [port] if port is not None else [*range(FIRST_PORT, FIRST_PORT + _PORTS_TRIED), 0]
    for number in ports:
        # Named, because asyncio sends at once (TCP_NODELAY) only on sockets that say they are TCP: an answer of two
        # pieces would else wait 40 ms for the acknowledgement of the first.
        opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind((address, number))
        except OSError:
            opened.close()
            continue
        opened.listen(128)
        return opened
    place = "" if address == LOOPBACK else f" of {address}"
    raise UsageError(
        f"port {port}{place} is in use, or needs more permissions", remedy="give another --port, or leave it out"
    )


def make_server(app: ASGIApp, proxies: Sequence[str] = ()) -> uvicorn.Server:
    """A server of an application, not started yet; these proxies are believed when they say who asked."""
    config = uvicorn.Config(
        app,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)


def serve(app: ASGIApp, opened: socket.socket, proxies: Sequence[str] = ()) -> None:
    """Answer requests until interrupted."""
    make_server(app, proxies).run(sockets=[opened])
