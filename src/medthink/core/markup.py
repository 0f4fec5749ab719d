"""HTML built from values: anything that is not already markup is escaped."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

# Control characters except tab and newline, marks that change the direction of writing, and lone surrogates.
_UNSHOWABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_VOID = frozenset({"img"})


class Markup(str):
    """Text that is already HTML; only this module, the templates and the figures make it."""

    __slots__ = ()


class Table(NamedTuple):
    """Column names and rows of text; `numeric` columns are aligned as numbers, `wordy` ones break into lines.

    The numbers of the rows at the places `grey` do not count.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()
    wordy: frozenset[int] = frozenset()
    title: str = ""
    grey: frozenset[int] = frozenset()


def clean(text: str) -> str:
    """The text with a replacement mark for every character that cannot be shown."""
    return _UNSHOWABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str, longest: int = 80) -> str:
    """The text cleaned, on one line, shortened to at most `longest` characters."""
    flat = " ".join(clean(text).split())
    return flat if len(flat) <= longest else flat[: longest - 1].rstrip() + "…"


def tag(name: str, *children: str, **attributes: str | int | None) -> Markup:
    """An element; plain children and every attribute's value are escaped, an attribute of None is left out.

    `class_="wide"` and `aria_label="…"` are written as `class` and `aria-label`.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(clean(str(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{joined(children)}</{name}>")


def joined(children: Iterable[str]) -> Markup:
    """The children one after the other, plain ones escaped."""
    return Markup("".join(child if isinstance(child, Markup) else escape(clean(child)) for child in children))


def fold_section(summary: str, *children: str, class_: str | None = None) -> Markup:
    """Content folded behind a summary line."""
    return tag("details", tag("summary", summary), *children, class_=class_)


def html_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, caption: str = "") -> Markup:
    """A table; every cell is written as text. Without column names there is no header row."""
    head = [tag("thead", tag("tr", *(tag("th", name) for name in columns)))] if any(columns) else []
    body = tag("tbody", *(tag("tr", *(tag("td", _cell(cell)) for cell in row)) for row in rows))
    return tag("table", *([tag("caption", caption)] if caption else []), *head, body)


def _cell(value: object) -> str:
    return value if isinstance(value, str) else str(value)


def paragraphs(text: str, longest: int = 4000) -> Markup:
    """The text with its line breaks; a very long one is cut and says how much is left out."""
    if not text.strip():
        return tag("p", "–", class_="text")
    if len(text) <= longest:
        return tag("p", text, class_="text")
    rest = tag("i", f" … {len(text) - longest:,} more characters in the run's own file")
    return tag("p", text[:longest], rest, class_="text")
