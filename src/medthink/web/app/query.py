"""The query part of a URL: filters and sort order of a list. The URL holds the whole state."""

from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

_Wanted = TypeVar("_Wanted", bound="Query")
_LONGEST = 200
_MOST_VALUES = 60


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """Strings by name, or several strings if a name may be repeated; empty values are left out of URLs."""

    q: str = ""
    sort: str = ""
    down: str = ""

    def encode(self, **changes: str | tuple[str, ...]) -> str:
        """The query with some changes, `?` included; "" if it is empty. Another filter or order begins at page 1."""
        fields = msgspec.structs.asdict(self) | ({"page": ""} if changes else {}) | changes
        written = urlencode({name: value for name, value in fields.items() if value}, doseq=True)
        return f"?{written}" if written else ""

    def sort_link(self, column: str, *, first_down: bool) -> str:
        """The query that sorts by this column, or reverses the order if it already does."""
        is_down = first_down if self.sort != column else not self.down
        return self.encode(sort=column, down="1" if is_down else "")

    def aria_sort(self, column: str) -> str:
        """The `aria-sort` value of the column; "" if another one is sorted."""
        if self.sort != column:
            return ""
        return "descending" if self.down else "ascending"

    @property
    def words(self) -> list[str]:
        """The search words in lower case; every word must be found."""
        return self.q.casefold().split()


def begin_page(page: str, rows: int, size: int) -> int:
    """The place of the first row of a page, given as in a URL: the first page if it is no number, else the last."""
    number = int(page) if page.isdecimal() and len(page) < 6 else 1
    return size * max(0, min(number - 1, (rows - 1) // size))


def read_query(kind: type[_Wanted], given: Mapping[str, str]) -> _Wanted:
    """The known fields; anything else in the URL is ignored."""
    fields: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        values = [value[:_LONGEST] for value in _values(given, field.name)]
        if field.default == ():
            fields[field.name] = tuple(dict.fromkeys(values[:_MOST_VALUES]))
        elif values:
            fields[field.name] = values[0]
    return kind(**fields)


def _values(given: Mapping[str, str], name: str) -> list[str]:
    """Every value of a name."""
    if name not in given:
        return []
    several = getattr(given, "getall", None)
    return list(several(name)) if several else [given[name]]
