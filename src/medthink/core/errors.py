"""The error tree: what is raised when someone must act now.

MedThinkError           the root; `str(error)` is the whole message a person needs
├── UsageError          the command was called wrongly                       exit 2
├── DataError           a file, row or field is invalid          exit 2
├── LedgerError         the run on disk cannot be used or written            exit 2
├── OutsideError        the network, a hub or a provider failed              exit 3
│   └── ModelError      (in `medthink.models`) a model call failed, by kind
├── PartlyFailed        some cases failed, the others were answered          exit 4
└── Declined            the work was done and the answer is "no"             exit 1

What *happened to a case* (a refusal, an unparsed reply) is not an error but a result, and lives with the results.
"""

from collections.abc import Iterable


class MedThinkError(Exception):
    """Something a person must act on; `remedy` says what to do."""

    exit_code = 2

    def __init__(self, problem: str, *, remedy: str = "") -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(problem)

    def __str__(self) -> str:
        return f"{self.problem}\n  → {self.remedy}" if self.remedy else self.problem


class UsageError(MedThinkError):
    """The command was called in a way that cannot work."""


class DataError(MedThinkError):
    """A file is invalid; the message names the file, row and field, and the remedy."""

    def __init__(
        self, problem: str, *, file: object = "", row: int | None = None, field: str = "", remedy: str = ""
    ) -> None:
        super().__init__(problem, remedy=remedy)
        self.file = str(file)
        self.row = row
        self.field = field

    @property
    def place(self) -> str:
        """`file:row: field`, as far as known."""
        place = self.file + (f":{self.row}" if self.row is not None else "")
        return ": ".join(part for part in (place, self.field) if part)

    def __str__(self) -> str:
        message = super().__str__()
        return f"{self.place}: {message}" if self.place else message


class LedgerError(MedThinkError):
    """A run on disk cannot be opened, continued or written."""


class OutsideError(MedThinkError):
    """Something beyond this machine failed: a network, a hub, a provider."""

    exit_code = 3


class PartlyFailed(MedThinkError):
    """Some of the work failed and some was done; the same command retries what failed."""

    exit_code = 4


class Declined(MedThinkError):
    """The work was done, and the answer is no: a check failed, a budget was reached."""

    exit_code = 1


def did_you_mean(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """`did you mean NAME?` for the closest known name, or "" if none is close; a cutoff of 1 needs an exact match."""
    import difflib

    close = difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return f"did you mean {close[0]}?" if close else ""


def suggest(word: str, known: Iterable[str], otherwise: str) -> str:
    """A remedy: the closest known name if there is one, followed by `otherwise`."""
    return " ".join(part for part in (did_you_mean(word, known), otherwise) if part)
