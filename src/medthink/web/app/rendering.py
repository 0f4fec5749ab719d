"""Rendering page data with templates to HTML, the same for routes and static files.

All data is escaped by the templates. Every address in them begins with `root`, which is `/` for served
pages and the relative path to the top for static files.
"""

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from medthink import __version__
from medthink.accounts.roles import Role
from medthink.core.digest import digest_bytes
from medthink.core.markup import clean
from medthink.core.numbers import as_percent, as_usd
from medthink.report.assets import read_asset
from medthink.scoring.scores import difference_text, rate_text
from medthink.stats.estimate import Estimate, Measured, ends_of
from medthink.web.app.access import NOBODY, current_caller

_FEATURES = ("app", "accounts", "board", "cases", "reading", "review", "runs", "submissions")
WIDTH = 160
NONE = "–"

STATE_WORDS = {
    "ok": "answered",
    "unparsed": "no letter",
    "refused": "refused",
    "truncated": "truncated",
    "failed": "failed",
    "waiting": "not yet",
}
"""Every state of a case, with the word used on pages."""


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A rate in words, and its dot, whisker and the rival's tick on an axis from 0 to 100 %."""

    words: str
    dot: float
    low: float
    high: float
    tick: float | None = None


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A difference in points; `tone` is "up" or "down" if the interval excludes zero, else ""."""

    value: str
    interval: str
    tone: str

    @property
    def words(self) -> str:
        """`+2.7 points (−2.7 to +8.0)`."""
        return f"{self.value} points {self.interval}"


def place_rate(rate: Measured, *, rival: Measured | None = None) -> Interval | None:
    """A rate with the rival's; None if there is no value."""
    if rate.value is None:
        return None
    low, high = ends_of(rate) or (rate.value, rate.value)
    tick = None if rival is None or rival.value is None else _x(rival.value)
    return Interval(words=rate_text(rate), dot=_x(rate.value), low=_x(low), high=_x(high), tick=tick)


def tell_ends(rate: Measured) -> str:
    """`53.6–60.8`, the ends of the interval in per cent; empty if there is none."""
    ends = ends_of(rate)
    return f"{ends[0] * 100:.1f}–{ends[1] * 100:.1f}" if ends else ""


def tell_share(rate: Measured) -> str:
    """`57.2 %`, or a dash if there is no value."""
    return NONE if rate.value is None else as_percent(rate.value)


def tell_difference(gain: Measured) -> Difference:
    """A difference of rates in points."""
    tone = ""
    if isinstance(gain, Estimate):
        tone = "up" if gain.low > 0 else "down" if gain.high < 0 else ""
    value, _, interval = difference_text(gain).partition(" points ")
    return Difference(value=value, interval=interval if isinstance(gain, Estimate) else "(no interval)", tone=tone)


def tell_money(usd: float | None, *, is_least: bool = False) -> str:
    """`$0.03`, or a dash if the price is unknown."""
    return NONE if usd is None else as_usd(usd, is_least=is_least)


def tell_tokens(input_tokens: int | None, output_tokens: int | None) -> str:
    """`1,052 + 21`, or a dash if the provider does not count."""
    if input_tokens is None or output_tokens is None:
        return NONE
    return f"{input_tokens:,} + {output_tokens:,}"


def tell_time(seconds: float | None) -> str:
    """`12 s`, `3 min 20 s`, `2 h 5 min`."""
    if seconds is None:
        return "not known"
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _x(share: float) -> float:
    return round(share * WIDTH, 1)


_TOKENS = "tokens.css"
_MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_IMPORTED = re.compile(r'from "\./(?P<name>[a-z-]+\.js)"')
_ICONS = {
    "search": '<circle cx="7" cy="7" r="4.5"/><path d="M10.5 10.5 14 14"/>',
    "moon": '<path d="M13 9.6A5.6 5.6 0 0 1 6.4 3 5.6 5.6 0 1 0 13 9.6z"/>',
    "check": '<path d="m3 8.5 3.2 3.2L13 4.8"/>',
    "cross": '<path d="m4 4 8 8M12 4l-8 8"/>',
    "ban": '<circle cx="8" cy="8" r="5.5"/><path d="m4.2 4.2 7.6 7.6"/>',
    "quest": '<path d="M5.5 6a2.5 2.5 0 1 1 3.4 2.3c-.6.3-.9.7-.9 1.4M8 12.4v.1"/>',
    "clock": '<circle cx="8" cy="8" r="5.5"/><path d="M8 4.8V8l2.2 1.4"/>',
    "play": '<path d="M13.5 8A5.5 5.5 0 1 1 8 2.5"/>',
    "cut": '<path d="M2.5 8h5M13.5 4v8M10.5 8h0"/>',
    "chevron": '<path d="m6 3.5 4.5 4.5L6 12.5"/>',
    "columns": '<path d="M2 3h12v10H2zM6 3v10M10 3v10"/>',
    "film": '<path d="M2 3h12v10H2zM2 8h12M8 3v10"/>',
    "person": '<circle cx="8" cy="5.5" r="2.8"/><path d="M2.5 14c.6-3 2.6-4.5 5.5-4.5s4.9 1.5 5.5 4.5"/>',
    "up": '<path d="M8 11V3M4.5 6 8 2.5 11.5 6M3 13.5h10"/>',
    "down": '<path d="M8 2.5v8M4.5 7.5 8 11l3.5-3.5M3 13.5h10"/>',
    "flag": '<path d="M4 14V2.5h8l-2 3 2 3H4"/>',
    "key": '<circle cx="5" cy="11" r="3"/><path d="m7.2 8.8 5.8-5.8M10.5 5.5l2 2"/>',
    "warn": '<path d="M8 2.5 14.5 13.5h-13zM8 6.5v3.2M8 11.6v.1"/>',
}


