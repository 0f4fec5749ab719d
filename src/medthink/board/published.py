"""Results that others have reported as totals: listed next to the ranking with their source, never in it."""

import tomllib
from importlib.resources import files

import msgspec

from medthink.stats import Measured, wilson


class PublishedResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One reported total; `note` says where the source contradicts itself."""

    model: str
    mode: str
    right: int
    effort: str = ""
    note: str = ""


class PublishedResults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All results of one source."""

    source: str
    split: str
    n_cases: int
    results: tuple[PublishedResult, ...]

    def accuracy(self, result: PublishedResult) -> Measured:
        """The reported accuracy with its interval."""
        return wilson(result.right, self.n_cases)


def load_published() -> PublishedResults:
    """The 59 results that were published with the benchmark, the highest first."""
    text = files("medthink.board").joinpath("published.toml").read_text(encoding="utf-8")
    found = msgspec.convert(tomllib.loads(text), PublishedResults)
    return msgspec.structs.replace(found, results=tuple(sorted(found.results, key=lambda one: -one.right)))
