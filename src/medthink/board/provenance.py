"""How well a result is supported: the provenance level of every row of the board."""

from typing import Literal

Provenance = Literal["reported", "scored", "traced", "rerun", "ledger"]
PROVENANCE: dict[Provenance, str] = {
    "reported": "a total as reported, without predictions",
    "scored": "predictions scored here",
    "traced": "predictions with the replies they came from, which lead to the same letters",
    "rerun": "traced, and a random sample of cases run again by the maintainer, agreeing within the stated bound",
    "ledger": "run by this toolkit, with its ledger",
}
LEVELS: tuple[Provenance, ...] = tuple(PROVENANCE)
SHOWN_FROM: Provenance = "traced"
"""The minimum level for a row to be shown by default; every row is ranked, shown or not."""
