"""One process that serves an application until interrupted, on the loopback address by default."""

import socket
import tomllib
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec
import uvicorn
from litestar.types import ASGIApp

from medthink.accounts.identity_providers import IdentityProvider
from medthink.core.errors import DataError, UsageError
from medthink.web.app.connections import LimitedConnection

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
    """A server of an application, not started yet; these proxies are trusted to name the client."""
    config = uvicorn.Config(
        app,
        http=LimitedConnection,
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
    """Serve requests until interrupted."""
    make_server(app, proxies).run(sockets=[opened])


SignUp = Literal["invitation", "open"]


class ServeSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a served board.

    `public_url` is the public address if there is a proxy in front, and `proxies` are the addresses or networks of
    proxies that are trusted to name the client. `sign_up` says whether anybody may create an account or only those who
    were invited. Quotas are those of a team; files with errors do not count. With `needs_approval`, a maintainer must
    approve each publication.
    """

    public_url: str = ""
    proxies: tuple[str, ...] = ("127.0.0.1",)
    sign_up: SignUp = "invitation"
    providers: tuple[IdentityProvider, ...] = ()
    uploads_per_day: int = 5
    publications_per_week: int = 2
    needs_approval: bool = False
    largest_upload_mb: int = 50

    @property
    def is_secure(self) -> bool:
        """Whether the public address uses https, so that cookies must too."""
        return self.public_url.startswith("https://")

    @property
    def largest_upload(self) -> int:
        """The largest accepted file, in bytes."""
        return self.largest_upload_mb * 1024 * 1024

    @property
    def hosts(self) -> tuple[str, ...]:
        """The accepted host names besides the loopback's."""
        return (urlsplit(self.public_url).netloc,) if self.public_url else ()

    @property
    def trusted_proxies(self) -> tuple[str, ...]:
        """The trusted proxies: none if there is no public address."""
        return self.proxies if self.public_url else ()

    def provider(self, name: str) -> IdentityProvider | None:
        """The provider of this name."""
        return next((one for one in self.providers if one.name == name), None)


def read_settings(path: Path) -> ServeSettings:
    """The settings of a TOML file, or DataError naming the invalid field."""
    try:
        plain = tomllib.loads(path.read_text(encoding="utf-8"))
        found = msgspec.convert(plain, ServeSettings)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(f"cannot be read: {error}", file=path, remedy="name a TOML file; see docs/serve.md") from None
    except msgspec.ValidationError as error:
        raise DataError(str(error), file=path, remedy="see docs/serve.md for the settings") from None
    if found.public_url and not found.hosts[0]:
        raise DataError("not an address", file=path, field="public_url", remedy='write "https://board.example.org"')
    for one in found.proxies:
        try:
            ip_network(one)
        except ValueError:
            remedy = 'write "10.0.0.7" or "10.0.0.0/8"'
            raise DataError(f"{one!r} is not an address", file=path, field="proxies", remedy=remedy) from None
    return found
