"""The interface of every RadCliQ component."""

from collections.abc import Sequence
from importlib import metadata, util
from typing import Protocol

import msgspec

from medthink.metrics.bleu import bleu2
from medthink.metrics.radcliq.batches import Advance, advance_nothing

MAX_TOKENS = 512


class ComponentScores(msgspec.Struct, frozen=True):
    """One value per pair, and the pairs with a text truncated at the model's limit."""

    values: list[float]
    truncated: list[int]


class Component(Protocol):
    """One component of RadCliQ."""

    @property
    def name(self) -> str:
        """The field of `Components` it fills."""

    def unavailable(self) -> str | None:
        """Why it cannot be computed here; None if it can."""

    def score(
        self, references: Sequence[str], candidates: Sequence[str], advance: Advance = advance_nothing
    ) -> ComponentScores:
        """The value of every pair; texts are not empty, and `advance` is called as texts are done."""

    def fingerprint(self) -> dict[str, str]:
        """What the values depend on: weights by digest, packages by version, options."""


class Bleu2:
    """BLEU-2 as a component; it needs no weights."""

    name = "bleu2"

    def unavailable(self) -> str | None:
        """Always available."""
        return None

    def score(
        self, references: Sequence[str], candidates: Sequence[str], advance: Advance = advance_nothing
    ) -> ComponentScores:
        """BLEU-2 of every pair."""
        advance(len({*references, *candidates}))
        return ComponentScores([bleu2(r, c) for r, c in zip(references, candidates, strict=True)], [])

    def fingerprint(self) -> dict[str, str]:
        """Its definition only."""
        return {"definition": "sentence BLEU-2, smoothing 1"}


def missing_packages(*names: str) -> str | None:
    """Why these packages cannot be used; None if all are installed."""
    missing = [name for name in names if util.find_spec(name) is None]
    return f"{', '.join(missing)} not installed (pip install 'medthink[radcliq]')" if missing else None


def package_versions(*names: str) -> dict[str, str]:
    """The installed version of each package."""
    return {f"package:{name}": metadata.version(name) for name in names}
