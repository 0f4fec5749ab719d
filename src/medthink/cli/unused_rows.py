"""How rows of readers' tables that were not used are listed."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from medthink.cli.show import say

if TYPE_CHECKING:
    from medthink.readers.readings import UnusedRow

_ROWS_NAMED = 5


def show_unused(problems: "Iterable[UnusedRow]") -> None:
    """List every row with its reason; empty rows are counted for each list."""
    # Lists of several runs hold rows of the others too; these are counted, not listed.
    told = [problem for problem in problems if problem.kind != "other_run"]
    unlabelled: dict[str, list[int]] = {}
    for problem in told:
        if problem.kind == "unlabelled":
            unlabelled.setdefault(problem.file, []).append(problem.row)
        else:
            say(str(problem), stderr=True)
    # Most of a list may still be empty; a line for each row would bury real problems.
    for file, rows in unlabelled.items():
        named = [*map(str, dict.fromkeys(rows))]  # a row may cover several units
        first = ", ".join(named[:_ROWS_NAMED])
        more = ", …" if len(named) > _ROWS_NAMED else ""
        say(f"{file}: unlabelled: {len(rows)} units are empty, in row {first}{more}", stderr=True)
    if told:
        say(f"{len(told)} rows or cells were not used, for the reasons above.", stderr=True)
