"""Other runs of the same sweep: a call that one of them has answered is not made or paid for again."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from medthink.models.request import Attempt
from medthink.runs.records import LEDGER, Finished, Records

# The outcome recorded for a reused call; nothing was sent for it.
SHARED = "shared"


class SharedCall(NamedTuple):
    """A call that another run has answered."""

    run: str
    finished: Finished

    def attempt(self) -> Attempt:
        """The ledger's record of where the reply came from."""
        return Attempt(number=0, endpoint=f"run {self.run}", outcome=SHARED, is_sent=False, latency_s=0.0)


class Siblings:
    """The ledgers of other runs, opened for reading."""

    def __init__(self, runs: Iterable[Path] = ()) -> None:
        self._records = [(run.name, Records.open(run)) for run in runs if (run / LEDGER).is_file()]

    def find(self, key: str) -> SharedCall | None:
        """The call with this key, if one of them has answered it."""
        found = ((name, records.finished(key)) for name, records in self._records)
        return next((SharedCall(name, finished) for name, finished in found if finished is not None), None)

    def close(self) -> None:
        """Close the ledgers."""
        for _, records in self._records:
            records.close()
