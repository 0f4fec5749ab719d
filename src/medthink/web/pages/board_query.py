"""Filters, sort order and columns of the leaderboard; ranks never depend on them."""

import re

from medthink.web.pages.query import Query

_DAY = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ)?")

NO_COLUMNS = "-"
"""In URLs, means a table without additional columns."""


class BoardQuery(Query, frozen=True, kw_only=True):
    """`ranking` is the ranking shown, `proof` the minimum level; `col` the columns besides the fixed ones.

    No `col` means the default columns. `rows` is "all" for a table without paging.
    """

    ranking: str = ""
    proof: str = ""
    as_of: str = ""
    weights: tuple[str, ...] = ()
    mode: tuple[str, ...] = ()
    col: tuple[str, ...] = ()
    page: str = ""
    rows: str = ""

    @property
    def day(self) -> str | None:
        """The day, or the second, as of which the board is shown; None for now, or if it is not a date."""
        return self.as_of if _DAY.fullmatch(self.as_of) else None
