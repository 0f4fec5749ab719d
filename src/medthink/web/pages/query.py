"""The part of an address after `?`: what a list is filtered and sorted by. The address holds the whole state."""

from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import urlencode

import msgspec

_Wanted = TypeVar("_Wanted", bound="Query")
_LONGEST = 200


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """Texts by name; what is empty stands in no address."""

    q: str = ""
    sort: str = ""
    down: str = ""

    def encode(self, **changes: str) -> str:
        """The query with some changes, `?` included; "" when nothing is asked for."""
        fields = msgspec.structs.asdict(self) | changes
        written = urlencode({name: value for name, value in fields.items() if value})
        return f"?{written}" if written else ""

    def sort_link(self, column: str, *, first_down: bool) -> str:
        """The query that sorts by this column; the other way round where it is sorted by it already."""
        is_down = first_down if self.sort != column else not self.down
        return self.encode(sort=column, down="1" if is_down else "")

    def aria_sort(self, column: str) -> str:
        """How the column is sorted, in the words of `aria-sort`; "" when by another one."""
        if self.sort != column:
            return ""
        return "descending" if self.down else "ascending"

    @property
    def words(self) -> list[str]:
        """What is searched for, in small letters; every word must be found."""
        return self.q.casefold().split()


def read_query(kind: type[_Wanted], given: Mapping[str, str]) -> _Wanted:
    """The fields that this list knows; anything else in the address is left alone."""
    return kind(**{name: given[name][:_LONGEST] for name in kind.__struct_fields__ if name in given})
