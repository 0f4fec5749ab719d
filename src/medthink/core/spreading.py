"""Work in portions that need nothing of each other: done here, or on other machines."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

Portion = TypeVar("Portion")
Made = TypeVar("Made")


class Spread(Protocol):
    """Whoever has portions of work done elsewhere; `work` and the portions must be picklable."""

    def __call__(self, work: Callable[[Portion], Made], portions: Iterable[Portion]) -> Iterator[Made]:
        """What the work made of each portion, in their order."""