class Link(msgspec.Struct, frozen=True):
    """An entry of the main navigation: its path below the root, its label, and who sees it."""

    path: str
    words: str
    role: Role = "visitor"


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """Data shared by all pages of one application."""

    links: tuple[Link, ...]
    home: str = ""
    is_static: bool = False
    is_file: bool = False
    has_accounts: bool = False


class Asset(msgspec.Struct, frozen=True):
    """A style sheet, script or drawing of our own."""

    data: bytes
    media_type: str
    digest: str


def render(template: str, page: Any, site: Site, *, root: str = "/", here: str = "") -> str:
    """The page as HTML; `here` is the path of its navigation entry."""
    found = _environment().get_template(template)
    # Static files are the same for everyone.
    caller = NOBODY if site.is_static else current_caller()
    return found.render(page=page, site=site, root=root, here=here, caller=caller, version=__version__)


@cache
def load_asset(name: str) -> Asset | None:
    """Our own file of this name, if any."""
    suffix = name[name.rfind(".") :]
    if not re.fullmatch(r"[a-z-]+\.(css|js|svg)", name):
        return None
    if name == _TOKENS:
        data = read_asset(_TOKENS).encode()
    else:
        place = files(__package__).joinpath("static", name)
        if not place.is_file():
            return None
        data = place.read_bytes()
    if suffix == ".js":
        data = _IMPORTED.sub(_with_digest, data.decode()).encode()
    return Asset(data, _MEDIA_TYPES[suffix], digest_bytes(data)[:16])


def _with_digest(imported: re.Match[str]) -> str:
    """The import of another script, by an address that changes with its content: browsers cache scripts for ever."""
    found = load_asset(imported["name"])
    assert found is not None, imported["name"]
    return f'from "./{imported["name"]}?{found.digest}"'


def list_assets() -> list[str]:
    """The names of all assets, for a site of static files."""
    return sorted([_TOKENS, *(one.name for one in files(__package__).joinpath("static").iterdir())])


@cache
def _environment() -> Environment:
    made = Environment(
        loader=ChoiceLoader([PackageLoader(f"medthink.web.{feature}") for feature in _FEATURES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_showable,
    )
    made.globals |= {"icon": draw_icon, "asset": _asset_name, "style": _inline_style, "zip": zip}
    made.filters |= {
        "thousands": lambda number: f"{number:,}",
        "paragraphs": _paragraphs,
        "money": tell_money,
        "seconds": tell_time,
        "when": _tell_when,
        "breakable": _breakable,
    }
    return made


def draw_icon(name: str) -> Markup:
    """One of our own icons; its meaning is always given in words next to it."""
    return Markup(f'<svg class="icon" viewBox="0 0 16 16" aria-hidden="true">{_ICONS[name]}</svg>')


def _asset_name(name: str) -> str:
    """The asset's address below the root: it contains the digest, so that browsers may cache it for ever."""
    found = load_asset(name)
    assert found is not None, name
    return f"static/{name}?{found.digest}"


def _inline_style(name: str) -> Markup:
    """A style sheet of our own, for a page that is one file."""
    found = load_asset(name)
    assert found is not None, name
    return Markup(found.data.decode())


def _tell_when(time: str) -> str:
    """`2026-01-31 12:00 UTC`."""
    return f"{time[:10]} {time[11:16]} UTC" if len(time) > 16 else time


def _breakable(text: str) -> Markup:
    """A name that may be broken after a slash."""
    return Markup("/<wbr>").join(clean(text).split("/"))


def _paragraphs(text: str) -> Sequence[str]:
    return [part for part in text.split("\n\n") if part.strip()]


def _showable(value: Any) -> Any:
    """The text without characters that cannot be shown or that change the writing direction."""
    return clean(value) if type(value) is str else value
