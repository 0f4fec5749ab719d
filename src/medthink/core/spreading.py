"""Work in independent portions, done here or on other machines."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

Portion = TypeVar("Portion")
Made = TypeVar("Made")


class Spread(Protocol):
    """Something that runs portions of work elsewhere; `work` and the portions must be picklable."""

    def __call__(self, work: Callable[[Portion], Made], portions: Iterable[Portion]) -> Iterator[Made]:
        """The result for each portion, in order."""
