"""The settings file of `medthink serve`: one frozen struct, unknown keys are errors."""

import tomllib
from ipaddress import ip_network
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from medthink.accounts.providers import IdentityProvider
from medthink.core.errors import DataError

SignUp = Literal["invitation", "open"]


class ServeSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a board is served.

    `public_url` is the address that people type where a proxy stands in front, and `proxies` are the addresses or
    networks of proxies that are believed when they say who asked. `sign_up` says whether anybody may make
    an account or only those who were invited. Quotas are those of a team; files with errors do not count. With
    `needs_approval`, maintainers publish what a team offers.
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
        """The proxies that are believed: none where people come without one."""
        return self.proxies if self.public_url else ()

    def provider(self, name: str) -> IdentityProvider | None:
        """The provider of this name."""
        return next((one for one in self.providers if one.name == name), None)


def read_settings(path: Path) -> ServeSettings:
    """The settings of a TOML file, or DataError with the field that is wrong."""
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
            raise DataError(f"{one!r} is no address", file=path, field="proxies", remedy=remedy) from None
    return found
