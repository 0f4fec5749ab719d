"""What the leaderboard is filtered and sorted by, and which columns it shows; ranks never change with it."""

import re

from medthink.web.pages.query import Query

_DAY = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ)?")

NO_COLUMNS = "-"
"""Stands in the address for a table without any further column."""


class BoardQuery(Query, frozen=True, kw_only=True):
    """`ranking` is which of the rankings is shown, `proof` the least level; `col` the columns beside the fixed ones.

    No `col` at all stands for the usual columns. `rows` is "all" for a table that is not cut into pages.
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
        """The day, or the second, as of which the board is shown; None for now, and for what is no date."""
        return self.as_of if _DAY.fullmatch(self.as_of) else None

    @property
    def is_narrowed(self) -> bool:
        """Whether some rows may be left out."""
        return bool(self.q or self.proof or self.weights or self.mode)
