"""`medthink agree --items`: the cases that divide the raters, and readers' labels worth a second look."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import to_builtins

from medthink.cli.show import console, print_json, say, table
from medthink.core.numbers import as_percent

if TYPE_CHECKING:
    from medthink.cases.case import Case
    from medthink.readers.items import ReadItems

_SHOWN = 12


def show_items(
    run: Path, tables: Sequence[Path], cases: "Mapping[int, Case]", *, key: Path | None, as_json: bool
) -> None:
    """Print the item view of a readers' table."""
    from medthink.readers.items import view_read_items

    found = view_read_items(run, tables, cases, key=key)
    if as_json:
        print_json(to_builtins(found))
        return
    if not found:
        say("No reader or judge has labelled anything that can be right or wrong.")
    for one in found:
        _show(one)


def _show(found: "ReadItems") -> None:
    from medthink.scoring.scores import percent

    out = console()
    rows = [(one.case, one.items, percent(one.wrong), percent(one.differ)) for one in found.cases[:_SHOWN]]
    title = f"{found.aspect}: {len(found.cases)} cases, {len(found.raters)} raters; the most divisive first"
    out.print(table(title, ("case", "items", "labelled wrong", "rater pairs that differ"), rows, right=[0, 1]))
    if found.false_share is None:
        out.print("No reader's label is contradicted by two or more others.")
    else:
        looked = [
            (one.reader, one.case, one.others, as_percent(one.doubt, 0), one.text) for one in found.alone[:_SHOWN]
        ]
        columns = ("reader", "case", "others", "doubt", "item")
        out.print(table("Worth a second look: one reader against all others", columns, looked, right=[1, 2]))
        out.print(
            f"{len(found.alone)} labels; expect the reader to be right after all in {as_percent(found.false_share, 0)} "
            "of them if raters err independently, and in 5 to 15 points more where a tenth to a fifth of the items "
            "mislead all raters. A reading list, not a finding; --json has all."
        )
    out.print()
